"""The specification holds within its bounds; without any one of the rules named here it breaks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spec.removed_rules import SABOTAGES, Sabotage
from spec.tlc import SPEC, Verdict, check, copy_spec
from time_budget import DAY, one_in, share

pytestmark = [pytest.mark.interop, pytest.mark.slow]

INVARIANTS = (
    "TypeOK ElectionSafety LogMatching LeaderCompleteness CommittedPrefix DurableBeforeSent "
    "VotersInForce OneVoterChange VoterSetsOverlap"
)
PROPERTIES = "PreVoteFirst NoDisruption HighWatermarkMonotonic DurableMajority"

STATES = {"Election": 24_808, "PreVote": 24_827, "Replication": 50_648, "Reconfiguration": 95_930}


def guided(folder: Path, schedules: list[Sabotage], checks: str) -> str:
    """A module and configuration that follow these schedules; its name."""
    assert len({schedule.voters for schedule in schedules}) == 1
    texts = ",\n    ".join(schedule.text for schedule in schedules)
    (folder / "Guide.tla").write_text(
        "---- MODULE Guide ----\nEXTENDS Guided\nCONSTANTS a, b, c\n"
        f"Given == {{\n    {texts}}}\n====\n"
    )
    (folder / "Guide.cfg").write_text(
        "SPECIFICATION GuidedSpec\nCONSTANTS\n  a = a\n  b = b\n  c = c\n  None = None\n"
        f"  Server = {{a, b, c}}\n  InitVoters = {schedules[0].voters}\n  MaxEpoch = 4\n"
        "  MaxLog = 4\n  PreVotes = FALSE\n  Schedules <- Given\nCHECK_DEADLOCK FALSE\n" + checks
    )
    return "Guide"


@pytest.mark.parametrize("config", one_in(4, STATES))
def test_it_holds_within_bounds(config: str, tmp_path: Path) -> None:
    copy_spec(tmp_path)
    verdict = check(tmp_path, "MC.tla", f"{config}.cfg", quick=False)
    assert verdict.clean, verdict.text
    assert verdict.distinct == STATES[config]


def walk(folder: Path, seed: int, count: int = 300) -> Verdict:
    """Every rule at once, three to five epochs: far beyond what can be searched."""
    walks = ("-simulate", f"num={count}", "-depth", "150", "-seed", str(seed))
    return check(folder, "MC.tla", "Deep.cfg", walks=walks)


def test_it_holds_on_walks_far_beyond_the_bounds(tmp_path: Path) -> None:
    """Others every day."""
    copy_spec(tmp_path)
    verdict = walk(tmp_path, DAY, share(300, quick=150, daily=150))
    assert (verdict.code, verdict.broken) == (0, None), f"seed {DAY}: {verdict.text}"
    assert int(re.findall(r"Progress: (\d+) states checked", verdict.text)[-1]) > 10_000


def test_walks_meet_what_breaks(tmp_path: Path) -> None:
    copy_spec(tmp_path)
    sabotage = next(one for one in SABOTAGES if one.breaks == "DurableBeforeSent")
    text = (SPEC / "Quorate.tla").read_text()
    (tmp_path / "Quorate.tla").write_text(text.replace(sabotage.rule, sabotage.instead))
    assert walk(tmp_path, 1).broken


@pytest.mark.parametrize("sabotage", one_in(3, SABOTAGES), ids=lambda s: s.name.replace(" ", "-"))
def test_each_rule_is_needed(sabotage: Sabotage, tmp_path: Path) -> None:
    copy_spec(tmp_path)
    text = (SPEC / "Quorate.tla").read_text()
    assert text.count(sabotage.rule) == 1, sabotage.rule
    (tmp_path / "Quorate.tla").write_text(text.replace(sabotage.rule, sabotage.instead))
    kind = "PROPERTY" if sabotage.breaks in PROPERTIES else "INVARIANT"
    name = guided(tmp_path, [sabotage], f"{kind} {sabotage.breaks}\n")
    verdict = check(tmp_path, f"{name}.tla", f"{name}.cfg")
    assert verdict.broken == sabotage.breaks, verdict.text


@pytest.mark.parametrize("voters", ["{a, b, c}", "{a, b}"])
def test_with_all_rules_the_same_schedules_do_no_harm(voters: str, tmp_path: Path) -> None:
    copy_spec(tmp_path)
    schedules = [sabotage for sabotage in SABOTAGES if sabotage.voters == voters]
    checks = f"INVARIANTS {INVARIANTS}\nPROPERTIES {PROPERTIES}\n"
    name = guided(tmp_path, schedules, checks)
    verdict = check(tmp_path, f"{name}.tla", f"{name}.cfg")
    assert verdict.clean, verdict.text


RUNS = "    /\\ PreVotes => IsMajority(ballot[i], voters[i])\n"
HEARS = "        /\\ ~fetched[i]\n"
LEADS = '        /\\ role[i] # "leader"\n        /\\ ~fetched'
PRE_VOTE_RULES = {
    "a-candidate-needs-a-majority": ("Election", RUNS, "", "PreVoteFirst"),
    "a-follower-with-a-live-leader": ("PreVote", HEARS, "", "NoDisruption"),
    "a-leader": ("PreVote", LEADS, "        /\\ ~fetched", "NoDisruption"),
}


@pytest.mark.parametrize("name", one_in(3, PRE_VOTE_RULES))
def test_each_rule_of_pre_votes_is_needed(name: str, tmp_path: Path) -> None:
    config, rule, instead, breaks = PRE_VOTE_RULES[name]
    copy_spec(tmp_path)
    text = (SPEC / "Quorate.tla").read_text()
    assert text.count(rule) == 1
    (tmp_path / "Quorate.tla").write_text(text.replace(rule, instead))
    verdict = check(tmp_path, "MC.tla", f"{config}.cfg")
    assert verdict.broken == breaks, verdict.text
