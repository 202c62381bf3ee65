"""The house rules: floors, sizes, and what no file may name."""

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


def imported(node: ast.AST, modules: Collection[str], *, types: bool) -> Iterator[str]:
    """What a module imports of these, in functions too; `types`: also for the type checker only."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names):
                yield from (alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(str(origin), names):
                parts = (f"{origin}.{alias.name}" for alias in names)
                found = {part if part in modules else origin for part in parts}
                yield from found.intersection(modules)
            case ast.If(test=ast.Name("TYPE_CHECKING")) if not types:
                continue
        yield from imported(child, modules, types=types)


def imports(*, types: bool) -> dict[str, set[str]]:
    """By module, its imports of the package."""
    names = (path.relative_to(ROOT / "src").with_suffix("").parts for path in SOURCES)
    paths = dict(
        zip((".".join(one).removesuffix(".__init__") for one in names), SOURCES, strict=True)
    )
    return {
        name: {*imported(ast.parse(path.read_text()), paths, types=types)} - {name}
        for name, path in paths.items()
    }


@pytest.mark.parametrize("types", [False, True])
def test_imports_do_not_go_in_circles(types):
    """Types may in the simulator: its world and what acts in it know each other by name."""
    found = imports(types=types)
    if types:
        found = {name: to for name, to in found.items() if not name.startswith("quorate.sim.")}
    TopologicalSorter(found).prepare()  # a CycleError names the circle


def test_files_stay_readable():
    assert SOURCES
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in SOURCES}
    long = {path: lines for path, lines in lengths.items() if lines > 600}
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


def test_the_drawing_of_the_roles_is_of_todays_moves():
    spec = importlib.util.spec_from_file_location("draw_states", ROOT / "tools/draw_states.py")
    drawing = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.PAGE.read_text() == drawing.page(), "run: python tools/draw_states.py"
