"""A seed is the same world in every Python that the package runs on, where there is another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import immutables
import pytest

import quorate
from quorate.sim.run.run import run_seed

MINORS = (11, 12, 13)
SEEDS = (3, 17, 31)
PRINT = f"""
import sys
sys.dont_write_bytecode = True
from quorate.sim.run.run import run_seed
for seed in {SEEDS}:
    print(run_seed(seed).trace_hash)
"""
CRC = """
def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


_TABLE = list(_table())


def iscsi(data, initial=0):
    crc = ~initial & 0xFFFFFFFF
    for byte in bytes(data):
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return ~crc & 0xFFFFFFFF
"""
"""Stands in for a package that a world needs, which is compiled for this Python alone."""


def interpreter(minor: int) -> str | None:
    """One of 3.`minor` that starts: on the PATH, or among pyenv's."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = [
        shutil.which(f"python3.{minor}"),
        *map(str, sorted(kept.glob(f"3.{minor}.*/bin/python"))),
    ]
    script = "import sys; print(sys.version_info[1])"
    for path in filter(None, known):
        ran = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
        if ran.stdout.strip() == str(minor):
            return path
    return None


def copy_python_form_of_immutables(folder: Path) -> None:
    """The package falls back to its own Python code where its compiled part is missing."""
    (package,) = immutables.__path__
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(package, folder / "immutables", ignore=compiled)


@pytest.fixture(scope="module")
def expected() -> list[str]:
    return [run_seed(seed).trace_hash for seed in SEEDS]


@pytest.mark.slow
@pytest.mark.parametrize("minor", [minor for minor in MINORS if minor != sys.version_info[1]])
def test_the_same_traces_in_another_python(minor: int, expected: list[str], tmp_path: Path) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"there is no python3.{minor} on the PATH, nor one of pyenv's")
    (tmp_path / "fastcrc").mkdir()
    (tmp_path / "fastcrc" / "crc32.py").write_text(CRC)
    copy_python_form_of_immutables(tmp_path)
    package = Path(quorate.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{package}"}
    ran = subprocess.run(
        [python, "-c", PRINT], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == expected


def test_the_substitute_checksum_is_a_checksum() -> None:
    from fastcrc.crc32 import iscsi

    found: dict[str, object] = {}
    exec(CRC, found)
    stand_in = found["iscsi"]
    assert callable(stand_in)
    for data in (b"", b"123456789", bytes(range(256)) * 3):
        assert stand_in(data) == iscsi(data)
        assert stand_in(data, 0x1234) == iscsi(data, 0x1234)
