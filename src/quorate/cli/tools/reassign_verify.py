"""`quorate reassign-partitions --verify` and `--cancel`: how far moves are, and their end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from quorate.cli.columns import fold
from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.cli.tools.known_replicas import ReplicasByIndex, replicas_by_topic
from quorate.cli.tools.reassign_execute import directory_step, move_directories, replica_text
from quorate.cli.tools.reassign_files import ReassignmentPlan
from quorate.cli.tools.reassign_throttles import (
    DIRECTORY_RATE,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Changes,
    apply_configs,
    change_steps,
    plural,
)
from quorate.cli.tools.steps import Steps
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.errors import ClientError, UnsupportedVersionError
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin

_BROKER_THROTTLES: Final = (LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE)
_CLEARING: Final = "removal of the throttle"
_TOPIC_THROTTLES: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)


class PartitionState(NamedTuple):
    """How far the reassignment of a partition is."""

    current: tuple[int, ...]
    target: tuple[int, ...]
    is_done: bool


class DirectoryState(NamedTuple):
    """Where a replica lies and shall lie; a place is None where it is not known."""

    current: str | None
    future: str | None
    target: str

    @property
    def is_active(self) -> bool:
        return self.current is not None and self.future is not None


def verify(admin: Admin, plan: ReassignmentPlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Print and return how far the plan is; clear the throttles when everything is done."""
    states, ongoing = partition_states(admin, plan)
    moves = directory_states(admin, plan.directories)
    moving = any(state.is_active for state in moves.values())
    quiet = options["as_json"]
    if not quiet:
        click.echo("\n".join(fold(partition_lines(states))))
        click.echo("\n".join(fold(directory_lines(moves))))
    cleared = not ongoing and not moving and not options["preserve_throttles"]
    if cleared:
        brokers = throttled_brokers(admin, plan, {})
        steps = Steps(clear_steps(brokers, plan), as_json=quiet)
        with steps.reported():
            clear_throttles(admin, plan, brokers, steps, quiet=quiet)
    return {
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "currentReplicas": list(state.current),
                "targetReplicas": list(state.target),
                "done": state.is_done,
            }
            for each, state in sorted(states.items())
        ],
        "partitionsOngoing": ongoing,
        "directoryMoves": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "broker": each.broker_id,
                "currentDir": state.current,
                "futureDir": state.future,
                "targetDir": state.target,
                "done": not state.is_active,
            }
            for each, state in sorted(moves.items())
        ],
        "directoryMovesOngoing": moving,
        "throttlesCleared": cleared,
    }


# -- partitions ----------------------------------------------------------------------------------
def partition_states(
    admin: Admin, plan: ReassignmentPlan
) -> tuple[dict[PartitionName, PartitionState], bool]:
    """The state of each partition of the plan, and whether any reassignment is in progress."""
    current = admin.list_partition_reassignments()
    settled = sorted({part.topic for part, _ in plan.targets if part not in current})
    replicas = {
        topic: _replicas(found) for topic, found in replicas_by_topic(admin, settled).items()
    }
    states = {}
    for partition, target in plan.targets:
        move = current.get(partition)
        if move is not None:
            states[partition] = PartitionState(move.replicas, target, False)
        else:
            found = replicas[partition.topic].get(partition.partition, ())
            states[partition] = PartitionState(found, target, True)
    return states, bool(current)


def _replicas(topic: ReplicasByIndex | RequestFailedError) -> ReplicasByIndex:
    """The replicas of each partition by its index; none of a topic that does not exist."""
    if isinstance(topic, RequestFailedError):
        if topic.code.name == "UNKNOWN_TOPIC_OR_PARTITION":
            return {}
        raise topic
    return topic


def partition_lines(states: Mapping[PartitionName, PartitionState]) -> list[str]:
    """Return the lines of `partitionReassignmentStatesToString`."""
    lines = ["Status of partition reassignment:"]
    for partition, state in sorted(states.items()):
        if not state.is_done:
            lines.append(f"Reassignment of partition {partition} is still in progress.")
        elif state.current == state.target:
            lines.append(f"Reassignment of partition {partition} is completed.")
        else:
            lines.append(
                f"There is no active reassignment of partition {partition}, but replica set is "
                f"{_ids(state.current)} rather than {_ids(state.target)}."
            )
    return lines


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


# -- directories ---------------------------------------------------------------------------------
def directory_states(
    admin: Admin, targets: Mapping[TopicPartitionReplica, str]
) -> dict[TopicPartitionReplica, DirectoryState]:
    """Return where the replicas are. A broker that is not alive does not report its replicas.

    Raises ClientError where a live broker does not either: the throttles must stay until it does.
    """
    if not targets:
        return {}
    live = admin.describe_cluster().nodes
    brokers = {replica.broker_id for replica in targets} & set(live)
    current: dict[TopicPartitionReplica, str] = {}
    future: dict[TopicPartitionReplica, str] = {}
    for broker, dirs in (admin.describe_log_dirs(brokers) if brokers else {}).items():
        if isinstance(dirs, ClientError):
            raise dirs
        for log_dir in dirs:
            for partition, info in log_dir.replicas.items():
                found = future if info.is_future else current
                found[TopicPartitionReplica(partition, broker)] = log_dir.path
    return {
        each: DirectoryState(current.get(each), future.get(each), target)
        for each, target in targets.items()
    }


def directory_lines(states: Mapping[TopicPartitionReplica, DirectoryState]) -> list[str]:
    """Return the lines of `replicaMoveStatesToString`, by broker, then by partition."""
    return [
        _directory_line(each, states[each])
        for each in sorted(states, key=lambda each: (each.broker_id, each.partition))
    ]


def _directory_line(replica: TopicPartitionReplica, state: DirectoryState) -> str:
    where = f"Partition {replica.partition} on broker {replica.broker_id}"
    if state.current is None:
        return (
            f"Partition {replica.partition} is not found in any live log dir on broker "
            f"{replica.broker_id}. There is likely an offline log directory on the broker."
        )
    if state.future == state.target:
        return f"Reassignment of replica {replica_text(replica)} is still in progress."
    if state.future is not None:
        return f"{where} is being moved to log dir {state.future} instead of {state.target}."
    if state.current == state.target:
        return f"Reassignment of replica {replica_text(replica)} completed successfully."
    return f"{where} is not being moved from log dir {state.current} to {state.target}."


# -- throttles and the end -----------------------------------------------------------------------
def throttled_brokers(
    admin: Admin, plan: ReassignmentPlan, moves: Mapping[PartitionName, Reassignment]
) -> list[int]:
    """The brokers whose throttles are cleared: those of the plan and all others (`clearAllThrottles`).

    Controllers know every registered broker, and every one with configs. Where the user may not read
    their log, the replicas of the partitions are all that is known.
    """
    brokers = set(plan.brokers)
    if not admin.config.controllers:
        return sorted(brokers | set(admin.describe_cluster().nodes))
    try:
        return sorted(read_image(admin).cluster.brokers)
    except ImageUnreadableError:
        pass
    brokers.update(broker for move in moves.values() for broker in move.replicas)
    try:
        described = admin.describe_topics(plan.topics)
        configured = admin.list_config_resources(ResourceType.BROKER)
    except (UnsupportedVersionError, RequestFailedError):
        return sorted(brokers)
    for topic in described.values():
        if not isinstance(topic, RequestFailedError):
            brokers.update(broker for part in topic.partitions for broker in part.replicas)
    brokers.update(int(each.name) for each in configured if each.name)
    return sorted(brokers)


def _cleared(kind: ResourceType, names: Iterable[str], keys: Sequence[str]) -> Changes:
    return {
        Resource(kind, name): [AlterConfigOp(key, OpType.DELETE) for key in keys] for name in names
    }


def _clearing(brokers: Sequence[int], plan: ReassignmentPlan) -> tuple[Changes, Changes]:
    return (
        _cleared(ResourceType.BROKER, map(str, brokers), _BROKER_THROTTLES),
        _cleared(ResourceType.TOPIC, plan.topics, _TOPIC_THROTTLES),
    )


def clear_steps(brokers: Sequence[int], plan: ReassignmentPlan) -> list[str]:
    """How `Steps` names what `clear_throttles` does."""
    return [
        step for changes in _clearing(brokers, plan) for step in change_steps(_CLEARING, changes)
    ]


def clear_throttles(
    admin: Admin, plan: ReassignmentPlan, brokers: Sequence[int], steps: Steps, *, quiet: bool
) -> None:
    """Remove the throttles of these brokers and of the plan's topics (`clearAllThrottles`).

    Those of the topics are removed even where a broker fails.
    """
    of_brokers, of_topics = _clearing(brokers, plan)
    if not quiet:
        click.echo(f"Clearing broker-level throttles on broker{plural(brokers)} {_ids(brokers)}")
    failure = None
    try:
        apply_configs(admin, of_brokers, steps, _CLEARING)
    except FlatToolError as error:
        failure = error
    if not quiet:
        topics = plan.topics
        click.echo(f"Clearing topic-level throttles on topic{plural(topics)} {','.join(topics)}")
    apply_configs(admin, of_topics, steps, _CLEARING)
    if failure is not None:
        raise failure


def cancel(admin: Admin, plan: ReassignmentPlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Cancel what is in progress of the plan; the document of what was cancelled.

    Raises FlatToolError with the partitions that were refused. What was done is printed on stderr.
    """
    quiet = options["as_json"]
    wanted = dict(plan.targets)
    found = admin.list_partition_reassignments(wanted) if wanted else {}
    active = sorted(each for each, move in found.items() if move.adding or move.removing)
    moves = {
        each: state.current
        for each, state in directory_states(admin, plan.directories).items()
        if state.is_active and state.current is not None
    }
    clears = not options["preserve_throttles"]
    brokers = throttled_brokers(admin, plan, found) if clears else []
    steps = Steps(
        (
            *map(_cancelling, active),
            *map(directory_step, sorted(moves)),
            *(clear_steps(brokers, plan) if clears else ()),
        ),
        as_json=quiet,
    )
    with steps.reported():
        if active:
            _cancel_moves(admin, active, steps)
        if not quiet:
            if active:
                shown = ",".join(map(str, active))
                click.echo(
                    f"Successfully cancelled partition reassignment{plural(active)} for: {shown}"
                )
            else:
                click.echo("None of the specified partition reassignments are active.")
        if moves:
            move_directories(admin, moves, options, steps)
        elif not quiet:
            click.echo("None of the specified partition moves are active.", nl=False)
        if clears:
            clear_throttles(admin, plan, brokers, steps, quiet=quiet)
    return {
        "cancelled": [{"topic": each.topic, "partition": each.partition} for each in active],
        "cancelledDirectoryMoves": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "broker": each.broker_id,
            }
            for each in sorted(moves)
        ],
        "throttlesCleared": clears,
    }


def _cancelling(partition: PartitionName) -> str:
    return f"cancellation of {partition}"


def _cancel_moves(admin: Admin, active: Sequence[PartitionName], steps: Steps) -> None:
    with steps.in_parts(_cancelling):
        outcome = admin.alter_partition_reassignments(dict.fromkeys(active))
    errors = {each: error for each, error in outcome.items() if error is not None}
    for each in sorted(outcome.keys() - errors.keys()):
        steps.done(_cancelling(each))
    for each, error in errors.items():
        steps.refused(_cancelling(each), error.text)
    if errors:
        lines = [f"Error cancelling partition reassignment{plural(errors)} for:"]
        lines += [f"{each}: {errors[each].text}" for each in sorted(errors)]
        raise FlatToolError("\n".join(lines))
