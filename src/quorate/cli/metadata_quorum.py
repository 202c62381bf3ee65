"""`quorate metadata-quorum`: what the quorum is, and changes of its voters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Listener, ReplicaKey, uuid_from_text, uuid_to_text
from quorate.cli.options import (
    CONTEXT,
    INT32,
    OrderedGroup,
    connection_options,
    json_option,
    open_admin,
)

if TYPE_CHECKING:
    from quorate.client.admin import Admin, Quorum
    from quorate.client.alter import Targets
    from quorate.node.settings import Settings


class QuorumToolError(QuorateError):
    """The command is refused; nothing was changed."""


@click.group(
    cls=OrderedGroup,
    context_settings=CONTEXT,
    epilog="""\b
Examples (TOOL is: quorate metadata-quorum --bootstrap-controller localhost:9093):
  TOOL describe --status
  TOOL describe --replication --human-readable
  TOOL --command-config new-controller.properties add-controller
  TOOL remove-controller -i 3 -d 07R5amHmR32VDA6jHkGbTA
  TOOL alter --target 1,2,4@d:9093:$DIR4 --dry-run""",
)
@connection_options(
    "Properties of the client; for add-controller those of the controller that is added."
)
@click.pass_context
def metadata_quorum(ctx: click.Context, /, **options: Any) -> None:
    """Describe the quorum and change its voters (Kafka's kafka-metadata-quorum)."""
    ctx.obj = options


# -- describe -----------------------------------------------------------------------------


@metadata_quorum.command(context_settings=CONTEXT)
@click.option("--status", is_flag=True, help="A short summary of the quorum.")
@click.option("--replication", is_flag=True, help="How far each replica is, one per line.")
@click.option(
    "--human-readable", is_flag=True, help="Times as 'N ms ago'; only with --replication."
)
@json_option
@click.pass_obj
def describe(
    options: dict[str, Any], status: bool, replication: bool, human_readable: bool, as_json: bool
) -> None:
    """Describe the quorum as its leader sees it."""
    if status and replication:
        raise QuorumToolError(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if not status and not replication:
        raise QuorumToolError(
            "One of --status or --replication must be specified with describe sub-command"
        )
    if status and human_readable:
        raise QuorumToolError(
            "The option --human-readable is only supported along with --replication"
        )
    with open_admin(options)[0] as admin:
        if status:
            _describe_status(admin, as_json)
        else:
            _describe_replication(admin, human_readable, as_json)


def _describe_status(admin: Admin, as_json: bool) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    quorum = admin.describe_quorum()
    leader = quorum.leader
    last = min(quorum.voters, key=lambda voter: voter.log_end_offset)
    if last is leader:
        lag_ms = 0
    elif leader.last_caught_up_ms == -1 or last.last_caught_up_ms == -1:
        lag_ms = -1
    else:
        lag_ms = leader.last_caught_up_ms - last.last_caught_up_ms
    facts = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _replicas(quorum, quorum.voters),
        "CurrentObservers": _replicas(quorum, quorum.observers),
    }
    if as_json:
        _print_json({name[0].lower() + name[1:]: value for name, value in facts.items()})
        return
    for name, value in facts.items():
        shown = _java_list(value) if isinstance(value, list) else value
        click.echo(f"{name + ':':<24}{shown}")


def _replicas(quorum: Quorum, replicas: Any) -> list[dict[str, Any]]:
    """Id, directory id where it is known, and endpoints of voters."""
    found = []
    for replica in replicas:
        facts: dict[str, Any] = {"id": replica.key.id}
        if any(replica.key.directory_id):
            facts["directoryId"] = uuid_to_text(replica.key.directory_id)
        listeners = quorum.listeners.get(replica.key.id, ())
        if listeners:
            facts["endpoints"] = [_endpoint(listener) for listener in listeners]
        found.append(facts)
    return found


def _endpoint(listener: Listener) -> str:
    return f"{listener.name}://{listener.address}"


def _java_list(replicas: list[dict[str, Any]]) -> str:
    """The list as Kafka's tool writes it: much like JSON, nothing escaped."""
    shown = []
    for facts in replicas:
        text = f'"id": {facts["id"]}'
        if "directoryId" in facts:
            text += f', "directoryId": "{facts["directoryId"]}"'
        if "endpoints" in facts:
            endpoints = ", ".join(f'"{endpoint}"' for endpoint in facts["endpoints"])
            text += f', "endpoints": [{endpoints}]'
        shown.append(f"{{{text}}}")
    return f"[{', '.join(shown)}]"


def _describe_replication(admin: Admin, human_readable: bool, as_json: bool) -> None:
    import time

    quorum = admin.describe_quorum()
    now_ms = int(time.time() * 1000)
    leader = quorum.leader
    groups = (
        ("Leader", (leader,)),
        ("Follower", tuple(voter for voter in quorum.voters if voter is not leader)),
        ("Observer", quorum.observers),
    )
    rows = [
        {
            "NodeId": replica.key.id,
            "DirectoryId": uuid_to_text(replica.key.directory_id),
            "LogEndOffset": replica.log_end_offset,
            "Lag": leader.log_end_offset - replica.log_end_offset,
            "LastFetchTimestamp": replica.last_fetch_ms,
            "LastCaughtUpTimestamp": replica.last_caught_up_ms,
            "Status": status,
        }
        for status, replicas in groups
        for replica in replicas
    ]
    if as_json:
        _print_json([{name[0].lower() + name[1:]: row[name] for name in row} for row in rows])
        return
    if human_readable:
        for row in rows:
            for name in ("LastFetchTimestamp", "LastCaughtUpTimestamp"):
                row[name] = _ago(row[name], now_ms)
    _print_table(rows)


def _ago(timestamp_ms: Any, now_ms: int) -> str:
    """-1 stays; a clock that runs ahead of ours counts as now."""
    return "-1" if timestamp_ms == -1 else f"{max(0, now_ms - timestamp_ms)} ms ago"


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Columns padded to their widest cell, each ended by a tab, as Kafka's tools print them."""
    lines = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, strict=True)
        click.echo("".join(f"{value:<{width}}\t" for value, width in cells))


def _print_json(facts: Any) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))


# -- add and remove -----------------------------------------------------------------------


@metadata_quorum.command("add-controller", context_settings=CONTEXT)
@click.option("--dry-run", is_flag=True, help="Print what would be done, but do not do it.")
@click.pass_obj
def add_controller(options: dict[str, Any], dry_run: bool) -> None:
    """Make the controller of the --command-config file a voter."""
    admin, settings = open_admin(options)
    if settings is None:
        raise QuorumToolError(
            "You must supply the configuration file of the controller you are adding when using "
            "add-controller."
        )
    with admin:
        key, listeners = _controller_of(settings)
        if not dry_run:
            admin.add_voter(key, listeners)
    verb = "DRY RUN of adding" if dry_run else "Added"
    endpoints = ", ".join(map(_endpoint, listeners))
    click.echo(
        f"{verb} controller {key.id} with directory id {uuid_to_text(key.directory_id)} and "
        f"endpoints: {endpoints}"
    )


def _controller_of(settings: Settings) -> tuple[ReplicaKey, list[Listener]]:
    """Who the controller of a properties file is, and its listeners."""
    hint = "Is this a valid controller configuration file?"
    if "node.id" not in settings:
        raise QuorumToolError(f"node.id not found in configuration file. {hint}")
    node_id = settings.integer("node.id", None)
    assert node_id is not None
    if node_id < 0:
        raise QuorumToolError(f"node.id was negative in configuration file. {hint}")
    if "controller" not in (settings.text("process.roles") or ""):
        raise QuorumToolError(
            f"process.roles did not contain 'controller' in configuration file. {hint}"
        )
    directory = settings.text("metadata.log.dir") or (settings.items("log.dirs") or ("",))[0]
    if not directory:
        raise QuorumToolError(f"Neither metadata.log.dir nor log.dirs were found. {hint}")
    return ReplicaKey(node_id, _directory_id(directory)), _listeners_of(settings, hint)


def _directory_id(directory: str) -> Any:
    from quorate.node.ensemble import load_ensemble

    ensemble = load_ensemble([directory])
    if directory not in ensemble.found:
        why = ensemble.failed.get(directory)
        raise QuorumToolError(
            f"Unable to read meta.properties from {directory}" + (f" ({why})" if why else "")
        )
    directory_id = ensemble.found[directory].directory_id
    if directory_id is None:
        raise QuorumToolError(f"No directory id found in {directory}")
    return directory_id


def _listeners_of(settings: Settings, hint: str) -> list[Listener]:
    from quorate.node import addresses

    known = {}
    for key in (addresses.LISTENERS, addresses.ADVERTISED):
        found = addresses.listeners(settings, key, None, distinct_ports=False)
        known.update({listener.name: listener for listener in found or ()})
    names = settings.items(addresses.CONTROLLER_NAMES)
    if names is None:
        raise QuorumToolError(f"{addresses.CONTROLLER_NAMES} was not found. {hint}")
    chosen = []
    for name in names:
        listener = known.get(name.upper())
        if listener is None:
            raise QuorumToolError(
                f"Cannot find information about controller listener name: {name.upper()}"
            )
        chosen.append(Listener(listener.name, listener.host or "localhost", listener.port))
    return chosen


@metadata_quorum.command("remove-controller", context_settings=CONTEXT)
@click.option("--controller-id", "-i", type=INT32, required=True, help="The controller's node id.")
@click.option(
    "--controller-directory-id", "-d", required=True, metavar="UUID", help="Its directory id."
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, but do not do it.")
@click.pass_obj
def remove_controller(
    options: dict[str, Any], controller_id: int, controller_directory_id: str, dry_run: bool
) -> None:
    """Make a voter an observer."""
    with open_admin(options)[0] as admin:
        if controller_id < 0:
            raise QuorumToolError(f"Invalid negative --controller-id: {controller_id}")
        try:
            key = ReplicaKey(controller_id, uuid_from_text(controller_directory_id))
        except QuorateError as error:
            raise QuorumToolError(f"Failed to parse --controller-directory-id: {error}") from None
        if not dry_run:
            admin.remove_voter(key)
    # Two blanks after the verb, as in Kafka's output.
    verb = "DRY RUN of removing " if dry_run else "Removed "
    click.echo(
        f"{verb} KRaft controller {key.id} with directory id {uuid_to_text(key.directory_id)}"
    )


# -- alter --------------------------------------------------------------------------------


@metadata_quorum.command(
    context_settings=CONTEXT,
    epilog="""\b
Example: replace controller 1 by 4, and give 3, whose disk was lost, its new directory:
  quorate metadata-quorum --bootstrap-controller a:9093 alter \\
    --target 2,3@c:9093:$NEW_DIR3,4@d:9093:$DIR4""",
)
@click.option(
    "--target",
    required=True,
    metavar="VOTERS",
    help="All voters that shall be: id@host:port:directory-id of new ones, the id alone of those "
    "that stay as they are; separated by commas.",
)
@click.option("--dry-run", is_flag=True, help="Print the steps, but do not take them.")
@json_option
@click.pass_obj
def alter(options: dict[str, Any], target: str, dry_run: bool, as_json: bool) -> None:
    """Reach any voter set by single safe steps, each committed before the next.

    A voter that is added must run already, as an observer; else no step is taken. Ctrl-C ends it
    between two steps or within one; the same command goes on where it stopped.

    --json prints a line for each step, its "state" committed (planned with --dry-run), and one
    whose state is unchanged where there is nothing to do.
    """
    from quorate.client.alter import alter as carry_out
    from quorate.client.alter import steps_to

    with open_admin(options)[0] as admin:
        quorum = admin.describe_quorum()
        targets = _targets(target, quorum)
        progress = _Progress(targets, as_json)
        steps = steps_to(quorum, targets)
        if steps and admin.config.controllers:
            _warn_of_lost_bootstrap(admin, quorum, targets)
        if dry_run:
            for number, step in enumerate(steps, 1):
                progress.planned(step, f"DRY RUN of step {number} of {len(steps)}")
            _warn_of_unheard(quorum, steps, targets)
        elif steps:
            try:
                quorum = carry_out(admin, targets, progress.begin, progress.end)
            except KeyboardInterrupt:
                progress.stop()
                raise
    if as_json:
        if not steps:
            progress.show("unchanged")
        return
    if dry_run and steps:
        return
    if not steps:
        click.echo("The voters are as wanted already.")
    else:
        ids = ", ".join(str(voter.key.id) for voter in quorum.voters)
        click.echo(f"The voters are now {ids}.")


def _warn_of_lost_bootstrap(admin: Admin, quorum: Quorum, targets: Targets) -> None:
    from quorate.client.alter import addresses_to_know

    found = addresses_to_know(admin.config.bootstrap, quorum, targets)
    if found:
        given = ", ".join(map(str, admin.config.bootstrap))
        click.echo(
            f"Warning: no voter will be at {given} after this. Give --bootstrap-controller one of "
            f"{', '.join(map(str, found))} from then on, and see that the nodes' "
            "controller.quorum.bootstrap.servers names one of them before one starts anew.",
            err=True,
        )


def _warn_of_unheard(quorum: Quorum, steps: Any, targets: Targets) -> None:
    from quorate.client.alter import unheard, why_unheard

    for step in unheard(quorum, steps):
        click.echo(f"Warning: as it is now this fails. {why_unheard(step, targets)}.", err=True)


class _Progress:
    """Tells of the steps as they are taken."""

    def __init__(self, targets: Targets, as_json: bool) -> None:
        self._targets = targets
        self._as_json = as_json
        self._done = 0
        self._began = 0.0

    def begin(self, step: Any, following: int) -> None:
        from time import monotonic

        self._began = monotonic()
        if not self._as_json:
            total = self._done + 1 + following
            click.echo(f"Step {self._done + 1} of {total}: {self._text(step)} ... ", nl=False)

    def end(self, step: Any) -> None:
        from time import monotonic

        self._done += 1
        if self._as_json:
            self.show("committed", step)
        else:
            click.echo(f"committed in {round((monotonic() - self._began) * 1000)} ms")

    def stop(self) -> None:
        click.echo(
            f"\nStopped after {self._done} committed steps; one that was under way may still "
            "commit. Run the same command again to go on.",
            err=True,
        )

    def planned(self, step: Any, what: str) -> None:
        if self._as_json:
            self.show("planned", step)
        else:
            click.echo(f"{what}: {self._text(step)}")

    def show(self, state: str, step: Any = None) -> None:
        """A line of JSON."""
        import json

        facts: dict[str, Any] = {"state": state}
        if step is not None:
            action = self._text(step).partition(" ")[0]
            directory_id = uuid_to_text(step.voter.directory_id)
            facts |= {"action": action, "id": step.voter.id, "directoryId": directory_id}
        click.echo(json.dumps(facts))

    def _text(self, step: Any) -> str:
        from quorate.client.alter import step_text

        return step_text(step, self._targets)


def _targets(text: str, quorum: Quorum) -> Targets:
    """The voters of `--target`; an id alone stands for the voter of that id."""
    from quorate.node.dynamic_voters import VoterError, parse_voter

    voters = {str(voter.key.id): voter.key for voter in quorum.voters}
    found: dict[ReplicaKey, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part.isdecimal() and part not in voters:
            raise VoterError(
                f"Controller {part} is no voter now: give it as id@host:port:directory-id"
            )
        key, address = (voters[part], None) if part.isdecimal() else parse_voter(part)[:2]
        if key.id in {other.id for other in found}:
            raise VoterError(f"Node id {key.id} was specified more than once.")
        found[key] = address
    if not found:
        raise VoterError("No voters given.")
    return found
