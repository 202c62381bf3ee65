"""`quorate metadata-quorum describe`: the quorum in its leader's view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Listener, uuid_to_text
from quorate.cli.options import CONTEXT, ToolCommand, json_option, open_admin

if TYPE_CHECKING:
    from quorate.client import Admin, QuorumInfo


class QuorumToolError(QuorateError):
    """The command is refused; nothing was changed."""


@click.command(cls=ToolCommand, context_settings=CONTEXT)
@click.option("--status", is_flag=True, help="Print a summary of the quorum.")
@click.option(
    "--replication", is_flag=True, help="Print the progress of each replica, one per line."
)
@click.option(
    "--human-readable", is_flag=True, help="Print times as 'N ms ago'; only with --replication."
)
@json_option
@click.pass_obj
def describe(
    options: dict[str, Any], status: bool, replication: bool, human_readable: bool, as_json: bool
) -> None:
    """Describe the quorum in its leader's view."""
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
    facts: dict[str, Any] = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - last.log_end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _replicas(quorum, quorum.voters),
        "CurrentObservers": _replicas(quorum, quorum.observers),
    }
    facts |= _uncommitted(admin, quorum)
    if as_json:
        _print_json({name[0].lower() + name[1:]: value for name, value in facts.items()})
        return
    from quorate.cli.columns import fold

    for name, value in facts.items():
        shown = _java_list(value) if isinstance(value, list) else value
        for line in fold([f"{name + ': ':<24}{shown}"]):
            click.echo(line)


def _replicas(quorum: QuorumInfo, replicas: Any) -> list[dict[str, Any]]:
    """Id, directory id if known, and endpoints if known, of each replica."""
    found = []
    for replica in replicas:
        facts: dict[str, Any] = {"id": replica.key.id}
        if any(replica.key.directory_id):
            facts["directoryId"] = uuid_to_text(replica.key.directory_id)
        listeners = quorum.listeners.get(replica.key.id, ())
        if listeners:
            facts["endpoints"] = [endpoint_text(listener) for listener in listeners]
        found.append(facts)
    return found


def _uncommitted(admin: Admin, quorum: QuorumInfo) -> dict[str, list[dict[str, Any]]]:
    """The rows of KIP-853 for a change that is not committed; none for none, as in Kafka's tool."""
    from quorate.cli.tools.uncommitted_voters import uncommitted_change

    change = uncommitted_change(admin.config, quorum)
    rows = {"UncommittedAddedVoter": change.added, "UncommittedRemovedVoter": change.removed}
    return {
        name: [{"id": key.id, "directoryId": uuid_to_text(key.directory_id)} for key in keys]
        for name, keys in rows.items()
        if keys
    }


def endpoint_text(listener: Listener) -> str:
    """Return `NAME://host:port`."""
    return f"{listener.name}://{listener.address}"


def _java_list(replicas: list[dict[str, Any]]) -> str:
    """The list in the form of Kafka's tool: like JSON, without escapes."""
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
        leader_now_ms = max(now_ms, leader.last_fetch_ms)
        for row in rows:
            for name in ("LastFetchTimestamp", "LastCaughtUpTimestamp"):
                row[name] = _format_age(row[name], leader_now_ms)
        if leader_now_ms > now_ms:
            click.echo(
                f"The clock of leader {quorum.leader_id} is {leader_now_ms - now_ms} ms ahead of this "
                "machine's (possible drift in system clock): times are relative to the leader's clock.",
                err=True,
            )
    _print_table(rows)


def _format_age(timestamp_ms: Any, now_ms: int) -> str:
    """Return `N ms ago`, or -1 for unknown.

    The leader sets the timestamps, and its own is its time of the response. Kafka's tool subtracts them
    from its own clock and ends with an error where one of them is later than that.
    """
    if timestamp_ms == -1:
        return "-1"
    age_ms = now_ms - timestamp_ms
    return f"{age_ms} ms ago" if age_ms >= 0 else f"{-age_ms} ms in the future (clock drift)"


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print columns padded to their widest cell and followed by a tab, as Kafka's tools do."""
    from quorate.cli.columns import fit

    names, cells = list(rows[0]), [[str(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = [
        "".join(f"{value:<{width}}\t" for value, width in zip(line, widths, strict=True))
        for line in (names, *cells)
    ]
    for line in fit(lines, names, cells):
        click.echo(line)


def _print_json(facts: Any) -> None:
    import json

    click.echo(json.dumps(facts, indent=2))
