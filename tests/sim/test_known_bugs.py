"""Published bugs of KRaft and Raft, each as a scenario that the planted bug changes.

docs/known-bugs.md describes them; what no scenario can show is in test_known_bugs_of_nodes.py.
Worlds that `quorate sim shrink` has made small are kept beside them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.sim.scenario.file import read_scenario, run_scenario
from quorate.sim.scenario.worlds import is_world
from sim import planted

SCRIPTS = Path(__file__).parent / "scripts"
RAFT_SCRIPTS = Path(__file__).parent.parent / "raft" / "scripts"
TABLE = Path(__file__).parent.parent.parent / "docs" / "known-bugs.md"


class Known(NamedTuple):
    """A scenario, the bug, and what is first seen of it: a line more (+) or a line less (-)."""

    scenario: str
    plant: planted.Plant
    seen: str
    place: Path = SCRIPTS

    @property
    def path(self) -> Path:
        return self.place / f"{self.scenario}.txt"


KNOWN = [
    Known("kafka_10527", planted.lead_again_after_a_restart, "+ 1: accepted [3, 4)"),
    Known("kafka_10661", planted.forget_having_led, "+ 1: epoch 1: vote of 3 granted"),
    Known("kafka_14204", planted.propose_without_limit, "+ 1: accepted [3, 4)"),
    Known("kafka_15489", planted.never_check_the_quorum, "- 1: epoch 1: resigned (no fetch"),
    Known("kafka_16526", planted.save_votes_without_directory, "+ 3: epoch 1: vote of 2' granted"),
    Known("kafka_16530", planted.count_the_leader_always, "+ 1: high watermark 4"),
    Known("kafka_16927", planted.follow_no_wider_endpoints, "+ 2: FAULTED broken invariant: illeg"),
    Known("kafka_17333", planted.report_resigned_leaders_as_leaders, "+ 1 reported leader 1"),
    Known("kafka_17604", planted.add_voters_without_address, "- 4: epoch 1: pre-vote of 2 refused"),
    Known("kafka_17608", planted.crash_when_the_leader_is_removed, "+ 1: FAULTED"),
    Known(
        "kafka_18379", planted.follow_itself, "+ 1: FAULTED broken invariant: follower of itself"
    ),
    Known("kafka_19354", planted.observers_run, "+ 4: epoch 1: prospective (fetch timeout)"),
    Known("kafka_19354", planted.ask_the_others_for_ever, "- 4: high watermark 4"),
    Known("kafka_19850", planted.join_at_once, "+ 1: add voter 3: asks for its versions"),
    Known(
        "kafka_19850_without_auto_join",
        planted.join_without_auto_join,
        "+ 1: add voter 3: asks for its",
    ),
    Known("kafka_20427", planted.never_update_voters, "- 1: offset 3: voters {1, 2, 3}"),
    Known("kafka_20427_all_at_once", planted.win_without_votes, "+ 1: epoch 3: leader"),
    Known("kafka_20895", planted.refuse_successors, "+ 3: epoch 1: pre-vote of 2 refused"),
    Known("ongaro_2015", planted.change_before_a_commit, "+ 2: offset 4: voters {2, 3, 4}"),
    Known("figure_8", planted.commit_what_any_epoch_left, "+ 2: high watermark 4", RAFT_SCRIPTS),
    Known("pysyncobj_84", planted.send_before_durable, "+ 3 answers VoteResponse NONE granted"),
    Known("pysyncobj_84", planted.forget_epoch_and_vote, "+ 3: epoch 0: starts as unattached"),
    Known("pysyncobj_84", planted.fetch_before_durable, "+ 1: high watermark 4"),
    Known("pysyncobj_84", planted.count_the_leader_at_once, "+ 1: FAULTED broken invariant: cou"),
    Known("pysyncobj_164", planted.keep_leading_without_a_disk, "- 2: epoch 2: leader"),
    Known("pysyncobj_166", planted.let_the_high_watermark_fall, "+ 1: FAULTED broken invariant"),
    Known("pysyncobj_167", planted.let_the_leaders_high_watermark_fall, "+ 1: FAULTED broken inv"),
    Known("pysyncobj_197", planted.remember_the_commit_index, "+ 2: FAULTED broken invariant"),
    Known("pysyncobj_202", planted.forget_epoch_and_vote, "- 2: epoch 6: starts as unattached"),
    Known("removed_candidate", planted.resume_any_candidacy, "+ 1: epoch 1: observer of 2"),
    Known("krabka_unknown_epoch", planted.take_any_place_for_valid, "- 2: truncated to 3"),
]
SCENARIOS = sorted(SCRIPTS.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    written = read_scenario(path)
    played = run_scenario(written, path.name)
    if os.environ.get("QUORATE_REWRITE"):
        path.write_text(played.text)
    assert not played.differences
    assert played.text == written


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "known", KNOWN, ids=lambda known: f"{known.scenario}-{known.plant.__name__}"
)
def test_the_planted_bug_changes_the_scenario(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = read_scenario(known.path)
    assert not run_scenario(text, known.scenario).differences
    known.plant(monkeypatch)
    first = run_scenario(text, known.scenario).differences[0]
    more = [f"+ {line}" for line in first.found if line not in first.written]
    less = [f"- {line}" for line in first.written if line not in first.found]
    assert any(line.startswith(known.seen) for line in more + less), (more, less)


def test_every_scenario_has_its_planted_bug_and_a_row_of_the_table() -> None:
    scenarios = {path for path in SCENARIOS if not is_world(read_scenario(path))}
    assert {known.path for known in KNOWN} >= scenarios
    table = TABLE.read_text()
    for known in KNOWN:
        assert f"{known.path.parent.parent.name}/scripts/{known.scenario}.txt" in table
