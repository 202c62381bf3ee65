"""What is compiled is made from the sources that are there, and can be left aside."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PURE = bool(os.environ.get("QUORATE_PURE_PYTHON"))


@pytest.fixture
def build_native():
    spec = importlib.util.spec_from_file_location("build_native", ROOT / "tools/build_native.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    build_native.MANIFEST.write_text(json.dumps(build_native.wanted()))
    return build_native


def loaded_from(module, **environment):
    code = f"import importlib; print(importlib.import_module('{module}').__file__)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


def test_nothing_compiled_is_stale(build_native):
    assert build_native.problem() is None, "run make"


def test_a_changed_source_is_named(elsewhere):
    assert elsewhere.problem() is None
    (elsewhere.PACKAGE / "one.py").write_text("x = 2\n")
    assert elsewhere.problem() == "changed since it was compiled: one.py"


def test_a_compiled_part_of_unknown_origin_is_a_problem(elsewhere):
    elsewhere.MANIFEST.unlink()
    assert elsewhere.problem() == "compiled parts without a manifest"


def test_what_is_up_to_date_is_left_alone(elsewhere, monkeypatch):
    monkeypatch.setattr(elsewhere.subprocess, "run", lambda *_, **__: pytest.fail("built again"))
    assert elsewhere.build() == []
    assert [file.name for file in elsewhere.extensions()] == ["one.cpython.so"]


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
        "The C compiler failed (Python.h: not there): everything runs in the interpreter.\n"
    )


def test_the_switch_leaves_every_compiled_part_aside(build_native):
    for name in build_native.COMPILED:
        module = "quorate." + name.removesuffix(".py").replace("/", ".")
        assert loaded_from(module, QUORATE_PURE_PYTHON="1").endswith(".py")


def test_without_the_switch_what_is_compiled_is_used(build_native):
    there = {file.name.split(".")[0] for file in build_native.extensions()}
    for name in build_native.COMPILED:
        path = Path(name)
        module = "quorate." + name.removesuffix(".py").replace("/", ".")
        found = loaded_from(module, QUORATE_PURE_PYTHON="")
        assert found.endswith(".py") == (path.stem not in there)


def test_this_very_run_uses_what_it_says():
    from quorate.formats import batch_records
    from quorate.wire import codec

    if PURE:
        assert batch_records.__file__.endswith(".py") and not codec.NATIVE
    else:
        assert (importlib.util.find_spec("quorate.wire._native") is not None) == codec.NATIVE
