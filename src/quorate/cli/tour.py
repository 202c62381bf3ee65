"""The guided round: what a quorum can do, in half a minute, on real processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from quorate.base.ids import Listener, ReplicaKey
from quorate.cli.quickstart import admin_of, look
from quorate.cli.supervisor import Node, Supervisor, wait_for
from quorate.client.admin import Admin, Quorum, RequestFailed
from quorate.formats.files import META_PROPERTIES
from quorate.formats.meta_properties import decode_meta_properties

_WIDTH: Final = 160


def run_tour(data: Path | None, controllers: int) -> int:
    """Make a quorum, write, fail over, change its voters, read the log back. 0 when all held."""
    started = time.monotonic()
    with ExitStack() as stack:
        if data is None:
            data = Path(tempfile.mkdtemp(prefix="quorate-tour-"))
            stack.callback(shutil.rmtree, data, ignore_errors=True)
        quorum = stack.enter_context(Supervisor(data))
        _step(f"Format {max(controllers, 3)} controllers and start them, as processes of their own")
        quorum.load_or_create(max(controllers, 3))
        for node in quorum.nodes.values():
            quorum.start(node)
        admin = stack.enter_context(admin_of(quorum))
        _show(wait_for("a leader", lambda: look(admin)))
        _write(admin)
        _fail_over(quorum, admin)
        admin.close()
        admin = stack.enter_context(admin_of(quorum))
        newcomer = _add(quorum, admin)
        _remove_first(quorum, admin)
        _read_back(quorum, newcomer)
    click.secho(f"\nAll of it held, in {time.monotonic() - started:.1f} s.", bold=True)
    return 0


def _step(text: str) -> None:
    click.secho(f"\n== {text}", bold=True)


def _show(found: Quorum) -> None:
    voters = ", ".join(str(voter.key.id) for voter in found.voters)
    click.echo(
        f"   leader {found.leader_id} in epoch {found.leader_epoch}, voters {voters}, "
        f"high watermark {found.high_watermark}"
    )


def _write(admin: Admin) -> None:
    _step("Write a client quota, durably, 20 times")
    times = []
    for rate in range(1, 21):
        began = time.perf_counter()
        admin.alter_client_quota({"user": "tour"}, {"producer_byte_rate": 1024.0 * rate})
        times.append(time.perf_counter() - began)
    times.sort()
    click.echo(
        f"   a majority's disks had each after {times[len(times) // 2] * 1000:.1f} ms (median)"
    )


def _fail_over(quorum: Supervisor, admin: Admin) -> None:
    before = wait_for("the leader", lambda: look(admin))
    _step(f"kill -9 the leader, controller {before.leader_id}, and write again")
    quorum.kill(before.leader_id)
    began = time.perf_counter()
    admin.alter_client_quota({"user": "tour"}, {"consumer_byte_rate": 4096.0})
    click.echo(
        f"   the next write was committed {(time.perf_counter() - began) * 1000:.0f} ms later"
    )
    _show(wait_for("the new leader", lambda: look(admin)))
    _step(f"Start controller {before.leader_id} again: it catches up")
    quorum.start(quorum.nodes[before.leader_id])

    def caught_up() -> Quorum | None:
        found = look(admin)
        if found is None:
            return None
        ends = {voter.key.id: voter.log_end_offset for voter in found.voters}
        back = ends.get(before.leader_id, -1)
        return found if back >= before.high_watermark else None

    _show(wait_for(f"controller {before.leader_id}", caught_up))


def _add(quorum: Supervisor, admin: Admin) -> Node:
    node = quorum.add_node()
    _step(f"Add controller {node.id} to the voters while the quorum works")
    quorum.start(node)
    key = _key(quorum, node)
    wait_for("the newcomer to follow", lambda: _observed(admin, key))

    def added() -> bool | None:
        try:
            admin.add_voter(key, [Listener("CONTROLLER", "127.0.0.1", node.port)])
        except RequestFailed as refusal:
            if refusal.code.retriable:
                return None
            raise
        return True

    wait_for("the newcomer to become a voter", added)
    _show(wait_for("the leader", lambda: look(admin)))
    return node


def _observed(admin: Admin, key: ReplicaKey) -> bool | None:
    found = look(admin)
    if found is None or key not in [observer.key for observer in found.observers]:
        return None
    return True


def _remove_first(quorum: Supervisor, admin: Admin) -> None:
    node = quorum.nodes[min(quorum.nodes)]
    key = _key(quorum, node)
    _step(f"Remove controller {node.id} from the voters")
    admin.remove_voter(key)

    def without() -> Quorum | None:
        found = look(admin)
        return found if found and key not in [voter.key for voter in found.voters] else None

    _show(wait_for("the smaller quorum", without))


def _read_back(quorum: Supervisor, node: Node) -> None:
    _step(f"Read the log back from the disk of controller {node.id}, while it runs")
    log = quorum.home(node) / "data" / "__cluster_metadata-0" / f"{0:020d}.log"
    run = subprocess.run(
        (
            *(sys.executable, "-m", "quorate.cli.main", "dump-log"),
            *("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(log)),
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    found = [line.partition("payload: ")[2] or line.strip() for line in run.stdout.splitlines()]
    voters = [line for line in found if "KRaftVoters" in line]
    quotas = [line for line in found if "CLIENT_QUOTA" in line]
    for line in quotas[-2:] + voters[-1:]:
        click.echo(f"   {line if len(line) <= _WIDTH else line[:_WIDTH] + ' ...'}")
    click.echo(f"   ({len(quotas)} quota records, {len(voters)} voter sets in all)")


def _key(quorum: Supervisor, node: Node) -> ReplicaKey:
    path = quorum.home(node) / "data" / META_PROPERTIES
    meta = decode_meta_properties(path.read_bytes(), str(path))
    assert meta.directory_id is not None
    return ReplicaKey(node.id, meta.directory_id)
