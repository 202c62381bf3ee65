"""Ctrl-C and SIGTERM: the progress, the command that continues, and exit code 130."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

from quorate.sim.explore.search import LevelProgress
from quorate.sim.plan.draw import draw
from quorate.sim.run.run import Failure, WorldOutcome
from quorate.sim.run.shrink import Shrunk


def interrupted_worlds(*done: int):
    """Stands in for `run_seeds`: these are over when the interrupt comes."""

    def worlds(*_: object, **__: object) -> Iterator[WorldOutcome]:
        for seed in done:
            yield WorldOutcome(seed, draw(seed), 100, 1000, "ab" * 16, None, 0.5)
        raise KeyboardInterrupt

    return worlds


def test_a_run_prints_the_seed_to_resume_from(quorate, monkeypatch):
    monkeypatch.setattr("quorate.sim.run.pool.run_seeds", interrupted_worlds(0, 1, 2, 8, 9))
    outcome = quorate("sim", "run", "--seeds", "0..4000", "--jobs", 2, "--keep-going")
    assert outcome.code == 130
    first, *_, said, again = outcome.out.splitlines()
    assert first.startswith("5 worlds, 500 events")
    assert said == "interrupted: 5 of 4000 seeds are done; go on with"
    assert again == "  quorate sim run --seeds 3..4000 --jobs 2 --keep-going"


def test_a_signal_to_end_prints_the_same(quorate, monkeypatch):
    def worlds(*_: object, **__: object) -> Iterator[WorldOutcome]:
        yield WorldOutcome(7, draw(7), 100, 1000, "ab" * 16, None, 0.5)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL  # it would end the tests
        signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("quorate.sim.run.pool.run_seeds", worlds)
    outcome = quorate("sim", "run", "--seeds", "7..9")
    assert outcome.code == 130
    assert outcome.out.endswith(
        "1 of 2 seeds are done; go on with\n  quorate sim run --seeds 8..9\n"
    )
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_same_as_json(quorate, monkeypatch):
    monkeypatch.setattr("quorate.sim.run.pool.run_seeds", interrupted_worlds(5))
    outcome = quorate("sim", "run", "--seeds", "5..9", "--json")
    facts = json.loads(outcome.out)
    assert outcome.code == 130
    assert (facts["worlds"], facts["go_on"]) == (1, "quorate sim run --seeds 6..9")


def test_a_campaign_keeps_its_results_and_resumes(quorate, monkeypatch, tmp_path):
    monkeypatch.setattr("quorate.sim.run.campaign.run_seeds", interrupted_worlds(3, 4))
    outcome = quorate("sim", "campaign", "--seeds", "3..9", "--out", tmp_path / "my results")
    assert outcome.code == 130
    assert "not reached:" not in outcome.out
    *_, said, again = outcome.out.splitlines()
    assert (
        said == f"interrupted: 2 of 6 seeds ({tmp_path}/my results has them) are done; go on with"
    )
    assert again.startswith("  quorate sim campaign --seeds 3..9 --jobs 1 --out '")
    assert again.endswith("my results' --resume")

    monkeypatch.setattr("quorate.sim.run.campaign.run_seeds", interrupted_worlds(5))
    options = ("--out", tmp_path / "my results", "--resume")
    outcome = quorate("sim", "campaign", "--seeds", "3..9", *options)
    assert outcome.code == 130 and "interrupted: 3 of 6 seeds " in outcome.out
    assert outcome.err == "2 seeds are done already, 4 are left\n"


def test_a_campaign_with_nothing_to_resume_reports_that(quorate, monkeypatch, tmp_path):
    monkeypatch.setattr("quorate.sim.run.campaign.run_seeds", interrupted_worlds())
    place = tmp_path / "mistyped"
    outcome = quorate("sim", "campaign", "--seeds", "3..9", "--out", place, "--resume")
    assert outcome.err == f"there are no results in {place} yet: all seeds are left\n"


@pytest.mark.parametrize("kept", [False, True])
def test_a_nemesis_names_its_seed(quorate, monkeypatch, tmp_path, kept):
    def run(workload, options, on_event):
        on_event({"at_us": 2_500_000, "what": "begin", "kind": "kill", "node": 1})
        raise KeyboardInterrupt

    monkeypatch.setattr("quorate.nemesis.run.run_nemesis", run)
    keep = ["--keep", tmp_path / "kept"] if kept else []
    outcome = quorate("sim", "nemesis", "--seconds", 60, "--seed", 7, "--only", "kill", *keep)
    assert outcome.code == 130
    first, *_, again = outcome.out.splitlines()
    assert first.startswith("interrupted: 1 faults begun, the last event after 2.5 of 60 s")
    assert again == "  quorate sim nemesis --seed 7 --seconds 60 --members 3 --only kill"


@pytest.mark.parametrize("depths", [0, 2])
def test_an_exploration_reports_its_depth(quorate, monkeypatch, depths):
    def run(self, depth, on_level):
        for done in range(depths):
            on_level(LevelProgress(done, 10 * done + 1, 20, 3, 4, 5, 0.5))
        raise KeyboardInterrupt

    monkeypatch.setattr("quorate.sim.explore.search.Search.run", run)
    outcome = quorate("sim", "explore", "election", "--depth", 9)
    assert outcome.code == 130 and outcome.err == ""
    *levels, said = outcome.out.splitlines()
    assert len(levels) == depths
    if depths:
        assert said == "interrupted: every invariant holds in 11 states, to depth 1 of 9"
    else:
        assert said == "interrupted: no depth of 9 was done"

    outcome = quorate("sim", "explore", "election", "--json")
    facts = json.loads(outcome.out)
    assert outcome.code == 130 and (len(facts["levels"]), facts["complete"]) == (depths, False)
    assert outcome.err.startswith("interrupted: ") and len(outcome.err.splitlines()) == 1


def test_a_finished_campaign_reports_what_remains(quorate, monkeypatch, tmp_path):
    failure = Failure("liveness", "nobody leads", 7, 9)

    def worlds(*_: object, **__: object) -> Iterator[WorldOutcome]:
        for seed in (3, 4, 5):
            yield WorldOutcome(seed, draw(seed), 100, 1000, "ab" * 16, failure, 0.5)

    monkeypatch.setattr("quorate.sim.run.campaign.run_seeds", worlds)
    options = ("--seeds", "3..6", "--out", tmp_path / "out", "--failures", 2)
    outcome = quorate("sim", "campaign", *options)
    assert outcome.code == 1 and "not reached:" not in outcome.out
    *_, said, again = outcome.out.splitlines()
    assert (
        said == f"2 seeds have failed: 2 of 3 seeds ({tmp_path}/out has them) are done; go on with"
    )
    assert again.endswith("--resume --failures 4")
    outcome = quorate("sim", "campaign", "--seeds", "3..6", "--out", tmp_path / "all", "--json")
    assert json.loads(outcome.out)["go_on"] is None


def test_a_shrinking_that_was_interrupted_does_not_pass_for_done(quorate, monkeypatch):
    failed = WorldOutcome(
        7, draw(7), 100, 1000, "ab" * 16, Failure("liveness", "nobody leads", 7, 9), 0.5
    )
    monkeypatch.setattr(
        "quorate.sim.run.shrink.shrink",
        lambda *_, **__: Shrunk(failed, 3, is_finished=False, is_interrupted=True),
    )
    outcome = quorate("sim", "shrink", "7")
    assert outcome.code == 130 and "there may be a smaller world" in outcome.out
