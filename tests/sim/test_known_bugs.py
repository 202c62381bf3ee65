"""Published bugs of KRaft and Raft, each as a story, which the bug itself, planted, spoils.

docs/known-bugs.md tells them one by one; what no story can show is in test_known_bugs_of_nodes.py.
Worlds that `quorate sim shrink` has made small are kept beside them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.sim.story.file import read_story, tell
from quorate.sim.story.worlds import is_world
from sim import planted

SCRIPTS = Path(__file__).parent / "scripts"
RAFT_SCRIPTS = Path(__file__).parent.parent / "raft" / "scripts"
TABLE = Path(__file__).parent.parent.parent / "docs" / "known-bugs.md"


class Known(NamedTuple):
    """A story, the bug, and what is first seen of it: a line more (+) or a line less (-)."""

    story: str
    plant: planted.Plant
    seen: str
    place: Path = SCRIPTS

    @property
    def path(self) -> Path:
        return self.place / f"{self.story}.txt"


KNOWN = [
    Known("kafka_10527", planted.lead_again_after_a_restart, "+ 1: accepted [3, 4)"),
    Known("kafka_10661", planted.forget_having_led, "+ 1: epoch 1: vote of 3 granted"),
    Known("kafka_14204", planted.propose_without_limit, "+ 1: accepted [3, 4)"),
    Known("kafka_15489", planted.never_check_the_quorum, "- 1: epoch 1: resigned (no fetch"),
    Known("kafka_16526", planted.save_votes_without_directory, "+ 3: epoch 1: vote of 2' granted"),
    Known("kafka_16530", planted.count_the_leader_always, "+ 1: high watermark 4"),
    Known("kafka_16927", planted.follow_no_wider_endpoints, "+ 2: FAULTED broken invariant: illeg"),
    Known("kafka_17333", planted.tell_resigned_leaders_that_they_lead, "+ 1 was told leader 1"),
    Known("kafka_17604", planted.add_voters_without_address, "- 4: epoch 1: pre-vote of 2 refused"),
    Known("kafka_17608", planted.crash_when_the_leader_is_removed, "+ 1: FAULTED"),
    Known(
        "kafka_18379", planted.follow_itself, "+ 1: FAULTED broken invariant: follower of itself"
    ),
    Known("kafka_19354", planted.observers_run, "+ 4: epoch 1: prospective (fetch timeout)"),
    Known("kafka_19354", planted.ask_the_others_for_ever, "- 4: high watermark 4"),
    Known("kafka_19850", planted.join_at_once, "+ 1: add voter 3: asks for its versions"),
    Known("kafka_19850_without_auto_join", planted.join_unasked, "+ 1: add voter 3: asks for its"),
    Known("kafka_20427", planted.never_update_voters, "- 1: offset 3: voters {1, 2, 3}"),
    Known("kafka_20427_all_at_once", planted.win_without_votes, "+ 1: epoch 3: leader"),
    Known("ongaro_2015", planted.change_before_a_commit, "+ 2: offset 4: voters {2, 3, 4}"),
    Known("figure_8", planted.commit_what_any_epoch_left, "+ 2: high watermark 4", RAFT_SCRIPTS),
    Known("pysyncobj_84", planted.speak_before_durable, "+ 3 answers VoteResponse NONE granted"),
    Known("pysyncobj_84", planted.forget_epoch_and_vote, "+ 3: epoch 0: starts as unattached"),
    Known("pysyncobj_84", planted.fetch_before_durable, "+ 1: high watermark 4"),
    Known("pysyncobj_84", planted.count_the_leader_at_once, "+ 1: FAULTED broken invariant: cou"),
    Known("pysyncobj_164", planted.keep_leading_without_a_disk, "- 2: epoch 2: leader"),
    Known("pysyncobj_166", planted.let_the_high_watermark_fall, "+ 1: FAULTED broken invariant"),
    Known("pysyncobj_167", planted.let_the_leaders_high_watermark_fall, "+ 1: FAULTED broken inv"),
    Known("pysyncobj_197", planted.remember_the_commit_index, "+ 2: FAULTED broken invariant"),
    Known("pysyncobj_202", planted.forget_epoch_and_vote, "- 2: epoch 6: starts as unattached"),
    Known("krabka_unknown_epoch", planted.take_any_place_for_valid, "- 2: truncated to 3"),
]
STORIES = sorted(SCRIPTS.glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    written = read_story(path)
    told = tell(written, path.name)
    if os.environ.get("QUORATE_REWRITE"):
        path.write_text(told.text)
    assert not told.differences
    assert told.text == written


@pytest.mark.interpreted
@pytest.mark.parametrize("known", KNOWN, ids=lambda known: f"{known.story}-{known.plant.__name__}")
def test_the_bug_itself_spoils_the_story(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    text = read_story(known.path)
    assert not tell(text, known.story).differences
    known.plant(monkeypatch)
    first = tell(text, known.story).differences[0]
    more = [f"+ {line}" for line in first.found if line not in first.written]
    less = [f"- {line}" for line in first.written if line not in first.found]
    assert any(line.startswith(known.seen) for line in more + less), (more, less)


def test_every_story_is_held_against_its_bug_and_told_in_the_table() -> None:
    stories = {path for path in STORIES if not is_world(read_story(path))}
    assert {known.path for known in KNOWN} >= stories
    table = TABLE.read_text()
    for known in KNOWN:
        assert f"{known.path.parent.parent.name}/scripts/{known.story}.txt" in table
