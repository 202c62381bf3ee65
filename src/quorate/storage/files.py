"""The real storage: a metadata log directory of the operating system."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from quorate.storage.disk import OsDisk, sync_all, sync_file
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions


class FileStorage(DiskStorage):
    """`directory` is metadata.log.dir: it gets `.lock` and `__cluster_metadata-0`.

    `sync` makes the descriptor of a file durable, `sync_directory` that of a directory; both
    raise OSError. Tests and measurements replace them.
    """

    def __init__(
        self,
        directory: Path,
        options: LogOptions | None = None,
        *,
        sync: Callable[[int], None] = sync_file,
        sync_directory: Callable[[int], None] = sync_all,
    ) -> None:
        super().__init__(OsDisk(directory, sync, sync_directory), options or LogOptions())
