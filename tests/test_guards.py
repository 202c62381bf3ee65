"""tools/guards.py: which conditions count, what is never taken, and how a run goes on."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = """\
def f(n: int) -> str:
    if n > 3:
        return "large"
    while n:
        n -= 1
    try:
        found = [one for one in range(n) if one]
    except ValueError:  # unreached: range raises TypeError
        found = []
    match n:
        case 7:
            return "seven"
    return "some" if found else "none"
"""


@pytest.fixture
def guards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool, over a package with the one module `raft/f.py`."""
    spec = importlib.util.spec_from_file_location("guards", ROOT / "tools" / "guards.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "guards", module)
    spec.loader.exec_module(module)
    (tmp_path / "raft").mkdir()
    (tmp_path / "raft" / "f.py").write_text(SOURCE)
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    monkeypatch.setattr(module, "STATE", tmp_path / "state")
    return module


def seen_by(guards: Any, *arguments: int) -> set[tuple[Any, ...]]:
    """What calls with these arguments take."""
    counters = guards.Counters()
    tree = ast.fix_missing_locations(guards.Instrument().visit(ast.parse(SOURCE)))
    module = ModuleType("f")
    module._guard = counters.hook("raft/f.py")  # type: ignore[attr-defined]
    exec(compile(tree, "f.py", "exec"), module.__dict__)
    assert [module.f(n) for n in arguments] == [("large" if n > 3 else "none") for n in arguments]
    seen: set[tuple[Any, ...]] = counters.seen
    return seen


def left(guards: Any, *arguments: int) -> list[tuple[int, str, str]]:
    found = guards.never_taken(seen_by(guards, *arguments))
    return [(one.line, one.condition, one.outcome) for one in found if not one.why]


def test_branches_that_nothing_takes(guards: Any) -> None:
    rest = [(11, "case 7", "taken"), (13, "found", "true")]
    assert left(guards, 5, 2) == [(7, "one", "true"), (7, "one", "false"), *rest]
    assert (2, "n > 3", "true") in left(guards, 2)
    assert (4, "n", "true") in left(guards, 5)


def test_a_justified_branch_is_kept_apart(guards: Any) -> None:
    (handler,) = [one for one in guards.never_taken(set()) if one.condition == "except ValueError"]
    assert handler.why == "range raises TypeError" and handler.place == "raft/f.py:8"
    assert guards.justification(["# unreached: so", "if a:"], 2) == "so"
    assert guards.justification(["a = 1  # unreached: so", "if a:"], 2) == ""


def test_a_run_goes_on_with_the_parts_that_are_missing(
    guards: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(command: list[str], **_: object) -> None:
        out = Path(command[command.index("--part") + 1])
        ran.append(out.stem)
        if len(ran) == 2:
            raise KeyboardInterrupt
        out.write_text(json.dumps(sorted(seen_by(guards, 5, 2))))

    monkeypatch.setattr(guards.subprocess, "run", run)
    with pytest.raises(KeyboardInterrupt):
        guards.main(["--seeds", "30", "--no-tests", "--json"])
    assert ran == ["seeds-0-25", "seeds-25-30"]
    capsys.readouterr()
    assert guards.main(["--seeds", "30", "--no-tests", "--json"]) == 1
    assert ran[2:] == ["seeds-25-30", "controllers-0-3"]
    listed = json.loads(capsys.readouterr().out)
    assert [row["line"] for row in listed] == [7, 7, 8, 11, 13]
    assert guards.main(["--seeds", "30", "--no-tests"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].split() == ["raft/f.py:7", "true", "one"]
    assert said[-1] == "4 branches are never taken, 1 are justified"
    (guards.PACKAGE / "raft" / "f.py").write_text(SOURCE + "x = 1\n")
    with pytest.raises(IndexError):  # other sources: every part runs again
        monkeypatch.setattr(guards.subprocess, "run", lambda command, **_: [][0])
        guards.main(["--seeds", "30", "--no-tests"])


def test_the_seeds_of_a_run_are_split_into_parts(guards: Any) -> None:
    names = [name for name, _ in guards.parts(60, tests=True)]
    assert names[0] == "tests-raft"
    assert names[-4:] == ["seeds-0-25", "seeds-25-50", "seeds-50-60", "controllers-0-6"]
