"""`quorate quickstart`: a durable three-controller quorum, live in the terminal."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quorate.base.ids import Address
from quorate.cli.supervisor import Supervisor, wait_for
from quorate.client.admin import Admin, ClientConfig, ClientError, Quorum

if TYPE_CHECKING:
    from rich.table import Table

_REFRESH_S: Final = 0.5
_WATCHER: Final = 2_000


@click.command(
    epilog="""\b
Examples:
  quorate quickstart                    three controllers in ./quorate-data; Ctrl-C stops them
  quorate quickstart --data /var/q      the same data again next time
  quorate quickstart --tour             a guided round in fresh data, then exit
"""
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Where everything is kept.  [default: ./quorate-data; with --tour a fresh directory]",
)
@click.option(
    "--controllers",
    type=click.IntRange(1, 7),
    default=3,
    show_default=True,
    help="How many controllers a new quorum has.",
)
@click.option("--tour", is_flag=True, help="Show by itself what the quorum can do, then exit.")
def quickstart(data: Path | None, controllers: int, tour: bool) -> int:
    """Run a quorum of controllers as real processes and watch it.

    The first run formats the data directory; later runs go on with what is there. Needs no Java.
    """
    if tour:
        from quorate.cli.tour import run_tour

        return run_tour(data, controllers)
    with Supervisor(data or Path("quorate-data")) as quorum:
        resumed = quorum.load_or_create(controllers)
        verb = "Resuming" if resumed else "Formatted and starting"
        click.echo(f"{verb} {len(quorum.nodes)} controllers in {quorum.data}")
        for node in quorum.nodes.values():
            quorum.start(node)
        with admin_of(quorum) as admin:
            wait_for("a leader", lambda: look(admin))
            try:
                watch(quorum, admin)
            except KeyboardInterrupt:
                click.echo("\nStopping the controllers in good order ...")
    click.echo("Stopped. The data stays: run the same command to go on.")
    return 0


def admin_of(quorum: Supervisor) -> Admin:
    """An impatient client of all controllers."""
    addresses = tuple(Address("127.0.0.1", node.port) for node in quorum.nodes.values())
    return Admin(
        ClientConfig(
            addresses,
            controllers=True,
            client_id="quorate-quickstart",
            default_api_timeout_ms=_WATCHER,
            request_timeout_ms=_WATCHER,
            retry_backoff_ms=10,
            unreachable_after_ms=500,
        )
    )


def look(admin: Admin) -> Quorum | None:
    """What the leader says; None while nobody answers as one."""
    try:
        return admin.describe_quorum()
    except ClientError:
        return None


def next_commands(quorum: Supervisor) -> list[str]:
    """What to try in another terminal."""
    node = next(iter(quorum.nodes.values()))
    log = quorum.home(node) / "data" / "__cluster_metadata-0" / f"{0:020d}.log"
    connect = f"--bootstrap-controller {quorum.bootstrap}"
    victim = min(quorum.processes)
    program = "quorate" if shutil.which("quorate") else sys.argv[0]
    return [
        f"{program} metadata-quorum {connect} describe --status",
        f"{program} metadata-quorum {connect} describe --replication --human-readable",
        f"{program} dump-log --cluster-metadata-decoder --files {log}",
        f"kill -9 {quorum.processes[victim].pid}    # controller {victim}: see the quorum go on",
    ]


# -- the live view ------------------------------------------------------------------------------
def watch(quorum: Supervisor, admin: Admin) -> None:
    """Until Ctrl-C: a live table on a terminal, else a line for each change."""
    if sys.stdout.isatty():
        _watch_table(quorum, admin)
    else:
        _watch_lines(quorum, admin)


def _watch_table(quorum: Supervisor, admin: Admin) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    commands = Text("\nTry in another terminal:\n")
    commands.append("".join(f"  {line}\n" for line in next_commands(quorum)), style="cyan")
    commands.append("Ctrl-C stops the quorum.", style="dim")
    with Live(console=Console(), auto_refresh=False, transient=False) as live:
        while True:
            found = look(admin)
            headline = Text(_headline(quorum, found), style="bold")
            live.update(Group(headline, _table(quorum, found), commands), refresh=True)
            time.sleep(_REFRESH_S)


def _headline(quorum: Supervisor, found: Quorum | None) -> str:
    if found is None:
        return f"cluster {quorum.cluster_id}   no leader at the moment"
    return (
        f"cluster {quorum.cluster_id}   leader {found.leader_id}   "
        f"epoch {found.leader_epoch}   high watermark {found.high_watermark}"
    )


def _table(quorum: Supervisor, found: Quorum | None) -> Table:
    from rich.table import Table

    table = Table()
    for name in ("node", "role", "address", "process", "log end", "lag"):
        table.add_column(name, justify="right" if name in ("log end", "lag") else "left")
    rows = _rows(found)
    for node in quorum.nodes.values():
        role, end, lag = rows.get(node.id, ("-", "-", "-"))
        alive = quorum.alive(node.id)
        style = None if alive else "red"
        if alive and role == "leader":
            style = "green"
        process = f"pid {quorum.processes[node.id].pid}" if alive else "down"
        table.add_row(str(node.id), role, node.address, process, end, lag, style=style)
    return table


def _rows(found: Quorum | None) -> dict[int, tuple[str, str, str]]:
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
    for line in next_commands(quorum):
        click.echo(f"try: {line}")
    before = None
    while True:
        found = look(admin)
        now = None if found is None else (found.leader_id, found.leader_epoch)
        if now != before and found is not None:
            click.echo(
                f"leader {found.leader_id}, epoch {found.leader_epoch}, "
                f"high watermark {found.high_watermark}"
            )
        elif now != before:
            click.echo("no leader at the moment")
        sys.stdout.flush()
        before = now
        time.sleep(_REFRESH_S)
