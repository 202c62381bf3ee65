"""How a run of the real code becomes a TLA+ module."""

from __future__ import annotations

import re
from random import Random

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import Clean
from quorate.raft.values import ElectionState
from quorate.sim.render.tla import NotInSpecificationError, Tape
from quorate.sim.scenario.cluster import CoreCluster
from quorate.sim.scenario.names import key
from spec.recorded_runs import change_of_voters, simulated, takeover, taped


def test_a_line_says_what_the_core_holds() -> None:
    cluster = CoreCluster(Random(3).random).dynamic(1, 2, 3)
    tape = taped(cluster, 1, 2, 3)
    cluster.start()
    leader = cluster.elect()
    node = cluster.leading
    cluster.run(100)
    node.propose("one", "two")
    core, line = node.running, tape.lines[-1]
    assert line.server == f"n{leader}" and line.role == "leader"
    assert (line.epoch, line.leader, line.voted) == (core.epoch, f"n{leader}", None)
    assert [e.end_offset for e in line.log] == [b.end_offset for b in node.live.batches]
    assert line.log[0].voters == line.voters == {"n1", "n2", "n3"}
    assert line.log[1].voters is None
    assert (line.hw, line.durable, line.pending) == (1, 1, 2)


def test_what_changes_nothing_makes_no_line() -> None:
    cluster = CoreCluster(Random(3).random).dynamic(1, 2, 3)
    tape = taped(cluster, 1, 2, 3)
    cluster.start()
    cluster.elect()
    cluster.run(1000)
    before = len(tape.lines)
    cluster.run(5000)
    assert len(tape.lines) == before


def test_an_incarnation_begins_with_the_state_of_its_disk() -> None:
    tape = takeover()
    starts = [line for line in tape.lines if line.start]
    assert [line.server for line in starts[:3]] == ["n1", "n2", "n3"]
    (again,) = starts[3:]
    before = [line for line in tape.lines[: tape.lines.index(again)] if line.server == again.server]
    assert len(before[-1].log) == before[-1].durable + 1, "one write was not done"
    assert again.log == before[-1].log[:-1]
    assert again.hw == 0 and again.pending == 0


def test_module_and_configuration_hold_the_whole_run() -> None:
    tape = change_of_voters()
    text, config = tape.module(), tape.config()
    assert text.startswith("-" * 30 + " MODULE Run ") and text.endswith("=\n")
    assert len(re.findall(r"\[server \|->", text)) == len(tape.lines)
    assert 'Server = {"n1", "n2", "n3", "n4"}' in config
    assert 'InitVoters = {"n1", "n2", "n3"}' in config
    assert f"MaxEpoch = {max(line.epoch for line in tape.lines)}\n" in config
    assert f"MaxLog = {max(len(line.log) for line in tape.lines)}\n" in config


def test_the_same_run_is_the_same_module() -> None:
    assert simulated().module() == simulated().module()


def test_a_replaced_disk_is_another_server() -> None:
    tape = Tape([key(1), key(2)])
    assert tape.name(key(1)) == "n1"
    assert tape.name(key(1, disk=1)) == "n1b"
    assert tape.name(key(1, disk=2)) == "n1c"
    assert tape.servers == ("n1", "n1b", "n1c", "n2")


def test_a_disk_that_was_never_written_so_is_refused() -> None:
    tape = Tape([key(1)])
    with pytest.raises(NotInSpecificationError, match=r"n1 starts with .* in another order"):
        tape.started(key(1), ElectionState(4), 0)


def test_a_start_with_less_than_was_durable_is_reported() -> None:
    """It was left out, and what came before accepted."""
    tape = takeover()
    last = next(line for line in reversed(tape.lines) if line.server == "n2")
    assert last.durable == len(last.log) > 1 and last.pending == 0
    disk = tape._disks["n2"]
    election = disk.states[-1][0]
    tape.started(key(2), election, last.log[-2].end_offset)
    assert tape._disks["n2"].states == [(election, last.log[:-1])]
    tape.started(key(2), ElectionState(0), last.log[-2].end_offset)
    assert tape._disks["n2"].states == [(ElectionState(0), last.log[:-1])]


def test_snapshots_are_refused() -> None:
    tape = Tape([key(1)])
    tape.started(key(1), ElectionState(), 0)
    with pytest.raises(NotInSpecificationError, match="snapshots are not in the specification"):
        tape.wrote(key(1), 1, (Clean(OffsetAndEpoch(1, 1)),))


def test_static_voters_are_refused() -> None:
    cluster = CoreCluster().static(1, 2, 3)
    taped(cluster, 1, 2, 3)
    with pytest.raises(NotInSpecificationError, match=r"kraft\.version 0"):
        cluster.start()
