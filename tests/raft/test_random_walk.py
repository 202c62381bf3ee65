"""Random walks keep Raft's invariants, and find mutants."""

from __future__ import annotations

import pytest

from quorate.base.errors import QuorateError
from raft.walk import Walk
from sim import planted

SHAPES: dict[str, dict[str, object]] = {
    "one": {"voters": 1, "spare": 1},
    "three": {"voters": 3},
    "five": {"voters": 5},
    "changing": {"voters": 3, "spare": 2},
    "static": {"voters": 3, "spare": 1, "static": True},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_invariants_hold(shape: str, seed: int) -> None:
    Walk(seed, **SHAPES[shape]).go(1500)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_invariants_hold_on_long_walks(shape: str) -> None:
    for seed in range(100, 120):
        Walk(seed, **SHAPES[shape]).go(4000)  # type: ignore[arg-type]


BUGS = [
    planted.send_before_durable,
    planted.ask_before_durable,
    planted.fetch_before_durable,
    planted.count_before_durable,
    planted.vote_for_shorter_logs,
    planted.vote_twice,
    planted.take_any_place_for_valid,
]


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_the_walk_finds(bug: planted.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises((AssertionError, QuorateError)):
        for seed in range(250):
            Walk(seed, **SHAPES[["three", "changing", "one"][seed % 3]]).go(3000)  # type: ignore[arg-type]
