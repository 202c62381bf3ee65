"""The guided tour: what a quorum can do, in half a minute, with real processes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Listener, ReplicaKey
from quorate.cli.quickstart.quorum_client import admin_of, describe_or_none
from quorate.cli.quickstart.quorum_directory import QuickstartNode
from quorate.cli.quickstart.steps import running_quorum, show_line, show_step
from quorate.cli.quickstart.supervisor import Supervisor, wait_for
from quorate.client import Admin, QuorumInfo, RequestFailedError
from quorate.formats.files import META_PROPERTIES
from quorate.formats.meta_properties import decode_meta_properties

_MIN_VOTERS: Final = 3
_PATIENCE_MS: Final = 15_000
_QUOTA: Final = "CLIENT_QUOTA_RECORD"
_VOTERS: Final = "KRAFT_VOTERS"
_WRITES: Final = 20


class TourFailedError(QuorateError):
    """A step of the tour failed. The message gives the reason."""


def run_tour(data: Path | None, controllers: int | None) -> int:
    """Create a quorum, write, fail over, change the voters, read the log back; returns 0.

    Raises QuorateError at the first step that fails. With `data` of an earlier run it resumes that
    quorum: the controller to add is one that is not a voter, if there is one.
    """
    started = time.monotonic()
    with running_quorum(data, controllers and max(controllers, _MIN_VOTERS), "tour") as quorum:
        with admin_of(quorum, _PATIENCE_MS) as admin:
            first = _first_leader(quorum, admin)
            _show(first)
            # Values that no earlier tour wrote: a write without a change adds no record.
            rates = [float(first.high_watermark + n) for n in range(1, _WRITES + 1)]
            writes = [("producer_byte_rate", rate) for rate in rates]
            writes.append(("consumer_byte_rate", rates[-1] + 1))
            _write(admin, writes[:-1])
            _fail_over(quorum, admin, writes[-1])
        joiner = _find_joiner(quorum, first)
        with admin_of(quorum, _PATIENCE_MS) as admin:
            _add(quorum, admin, joiner)
            last = _remove_first(quorum, admin, joiner)
            _read_back(quorum, first, last, joiner, writes)
    click.secho(f"\nAll steps succeeded in {time.monotonic() - started:.1f} s.", bold=True)
    return 0


def _first_leader(quorum: Supervisor, admin: Admin) -> QuorumInfo:
    def probe() -> QuorumInfo | None:
        quorum.check()
        return _caught_up(describe_or_none(admin), quorum.processes)

    found = wait_for("a leader with followers", probe)
    if len(found.voters) < _MIN_VOTERS:
        raise TourFailedError(
            f"the tour kills the leader and needs {_MIN_VOTERS} voters; the quorum of "
            f"{quorum.data} has {len(found.voters)}: use another --data"
        )
    return found


def _show(found: QuorumInfo) -> None:
    voters = ", ".join(str(voter.key.id) for voter in found.voters)
    click.echo(
        f"   leader {found.leader_id} in epoch {found.leader_epoch}, voters {voters}, "
        f"high watermark {found.high_watermark}"
    )


def _write(admin: Admin, writes: Sequence[tuple[str, float]]) -> None:
    show_step(f"Write a client quota, durably, {len(writes)} times")
    times = []
    for write in writes:
        began = time.perf_counter()
        admin.alter_client_quota({"user": "tour"}, dict([write]))
        times.append(time.perf_counter() - began)
    times.sort()
    click.echo(
        f"   each was durable on a majority after {times[len(times) // 2] * 1000:.1f} ms (median)"
    )


def _fail_over(quorum: Supervisor, admin: Admin, write: tuple[str, float]) -> None:
    before = wait_for("the leader", lambda: describe_or_none(admin))
    show_step(f"kill -9 the leader, controller {before.leader_id}, and write again")
    quorum.kill(before.leader_id)
    began = time.perf_counter()
    admin.alter_client_quota({"user": "tour"}, dict([write]))
    click.echo(
        f"   the next write was committed {(time.perf_counter() - began) * 1000:.0f} ms later"
    )
    _show(wait_for("the new leader", lambda: describe_or_none(admin)))
    show_step(f"Start controller {before.leader_id} again: it catches up")
    quorum.start(quorum.nodes[before.leader_id])

    _show(
        wait_for(
            f"controller {before.leader_id}",
            lambda: _caught_up(describe_or_none(admin), [before.leader_id]),
        )
    )


def _find_joiner(quorum: Supervisor, first: QuorumInfo) -> QuickstartNode:
    """A running controller that is not a voter; starts a new one if there is none."""
    voters = {voter.key.id for voter in first.voters}
    for node in quorum.nodes.values():
        if node.id not in voters:
            return node
    node = quorum.add_node()
    quorum.start(node)
    return node


def _add(quorum: Supervisor, admin: Admin, node: QuickstartNode) -> None:
    show_step(f"Add controller {node.id} to the voters while the quorum runs")
    key = _key(quorum, node)
    wait_for(
        "the new controller to catch up", lambda: _caught_up(describe_or_none(admin), [node.id])
    )

    def added() -> bool | None:
        try:
            admin.add_voter(key, [Listener("CONTROLLER", "127.0.0.1", node.port)])
        except RequestFailedError as refusal:
            if refusal.code.retriable:
                return None
            raise
        return True

    wait_for("the new controller to become a voter", added)
    _show(wait_for("the leader", lambda: describe_or_none(admin)))


def _caught_up(found: QuorumInfo | None, node_ids: Iterable[int]) -> QuorumInfo | None:
    """`found` if the logs of all these controllers hold everything committed, else None."""
    if found is None:
        return None
    ends = {replica.key.id: replica.log_end_offset for replica in found.voters + found.observers}
    behind = [i for i in node_ids if ends.get(i, -1) < found.high_watermark]
    return None if behind else found


def _remove_first(quorum: Supervisor, admin: Admin, joiner: QuickstartNode) -> QuorumInfo:
    before = wait_for("the leader", lambda: describe_or_none(admin))
    leaving = min(v.key.id for v in before.voters if v.key.id != joiner.id)
    key = _key(quorum, quorum.nodes[leaving])
    show_step(f"Remove controller {leaving} from the voters")
    admin.remove_voter(key)

    def without() -> QuorumInfo | None:
        found = describe_or_none(admin)
        gone = found and key not in [v.key for v in found.voters]
        # If the leader was removed, its successor learns the high watermark only from Fetches.
        return found if found and gone and found.high_watermark > before.high_watermark else None

    found = wait_for("the smaller quorum", without)
    _show(found)
    return found


def _read_back(
    quorum: Supervisor,
    first: QuorumInfo,
    last: QuorumInfo,
    joiner: QuickstartNode,
    writes: Sequence[tuple[str, float]],
) -> None:
    """Raise TourFailedError unless the log holds each write of the tour once and in order."""
    old, new = _ids(first), _ids(last)
    node = quorum.nodes[min(old & new)]
    show_step(f"Read the log back from the disk of controller {node.id}, while it runs")
    # A follower's disk may be one Fetch behind the leader's high watermark.
    records = wait_for(
        f"the log of controller {node.id} to reach offset {last.high_watermark - 1}",
        lambda: _records(quorum, node, first.high_watermark, last.high_watermark),
    )
    quotas = [record["data"] for record in records if record["type"] == _QUOTA]
    voters = [record["data"]["voters"] for record in records if record["type"] == _VOTERS]
    for quota in quotas[-2:]:
        show_line(json.dumps(quota))
    sets = [{voter["voterId"] for voter in members} for members in voters]
    for members in sets:
        click.echo(f"   voters {', '.join(map(str, sorted(members)))}")
    click.echo(f"   ({len(quotas)} quota records and {len(sets)} voter sets of this tour)")
    _expect("quotas", [(quota["key"], quota["value"]) for quota in quotas], list(writes))
    _expect("voter sets", sets, [old | {joiner.id}, new])


def _records(
    quorum: Supervisor, node: QuickstartNode, start: int, end: int
) -> list[dict[str, Any]] | None:
    """The records from `start` to `end` (exclusive) of a node's log; None while it is shorter."""
    logs = sorted((quorum.log_dir(node) / "__cluster_metadata-0").glob("*.log"))
    run = subprocess.run(
        (
            *(sys.executable, "-m", "quorate", "dump-log", "--cluster-metadata-decoder"),
            *("--json", "--files", ",".join(map(str, logs))),
        ),
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise TourFailedError(
            f"the log of controller {node.id} cannot be read: {run.stderr.strip()}"
        )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    records = [line for line in lines if line["kind"] == "record"]
    if not records or records[-1]["offset"] < end - 1:
        return None
    return [record for record in records if start <= record["offset"] < end]


def _expect(what: str, found: list[Any], expected: list[Any]) -> None:
    if found != expected:
        raise TourFailedError(
            f"the log does not hold what was written: {what} {found}, not {expected}"
        )


def _ids(quorum: QuorumInfo) -> set[int]:
    return {voter.key.id for voter in quorum.voters}


def _key(quorum: Supervisor, node: QuickstartNode) -> ReplicaKey:
    path = quorum.log_dir(node) / META_PROPERTIES
    meta = decode_meta_properties(path.read_bytes(), str(path))
    assert meta.directory_id is not None
    return ReplicaKey(node.id, meta.directory_id)
