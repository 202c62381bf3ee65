"""The structure of the code base: layers, sizes, names, and words that must not return."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 470
"""Of a source file; the aim is 400."""
PAGE_WIDTH = 120
RETIRED_WORDS = {
    "deeds?": "fault event, operation or action",
    "doubts": "anomalies",
    "errands?": "task",
    "exam": "oversize probe",
    "goodbyes?": "epoch notification, or EndQuorumEpoch",
    "harvest": "disk contents",
    "hostile": "with faults, or malicious",
    "laws?": "invariant",
    "ledger": "fault budget",
    "legal_moves": "legal transitions",
    "luck": "rng",
    "mend|mends|mending": "fix or repair",
    "patient": "long-running",
    "reigns?": "leadership or epoch",
    "story|stories": "scenario",
    "strangers?": "foreign cluster, or unknown replica",
    "stretch(?:es)?": "range of offsets",
    "tells|told": "reports, reported or received",
    "thereof": "of it",
    "torment": "fault injection",
    "twins?": "reference model",
    "whoever": "the component that is meant",
    "write_whole": "write_atomically",
}
"""Private vocabulary that left the code base (patterns), and the term that took its place."""
PERSISTED_NAMES = (
    '"law"',
    '"patient"',
    '"stranger"',
    '"told"',
    "a follower heard its leader's goodbye",
    "a static voter told its leader its directory",
    "a voter ran because the leader said goodbye",
    "remove-stranger",
    "stranger from=",
    "told_anew",
)
"""Keys of JSON, coverage points, streams of the prng, and words of plan and scenario files."""
SWEPT = {".html", ".md", ".plan", ".py", ".toml", ".txt"}
"""Suffixes of the files in which retired words must not return."""
PUBLIC = {"_exit", "_replace", "_make", "_fields"}
"""Of os and of NamedTuple: public in spite of the underscore."""
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|farm)/")


def tracked_text_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    return [f for f in files if f.is_file() and "tests/data" not in f.as_posix()]


@pytest.mark.slow  # the inner loop asks the linter itself
def test_imports_only_go_down():
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def modules() -> dict[str, Path]:
    """Every module of the package, by its full name."""
    names = (path.relative_to(ROOT / "src").with_suffix("").parts for path in SOURCES)
    return dict(
        zip((".".join(one).removesuffix(".__init__") for one in names), SOURCES, strict=True)
    )


def imported(node: ast.AST, known: Collection[str], *, types: bool) -> Iterator[str]:
    """The modules that a file imports, in functions too; `types`: also under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names):
                yield from (alias.name for alias in names if alias.name in known)
            case ast.ImportFrom(str(origin), names):
                parts = (f"{origin}.{alias.name}" for alias in names)
                found = {part if part in known else origin for part in parts}
                yield from found.intersection(known)
            case ast.If(test=ast.Name("TYPE_CHECKING")) if not types:
                continue
        yield from imported(child, known, types=types)


def imports(*, types: bool) -> dict[str, set[str]]:
    """The imports of each module within the package."""
    paths = modules()
    return {
        name: {*imported(ast.parse(path.read_text()), paths, types=types)} - {name}
        for name, path in paths.items()
    }


@pytest.mark.parametrize("types", [False, True])
def test_imports_do_not_go_in_circles(types):
    """`types`: not for the type checker either."""
    TopologicalSorter(imports(types=types)).prepare()  # a CycleError names the circle


def test_no_file_is_longer_than_a_reader_can_hold():
    assert SOURCES
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in SOURCES}
    long = {path: lines for path, lines in lengths.items() if lines > MAX_LINES}
    assert long == {}, "split them by duty"


def test_no_file_names_a_machine_path():
    found = []
    for path in tracked_text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in MACHINE_PATH.finditer(text)]
    assert found == []


def test_links_in_the_docs_lead_somewhere():
    broken = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert broken == []


def test_the_drawing_of_the_roles_is_current():
    spec = importlib.util.spec_from_file_location("draw_states", ROOT / "tools/draw_states.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.PAGE.read_text() == drawing.page(), "run: python tools/draw_states.py"


def exceptions(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The classes of a module whose base is an exception."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if any(base in known or base.endswith(("Error", "Exception")) for base in bases):
                yield node.name


def test_the_name_of_every_exception_ends_in_error():
    found: set[str] = set()
    trees = [ast.parse(path.read_text()) for path in SOURCES]
    for _ in range(5):  # a base may stand in a later module
        found.update(name for tree in trees for name in exceptions(tree, found))
    assert {name for name in found if not name.endswith("Error")} == set()


def test_class_names_are_unique():
    """One name, one meaning. `wire` has Kafka's message names, which the core uses for its own."""
    seen: dict[str, list[str]] = {}
    for path in SOURCES:
        name = path.relative_to(ROOT / "src/quorate").as_posix()
        if not name.startswith("wire/messages/"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    seen.setdefault(node.name, []).append(name)
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


def own_names(tree: ast.Module) -> set[str]:
    """What a module defines: functions, classes, fields and slots."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AnnAssign(target=ast.Name(name)):
                found.add(name)
            case ast.Attribute(ast.Name("self" | "cls"), name) | ast.Constant(str(name)):
                found.add(name)  # the strings are those of __slots__
    return found


def private_access(tree: ast.Module, private: set[str]) -> Iterator[str]:
    """Names with an underscore that a module takes from another module of the package."""
    foreign = private - own_names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(str(origin), names) if origin.startswith("quorate."):
                yield from (alias.name for alias in names if alias.name.startswith("_"))
            case ast.Attribute(_, name) if name in foreign:
                yield ast.unparse(node)


def test_no_module_reads_the_private_names_of_another():
    trees = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in SOURCES}
    defined = set().union(*map(own_names, trees.values()))
    private = {name for name in defined if re.match("_[a-z]", name)} - PUBLIC
    found = {
        path: names
        for path, tree in trees.items()
        if (names := sorted(set(private_access(tree, private))))
    }
    assert found == {}


def test_retired_words_do_not_return():
    rules = [
        (re.compile(rf"(?<![a-z])(?:{old})(?![a-z])", re.IGNORECASE), new)
        for old, new in RETIRED_WORDS.items()
    ]
    kept = re.compile("|".join(map(re.escape, PERSISTED_NAMES)))
    found = []
    for path in tracked_text_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in SWEPT or path == Path(__file__).resolve():
            continue
        text = kept.sub("", path.read_text())
        for words, new in rules:
            for match in words.finditer(text):
                number = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{number}: {match[0]}: write {new}")
    assert found == []


def test_pages_wrap_at_120():
    long = []
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            is_table_or_link = line.startswith("|") or "](" in line
            if len(line) > PAGE_WIDTH and not is_table_or_link:
                long.append(f"{page}:{number}: {len(line)} characters")
    assert long == []
