"""Throttles of reassignments: the configs of topics and brokers that limit them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.steps import Steps
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.errors import ClientError, NoResponseError

if TYPE_CHECKING:
    from quorate.client import Admin

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"


class PartitionMove(NamedTuple):
    """The brokers that send a partition, and those that receive it."""

    sources: frozenset[int]
    destinations: frozenset[int]


Replicas = Mapping[PartitionName, Sequence[int]]


Changes = dict[Resource, list[AlterConfigOp]]


def proposed_moves(
    current: Mapping[PartitionName, Reassignment], targets: Replicas, replicas: Replicas
) -> dict[PartitionName, PartitionMove]:
    """Every move that goes on when the targets are set (`calculateProposedMoveMap`)."""
    moves = {
        partition: PartitionMove(
            frozenset(move.replicas) - frozenset(move.adding), frozenset(move.adding)
        )
        for partition, move in current.items()
    }
    for partition, target in targets.items():
        known = moves.get(partition)
        sources = frozenset(replicas[partition]) if known is None else known.sources
        moves[partition] = PartitionMove(sources, frozenset(target) - sources)
    return moves


def topic_throttles(moves: Mapping[PartitionName, PartitionMove]) -> Changes:
    """The replicas that are throttled, by topic: `PARTITION:BROKER,...` in order of text."""
    leaders: dict[str, set[str]] = {}
    followers: dict[str, set[str]] = {}
    for (topic, index), move in moves.items():
        leaders.setdefault(topic, set()).update(f"{index}:{each}" for each in move.sources)
        new = move.destinations - move.sources
        followers.setdefault(topic, set()).update(f"{index}:{each}" for each in new)
    return {
        Resource(ResourceType.TOPIC, topic): [
            AlterConfigOp(LEADER_REPLICAS, OpType.SET, ",".join(sorted(leaders[topic]))),
            AlterConfigOp(FOLLOWER_REPLICAS, OpType.SET, ",".join(sorted(followers[topic]))),
        ]
        for topic in leaders
    }


def broker_rates(brokers: Iterable[int], names: Sequence[str], rate: int) -> Changes:
    """The changes that set each config to `rate`, in bytes a second, on each broker."""
    return {
        Resource(ResourceType.BROKER, str(broker)): [
            AlterConfigOp(name, OpType.SET, str(rate)) for name in names
        ]
        for broker in sorted(brokers)
    }


def change_steps(what: str, changes: Changes) -> Iterator[str]:
    """How `Steps` names the changes: `throttle of broker 11`."""
    for each in changes:
        yield f"{what} of {each.type.name.lower()} {each.name}"


def apply_configs(admin: Admin, changes: Changes, steps: Steps, what: str) -> None:
    """Make the changes, those of topics first; `steps` gets what was made.

    Raises FlatToolError that names what was refused, NoResponseError where the outcome is unknown.
    """
    topics = {each: ops for each, ops in changes.items() if each.type is ResourceType.TOPIC}
    rest = {each: ops for each, ops in changes.items() if each not in topics}
    # Brokers are asked one by one, each about itself: one that is not alive must not hide the others.
    direct = admin.config.controllers
    groups = [topics, rest] if direct else [topics, *({each: rest[each]} for each in rest)]
    for group in ([topics], groups[1:]):
        failed: dict[Resource, str] = {}
        for part in filter(None, group):
            failed |= _apply(admin, part, steps, what)
        if failed:
            raise FlatToolError(
                "; ".join(
                    f"{each.type.name.lower()} {each.name}: {reason}"
                    for each, reason in failed.items()
                )
            )


def _apply(admin: Admin, changes: Changes, steps: Steps, what: str) -> dict[Resource, str]:
    """Make the changes of one request; return the reasons of what failed."""
    try:
        outcome = admin.incremental_alter_configs(changes)
    except NoResponseError:
        raise
    except ClientError as error:
        if len(changes) > 1:
            raise
        return {each: str(error) for each in changes}
    failed = {each: error.text for each, error in outcome.items() if error is not None}
    for step in change_steps(what, {each: changes[each] for each in outcome if each not in failed}):
        steps.done(step)
    return failed


def plural(values: Collection[object]) -> str:
    """The ending of a noun that counts the values."""
    return "" if len(values) == 1 else "s"
