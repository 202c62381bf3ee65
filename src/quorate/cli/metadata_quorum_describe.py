"""`quorate metadata-quorum describe`: the quorum as its leader sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Listener, uuid_to_text
from quorate.cli.options import CONTEXT, Tool, json_option, open_admin

if TYPE_CHECKING:
    from quorate.client.admin import Admin, Quorum


class QuorumToolError(QuorateError):
    """The command is refused; nothing was changed."""


@click.command(cls=Tool, context_settings=CONTEXT)
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
            facts["endpoints"] = [endpoint_text(listener) for listener in listeners]
        found.append(facts)
    return found


def endpoint_text(listener: Listener) -> str:
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
