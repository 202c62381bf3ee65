"""`python -m bench pairs`: the order of the samples, and the figures that it derives from them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def pairs(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT))
    yield import_module("bench.pairs")


def test_every_second_pair_starts_with_the_other_tree(pairs: ModuleType) -> None:
    order: list[str] = []

    def sample(tree: Path) -> dict[str, float]:
        order.append(tree.name)
        return {"x, ms": float(len(order))}

    found = pairs.interleave(Path("a"), Path("b"), 3, sample)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [(before["x, ms"], after["x, ms"]) for before, after in found] == [
        (1, 2),
        (4, 3),
        (5, 6),
    ]


def test_medians_their_quotient_and_the_quartiles_of_the_pairs(pairs: ModuleType) -> None:
    samples = [
        ({"commit, ms": 10.0, "events/s": 100.0}, {"commit, ms": 11.0, "events/s": 80.0}),
        ({"commit, ms": 20.0, "events/s": 200.0}, {"commit, ms": 20.0, "events/s": 160.0}),
        ({"commit, ms": 40.0, "events/s": 50.0}, {"commit, ms": 36.0, "events/s": 50.0}),
    ]
    commit, events = pairs.compare(samples)
    assert (commit.before, commit.after, commit.quotient) == (20.0, 20.0, 1.0)
    assert (commit.low, commit.high) == pytest.approx((0.95, 1.05))
    assert events.quotient == 0.8
    assert events.worse == 1.25  # a lower rate costs more
    text = pairs.as_text("1234", "5678", 3, [commit, events])
    assert [line.split(" | ")[0] for line in text.splitlines() if "worse" in line] == ["| events/s"]


def test_a_tree_that_was_not_compiled_is_refused(tmp_path: Path) -> None:
    command = tmp_path / ".venv/bin/quorate"
    command.parent.mkdir(parents=True)
    command.touch()
    words = [sys.executable, "-m", "bench", "pairs", str(tmp_path), str(tmp_path)]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2
    assert f"{tmp_path}: not compiled" in run.stderr


def test_the_probe_uses_names_that_are_there(pairs: ModuleType) -> None:
    probe = import_module("bench.pairs_probe")  # its imports are all that it takes from a tree
    assert set(pairs.PARTS) == {*probe.PARTS, "start-up"}
