"""Exhaustive in the small: exact counts, bugs found and reported, no state taken for another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.cli.main import run as quorate
from quorate.raft.values import Batch, Voters
from quorate.sim.explore.canonical_form import START
from quorate.sim.explore.invariants import HistoryVariables, InvariantViolationError, StepInvariants
from quorate.sim.explore.local_state import LocalState
from quorate.sim.explore.search import Search
from quorate.sim.explore.setups import SETUPS, Budget, Setup
from quorate.sim.explore.space import Action, Space
from quorate.sim.explore.to_scenario import commands, violation_scenario
from quorate.sim.scenario.file import run_scenario
from quorate.sim.scenario.names import voter
from quorate.sim.scenario.script import Script
from sim import planted
from time_budget import one_in

ALONE = Setup(voters=(1,), budget=Budget(leaps=2, crashes=1, proposals=2))
PAIR = Setup(voters=(1, 2), led=True, budget=Budget(leaps=0, crashes=1, proposals=1))


# -- the real code -----------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "depth", "states", "events", "replicas"),
    [
        ("election", 7, 49_877, 132_633, 381),
        ("replication", 10, 82_885, 216_675, 981),
        ("stale", 6, 69_297, 149_023, 3_907),
        ("split", 7, 68_806, 158_887, 3_991),
        ("removal", 12, 70_081, 193_438, 1_890),
        ("joining", 99, 42_442, 119_718, 2_234),
    ],
)
def test_every_invariant_holds_in_every_state(
    setup: str, depth: int, states: int, events: int, replicas: int
) -> None:
    """The numbers are exact: a change of the core that makes other states shows here.

    The space of `joining` is seen to its end.
    """
    result = Search(SETUPS[setup]).run(depth)
    assert result.violation is None
    last = result.levels[-1]
    assert (last.states, last.transitions, last.replicas) == (states, events, replicas)
    assert result.complete == (setup == "joining")


@pytest.mark.parametrize(
    ("setup", "states", "events"),
    [(ALONE, 658, 1_123), (PAIR, 1_324, 2_678)],
    ids=["alone", "pair"],
)
def test_a_small_space_is_seen_to_its_end(setup: Setup, states: int, events: int) -> None:
    result = Search(setup).run(1000)
    assert result.violation is None and result.complete
    last = result.levels[-1]
    assert (last.states, last.transitions, last.frontier) == (states, events, 0)


@pytest.mark.slow
def test_every_process_finds_the_same_states() -> None:
    command = [sys.executable, "-m", "quorate", "sim", "explore", "removal", "--json"]
    found = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        out = subprocess.run(
            [*command, "--depth", "6"], env=environment, check=True, capture_output=True
        ).stdout
        levels = json.loads(out)["levels"]
        found.append([{**level, "seconds": 0} for level in levels])
    assert found[0] == found[1] and len(found[0]) == 7


# -- nothing is taken for another --------------------------------------------------------------
@pytest.mark.parametrize("name", one_in(3, SETUPS))
def test_any_order_leads_where_its_scenario_leads(name: str) -> None:
    """The scenario's cores live on from event to event, are never frozen and met again under another
    past: were two replicas wrongly taken for the same, a way through both would part from it."""
    random = Random(name)
    setup = SETUPS[name]
    plenty = Budget(leaps=6, backoffs=2, crashes=3, fails=2, losses=2, proposals=3, changes=2)
    space = Space(replace(setup, budget=plenty, epochs=9))
    for _ in range(12):
        path: list[Action] = []
        state = space.begin(path)
        for _ in range(60):
            if not (actions := space.actions(state)):
                break
            path.append(random.choice(actions))
            state = space.follow(state, path[-1])
        script = Script()
        for line in commands(space, path):
            script.run(line)
        for node in space.nodes:
            _same(space.local(state, node), script)


def _same(local: LocalState, script: Script) -> None:
    node = script.cluster.nodes[local.node]
    assert tuple(node.durable.batches) == local.disk
    assert node.durable.election == local.election
    core = node.core
    assert (core is None) == (local.core is None)
    if core is None:
        return
    assert (core.role, core.epoch, core.leader.leader_id) in [
        (local.role, local.epoch, local.leader),
        ("resigned", local.epoch, -1),
    ]
    assert core.high_watermark == local.high_watermark
    assert tuple(node.live.batches) == local.live
    assert [writes for _, writes in node.pending] == [writes for _, writes in local.pending]


# -- bugs --------------------------------------------------------------------------------------
QUIET = Budget(leaps=0)
BUGS = [
    (planted.send_before_durable, Setup(budget=Budget(leaps=1)), "epoch durable before sent"),
    (planted.ask_before_durable, Setup(budget=Budget(leaps=1)), "epoch durable before sent"),
    (planted.fetch_before_durable, Setup(led=True), "log durable before acknowledged"),
    (
        planted.count_before_durable,
        Setup(led=True, budget=QUIET._replace(proposals=2)),
        "committed on a durable majority",
    ),
    (
        planted.count_the_leader_always,
        Setup(led=True, budget=QUIET._replace(changes=1)),
        "committed on a durable majority",
    ),
    (
        planted.lead_again_after_a_restart,
        Setup(led=True, budget=QUIET._replace(crashes=1, proposals=2)),
        "log matching",
    ),
    (planted.win_without_votes, Setup(budget=Budget(leaps=2)), "election safety"),
    (
        planted.take_any_length_for_valid,
        Setup(led=True, split=True, budget=QUIET),
        "committed prefix",
    ),
    (
        planted.vote_twice,
        Setup(voters=(1, 2), budget=Budget(leaps=2)),
        "vote durable before sent",
    ),
    (
        planted.change_twice_at_once,
        Setup(led=True, budget=QUIET._replace(changes=2)),
        "one voter change at a time",
    ),
    (
        planted.remove_two_for_one,
        Setup(led=True, budget=QUIET._replace(changes=1)),
        "consecutive voter sets overlap",
    ),
]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("plant", "setup", "invariant"), BUGS, ids=[bug[0].__name__ for bug in BUGS]
)
def test_a_planted_bug_is_found_and_its_scenario_replays_it(
    plant: planted.Plant, setup: Setup, invariant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bug the scenario plays as written; without it differs, and no invariant breaks."""
    with monkeypatch.context() as patch:
        plant(patch)
        result = Search(setup).run(9)
        assert result.violation is not None and result.violation.invariant == invariant
        scenario = violation_scenario(result)
        assert f"# Found by exploration. {invariant}:" in scenario
        assert not run_scenario(scenario, "scenario").differences
    assert run_scenario(scenario, "scenario").differences
    assert Search(setup).run(len(result.levels)).violation is None


# -- every invariant, by itself ----------------------------------------------------------------------
def entry(offset: int, epoch: int, payload: str = "x") -> Batch:
    return Batch(offset, offset, epoch, 1, (), payload)


def replica(node: int, log: tuple[Batch, ...] = (), **changes: object) -> LocalState:
    fields: dict[str, object] = {
        "id": node,
        "node": node,
        "core": b"",
        "now": START,
        "live": log,
        "disk": log,
        "election": None,
        "pending": (),
        "role": "follower",
        "epoch": 2,
        "election_is_durable": True,
        "voters": tuple(voter(i).key for i in (1, 2, 3)),
    }
    return LocalState(**(fields | changes))  # type: ignore[arg-type]


A, B, C = entry(0, 1, "a"), entry(1, 1, "b"), entry(1, 1, "c")
ELECTED = {"role": "leader"}
CASES = {
    "election safety": (replica(1, (A,), **ELECTED), (), HistoryVariables(((2, 3),), (A,))),
    "leader completeness": (replica(1, (A,), **ELECTED), (), HistoryVariables((), (A, B))),
    "log matching": (replica(1, (A, B)), (replica(2, (A, C)),), HistoryVariables()),
    "committed prefix": (replica(1, (A, C), high_watermark=2), (), HistoryVariables((), (A, B))),
    "committed on a durable majority": (
        replica(1, (A, B), high_watermark=2, **ELECTED),
        (replica(2, (A, B), disk=(A,)), replica(3, (A,))),
        HistoryVariables(((2, 1),), (A,)),
    ),
}


@pytest.mark.parametrize("invariant", CASES)
def test_an_invariant_can_be_broken(invariant: str) -> None:
    after, others, past = CASES[invariant]
    role = "leader" if invariant == "committed on a durable majority" else "candidate"
    before = replica(1, (), role=role, election_is_durable=True)
    with pytest.raises(InvariantViolationError) as caught:
        StepInvariants().check(before, after, [after, *others], past)
    assert caught.value.invariant == invariant


def test_a_later_leader_must_have_what_an_older_one_commits() -> None:
    """Two leaders know of each other's epochs only at random: the invariant covers both."""
    before = replica(1, (A, B), role="leader", epoch=1, high_watermark=1)
    after = replica(1, (A, B), role="leader", epoch=1, high_watermark=2)
    newer = replica(2, (A,), role="leader", disk=(A, B))
    with pytest.raises(InvariantViolationError, match="leader completeness"):
        StepInvariants().check(
            before, after, [after, newer, replica(3)], HistoryVariables(((1, 1), (2, 2)), (A,))
        )


def test_an_unchanged_voter_set_is_no_change() -> None:
    again = Batch(1, 1, 1, 0, (Voters(tuple(voter(i) for i in (1, 2, 3))),))
    first = Batch(0, 0, 1, 0, again.control)
    history = StepInvariants().check(
        replica(1), replica(1, (first, again)), [replica(1)], HistoryVariables()
    )
    assert history == HistoryVariables()


# -- the command -------------------------------------------------------------------------------
def test_the_command_shows_levels_and_how_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    assert quorate(["sim", "explore", "joining", "--depth", "3", "--leaps", "0"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in out[:4]] == [["depth", str(i)] for i in range(4)]
    assert "up to 3 events" in out[-1]
    everything = ["sim", "explore", "joining", "--depth", "99", "--leaps", "0", "--changes", "0"]
    assert quorate([*everything, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["complete"] and facts["violation"] is None
    assert facts["states"] == facts["levels"][-1]["states"]


@pytest.mark.interpreted
def test_the_command_prints_a_broken_invariant_as_a_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.ask_before_durable(monkeypatch)
    file = tmp_path / "broken.txt"
    assert quorate(["sim", "explore", "election", "--out", str(file)]) == 1
    assert "VIOLATED: epoch durable before sent" in capsys.readouterr().out
    assert quorate(["sim", "scenario", str(file)]) == 0
    assert quorate(["sim", "explore", "election"]) == 1
    assert file.read_text() in capsys.readouterr().out
    assert quorate(["sim", "explore", "election", "--out", str(tmp_path)]) == 2
    assert "is no file" in capsys.readouterr().err


def test_the_snapshot_of_a_replica_has_no_snapshots() -> None:
    """The log index of production answers, with only the bootstrap snapshot."""
    space = Space(SETUPS["removal"])
    local = space.local(space.begin([]), 1)
    core = space.replicas._thaw(local)
    assert core.snapshots == (OffsetAndEpoch(0, 0),)
    assert core.log_end == OffsetAndEpoch(3, 1)
