"""The page of `sim replay --html`, and traces that are held against each other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.main import run
from quorate.sim.plan.plan import ClientPlan, FaultEvent, NetworkPlan, Plan
from quorate.sim.plan.text import plan_text
from quorate.sim.render.html import Picture
from quorate.sim.run.run import WorldOutcome, checked, run_plan
from quorate.sim.world.observable import ObservableWorld
from quorate.sim.world.observer import Observer, ViolationError

PLAN = Plan(
    seed=11,
    voters=3,
    observers=1,
    duration_ms=6000,
    network=NetworkPlan(loss=0.03, duplicate=0.05, hold=0.02, hold_ms=300),
    clients=ClientPlan(count=2, think_ms=100),
    fault_events=(
        FaultEvent(3000, "power", (0, 800)),
        FaultEvent(3500, "partition", (0b1010, 600)),
        FaultEvent(4500, "remove", (1,)),
    ),
)


class Breaks(Observer):
    """A check that fails when a node crashes."""

    def crashed(self, process: object) -> None:
        raise ViolationError("nobody crashes", "</script> & <b>somebody</b> has crashed")


def facts_of(page: str) -> dict[str, Any]:
    """The data that the page gives its script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    facts: dict[str, Any] = json.loads(found[1])
    return facts


@pytest.fixture(scope="module")
def drawn() -> tuple[WorldOutcome, str]:
    picture = Picture()
    outcome = run_plan(PLAN, [picture, *checked()])
    assert outcome.failure is None
    return outcome, picture.page(outcome)


def test_the_page_needs_nothing_else(drawn: tuple[WorldOutcome, str]) -> None:
    outcome, page = drawn
    assert page.startswith("<!doctype html>") and "{{" not in page
    assert f"trace {outcome.trace_hash}" in page
    addresses = set(re.findall(r"https?://[^\"' )]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(link|img|iframe)\b|<script[^>]*\bsrc=|@import|fetch\(|XMLHttp", page)


def test_every_lane_is_there(drawn: tuple[WorldOutcome, str]) -> None:
    outcome, page = drawn
    facts = facts_of(page)
    assert facts["trace"] == outcome.trace_hash and facts["events"] == outcome.events
    assert facts["subtitle"] == "3 voters, 1 observer, 2 clients, 3 fault events"
    assert [(node["id"], node["kind"]) for node in facts["nodes"]] == [
        (1, "voter"),
        (2, "voter"),
        (3, "voter"),
        (4, "observer"),
    ]
    for node in facts["nodes"]:
        for rows in node.values():
            if isinstance(rows, list):
                times = [row[0] for row in rows]
                assert times == sorted(times) and times[-1] <= facts["end"]
        assert node["high"][-1][1] == node["ends"][-1][1] > 5
        assert node["voters"][-1][1] == "2,3"
    roles = {band[1] for node in facts["nodes"] for band in node["bands"]}
    assert {"leader", "follower", "observer", "prospective", "candidate", "down"} <= roles


def test_messages_are_drawn_from_end_to_end(drawn: tuple[WorldOutcome, str]) -> None:
    facts = facts_of(drawn[1])
    kinds = facts["kinds"]
    assert {"Fetch", "Vote", "PreVote", "BeginQuorumEpoch", "RemoveVoter"} <= set(kinds)
    arrived = [m for m in facts["messages"] if m[1] >= 0]
    lost = [m for m in facts["messages"] if m[1] < 0]
    assert all(m[0] <= m[1] <= facts["end"] for m in arrived)
    assert len(arrived) > 10 * len(lost) > 0
    at_once = [m for m in arrived if m[0] == m[1]]
    assert all(m[2] == 0 for m in at_once), "only operators' requests have no way to go"
    named = {kinds[m[4]]: facts["texts"][m[6]] for m in facts["messages"] if not m[5]}
    assert named["PreVote"].startswith("VoteRequest(") and "pre_vote=True" in named["PreVote"]
    twice = {(m[0], m[2], m[3], m[4], m[6]) for m in arrived if not m[5]}
    assert len(twice) < len([m for m in arrived if not m[5]]), "what was duplicated is drawn twice"
    answers = {kinds[m[4]] for m in arrived if m[5]}
    assert {"Fetch", "PreVote"} <= answers


def test_faults_and_operations_are_marked(drawn: tuple[WorldOutcome, str]) -> None:
    facts = facts_of(drawn[1])
    faults = [(f[0], f[1], f[3], facts["texts"][f[4]]) for f in facts["faults"] if f[5]]
    leader = next(f[2] for f in facts["faults"] if f[3] == "power")
    assert faults == [
        (3_000_000, 3_800_000, "power", f"power node={leader} down_ms=800"),
        (3_500_000, 4_100_000, "partition", "partition nodes=1,3 for_ms=600"),
        (4_500_000, -1, "remove", "remove node=1"),
    ]
    down = [band for node in facts["nodes"] for band in node["bands"] if band[1] == "down"]
    assert 3_000_000 in [band[0] for band in down]
    assert {"lost", "duplicated", "held"} <= {f[3] for f in facts["faults"]}
    assert facts["healed"] == 6_000_000
    assert {op[0] for op in facts["ops"]} == {1, 2}
    assert all(op[1] <= op[2] and op[3] == 1 for op in facts["ops"])


def test_a_failed_check_is_shown_and_cannot_break_the_page() -> None:
    picture = Picture()
    outcome = run_plan(PLAN, [picture, Breaks()])
    page = picture.page(outcome)
    facts = facts_of(page)
    assert facts["failure"] == {
        "check": "nobody crashes",
        "message": "</script> & <b>somebody</b> has crashed",
        "at": 3_000_000,
    }
    assert page.count("</script>") == 2


def test_rendering_does_not_change_a_run(drawn: tuple[WorldOutcome, str]) -> None:
    assert run_plan(PLAN).trace_hash == drawn[0].trace_hash


def test_a_world_in_which_nothing_happened_yet() -> None:
    class AtOnce(Observer):
        def began(self, world: ObservableWorld) -> None:
            raise ViolationError("nothing", "at all")

    picture = Picture()
    plan = Plan(clients=ClientPlan(count=1))
    facts = facts_of(picture.page(run_plan(plan, [picture, AtOnce()])))
    assert facts["subtitle"] == "3 voters, 1 client, 0 fault events", "it said 1 clients"
    assert facts["end"] == 1 and facts["messages"] == []


def test_replay_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, page = tmp_path / "plan.txt", tmp_path / "page.html"
    plan.write_text(plan_text(PLAN))
    assert run(["sim", "replay", str(plan), "--html", str(page)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"written to {page}"
    assert said[-2] == f"trace {facts_of(page.read_text())['trace']}"
    assert run(["sim", "replay", str(plan), "--html", str(tmp_path / "no" / "page.html")]) == 2
    assert "there is no directory for" in capsys.readouterr().err


# -- one trace against another -------------------------------------------------------------------
@pytest.fixture
def traced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Path]:
    """A plan's file, and its trace in a file."""
    plan, trace = tmp_path / "plan.txt", tmp_path / "trace.txt"
    plan.write_text("format 1\nseed 3\nvoters 1\nduration_ms 500\nclients.count 1\n")
    assert run(["sim", "replay", str(plan)]) == 0
    trace.write_text(capsys.readouterr().out)
    return str(plan), trace


def test_the_same_trace_again(traced: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    plan, trace = traced
    assert run(["sim", "replay", plan, "--against", str(trace)]) == 0
    assert f"lines as in {trace}" in capsys.readouterr().out


def test_where_traces_part(traced: tuple[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    plan, trace = traced
    lines = trace.read_text().splitlines()
    trace.write_text("\n".join([*lines[:5], "something else", *lines[6:]]))
    assert run(["sim", "replay", plan, "--against", str(trace)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"{trace}:6: the traces part here; it is of version 0.")
    assert said[1:] == ["  - something else", f"  + {lines[5]}"]
    trace.write_text("\n".join(lines[:-1]))
    assert run(["sim", "replay", plan, "--against", str(trace)]) == 1
    assert "  - (its end)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "to", "says"),
    [
        ("trace 2, plan format 9", "trace 1, plan format 7", "1: this is trace format 1 of plan"),
        (
            "trace 2, plan format 9",
            "trace 2, plan format 10",
            "format 2 of plan format 10, written",
        ),
        ("seed 3", "seed 4", "1: this is a trace of seed 4, not of seed 3"),
        ("# quorate", "# another", "1: this is no trace: those begin with"),
    ],
)
def test_a_trace_of_something_else(
    change: str,
    to: str,
    says: str,
    traced: tuple[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan, trace = traced
    trace.write_text(trace.read_text().replace(change, to, 1))
    assert run(["sim", "replay", plan, "--against", str(trace)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", ":1: this is no trace"), (b"\xff\xfe\x00", " is no trace: it is not text")],
)
def test_a_file_that_is_no_trace(
    content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_bytes(content)
    assert run(["sim", "replay", "7", "--against", str(trace)]) == 2
    assert f"{trace}{says}" in capsys.readouterr().err
