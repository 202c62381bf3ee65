"""The disk of one replica: log segments, snapshots, quorum-state, and their recovery.

`Storage` is the contract; `FileStorage` keeps it over files, `MemoryStorage` over a disk in memory
that loses what was not synced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.storage.api import (
        AppendedBatch,
        CorruptLogError,
        Recovered,
        SnapshotInfo,
        SnapshotWriter,
        Storage,
        StorageError,
    )
    from quorate.storage.disk import Disk, File, OsDisk, read_regular
    from quorate.storage.disk_storage import DiskStorage, FileStorage
    from quorate.storage.log import LogOptions
    from quorate.storage.memory import MemoryDisk, MemoryStorage, ShortWriteError
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "api": "AppendedBatch CorruptLogError Recovered SnapshotInfo SnapshotWriter "
            "Storage StorageError",
            "disk": "Disk File OsDisk read_regular",
            "disk_storage": "DiskStorage FileStorage",
            "log": "LogOptions",
            "memory": "MemoryDisk MemoryStorage ShortWriteError",
        },
    )

__all__ = [
    "AppendedBatch",
    "CorruptLogError",
    "Disk",
    "DiskStorage",
    "File",
    "FileStorage",
    "LogOptions",
    "MemoryDisk",
    "MemoryStorage",
    "OsDisk",
    "Recovered",
    "ShortWriteError",
    "SnapshotInfo",
    "SnapshotWriter",
    "Storage",
    "StorageError",
    "read_regular",
]
