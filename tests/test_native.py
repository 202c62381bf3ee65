"""What is compiled is made from the sources that are there, and can be left aside."""

import ast
import copy
import importlib
import importlib.util
import json
import os
import pickle
import runpy
import shutil
import subprocess
import sys
import types
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from narrow import not_none
from quorate._stale import changed_sources
from time_budget import QUICK

ROOT = Path(__file__).resolve().parent.parent
PURE = bool(os.environ.get("QUORATE_PURE_PYTHON"))


@pytest.fixture
def build_native():
    path = ROOT / "tools/build_native.py"
    spec = not_none(importlib.util.spec_from_file_location("build_native", path))
    module = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(module)
    return module


@pytest.fixture
def native_source(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("native_classes").native_source


@pytest.fixture
def elsewhere(build_native, tmp_path, monkeypatch):
    """The builder over a package of its own, with one source and one thing compiled."""
    (tmp_path / "quorate").mkdir()
    (tmp_path / "quorate" / "one.py").write_text("x = 1\n")
    (tmp_path / "quorate" / "one.cpython.so").touch()
    monkeypatch.setattr(build_native, "SOURCE", tmp_path)
    monkeypatch.setattr(build_native, "PACKAGE", tmp_path / "quorate")
    monkeypatch.setattr(build_native, "MANIFEST", tmp_path / "quorate" / "_native.json")
    monkeypatch.setattr(build_native, "COMPILED", ("one.py",))
    build_native.MANIFEST.write_text(json.dumps(build_native.wanted(build_native.COMPILED)))
    return build_native


VALUES = '''"""A module."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.base.frozen import frozen


@frozen
class Point:
    """Somewhere."""

    x: int
    y: int = 0
    """Upwards."""

    @property
    def length(self) -> int:
        return self.x + self.y


@dataclass(slots=True)
class Path:
    """Somewhere to go."""

    points: list[Point] = field(default_factory=list)
    name: str = "nowhere"


@dataclass(slots=True, eq=False)
class Name:
    """Only ever itself."""

    text: str
'''
"""What there is to write out; both ways it must be the same to its users."""


@pytest.fixture(params=["as it is", "written out"])
def values(request, native_source):
    module = types.ModuleType("values_of_a_test")
    text = VALUES if request.param == "as it is" else native_source(VALUES)
    sys.modules[module.__name__] = module
    exec(compile(text, "values.py", "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]


def lines_of(text):
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return {(node.name, node.lineno) for node in found}


WHENCE = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""


def loaded_from(names, **environment):
    """The file that each module of the package is loaded from, in a process of their own."""
    modules = ["quorate." + name.removesuffix(".py").replace("/", ".") for name in names]
    run = subprocess.run(
        [sys.executable, "-c", WHENCE, *modules],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(names, run.stdout.splitlines(), strict=True))


@pytest.mark.skipif(QUICK, reason="`make check` does not wait for the compiler")
def test_nothing_compiled_is_stale(build_native):
    assert build_native.problem() is None, "run make"


@pytest.mark.skipif(QUICK, reason="`make check` does not wait for the compiler")
@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_where_there_is_a_compiler_all_of_it_is_compiled(build_native):
    inside = (file for file in build_native.extensions() if build_native.PACKAGE in file.parents)
    there = {str(file.relative_to(build_native.PACKAGE)).partition(".")[0] for file in inside}
    missing = [name for name in build_native.COMPILED if name.removesuffix(".py") not in there]
    assert missing == [], "the build failed: run make native, and read what it says"


def test_the_reason_of_a_failed_build_is_shown_wherever_it_was_written(build_native):
    said = "src/x.py:7: error: Incompatible value\nFound 1 error\n"
    for stdout, stderr in ((said, ""), ("", said), (said, None)):
        error = subprocess.CalledProcessError(1, ["mypyc"], stdout, stderr)
        explanation = build_native.BUILD["explain"](error)
        assert explanation == "The compiler failed (Incompatible value)"


def test_a_compiler_that_knows_not_all_flags_gets_none(build_native, monkeypatch):
    monkeypatch.setitem(build_native.BUILD, "compiler", lambda: ["false"])
    assert build_native.flags() == ()


def test_a_changed_source_is_named(elsewhere):
    assert elsewhere.problem() is None
    (elsewhere.PACKAGE / "one.py").write_text("x = 2\n")
    assert elsewhere.problem() == "changed since it was compiled: one.py"


def test_who_will_not_wait_gets_the_codec_alone(elsewhere, monkeypatch):
    built = []
    monkeypatch.setattr(elsewhere, "CODEC", ("codec.c",))

    def build(modules):
        built.append(modules)
        return []

    monkeypatch.setattr(elsewhere, "build", build)
    (elsewhere.PACKAGE / "codec.c").write_text("int x;\n")
    elsewhere.MANIFEST.write_text(json.dumps(elsewhere.wanted(elsewhere.COMPILED)))
    (elsewhere.PACKAGE / "one.py").write_text("x = 2\n")
    elsewhere.main(["--codec"])
    assert built == []
    (elsewhere.PACKAGE / "codec.c").write_text("int y;\n")
    elsewhere.main(["--codec"])
    assert built == [()]


def test_a_compiled_part_of_unknown_origin_is_a_problem(elsewhere):
    elsewhere.MANIFEST.unlink()
    assert elsewhere.problem() == "compiled parts without a manifest"


def test_what_is_up_to_date_is_left_alone(elsewhere, monkeypatch):
    monkeypatch.setattr(elsewhere.subprocess, "run", lambda *_, **__: pytest.fail("built again"))
    os.utime(elsewhere.MANIFEST, (1, 1))
    assert elsewhere.build(elsewhere.COMPILED) == []
    assert [file.name for file in elsewhere.extensions()] == ["one.cpython.so"]
    source = elsewhere.PACKAGE / "one.py"
    assert elsewhere.MANIFEST.stat().st_mtime_ns >= source.stat().st_mtime_ns  # starts read nothing


def test_an_unknown_argument_builds_nothing(elsewhere):
    with pytest.raises(SystemExit, match="unknown arguments: --codecs"):
        elsewhere.main(["--codecs"])


def test_without_a_compiler_everything_runs_in_the_interpreter(elsewhere, monkeypatch, capsys):
    def no_compiler(*_, **__):
        raise FileNotFoundError("no such file: cc")

    monkeypatch.setattr(elsewhere.subprocess, "run", no_compiler)
    (elsewhere.PACKAGE / "one.py").write_text("x = 2\n")
    elsewhere.main([])
    assert elsewhere.extensions() == []
    assert capsys.readouterr().err == ("No C compiler found: everything runs in the interpreter.\n")


def test_a_compiler_that_fails_is_quoted_in_one_line(elsewhere, monkeypatch, capsys):
    def no_headers(command, **_):
        said = "_native.c: In function:\n/there/_native.c:3:10: fatal error: Python.h: not there\n"
        raise subprocess.CalledProcessError(1, command, stderr=said)

    monkeypatch.setattr(elsewhere.subprocess, "run", no_headers)
    (elsewhere.PACKAGE / "one.py").write_text("x = 2\n")
    elsewhere.main([])
    assert capsys.readouterr().err == (
        "The compiler failed (Python.h: not there): everything runs in the interpreter.\n"
    )


def test_the_switch_leaves_every_compiled_part_aside(build_native):
    found = loaded_from(build_native.COMPILED, QUORATE_PURE_PYTHON="1")
    assert len(found) == len(build_native.COMPILED)
    assert [file for file in found.values() if not file.endswith(".py")] == []


@pytest.mark.skipif(QUICK, reason="what is stale is not used")
def test_without_the_switch_what_is_compiled_is_used(build_native):
    there = {file.name.split(".")[0] for file in build_native.extensions()}
    found = loaded_from(build_native.COMPILED, QUORATE_PURE_PYTHON="")
    for name in build_native.COMPILED:
        assert found[name].endswith(".py") == (Path(name).stem not in there), name


def test_this_very_run_uses_what_it_says():
    from quorate.formats import batch_records
    from quorate.wire import codec

    if PURE:
        assert batch_records.__file__.endswith(".py") and not codec.NATIVE
    else:
        assert (importlib.util.find_spec("quorate.wire._native") is not None) == codec.NATIVE


# -- values, written out for mypyc -----------------------------------------------------------------
def test_a_value_compares_and_hashes_by_its_fields(values):
    one, same, other = values.Point(1, 2), values.Point(x=1, y=2), values.Point(1)
    assert one == same and hash(one) == hash(same) == hash((1, 2))
    assert one != other and one != (1, 2) and one.length == 3


def test_a_value_says_what_it_is(values):
    assert repr(values.Path([values.Point(1)])) == "Path(points=[Point(x=1, y=0)], name='nowhere')"


def test_a_value_can_be_changed_into_another(values):
    assert replace(values.Point(1, 2), y=5) == values.Point(1, 5)


def test_a_value_can_be_sent_and_copied(values):
    path = values.Path([values.Point(1)], "out")
    assert pickle.loads(pickle.dumps(path)) == path == copy.deepcopy(path)


def test_each_list_is_its_own(values):
    values.Path().points.append(values.Point(1))
    assert values.Path().points == []


def test_what_may_change_has_no_hash(values):
    with pytest.raises(TypeError, match="unhashable"):
        hash(values.Path())


def test_what_is_only_itself_equals_nothing_else(values):
    name = values.Name("a")
    assert name == name and name != values.Name("a") and hash(name)


def test_a_value_matches_by_position(values):
    match values.Point(1, 2):
        case values.Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.slow
def test_what_is_compiled_keeps_the_numbers_of_its_lines(build_native, native_source):
    for name in build_native.COMPILED:
        text = (build_native.PACKAGE / name).read_text()
        assert lines_of(text) <= lines_of(native_source(text)), name


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ("@frozen\nclass Some:\n    x: int", "class Some: 2 lines short"),
        (
            "@dataclass(kw_only=True)\nclass Some:\n    x: int",
            r"cannot write out dataclass\(kw_only",
        ),
        ("@frozen\nclass Some:\n    x: int = field(default=1)", r"cannot write out field\(default"),
    ],
)
def test_what_cannot_be_written_out_is_said(native_source, found, problem):
    with pytest.raises(ValueError, match=problem):
        native_source(f"from __future__ import annotations\n{found}")


# -- sources that have changed ---------------------------------------------------------------------
def test_what_changes_while_it_is_compiled_is_stale(elsewhere, monkeypatch):
    """A build takes minutes; who edits meanwhile must not be answered by the code of before."""
    source = elsewhere.PACKAGE / "one.py"
    source.write_text("x = 2\n")

    def compile_slowly(command, **_):
        source.write_text("x = 3\n")

    monkeypatch.setattr(elsewhere.subprocess, "run", compile_slowly)
    monkeypatch.setitem(elsewhere.BUILD, "build", lambda folder: None)
    assert elsewhere.build(("one.py",)) == ["wire/_native.c", "one.py"]
    assert changed_sources(str(elsewhere.PACKAGE)) == ["one.py"]


def test_only_what_has_really_changed_is_stale(elsewhere):
    source = elsewhere.PACKAGE / "one.py"
    os.utime(elsewhere.MANIFEST, (1, 1))
    assert changed_sources(str(elsewhere.PACKAGE)) == []
    source.write_text("x = 2\n")
    assert changed_sources(str(elsewhere.PACKAGE)) == ["one.py"]
    source.unlink()
    assert changed_sources(str(elsewhere.PACKAGE)) == ["one.py"]


def test_an_installed_wheel_has_nothing_to_compare(tmp_path):
    assert changed_sources(str(tmp_path)) == []


def test_whatever_builds_a_wheel_gets_mypyc_where_it_can_run(monkeypatch):
    tools = runpy.run_path(str(ROOT / "tools" / "hatch_native.py"))
    hook = object.__new__(tools["NativeHook"])
    build_native = tools["build_native"]
    monkeypatch.delenv("QUORATE_PURE_PYTHON", raising=False)
    monkeypatch.setattr(build_native, "has_compiler", lambda: True)
    assert {name.partition(">")[0] for name in hook.dependencies()} == {"mypy[mypyc]", "setuptools"}
    monkeypatch.setattr(build_native, "has_compiler", lambda: False)
    assert hook.dependencies() == []
    monkeypatch.setattr(build_native, "has_compiler", lambda: True)
    monkeypatch.setenv("QUORATE_PURE_PYTHON", "1")
    assert hook.dependencies() == []
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    assert data == {"force_include": {}}, "a pure wheel"


# -- narrowing -----------------------------------------------------------------------------------
def reads_as_none(tree):
    """Reads of a field, after a call, that mypy takes for None since it was set to None above.

    mypy does not forget what it knows of a field at a call, and mypyc casts each read to the type
    that mypy knows: the read ends with a TypeError where the call has set the field.
    """
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from _reads_in(function)


def _reads_in(function):
    stores: dict[str, list[Any]] = {}
    calls, loads = [], []
    for block in _blocks(function):
        ends = isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        end = block[-1].end_lineno if ends else function.end_lineno
        for statement in block:
            for field, value in _assignments(statement):
                to_none = isinstance(value, ast.Constant) and value.value is None
                stores.setdefault(field, []).append((statement.lineno, end, to_none))
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            calls.append(node.lineno)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            loads.append((ast.unparse(node), node.lineno))
    for field, line in loads:
        before = [store for store in stores.get(field, ()) if store[0] < line <= store[1]]
        if before:
            stored, _, to_none = max(before)
            if to_none and any(stored < at <= line for at in calls):
                yield function.name, field, line


def _blocks(function):
    for node in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def _assignments(statement):
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, statement.value)]
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                pairs = zip(target.elts, statement.value.elts, strict=True)
            for field, value in pairs:
                if isinstance(field, ast.Attribute):
                    yield ast.unparse(field), value


def test_no_compiled_field_is_read_as_none_after_a_call(build_native):
    known = "def f(self):\n self.x = None\n self.g()\n return self.x"
    assert list(reads_as_none(ast.parse(known))) == [("f", "self.x", 4)]
    found = [
        (source, *read)
        for source in build_native.COMPILED
        for read in reads_as_none(ast.parse((build_native.PACKAGE / source).read_text()))
    ]
    assert found == []
