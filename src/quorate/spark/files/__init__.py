"""Access to metadata logs in files: local, in object stores, in archives; damaged or not.

paths     files by path or URI, in any file system that PyArrow knows
archives  the members of tar and zip archives, and the readers of all files
zips      zip archives whose central directory is lost
scan      the batches of a file, and the damage between them
layout    which directories hold a metadata log, and of which node and cluster
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.files.archives import (
        CorruptArchiveError,
        FileGoneError,
        FileReaders,
        GarbledMemberError,
        archive_members,
    )
    from quorate.spark.files.layout import LogDirectory, log_directories
    from quorate.spark.files.paths import SourceError, SourceFile, TransientError
    from quorate.spark.files.scan import BatchRun, Damage, GarbledFileError
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "paths": "SourceError SourceFile TransientError",
            "archives": "CorruptArchiveError FileGoneError FileReaders GarbledMemberError archive_members",
            "scan": "BatchRun Damage GarbledFileError",
            "layout": "LogDirectory log_directories",
        },
    )

__all__ = [
    "BatchRun",
    "CorruptArchiveError",
    "Damage",
    "FileGoneError",
    "FileReaders",
    "GarbledFileError",
    "GarbledMemberError",
    "LogDirectory",
    "SourceError",
    "SourceFile",
    "TransientError",
    "archive_members",
    "log_directories",
]
