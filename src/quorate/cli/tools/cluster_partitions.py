"""Partitions that `quorate cluster problems` names: without a leader, or with too small an ISR."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.client.admin.configs import Resource, ResourceType
from quorate.client.admin.reassignments import PartitionName
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.metadata.image import Image

_MIN_ISR: Final = "min.insync.replicas"
_SHOWN: Final = 5
"""Most partitions that one text names."""


class Problem(NamedTuple):
    """A fault. `runbook` is the heading of its entry in docs/operations.md."""

    node: str
    what: str
    remedy: str
    runbook: str


class PartitionFacts(NamedTuple):
    """A partition as the cluster sees it; `leader` is None without one."""

    name: PartitionName
    leader: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    elr: tuple[int, ...]


def partitions_of(image: Image) -> Iterator[PartitionFacts]:
    """All partitions that controllers know."""
    for topic in image.topics.by_id.values():
        for index, part in topic.partitions.items():
            leader = part.leader if part.leader >= 0 else None
            yield PartitionFacts(
                PartitionName(topic.name, index), leader, part.isr, part.replicas, part.elr
            )


def partitions_described(admin: Admin) -> Iterator[PartitionFacts]:
    """All partitions that the requester may see. Raises ClientError."""
    for name, topic in admin.describe_topics().items():
        if isinstance(topic, RequestFailedError):
            continue
        for part in topic.partitions:
            leader = part.leader if part.leader is not None and part.leader >= 0 else None
            yield PartitionFacts(
                PartitionName(name, part.index), leader, part.isr, part.replicas, part.elr or ()
            )


def partition_problems(admin: Admin, every: Iterable[PartitionFacts]) -> Iterator[Problem]:
    """One problem for the partitions without a leader, and one for those below min.insync.replicas."""
    leaderless: list[PartitionFacts] = []
    shrunk: list[PartitionFacts] = []
    for each in every:
        if each.leader is None:
            leaderless.append(each)
        elif len(each.isr) < len(each.replicas):
            shrunk.append(each)
    if leaderless:
        able = sorted({broker for each in leaderless for broker in (*each.isr, *each.elr)})
        yield Problem(
            "partitions",
            f"{_count(leaderless)} without a leader, so nobody reads or writes: {_named(leaderless)}",
            f"start a broker that may lead each: {', '.join(map(str, able)) or 'any replica'}",
            "QuorateOfflinePartitions",
        )
    if shrunk:
        least = _min_isr(admin, {each.name.topic for each in shrunk})
        low = [each for each in shrunk if len(each.isr) < least.get(each.name.topic, 1)]
        if low:
            missing = sorted({b for each in low for b in each.replicas if b not in each.isr})
            yield Problem(
                "partitions",
                f"{_count(low)} with fewer replicas in sync than {_MIN_ISR}, so writes with acks=all "
                f"fail: {_named(low)}",
                f"start the brokers that are out of sync: {', '.join(map(str, missing))}",
                "Shrunken ISR",
            )


def _min_isr(admin: Admin, topics: Collection[str]) -> dict[str, int]:
    """min.insync.replicas in force; nothing of topics whose configs the requester may not see."""
    wanted = [Resource(ResourceType.TOPIC, name) for name in sorted(topics)]
    try:
        found = admin.describe_configs(wanted)
    except ClientError:
        return {}
    return {
        resource.name: int(entry.value)
        for resource, entries in found.items()
        if not isinstance(entries, RequestFailedError)
        for entry in entries
        if entry.name == _MIN_ISR and entry.value
    }


def _count(found: Collection[PartitionFacts]) -> str:
    return f"{len(found)} partition{'' if len(found) == 1 else 's'}"


def _named(found: Iterable[PartitionFacts]) -> str:
    names = sorted(each.name for each in found)
    return ", ".join(map(str, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
