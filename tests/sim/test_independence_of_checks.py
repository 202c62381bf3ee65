"""Checks import data types only from the code that they check.

A constant, a helper or a rule that both share hides its own mistake: the check then agrees with it.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import quorate
from quorate.raft import transitions
from quorate.sim.run.run import checked, run_seed
from quorate.wire.schema import Message

PACKAGE = Path(quorate.__file__).parent
CHECKED = (
    "raft",
    "replica",
    "storage",
    "controller",
    "node",
    "server",
    "formats",
    "metadata",
    "log_dirs",
    "wire",
)
"""The packages under test."""
UNAVOIDABLE = {
    "sim/checks/history.py": {
        "quorate.formats.batch.read_batch": "what to_raft_batch takes",
        "quorate.formats.batch.to_raft_batch": (
            "control records are messages of Kafka's schemas; tests/interop compares their bytes"
        ),
    },
    "verify/log_audit.py": {
        "quorate.raft.core.RaftCore": "its properties are read faster by their class than by name",
    },
}
"""By check: what it takes from the packages under test although it is no data type, and why."""
FOLDERS = ("sim/checks", "verify")
FILES = [
    *(file for folder in FOLDERS for file in sorted((PACKAGE / folder).glob("*.py"))),
    PACKAGE / "sim" / "explore" / "invariants.py",
]


def taken(tree: ast.Module) -> Iterator[tuple[str, str | None]]:
    """(module, name) of everything that a module takes from the packages under test when it runs;
    None: the module as a whole. What only a type checker reads is left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.name, None) for one in node.names if is_checked(one.name))
        elif isinstance(node, ast.ImportFrom) and node.module and is_checked(node.module):
            yield from ((node.module, one.name) for one in node.names)


def is_checked(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package == "quorate" and rest.partition(".")[0] in CHECKED


def is_data_type(found: object) -> bool:
    """A dataclass, a tuple with names, a message, an enumeration, a protocol, or a union of such."""
    if isinstance(found, types.UnionType):
        return all(map(is_data_type, found.__args__))
    if not isinstance(found, type):
        return False
    is_record = dataclasses.is_dataclass(found) or hasattr(found, "_fields")
    is_record = is_record or issubclass(found, Message)
    return is_record or issubclass(found, enum.Enum) or getattr(found, "_is_protocol", False)


def not_data(tree: ast.Module) -> list[str]:
    found = []
    for module, name in taken(tree):
        if name is None or not is_data_type(getattr(import_module(module), name)):
            found.append(f"{module}.{name}" if name else module)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_a_check_imports_data_types_only(file: Path) -> None:
    allowed = UNAVOIDABLE.get(file.relative_to(PACKAGE).as_posix(), {})
    assert sorted(not_data(ast.parse(file.read_text()))) == sorted(allowed)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from quorate.raft.transitions import CHECK_QUORUM_FACTOR", 1),
        ("from quorate.raft.describe import describe", 1),
        ("from quorate.raft.log_index import LogIndex", 1),
        ("import quorate.storage.log", 1),
        ("from quorate.formats.files import PART_SUFFIX", 1),
        ("from quorate.wire.registry import APIS", 1),
        ("from quorate.wire.messages import FetchRequest", 0),
        ("def f():\n    from quorate.raft.roles import NEVER", 1),
        ("from quorate.raft.roles import Leader, Role", 0),
        ("from quorate.replica.disk_jobs import Job, Write", 0),
        ("if TYPE_CHECKING:\n    from quorate.raft.state import RaftState", 0),
        ("from quorate.base.ids import ZERO_UUID", 0),
    ],
)
def test_what_counts_as_a_data_type(source: str, found: int) -> None:
    assert len(not_data(ast.parse(source))) == found


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("factor", "check"), [(1.0, "leader with a majority stays"), (4.0, "check quorum")]
)
def test_a_wrong_constant_of_the_core_is_a_violation(
    monkeypatch: pytest.MonkeyPatch, factor: float, check: str
) -> None:
    """Kafka's leader waits one and a half fetch timeouts for a majority."""
    monkeypatch.setattr(transitions, "CHECK_QUORUM_FACTOR", factor)
    for seed in range(1, 6):
        failure = run_seed(seed, checked()).failure
        if failure is not None:
            assert failure.check == check
            return
    pytest.fail("no seed finds it")
