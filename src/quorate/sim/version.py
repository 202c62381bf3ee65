"""Which code ran: what a record of a run has to say so that the run can be repeated."""

from __future__ import annotations

import subprocess
from hashlib import blake2b
from pathlib import Path
from typing import Final

import quorate

_PACKAGE: Final = Path(quorate.__file__).parent
ROOMS: Final = ("base", "wire", "formats", "raft", "storage", "node", "sim")
"""The packages that a simulated world is made of: what else changes does not change a trace."""


def code_version() -> str:
    """As `0.1.0+g1a2b3c4`: the package's version and the last commit that changed the ROOMS.

    `.dirty` follows where files differ from that commit; without git it is the version alone.
    """
    commit = _git("log", "-1", "--format=%h", "--", *ROOMS)
    if not commit:
        return quorate.__version__
    dirty = _git("status", "--porcelain", "--", *ROOMS)
    return f"{quorate.__version__}+g{commit}" + (".dirty" if dirty else "")


def source_digest() -> str:
    """16 hex digits of all Python and C sources of the ROOMS, by name and content.

    Two runs with the same digest are runs of the same code, whatever they are called.
    """
    digest = blake2b(digest_size=8)
    for room in ROOMS:
        for path in sorted((_PACKAGE / room).rglob("*")):
            if path.suffix in (".py", ".c", ".h") and path.is_file():
                digest.update(f"{path.relative_to(_PACKAGE)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _git(*command: str) -> str:
    """What git says of the package's directory; nothing where there is no git, or no checkout."""
    try:
        ran = subprocess.run(
            ["git", "-C", str(_PACKAGE), *command], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return ran.stdout.strip()
