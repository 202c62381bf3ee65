"""`quorate topics --describe`: topics, their configs and their partitions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.ids import ZERO_UUID, uuid_to_text
from quorate.cli.columns import fold
from quorate.cli.flat_options import FlatToolError, print_json
from quorate.client.admin.configs import ConfigEntry, ConfigEntrySource, Resource, ResourceType
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.admin.topics import PartitionDescription, TopicDescription
from quorate.client.errors import UnsupportedVersionError
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin

_FEW: Final = 1000
"""Of more partitions than these, all reassignments are listed: the request stays small."""
REPORTS = (
    "under_replicated_partitions",
    "unavailable_partitions",
    "under_min_isr_partitions",
    "at_min_isr_partitions",
)
"""Options that choose partitions by their state."""


@dataclass(frozen=True, slots=True)
class TopicReport:
    """Everything that is known of a topic. `live_brokers` is None where only controllers answer."""

    topic: TopicDescription
    configs: Sequence[ConfigEntry]
    moves: Mapping[int, Reassignment]
    """By index of the partition."""
    live_brokers: Collection[int] | None

    @property
    def overrides(self) -> list[ConfigEntry]:
        """The configs that are not Kafka's defaults (`!ConfigEntry.isDefault`)."""
        default = ConfigEntrySource.DEFAULT_CONFIG
        return [entry for entry in self.configs if entry.source != default]

    @property
    def min_isr(self) -> int:
        found = (e.value for e in self.configs if e.name == "min.insync.replicas")
        return int(next(found, None) or 1)

    def factor(self, partition: PartitionDescription) -> int:
        """The replication factor without the replicas that a reassignment adds."""
        move = self.moves.get(partition.index)
        if move is None or not {*move.adding, *move.removing} & {*partition.replicas}:
            return len(partition.replicas)
        return len(move.replicas) - len(move.adding)

    def is_shown(self, partition: PartitionDescription, reports: Collection[str]) -> bool:
        """Whether one of the reports asks for the partition; without reports all are shown."""
        if not reports:
            return True
        isr, leader = len(partition.isr), partition.leader
        unavailable = leader is None or (
            leader in partition.offline
            if self.live_brokers is None
            else leader not in self.live_brokers
        )
        facts = {
            "under_replicated_partitions": self.factor(partition) > isr,
            "unavailable_partitions": unavailable,
            "under_min_isr_partitions": leader is None or isr < self.min_isr,
            "at_min_isr_partitions": isr == self.min_isr,
        }
        return any(facts[report] for report in reports)


def reports_of(
    admin: Admin, topics: Sequence[TopicDescription], *, defaults: bool
) -> Iterator[TopicReport]:
    """Describe the configs and the reassignments of the topics too; `defaults`: all configs.

    Raises FlatToolError when the configs of a topic cannot be described.
    """
    resources = [Resource(ResourceType.TOPIC, topic.name) for topic in topics]
    configs = admin.describe_configs(resources, defaults=defaults) if resources else {}
    moves = _reassignments(admin, topics)
    live = None if admin.config.controllers else admin.describe_cluster().nodes
    for topic, resource in zip(topics, resources, strict=True):
        entries = configs.get(resource, ())
        if isinstance(entries, RequestFailedError):
            raise FlatToolError(entries.reason)
        yield TopicReport(topic, entries, moves.get(topic.name, {}), live)


def _reassignments(
    admin: Admin, topics: Sequence[TopicDescription]
) -> dict[str, dict[int, Reassignment]]:
    """Return reassignments by topic and index; none where the requester may not list them."""
    partitions = [PartitionName(t.name, each.index) for t in topics for each in t.partitions]
    if not partitions:
        return {}
    asked = partitions if len(partitions) <= _FEW else None
    try:
        found = admin.list_partition_reassignments(asked)
    except UnsupportedVersionError:
        return {}
    except RequestFailedError as error:
        if error.code.name not in ("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"):
            raise
        return {}
    moves: dict[str, dict[int, Reassignment]] = {}
    for partition, move in found.items():
        moves.setdefault(partition.topic, {})[partition.partition] = move
    return moves


def describe(admin: Admin, topics: Sequence[TopicDescription], options: Mapping[str, Any]) -> None:
    """Print the topics as `TopicCommand.describeTopic` does, or as JSON."""
    reports = [name for name in REPORTS if options[name]]
    only_overrides = options["topics_with_overrides"]
    rows = []
    lines: list[str] = []
    for report in reports_of(admin, topics, defaults=bool(reports)):
        with_topic = not reports and (not only_overrides or bool(report.overrides))
        shown = () if only_overrides else report.topic.partitions
        partitions = [each for each in shown if report.is_shown(each, reports)]
        if options["as_json"]:
            if with_topic or partitions:
                rows.append(_json(report, partitions))
            continue
        if with_topic:
            lines.append(_topic_line(report))
        lines += [_partition_line(report, partition) for partition in partitions]
    if options["as_json"]:
        print_json(rows)
    elif lines:
        click.echo("\n".join(fold(lines)))


def _topic_line(report: TopicReport) -> str:
    topic = report.topic
    topic_id = f"\tTopicId: {uuid_to_text(topic.topic_id)}" if topic.topic_id != ZERO_UUID else ""
    configs = ",".join(f"{e.name}={_java(e.value)}" for e in report.overrides)
    return (
        f"Topic: {topic.name}{topic_id}\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {report.factor(topic.partitions[0])}\tConfigs: {configs}"
    )


def _java(value: str | None) -> str:
    return "null" if value is None else value


def _partition_line(report: TopicReport, partition: PartitionDescription) -> str:
    move = report.moves.get(partition.index)
    leader = "none" if partition.leader is None else partition.leader
    moving = (
        f"\tAdding Replicas: {_ids(move.adding)}\tRemoving Replicas: {_ids(move.removing)}"
        if move is not None
        else ""
    )
    return (
        f"\tTopic: {report.topic.name}\tPartition: {partition.index}\tLeader: {leader}"
        f"\tReplicas: {_ids(partition.replicas)}\tIsr: {_ids(partition.isr)}{moving}"
        f"\tElr: {_ids(partition.elr)}\tLastKnownElr: {_ids(partition.last_known_elr)}"
    )


def _ids(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))


def _json(report: TopicReport, partitions: Sequence[PartitionDescription]) -> dict[str, Any]:
    topic = report.topic
    return {
        "topic": topic.name,
        "topicId": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": report.factor(topic.partitions[0]),
        "configs": {entry.name: entry.value for entry in report.overrides},
        "partitions": [_json_partition(report, each) for each in partitions],
    }


def _json_partition(report: TopicReport, partition: PartitionDescription) -> dict[str, Any]:
    move = report.moves.get(partition.index)
    return {
        "partition": partition.index,
        "leader": partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offlineReplicas": list(partition.offline),
        "addingReplicas": list(move.adding) if move is not None else [],
        "removingReplicas": list(move.removing) if move is not None else [],
        "eligibleLeaderReplicas": _list(partition.elr),
        "lastKnownEligibleLeaderReplicas": _list(partition.last_known_elr),
    }


def _list(ids: Sequence[int] | None) -> list[int] | None:
    return None if ids is None else list(ids)
