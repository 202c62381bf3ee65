"""Watch a quorum in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from quorate.cli.quickstart.commands import next_commands, restart_command
from quorate.cli.quickstart.quorum_client import (
    WATCHER_MS,
    admin_of,
    describe_or_none,
    open_quorum,
)
from quorate.cli.quickstart.supervisor import Supervisor
from quorate.client import Admin, QuorumInfo

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import JustifyMethod
    from rich.table import Table

_REFRESH_S: Final = 0.5


def run_quorum(data: Path, controllers: int | None, *, secure: bool) -> int:
    """Run the quorum of a data directory and watch it until Ctrl-C; returns the exit code."""
    with Supervisor(data) as quorum:
        try:
            open_quorum(quorum, controllers, secure=secure)
            quorum.start_all()
            with admin_of(quorum, WATCHER_MS) as admin:
                if secure:
                    from quorate.cli.quickstart.secure_tour import show_security

                    show_security(quorum, admin)
                for line in next_commands(quorum):
                    click.echo(line)
                watch(quorum, admin)
        except KeyboardInterrupt:
            click.echo("\nStopping the controllers ...")
    for node_id, pid in quorum.running_elsewhere().items():
        click.echo(f"Controller {node_id} (pid {pid}) keeps running: another program started it.")
    click.echo("Stopped. The data is kept: run the same command to resume.")
    return 0


def watch(quorum: Supervisor, admin: Admin) -> None:
    """Show the quorum until Ctrl-C: a live table on a terminal, otherwise a line per change.

    Raises QuorateError when no controller runs.
    """
    if sys.stdout.isatty():
        _watch_table(quorum, admin)
    else:
        _watch_lines(quorum, admin)


def _watch_table(quorum: Supervisor, admin: Admin) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    with Live(console=Console(), auto_refresh=False, transient=False) as live:
        while True:
            quorum.check()
            found = describe_or_none(admin)
            problems = "\n".join(
                f"controller {i}: {why}\n  restart with: {restart_command(quorum, i)}"
                for i, why in quorum.ended().items()
                if quorum.pid_of(quorum.nodes[i]) is None
            )
            view = Group(
                Text(_headline(quorum, found), style="bold"),
                _table(quorum, found),
                *([Text(problems, style="red")] if problems else []),
            )
            live.update(view, refresh=True)
            time.sleep(_REFRESH_S)


def _headline(quorum: Supervisor, found: QuorumInfo | None) -> str:
    if found is None:
        return f"cluster {quorum.cluster_id}   no leader now"
    return (
        f"cluster {quorum.cluster_id}   leader {found.leader_id}   "
        f"epoch {found.leader_epoch}   high watermark {found.high_watermark}"
    )


def _table(quorum: Supervisor, found: QuorumInfo | None) -> Table:
    from rich.table import Table

    table = Table()
    for name in ("node", "role", "address", "process", "log end", "lag"):
        justify: JustifyMethod = "right" if name in ("log end", "lag") else "left"
        table.add_column(name, justify=justify, overflow="fold")
    rows = _rows(found)
    for node in quorum.nodes.values():
        role, end, lag = rows.pop(node.id, ("-", "-", "-"))
        pid = quorum.pid_of(node)
        style = "red" if pid is None else "green" if role == "leader" else ""
        process = "down" if pid is None else f"pid {pid or 'unknown'}"
        table.add_row(str(node.id), role, node.address, process, end, lag, style=style)
    for node_id, (role, end, lag) in sorted(rows.items()):
        table.add_row(str(node_id), role, "-", "unknown", end, lag)
    return table


def _rows(found: QuorumInfo | None) -> dict[int, tuple[str, str, str]]:
    """(role, log end offset, lag) by node id."""
    if found is None:
        return {}
    newest = max(r.log_end_offset for r in found.voters)
    rows = {}
    for role, replicas in (("voter", found.voters), ("observer", found.observers)):
        for replica in replicas:
            end = replica.log_end_offset
            name = "leader" if replica.key.id == found.leader_id else role
            lag = str(newest - end) if end >= 0 else "?"
            rows[replica.key.id] = (name, str(end), lag)
    return rows


def _watch_lines(quorum: Supervisor, admin: Admin) -> None:
    before: tuple[int, int] | None = (-1, -1)
    reported: dict[int, str] = {}
    while True:
        quorum.check()
        found = describe_or_none(admin)
        ended = quorum.ended()
        for node_id, why in ended.items():
            if reported.get(node_id) != why:
                click.echo(f"controller {node_id} is down: {why}")
                click.echo(f"  restart with: {restart_command(quorum, node_id)}")
        reported = ended
        now = None if found is None else (found.leader_id, found.leader_epoch)
        if now != before and found is not None:
            leader = quorum.nodes.get(found.leader_id)
            pid = quorum.pid_of(leader) if leader else None
            click.echo(
                f"leader {found.leader_id} (pid {pid or 'unknown'}), epoch {found.leader_epoch}, "
                f"high watermark {found.high_watermark}"
            )
        elif now != before:
            click.echo("no leader now")
        before = now
        time.sleep(_REFRESH_S)
