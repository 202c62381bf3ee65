"""The identity of the code that ran, which a record needs so that the run can be repeated."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final

import quorate

_PACKAGE: Final = Path(quorate.__file__).parent
_SIMULATOR: Final = "sim"
_IMPORT: Final = re.compile(rb"^\s*(?:from|import) quorate\.(\w+)", re.MULTILINE)
_SOURCES: Final = frozenset({".py", ".c", ".h"})


def code_version() -> str:
    """Return the package's version and the last commit that changed a world's code: `0.1.0+g1a2b3c4`.

    `.dirty` follows where files differ from that commit; without git it is the version alone.
    """
    packages = packages_of_a_world()
    commit = _git("log", "-1", "--format=%h", "--", *packages)
    if not commit:
        return quorate.__version__
    dirty = _git("status", "--porcelain", "--", *packages)
    return f"{quorate.__version__}+g{commit}" + (".dirty" if dirty else "")


def source_digest() -> str:
    """16 hex digits of all Python and C sources of a world's code, by name and content.

    Two runs with the same digest are runs of the same code, whatever they are called.
    """
    digest = blake2b(digest_size=8)
    for package in packages_of_a_world():
        for path in _sources(package):
            digest.update(f"{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


@cache
def packages_of_a_world() -> tuple[str, ...]:
    """The simulator's package and all that it imports, directly or not, in alphabetical order.

    What else changes does not change a trace.
    """
    found: set[str] = set()
    new = {_SIMULATOR}
    while new:
        found |= new
        new = {name for package in new for name in _imported(package)} - found
    return tuple(sorted(found))


def _imported(package: str) -> Iterator[str]:
    for path in _sources(package):
        yield from (name.decode() for name in _IMPORT.findall(path.read_bytes()))


def _sources(package: str) -> list[Path]:
    paths = (_PACKAGE / package).rglob("*")
    return sorted(path for path in paths if path.suffix in _SOURCES and path.is_file())


def _git(*command: str) -> str:
    """The output of git in the package's directory; empty without git or a checkout."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(_PACKAGE), *command],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ran.stdout.strip()
