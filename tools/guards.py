"""List the branches that no unit test and no world takes: `python tools/guards.py` (`make guards`).

Interprets `raft`, `replica`, `storage`, `node` and `embed` with a counter at each condition: `if`,
`while`, conditional expressions, conditions of comprehensions, cases of `match` and `except`. It runs
the unit tests of these packages, then seeds of the simulator, each part in a process of its own. A part
that is done is kept in `build/guards`, so an interrupted run goes on where it stopped; changed sources
begin anew, changed tests are run again. Exit code 1 where a branch is neither taken nor justified.

A comment `# unreached: WHY` in the line of the branch, or alone in the line before it, justifies it.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

N = TypeVar("N", bound=ast.AST)

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "quorate"
FOLDERS: Final = ("raft", "replica", "storage", "node", "embed")
STATE: Final = ROOT / "build" / "guards"
JUSTIFIED: Final = "# unreached:"
_SEEDS_IN_A_PART: Final = 25
_TESTS: Final = {
    "raft": ("tests/raft",),
    "replica": ("tests/replica",),
    "storage": ("tests/storage", "tests/log_dirs"),
    "node": ("tests/node",),
    "embed": ("tests/embed",),
    "server": ("tests/server", "tests/verify"),
    "sim": (
        "tests/sim/test_rare_worlds.py",
        "tests/sim/test_known_bugs.py",
        "tests/sim/test_kafka_scenarios.py",
    ),
}
_HOOK: Final = "_guard"


@dataclass(frozen=True, slots=True)
class Branch:
    """One outcome of a condition. `why`: how the source justifies that nothing takes it."""

    file: str
    line: int
    condition: str
    outcome: str
    why: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Site:
    """A condition at a position. `outcomes`: what it can be."""

    line: int
    column: int
    condition: str
    outcomes: tuple[str, ...]


class Counters:
    """The outcomes that were seen, as `file line column outcome`."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int, int, str]] = set()

    def hook(self, file: str) -> Callable[[int, int, Any, str], Any]:
        seen = self.seen

        def guard(line: int, column: int, value: Any, outcome: str = "") -> Any:
            seen.add((file, line, column, outcome or ("true" if value else "false")))
            return value

        return guard


class Instrument(ast.NodeTransformer):
    """Puts the hook at each condition; `sites` lists them."""

    def __init__(self) -> None:
        self.sites: list[Site] = []

    def visit_If(self, node: ast.If) -> ast.AST:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            return node
        return self._with_test(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._with_test(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._with_test(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        tests = list(node.ifs)
        self.generic_visit(node)
        node.ifs = [self._counted(test, ast.unparse(test)) for test in tests]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        kind = "" if node.type is None else ast.unparse(node.type)
        return self._with_mark(node, node, f"except {kind}")

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        return self._with_mark(node, node.pattern, f"case {ast.unparse(node.pattern)}")

    def _with_test(self, node: ast.If | ast.While | ast.IfExp) -> ast.AST:
        condition = ast.unparse(node.test)
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            node.test = self._counted(node.test, condition)
        return node

    def _counted(self, test: ast.expr, condition: str) -> ast.expr:
        self.sites.append(Site(test.lineno, test.col_offset, condition, ("true", "false")))
        where = [ast.Constant(test.lineno), ast.Constant(test.col_offset), test]
        return self._at(ast.Call(ast.Name(_HOOK, ast.Load()), where, []), test)

    def _with_mark(
        self,
        node: ast.ExceptHandler | ast.match_case,
        place: ast.ExceptHandler | ast.pattern,
        condition: str,
    ) -> ast.AST:
        self.generic_visit(node)
        self.sites.append(Site(place.lineno, place.col_offset, condition, ("taken",)))
        where: list[ast.expr] = [ast.Constant(place.lineno), ast.Constant(place.col_offset)]
        where += [ast.Constant(None), ast.Constant("taken")]
        call = ast.Call(ast.Name(_HOOK, ast.Load()), where, [])
        node.body.insert(0, self._at(ast.Expr(call), node.body[0]))
        return node

    @staticmethod
    def _at(new: N, old: ast.AST) -> N:
        return ast.fix_missing_locations(ast.copy_location(new, old))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, counters: Counters) -> None:
        super().__init__(name, path)
        self._counters = counters

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.fix_missing_locations(Instrument().visit(ast.parse(self.get_data(self.path))))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        name = Path(self.path).relative_to(PACKAGE).as_posix()
        setattr(module, _HOOK, self._counters.hook(name))
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    def find_spec(
        self, name: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, *parts = name.split(".")
        if top != "quorate" or len(parts) != 2 or parts[0] not in FOLDERS:
            return None
        file = str(PACKAGE.joinpath(*parts).with_suffix(".py"))
        return spec_from_file_location(name, file, loader=_Loader(name, file, self._counters))


# -- one part, in a process of its own -----------------------------------------------------------
def run_part(words: Sequence[str], out: Path) -> None:
    """Run `seeds FIRST END` or `tests PATH...`, and write what was seen."""
    import quorate  # noqa: F401 - it puts a finder of its own first

    counters = Counters()
    sys.meta_path.insert(0, _Finder(counters))
    if words[0] == "tests":
        import pytest

        options = [
            "-q",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            "-m",
            "not interop and not e2e",
        ]
        if pytest.main([*options, *words[1:]]) not in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
        ):
            raise SystemExit(f"the tests of {' '.join(words[1:])} did not run")
    else:
        from quorate.sim.run.run import checked, run_seed

        controllers = words[0] == "controllers"
        for seed in range(int(words[1]), int(words[2])):
            failure = run_seed(seed, checked(), "controllers" if controllers else None).failure
            if failure is not None:
                print(f"seed {seed}: {failure.check}: {failure.message}", file=sys.stderr)
    partial = out.with_suffix(".part")
    partial.write_text(json.dumps(sorted(counters.seen)))
    partial.replace(out)


# -- all parts -----------------------------------------------------------------------------------
def parts(seeds: int, *, tests: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(name, words) of each part, in order."""
    if tests:
        yield from ((f"tests-{name}", ("tests", *paths)) for name, paths in _TESTS.items())
    for first in range(0, seeds, _SEEDS_IN_A_PART):
        end = min(first + _SEEDS_IN_A_PART, seeds)
        yield f"seeds-{first}-{end}", ("seeds", str(first), str(end))
    for first in range(0, seeds // 10, _SEEDS_IN_A_PART):
        end = min(first + _SEEDS_IN_A_PART, seeds // 10)
        yield f"controllers-{first}-{end}", ("controllers", str(first), str(end))


def seen_in(folder: Path, wanted: Sequence[tuple[str, tuple[str, ...]]]) -> set[tuple[Any, ...]]:
    """What all parts saw; runs those that are missing in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    found: set[tuple[Any, ...]] = set()
    for name, words in wanted:
        out = folder / f"{name}{suffix(words)}.json"
        if not out.exists():
            print(f"{name} ...", file=sys.stderr, flush=True)
            command = [sys.executable, "-P", __file__, "--part", str(out), *words]
            more = {"QUORATE_PURE_PYTHON": "1", "PYTHONPATH": str(ROOT / "tests")}
            subprocess.run(command, cwd=ROOT, env=os.environ | more, check=True, stdout=sys.stderr)
        found.update(map(tuple, json.loads(out.read_text())))
    return found


def sources() -> list[Path]:
    return [file for folder in FOLDERS for file in sorted((PACKAGE / folder).glob("*.py"))]


def digest() -> str:
    """Of what is instrumented: a state of other code, or of code at other places, is of no use.

    A comment at the end of a line changes neither.
    """
    trees = (ast.dump(ast.parse(file.read_text()), include_attributes=True) for file in sources())
    return hashlib.sha256("".join(trees).encode()).hexdigest()[:16]


def suffix(words: Sequence[str]) -> str:
    """Of the file of a part: another one where its tests have changed; empty for seeds."""
    if words[0] != "tests":
        return ""
    files = [
        file
        for path in map(ROOT.joinpath, words[1:])
        for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
    ]
    return "-" + hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def never_taken(seen: set[tuple[Any, ...]]) -> list[Branch]:
    """Every branch that was not seen, in the order of the sources."""
    found = []
    for file in sources():
        name, text = file.relative_to(PACKAGE).as_posix(), file.read_text()
        instrument = Instrument()
        instrument.visit(ast.parse(text))
        lines = text.splitlines()
        for site in sorted(instrument.sites, key=lambda one: (one.line, one.column)):
            for outcome in site.outcomes:
                if (name, site.line, site.column, outcome) not in seen:
                    why = justification(lines, site.line)
                    found.append(Branch(name, site.line, site.condition, outcome, why))
    return found


def justification(lines: Sequence[str], line: int) -> str:
    """The comment in this line (from 1), or alone in the line before it; empty: none."""
    before = lines[line - 2].strip() if line > 1 else ""
    for text in (lines[line - 1], before if before.startswith("#") else ""):
        _, found, why = text.partition(JUSTIFIED)
        if found:
            return why.strip()
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=500, help="seeds of the simulator (500)")
    parser.add_argument("--no-tests", action="store_true", help="leave the unit tests out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--part", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.part is not None:
        run_part(given.words, given.part)
        return 0
    wanted = list(parts(given.seeds, tests=not given.no_tests))
    branches = never_taken(seen_in(STATE / digest(), wanted))
    left = [branch for branch in branches if not branch.why]
    if given.json:
        print(json.dumps([asdict(branch) for branch in branches], indent=1))
    else:
        for branch in left:
            print(f"{branch.place:34} {branch.outcome:6} {branch.condition}")
        print(f"{len(left)} branches are never taken, {len(branches) - len(left)} are justified")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
