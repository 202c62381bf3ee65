"""`quorate reassign-partitions`: move partitions between brokers, as kafka-reassign-partitions does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.columns import fold
from quorate.cli.flat_options import (
    FlatToolError,
    flat_command,
    given_options,
    open_tool,
    print_json,
    reason_of,
    refuse_with,
    require,
)
from quorate.cli.options import INT32, INT64

if TYPE_CHECKING:
    from quorate.cli.tools.reassign_files import ReassignmentPlan
    from quorate.client import Admin

ACTIONS: Final = ("generate", "execute", "verify", "cancel", "list")
_FILE: Final = "reassignment-json-file"
_PROPOSALS: Final = ("topic", "from-broker")
"""Options that propose a reassignment without a file; Kafka's tool has none."""
_ALWAYS: Final = ("bootstrap-server", "bootstrap-controller", "command-config", "json")
_PERMITTED: Final[Mapping[str, Sequence[str]]] = {
    "generate": ("topics-to-move-json-file", "broker-list", "disable-rack-aware", *_PROPOSALS),
    "execute": (
        *(_FILE, "additional", "throttle", "replica-alter-log-dirs-throttle", "timeout", "wait"),
        *("disallow-replication-factor-change", "broker-list", "disable-rack-aware", *_PROPOSALS),
    ),
    "verify": (_FILE, "preserve-throttles", "wait"),
    "cancel": (_FILE, "preserve-throttles", "timeout"),
    "list": (),
}


@flat_command(
    "reassign-partitions",
    """\
TOOL is: quorate reassign-partitions --bootstrap-server localhost:9092
TOOL --generate --topics-to-move-json-file topics.json --broker-list 1,2,3
TOOL --execute --reassignment-json-file plan.json --throttle 50000000
TOOL --verify --reassignment-json-file plan.json
TOOL --execute --topic 'orders.*' --broker-list 4,5,6 --wait
TOOL --execute --from-broker 3 --wait
quorate reassign-partitions --bootstrap-controller localhost:9093 --list --json""",
    "Client properties file.",
    timeout=False,
)
@click.option("--generate", is_flag=True, help="Propose a reassignment; change nothing.")
@click.option("--execute", is_flag=True, help="Begin the reassignment of the file.")
@click.option("--verify", is_flag=True, help="Show how far it is; clear the throttles at its end.")
@click.option("--cancel", is_flag=True, help="Cancel the reassignment of the file.")
@click.option("--list", "list_moves", is_flag=True, help="List the reassignments in progress.")
@click.option(
    "--reassignment-json-file",
    metavar="FILE",
    help='{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], '
    '"log_dirs": ["any", "/dir"]}]}; log_dirs may be left out.',
)
@click.option(
    "--topics-to-move-json-file",
    metavar="FILE",
    help='{"version": 1, "topics": [{"topic": "t"}]}',
)
@click.option(
    "--topic",
    multiple=True,
    metavar="NAME",
    help="In place of a file: topics to move to --broker-list. A regular expression; may be repeated.",
)
@click.option(
    "--from-broker",
    type=INT32,
    multiple=True,
    metavar="ID",
    help="In place of a file: move every replica off this broker; with --bootstrap-server, those of the "
    "topics that the user may describe. May be repeated.",
)
@click.option(
    "--broker-list",
    metavar="ID,...",
    help="The brokers that shall have the replicas; with --from-broker by default all others. With "
    "--bootstrap-controller the user needs ClusterAction on Cluster, or --disable-rack-aware with this list.",
)
@click.option("--wait", is_flag=True, help="Show the progress until the reassignment is complete.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore the racks of the brokers.")
@click.option(
    "--throttle",
    type=INT64,
    default=-1,
    metavar="BYTES/S",
    help="Limit of the traffic between brokers, at least 1 KB/s.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    type=INT64,
    default=-1,
    metavar="BYTES/S",
    help="Limit of the traffic between directories of a broker.",
)
@click.option(
    "--timeout",
    type=INT64,
    default=10_000,
    metavar="MS",
    help="How long to wait until directory moves begin. Default: 10000.",
)
@click.option("--additional", is_flag=True, help="In addition to reassignments in progress.")
@click.option("--preserve-throttles", is_flag=True, help="Keep the throttles.")
@click.option(
    "--disallow-replication-factor-change",
    is_flag=True,
    help="Refuse a partition whose number of replicas would change.",
)
def reassign_partitions(ctx: click.Context, /, **options: Any) -> int:
    """Move partitions between brokers and directories (Kafka's kafka-reassign-partitions)."""
    given = given_options(ctx)
    action = check_options(given)
    as_json = options["as_json"]
    try:
        # The option --timeout of this tool is Kafka's, for directory moves.
        with open_tool({**options, "timeout": None}) as admin:
            document = _PERFORM[action](admin, options)
    except QuorateError as error:
        # Where Kafka's tool has every error after the options were checked.
        reason = reason_of(error)
        click.echo(reason if _is_terse(reason) else f"Error: {reason}", err=as_json)
        return 1
    if as_json:
        print_json(document)
    return 0


def _is_terse(reason: str) -> bool:
    """Whether Kafka's tool prints the text alone (`TerseException`)."""
    return reason.startswith(("Cannot execute because", "Error ", "Timed out before"))


def check_options(given: Collection[str]) -> str:
    """The action. Raises UsageError for options that do not fit (`validateAndParseArgs`)."""
    actions = [name for name in ACTIONS if name in given]
    if len(actions) != 1:
        raise click.UsageError(
            "Command must include exactly one action: "
            "--generate, --execute, --verify, --cancel, --list"
        )
    [action] = actions
    lists = {"bootstrap-server", "bootstrap-controller"} & set(given)
    if len(lists) == 2:
        raise click.UsageError(
            "Please don't specify both --bootstrap-server and --bootstrap-controller"
        )
    if not lists and "command-config" not in given:
        raise click.UsageError("Please specify either --bootstrap-server or --bootstrap-controller")
    _check_source(action, given)
    allowed = {action, *_ALWAYS, *_PERMITTED[action]}
    for name in sorted(given):
        if name not in allowed:
            raise click.UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def _check_source(action: str, given: Collection[str]) -> None:
    """Raise UsageError unless exactly one option says what is reassigned."""
    if action == "list":
        return
    file = "topics-to-move-json-file" if action == "generate" else _FILE
    proposals = [name for name in _PROPOSALS if name in given]
    if action not in ("generate", "execute") or not proposals:
        require(given, file)
    for name in proposals:
        refuse_with(given, name, (file, *(each for each in proposals if each != name)))
    if "from-broker" not in given and (action == "generate" or proposals):
        require(given, "broker-list")


# -- actions -------------------------------------------------------------------------------------
def _list(admin: Admin, options: Mapping[str, Any]) -> Any:
    found = sorted(admin.list_partition_reassignments().items())
    if not options["as_json"]:
        click.echo(
            "Current partition reassignments:" if found else "No partition reassignments found."
        )
        for partition, move in found:
            adding = f" adding: {_ids(move.adding)}." if move.adding else ""
            removing = f" removing: {_ids(move.removing)}." if move.removing else ""
            text = f"{partition}: replicas: {_ids(move.replicas)}.{adding}{removing}"
            click.echo("\n".join(fold([text])))
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(move.replicas),
            "addingReplicas": list(move.adding),
            "removingReplicas": list(move.removing),
        }
        for partition, move in found
    ]


def _ids(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def _execute(admin: Admin, options: Mapping[str, Any]) -> Any:
    from quorate.cli.tools.reassign_execute import execute

    plan = _plan(admin, options)
    document = execute(admin, plan, options)
    if options["wait"]:
        from quorate.cli.tools.reassign_verify import verify

        _wait(admin, plan, options)
        document["verified"] = verify(admin, plan, options)
    return document


def _plan(admin: Admin, options: Mapping[str, Any]) -> ReassignmentPlan:
    """The plan of the file, or the proposal for the topics or brokers of the options."""
    from quorate.cli.tools.reassign_files import ReassignmentPlan, read_plan

    if options["reassignment_json_file"] is not None:
        return read_plan(options["reassignment_json_file"])
    from quorate.cli.tools.reassign_proposals import propose

    current, proposed = propose(admin, options)
    changed = {each: tuple(ids) for each, ids in proposed.items() if ids != current[each]}
    if not changed:
        raise FlatToolError("Nothing is to be reassigned: the replicas are where they shall be")
    return ReassignmentPlan(sorted(changed.items()))


def _wait(admin: Admin, plan: ReassignmentPlan, options: Mapping[str, Any]) -> None:
    if options["wait"]:
        from quorate.cli.tools.reassign_progress import wait

        wait(admin, plan)


def _verify(admin: Admin, options: Mapping[str, Any]) -> Any:
    from quorate.cli.tools.reassign_files import read_plan
    from quorate.cli.tools.reassign_verify import verify

    plan = read_plan(options["reassignment_json_file"])
    _wait(admin, plan, options)
    return verify(admin, plan, options)


def _cancel(admin: Admin, options: Mapping[str, Any]) -> Any:
    from quorate.cli.tools.reassign_files import read_plan
    from quorate.cli.tools.reassign_verify import cancel

    return cancel(admin, read_plan(options["reassignment_json_file"]), options)


def _generate(admin: Admin, options: Mapping[str, Any]) -> Any:
    from quorate.cli.tools.reassign_execute import directories_of
    from quorate.cli.tools.reassign_files import document_text, plan_document
    from quorate.cli.tools.reassign_proposals import propose

    replicas, targets = propose(admin, options)
    current = plan_document(replicas, directories_of(admin, replicas))
    proposed = plan_document(targets, {})
    if not options["as_json"]:
        click.echo(f"Current partition replica assignment\n{document_text(current)}\n")
        click.echo(f"Proposed partition reassignment configuration\n{document_text(proposed)}")
    return {"current": current, "proposed": proposed}


_PERFORM: Final = {
    "generate": _generate,
    "execute": _execute,
    "verify": _verify,
    "cancel": _cancel,
    "list": _list,
}
