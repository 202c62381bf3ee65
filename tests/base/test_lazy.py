"""The public faces of the packages: every name resolves, and all three lists agree."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import quorate

ROOT = Path(quorate.__file__).parent
FACES = sorted(
    path.parent.relative_to(ROOT.parent).as_posix().replace("/", ".")
    for path in ROOT.rglob("__init__.py")
    if "\n__all__" in path.read_text("utf-8")
)
PROGRAMS = {"cli"}
"""Packages that are commands: only `quorate.__main__` imports them."""
SHARED = {"QuorateError", "ReplicaKey"}
"""Names of quorate.base that quorate.embed exports, too; these two modules are small."""


def typed(package: str) -> set[str]:
    """The names that a package imports for type checkers only."""
    tree = ast.parse((ROOT.parent / package.replace(".", "/") / "__init__.py").read_text("utf-8"))
    blocks = (node for node in tree.body if isinstance(node, ast.If))
    imports = (node for block in blocks for node in block.body)
    return {
        alias.name for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names
    }


LAZY = (
    *(
        "base",
        "broker",
        "client",
        "client.admin",
        "config",
        "config_definitions",
        "embed",
        "formats",
    ),
    *("log_dirs", "metadata", "nemesis", "raft", "security", "server", "shell", "sim", "storage"),
    *("verify", "wire"),
)
"""Faces that a command may import: they load nothing by themselves."""


def imported_from_elsewhere() -> set[str]:
    """The packages at the top whose modules another package imports."""
    found = set()
    for path in ROOT.rglob("*.py"):
        own = path.relative_to(ROOT).parts[0]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quorate."):
                top = str(node.module).split(".")[1]
                if top != own and (ROOT / top).is_dir():
                    found.add(top)
    return found


def test_packages_whose_names_others_use_have_a_face() -> None:
    assert {f"quorate.{name}" for name in imported_from_elsewhere() - PROGRAMS} <= set(FACES)


@pytest.mark.parametrize("package", FACES)
def test_every_public_name_resolves(package: str) -> None:
    face = import_module(package)
    for name in face.__all__:
        assert getattr(face, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(face, "no_such_name")  # noqa: B009 - the type checker knows better


@pytest.mark.parametrize("package", FACES)
def test_type_checkers_see_the_same_names(package: str) -> None:
    lazily = typed(package)
    assert not lazily or lazily == {*import_module(package).__all__} - (SHARED - lazily)


@pytest.mark.parametrize("package", [*filter(typed, FACES)])
def test_no_public_name_is_the_name_of_a_module(package: str) -> None:
    """The import of the module would replace it, so that a name meant two things by turns."""
    folder = ROOT.parent / package.replace(".", "/")
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(import_module(package).__all__)


def test_a_face_imports_none_of_its_modules() -> None:
    script = (
        f"import sys; import {', '.join(f'quorate.{name}' for name in LAZY)}; "
        "print(*sorted(name for name in sys.modules if name.startswith('quorate.')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name for name in run.stdout.split() if not name.startswith("quorate._")}
    own = {f"quorate.{name}" for name in LAZY}
    assert loaded == own | {f"quorate.base.{name}" for name in ("errors", "ids", "lazy")}
