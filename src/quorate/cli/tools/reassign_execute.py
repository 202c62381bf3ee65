"""`quorate reassign-partitions --execute`: begin reassignments, with throttles and directory moves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.cluster_image import registered_brokers
from quorate.cli.tools.known_replicas import topic_replicas
from quorate.cli.tools.reassign_files import (
    ReassignmentPlan,
    check_plan,
    document_text,
    plan_document,
)
from quorate.cli.tools.reassign_throttles import (
    DIRECTORY_RATE,
    FOLLOWER_RATE,
    LEADER_RATE,
    Changes,
    Replicas,
    apply_configs,
    broker_rates,
    change_steps,
    plural,
    proposed_moves,
    topic_throttles,
)
from quorate.cli.tools.steps import Steps
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin

_RETRY_S: Final = 0.1
_EXISTING: Final = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override "
    "this and create a new partition assignment in addition to the existing one. The --additional "
    "flag can also be used to change the throttle by resubmitting the current reassignment."
)
_SAVE: Final = "Save this to use as the --reassignment-json-file option of --verify and --cancel"
_VERIFY: Final = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


def execute(admin: Admin, plan: ReassignmentPlan, options: Mapping[str, Any]) -> dict[str, Any]:
    """Begin the reassignments; the document of what was before and what has begun.

    Raises FlatToolError with the partitions that were refused. What was done before is printed on stderr.
    """
    check_plan(plan)
    if plan.directories:
        _check_directories(admin)
    targets = dict(plan.targets)
    current = admin.list_partition_reassignments()
    if current and not options["additional"]:
        raise FlatToolError(_EXISTING)
    check_broker_ids(admin, plan.brokers)
    replicas = replicas_of(admin, targets)
    before = plan_document(replicas, directories_of(admin, replicas))
    quiet = options["as_json"]
    if not quiet:
        click.echo(
            f"Current partition replica assignment\n\n{document_text(before)}\n\nSave this to use as "
            "the --reassignment-json-file option during rollback"
        )
    proposed = plan_document(targets, plan.directories)
    is_own = options["reassignment_json_file"] is None
    if is_own and not quiet:
        click.echo(
            f"\nProposed partition reassignment configuration\n\n{document_text(proposed)}\n\n{_SAVE}\n"
        )
    throttles = _throttles(plan, current, replicas, options)
    steps = Steps(
        (
            *(step for changes, _ in throttles for step in change_steps("throttle", changes)),
            *map(_reassignment_step, sorted(targets)),
            *(directory_step(replica) for replica in sorted(plan.directories)),
        ),
        f"The plan: {document_text(proposed)}" if is_own and quiet else None,
        as_json=quiet,
    )
    with steps.reported():
        _throttle(admin, throttles, steps, quiet=quiet)
        with steps.in_parts(_reassignment_step):
            outcome = admin.alter_partition_reassignments(
                targets, allow_factor_change=not options["disallow_replication_factor_change"]
            )
        _check_begun(outcome, steps)
        if not quiet:
            click.echo(
                f"Successfully started partition reassignment{plural(targets)} for "
                + ",".join(map(str, sorted(targets)))
            )
        if plan.directories:
            move_directories(admin, plan.directories, options, steps)
    return {
        "before": before,
        "plan": proposed,
        "started": [_json(partition) for partition in sorted(targets)],
    }


def _reassignment_step(partition: PartitionName) -> str:
    return f"reassignment of {partition}"


def _json(partition: PartitionName) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _check_begun(outcome: Mapping[PartitionName, RequestFailedError | None], steps: Steps) -> None:
    """Raise FlatToolError that lists what was refused; `steps` gets what has begun."""
    errors = {each: error for each, error in outcome.items() if error is not None}
    for each in sorted(outcome.keys() - errors.keys()):
        steps.done(_reassignment_step(each))
    for each, error in errors.items():
        steps.refused(_reassignment_step(each), error.text)
    if errors:
        lines = ["Error reassigning partition(s):"]
        lines += [f"{each}: {errors[each].text}" for each in sorted(errors)]
        raise FlatToolError("\n".join(lines))


def check_broker_ids(admin: Admin, brokers: Iterable[int]) -> None:
    """Raise FlatToolError for the first id that no broker has.

    Where the user may not read the metadata log of the controllers, they check the ids later.
    """
    known: AbstractSet[int] | None
    if admin.config.controllers:
        known = registered_brokers(admin)
        if known is None:
            return
    else:
        known = admin.describe_cluster().nodes.keys()
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


def directories_of(admin: Admin, replicas: Replicas) -> dict[TopicPartitionReplica, str]:
    """Return where the replicas lie; nothing of brokers that do not answer, nothing for controllers."""
    if admin.config.controllers:
        return {}
    live = admin.describe_cluster().nodes
    brokers = {broker for ids in replicas.values() for broker in ids if broker in live}
    return {
        TopicPartitionReplica(partition, broker): log_dir.path
        for broker, dirs in (admin.describe_log_dirs(brokers) if brokers else {}).items()
        if not isinstance(dirs, ClientError)
        for log_dir in dirs
        for partition, info in log_dir.replicas.items()
        if partition in replicas and not info.is_future
    }


# -- throttles -----------------------------------------------------------------------------------
def _throttles(
    plan: ReassignmentPlan,
    current: Mapping[PartitionName, Reassignment],
    replicas: Replicas,
    options: Mapping[str, Any],
) -> list[tuple[Changes, str]]:
    """The changes that throttle the plan, in order, each with the text that follows it."""
    rate, directory_rate = options["throttle"], options["replica_alter_log_dirs_throttle"]
    found = []
    if rate >= 0:
        moves = proposed_moves(current, dict(plan.targets), replicas)
        brokers = {b for move in moves.values() for b in move.sources | move.destinations}
        rates = broker_rates(brokers, (LEADER_RATE, FOLLOWER_RATE), rate)
        text = f"The inter-broker throttle limit was set to {rate} B/s"
        found.append((topic_throttles(moves) | rates, text))
    if directory_rate >= 0:
        brokers = {replica.broker_id for replica in plan.directories}
        text = f"The replica-alter-dir throttle limit was set to {directory_rate} B/s"
        found.append((broker_rates(brokers, (DIRECTORY_RATE,), directory_rate), text))
    return found


def _throttle(
    admin: Admin, throttles: Sequence[tuple[Changes, str]], steps: Steps, *, quiet: bool
) -> None:
    if throttles:
        click.echo(_VERIFY, err=quiet)
    for changes, text in throttles:
        apply_configs(admin, changes, steps, "throttle")
        if not quiet:
            click.echo(text)


# -- directories ---------------------------------------------------------------------------------
def move_directories(
    admin: Admin,
    moves: Mapping[TopicPartitionReplica, str],
    options: Mapping[str, Any],
    steps: Steps,
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
                steps.done(directory_step(replica))
                if not options["as_json"]:
                    click.echo(
                        f"Successfully started moving log directory to {path} for replica "
                        f"{replica.partition} with broker {replica.broker_id} "
                    )
            elif error.code.name != "REPLICA_NOT_AVAILABLE":
                raise FlatToolError(
                    f"Failed to alter dir for {replica_text(replica)}: {error.text}"
                )
        if not pending:
            return
        if time.monotonic() >= end:
            shown = ",".join(map(replica_text, sorted(pending)))
            raise FlatToolError(
                f"Timed out before log directory move{plural(pending)} could be started for: {shown}"
            )
        time.sleep(_RETRY_S)


def directory_step(replica: TopicPartitionReplica) -> str:
    """How `Steps` names the move of a replica to another directory."""
    return f"directory move of {replica_text(replica)}"


def replica_text(replica: TopicPartitionReplica) -> str:
    """Return the text of `TopicPartitionReplica.toString`: `orders-0-1`."""
    return f"{replica.partition}-{replica.broker_id}"
