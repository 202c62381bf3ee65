"""Every story in scripts/ goes as it is written (QUORATE_REWRITE=1 writes it anew)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from raft.script import play

STORIES = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    outcome = play(path)
    if os.environ.get("QUORATE_REWRITE"):
        path.write_text(outcome)
    assert outcome == path.read_text()


def test_there_are_stories() -> None:
    assert len(STORIES) >= 25
