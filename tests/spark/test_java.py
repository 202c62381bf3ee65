"""Which Java Spark gets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from quorate.spark.java import JavaMissingError, find_java_home, java_version, provided_java_home


def fake_java(home: Path, says: str, code: int = 0) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16 LTS', 25),
        ('java version "1.8.0_402"', 8),
        ("no word of it", None),
    ],
)
def test_the_version_is_what_java_says(tmp_path: Path, says: str, version: int | None):
    assert java_version(fake_java(tmp_path / "jdk", says)) == version


def test_a_java_that_fails_is_none(tmp_path: Path):
    assert java_version(fake_java(tmp_path / "jdk", 'version "21"', code=1)) is None
    assert java_version(tmp_path / "nowhere") is None


def test_java_home_comes_first_then_the_path(tmp_path: Path):
    home = fake_java(tmp_path / "home", 'version "21.0.1"')
    path = fake_java(tmp_path / "path", 'version "17.0.1"')
    environ = {"JAVA_HOME": str(home), "PATH": str(path / "bin")}
    assert find_java_home(environ) == home
    assert find_java_home({"PATH": str(path / "bin")}) == path


def test_an_old_java_home_is_passed_over(tmp_path: Path):
    home = fake_java(tmp_path / "home", 'version "11.0.1"')
    path = fake_java(tmp_path / "path", 'version "17.0.1"')
    assert find_java_home({"JAVA_HOME": str(home), "PATH": str(path / "bin")}) == path


def test_the_java_of_pypi_is_the_last_resort(tmp_path: Path):
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    home = find_java_home(environ)
    assert home.is_relative_to(tmp_path)
    assert (java_version(home) or 0) >= 17


def test_without_any_java_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("quorate.spark.java.provided_java_home", lambda environ: None)
    home = fake_java(tmp_path / "home", 'version "11.0.1"')
    with pytest.raises(JavaMissingError, match=r"home has Java 11\).*quorate\[spark\]"):
        find_java_home({"JAVA_HOME": str(home), "PATH": ""})


@pytest.mark.parametrize(
    "flag", [["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]]
)
def test_the_launcher_drops_the_module_that_is_lacking(tmp_path: Path, flag: list[str]):
    home = provided_java_home({"XDG_CACHE_HOME": str(tmp_path)})
    assert home is not None
    words = ["-Dtwo words=a 'b'", *flag, "--add-modules", "java.sql", "-version"]
    found = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_a_session_computes(spark):
    assert spark.range(10).selectExpr("sum(id)").first()[0] == 45
