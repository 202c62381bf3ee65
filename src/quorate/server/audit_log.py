"""The audit trail of one node: a ring in memory, and JSON lines in files of bounded size.

A line is handed to the operating system before the response goes out, so it survives the end of the
process (kill -9). It is not synced: a power failure may lose the newest lines, the metadata log does
not lose the changes. The file is written on the event loop; a failure is reported, and the node goes
on without the file until it can be opened again.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.node.audit import AuditEntry
from quorate.server.logs import LOG
from quorate.server.rotating_file import RotatingFile

FILE: Final = "audit.jsonl"
"""The newest entries; `audit.1.jsonl` has those before them, and so on."""
_NEWLINE: Final = b"\n"


class AuditError(QuorateError):
    """The directory of the audit trail cannot be used. The message says why."""


class AuditLog:
    """Writes entries. `recent` has the newest ones, oldest first."""

    def __init__(self, folder: Path, max_bytes: int, max_files: int, entries: int) -> None:
        """Open the file. Raises AuditError.

        folder: `quorate.audit.dir`; max_bytes: of one file; max_files: that are kept in all; entries:
        that stay in memory.
        """
        self.recent: deque[AuditEntry] = deque(maxlen=entries)
        self.written = 0
        """How many entries were written since the start; `recent` has the last of them."""
        self._folder = folder
        self._file = RotatingFile(folder, _name_of, max_bytes, max_files)
        self._is_failing = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file.open()
        except OSError as error:
            raise AuditError(
                f"quorate.audit.dir={folder}: {error.strerror or error}: make it a directory that "
                "this node may write"
            ) from None

    def write(self, entries: Sequence[AuditEntry], node_id: int, epoch: int, wall_ms: int) -> None:
        """Keep these entries; `wall_ms`: the time, since 1970."""
        moment = datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat(timespec="milliseconds")
        lines = bytearray()
        for entry in entries:
            whole = {"time": moment, "node": node_id, "epoch": epoch, **entry}
            self.recent.append(whole)
            self.written += 1
            lines += json.dumps(whole, separators=(",", ":")).encode() + _NEWLINE
        try:
            self._file.append(bytes(lines))
        except OSError as error:
            self._fail(error)
        else:
            self._is_failing = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _fail(self, error: OSError) -> None:
        if not self._is_failing:
            LOG.error("The audit trail in %s cannot be written: %s", self._folder, error)
        self._is_failing = True
        self.close()


def _name_of(age: int) -> str:
    return f"audit.{age}.jsonl" if age else FILE


def read_entries(folder: Path) -> list[AuditEntry]:
    """All entries on disk, the oldest first; a line that was cut off is left out."""
    return [
        entry
        for path in reversed(trail_files(folder))
        if path.exists()
        for entry in parse_entries(path.read_bytes())
    ]


def trail_files(folder: Path) -> list[Path]:
    """The files of a trail, the newest first: a rotation only moves entries to a later one."""
    older = (path for path in folder.glob("audit.*.jsonl") if path.name.split(".")[1].isdecimal())
    return [folder / FILE, *sorted(older, key=lambda path: int(path.name.split(".")[1]))]


def parse_entries(data: bytes) -> list[AuditEntry]:
    """The entries of lines; a line that was cut off is left out."""
    found: list[AuditEntry] = []
    for line in data.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found
