"""Every story in scripts/ goes as it is written (QUORATE_REWRITE=1 writes it anew)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.sim.story.file import read_story, tell

STORIES = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    written = read_story(path)
    told = tell(written, path.name)
    if os.environ.get("QUORATE_REWRITE"):
        path.write_text(told.text)
    assert not told.differences
    assert told.text == written


def test_there_are_stories() -> None:
    assert len(STORIES) >= 25
