"""`quorate reassign-partitions --execute`: begin reassignments, with throttles and directory moves."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.reassign_files import (
    ReassignmentPlan,
    check_plan,
    document_text,
    plan_document,
)
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
_RETRY_S: Final = 0.1
_EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override "
    "this and create a new partition assignment in addition to the existing one. The --additional "
    "flag can also be used to change the throttle by resubmitting the current reassignment."
)
_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


class PartitionMove(NamedTuple):
    """The brokers that send a partition, and those that receive it."""

    sources: frozenset[int]
    destinations: frozenset[int]


Replicas = Mapping[PartitionName, Sequence[int]]


def execute(admin: Admin, plan: ReassignmentPlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Begin the reassignments; the document of what was before and what has begun.

    Raises FlatToolError with the partitions that were refused, and those that have begun.
    """
    check_plan(plan)
    targets = dict(plan.targets)
    current = admin.list_partition_reassignments()
    if current and not options["additional"]:
        raise FlatToolError(_EXISTING)
    check_broker_ids(admin, plan.brokers)
    if plan.directories:
        _check_directories(admin)
    replicas = replicas_of(admin, targets)
    before = plan_document(replicas, directories_of(admin, replicas))
    quiet = options["as_json"]
    if not quiet:
        click.echo(
            f"Current partition replica assignment\n\n{document_text(before)}\n\nSave this to use as "
            "the --reassignment-json-file option during rollback"
        )
    _throttle(admin, plan, current, replicas, options)
    outcome = admin.alter_partition_reassignments(
        targets, allow_factor_change=not options["disallow_replication_factor_change"]
    )
    _check_begun("reassigning", outcome)
    if not quiet:
        click.echo(
            f"Successfully started partition reassignment{plural(targets)} for "
            + ",".join(map(str, sorted(targets)))
        )
    if plan.directories:
        move_directories(admin, plan.directories, options)
    return {"before": before, "started": [_json(partition) for partition in sorted(targets)]}


def _json(partition: PartitionName) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def plural(values: Collection[object]) -> str:
    """The ending of a noun that counts the values."""
    return "" if len(values) == 1 else "s"


def _check_begun(what: str, outcome: Mapping[PartitionName, RequestFailedError | None]) -> None:
    """Raise FlatToolError that lists what is not done and, where something is, what is done."""
    errors = {each: error for each, error in outcome.items() if error is not None}
    if not errors:
        return
    lines = [f"Error {what} partition(s):"]
    lines += [f"{each}: {errors[each].reason}" for each in sorted(errors)]
    done = sorted(outcome.keys() - errors.keys())
    if done:
        click.echo(f"Done for the other partitions: {','.join(map(str, done))}", err=True)
    raise FlatToolError("\n".join(lines))


def check_broker_ids(admin: Admin, brokers: Iterable[int]) -> None:
    """Raise FlatToolError for the first id that no broker has; controllers check it themselves."""
    if admin.config.controllers:
        return
    known = admin.describe_cluster().nodes
    for broker in sorted(brokers):
        if broker not in known:
            raise FlatToolError(f"Unknown broker id {broker}")


def _check_directories(admin: Admin) -> None:
    if admin.config.controllers:
        raise FlatToolError(
            'Directories ("log_dirs") are moved by brokers: use --bootstrap-server, or "any"'
        )


def replicas_of(
    admin: Admin, partitions: Iterable[PartitionName]
) -> dict[PartitionName, tuple[int, ...]]:
    """The replicas of now. Raises FlatToolError for an unknown topic or partition."""
    wanted = set(partitions)
    found = topic_replicas(admin, {partition.topic for partition in wanted})
    missing = sorted(wanted - found.keys())
    if missing:
        raise FlatToolError(f"Unable to find partition: {', '.join(map(str, missing))}")
    return {partition: found[partition] for partition in wanted}


def topic_replicas(admin: Admin, topics: Iterable[str]) -> dict[PartitionName, tuple[int, ...]]:
    """The replicas of all partitions of topics. Raises FlatToolError for an unknown topic."""
    replicas = {}
    for name, topic in admin.describe_topics(topics).items():
        if isinstance(topic, RequestFailedError):
            unknown = topic.code.name == "UNKNOWN_TOPIC_OR_PARTITION"
            raise FlatToolError(f"Topic {name} not found." if unknown else topic.reason)
        for partition in topic.partitions:
            replicas[PartitionName(name, partition.index)] = partition.replicas
    return replicas


def directories_of(admin: Admin, replicas: Replicas) -> dict[TopicPartitionReplica, str]:
    """Return where the replicas lie; nothing of brokers that do not answer, nothing for controllers."""
    if admin.config.controllers:
        return {}
    live = admin.describe_cluster().nodes
    brokers = {broker for ids in replicas.values() for broker in ids if broker in live}
    return {
        TopicPartitionReplica(partition, broker): log_dir.path
        for broker, dirs in (admin.describe_log_dirs(brokers) if brokers else {}).items()
        for log_dir in dirs
        for partition, info in log_dir.replicas.items()
        if partition in replicas and not info.is_future
    }


# -- throttles -----------------------------------------------------------------------------------
def _throttle(
    admin: Admin,
    plan: ReassignmentPlan,
    current: Mapping[PartitionName, Reassignment],
    replicas: Replicas,
    options: Mapping[str, Any],
) -> None:
    rate, directory_rate = options["throttle"], options["replica_alter_log_dirs_throttle"]
    quiet = options["as_json"]
    if rate < 0 and directory_rate < 0:
        return
    click.echo(_VERIFY, err=quiet)
    if rate >= 0:
        moves = proposed_moves(current, dict(plan.targets), replicas)
        changes = topic_throttles(moves)
        brokers = {b for move in moves.values() for b in move.sources | move.destinations}
        apply_configs(admin, changes)
        apply_configs(admin, broker_rates(brokers, (LEADER_RATE, FOLLOWER_RATE), rate))
        if not quiet:
            click.echo(f"The inter-broker throttle limit was set to {rate} B/s")
    if directory_rate >= 0:
        brokers = {replica.broker_id for replica in plan.directories}
        apply_configs(admin, broker_rates(brokers, (DIRECTORY_RATE,), directory_rate))
        if not quiet:
            click.echo(f"The replica-alter-dir throttle limit was set to {directory_rate} B/s")


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


def apply_configs(admin: Admin, changes: Changes) -> None:
    """Make the changes. Raises FlatToolError that names what was refused."""
    if not changes:
        return
    outcome = admin.incremental_alter_configs(changes)
    failed = {each: error for each, error in outcome.items() if error is not None}
    if failed:
        done = [f"{each.type.name.lower()} {each.name}" for each in outcome if each not in failed]
        if done:
            click.echo(f"Throttles were changed for: {', '.join(done)}", err=True)
        raise FlatToolError(
            "; ".join(
                f"{each.type.name.lower()} {each.name}: {error.reason}"
                for each, error in failed.items()
            )
        )


# -- directories ---------------------------------------------------------------------------------
def move_directories(
    admin: Admin,
    moves: Mapping[TopicPartitionReplica, str],
    options: Mapping[str, Any],
) -> None:
    """Move replicas to directories; retries while a replica is not on its broker yet.

    Raises FlatToolError after `--timeout`, with the replicas whose move has not begun.
    """
    pending = dict(moves)
    end = time.monotonic() + options["timeout"] / 1000
    while True:
        for replica, error in admin.alter_replica_log_dirs(pending).items():
            if error is None:
                path = pending.pop(replica)
                if not options["as_json"]:
                    click.echo(
                        f"Successfully started moving log directory to {path} for replica "
                        f"{replica.partition} with broker {replica.broker_id} "
                    )
            elif error.code.name != "REPLICA_NOT_AVAILABLE":
                raise FlatToolError(
                    f"Failed to alter dir for {replica_text(replica)}: {error.reason}"
                )
        if not pending:
            return
        if time.monotonic() >= end:
            shown = ",".join(map(replica_text, sorted(pending)))
            raise FlatToolError(
                f"Timed out before log directory move{plural(pending)} could be started for: {shown}"
            )
        time.sleep(_RETRY_S)


def replica_text(replica: TopicPartitionReplica) -> str:
    """Return the text of `TopicPartitionReplica.toString`: `orders-0-1`."""
    return f"{replica.partition}-{replica.broker_id}"
