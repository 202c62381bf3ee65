"""The snapshots beside the log: those that are whole, one in download, some in the making.

A finished snapshot never changes. It gets its name by a rename after its bytes are synced
(`FileRawSnapshotWriter`). So a file with that name is whole or damaged by the medium, never
half-written.

A download has these steps here; S1 to S8 of `raft.following` are the whole account:

1. `write_chunk` writes each chunk to a `.part` file, without a sync (S4).
2. `verify_download` checks the whole file before the log is touched (S6, S8).
3. `publish_download` syncs the file, renames it and syncs the directory. The rename is the moment
   from which recovery finishes an interrupted installation (`agreement.check_log_and_snapshots`).
4. `drop_before` deletes the older snapshots, after the log was started anew.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from quorate.base.check import check
from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import control_records, iter_batches
from quorate.formats.control import SnapshotFooter, SnapshotHeader
from quorate.formats.errors import FormatError
from quorate.formats.files import PART_SUFFIX, snapshot_name
from quorate.formats.supported_levels import RUN_NEWER
from quorate.storage.api import CorruptLogError, SnapshotInfo, StorageError
from quorate.storage.disk import Disk, File
from quorate.storage.log import LogOptions
from quorate.storage.scan import DamageError, scan_snapshot


class SnapshotStore:
    """Reads and own snapshots may come from any thread; the rest belongs to the log's owner."""

    def __init__(
        self, disk: Disk, infos: Iterable[SnapshotInfo], sync_every: int = LogOptions().sync_every
    ) -> None:
        self._sync_every = sync_every
        self._disk = disk
        self._lock = threading.Lock()
        self._infos = {info.id: info for info in infos}
        self._files: dict[OffsetAndEpoch, File] = {}
        self._download: _Download | None = None
        self._parts = 0

    def all(self) -> tuple[SnapshotInfo, ...]:
        with self._lock:
            return tuple(self._infos[snapshot_id] for snapshot_id in sorted(self._infos))

    def size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        with self._lock:
            info = self._infos.get(snapshot_id)
        return None if info is None else info.size

    def read(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        with self._lock:
            info = self._infos.get(snapshot_id)
            if info is None:
                raise StorageError(
                    f"snapshot {snapshot_name(snapshot_id)} is not (any more) in {self._disk.where}"
                )
            file = self._files.get(snapshot_id)
            if file is None:
                file = self._disk.open(snapshot_name(snapshot_id))
                self._files[snapshot_id] = file
        return file.read_at(position, max(min(max_bytes, info.size - position), 0))

    # -- our own -----------------------------------------------------------------------------
    def create(self, snapshot_id: OffsetAndEpoch) -> OwnSnapshot:
        with self._lock:
            check(snapshot_id not in self._infos, "a snapshot that exists already", snapshot_id)
        part = self._part_name(snapshot_id)
        return OwnSnapshot(self._disk, snapshot_id, part, self._publish, self._sync_every)

    def _part_name(self, snapshot_id: OffsetAndEpoch) -> str:
        with self._lock:
            self._parts += 1
            stem = snapshot_name(snapshot_id).partition(".")[0]
            return f"{stem}-{self._parts}{PART_SUFFIX}"

    def _publish(self, part: str, info: SnapshotInfo) -> None:
        """The synced bytes of `part` become the snapshot; durable on return."""
        # Read-only before it has its name, as `FileRawSnapshotWriter.freeze` does it.
        self._disk.set_read_only(part)
        name = snapshot_name(info.id)
        self._disk.rename(part, name)
        try:
            self._disk.sync()
        except StorageError:
            # Else it would stay until the next start: nobody knows of it.
            with suppress(StorageError):
                self._disk.remove(name)
            raise
        with self._lock:
            self._infos[info.id] = info

    # -- a download --------------------------------------------------------------------------
    def write_chunk(self, snapshot_id: OffsetAndEpoch, position: int, chunk: bytes) -> None:
        """Write the next chunk of the download at `position` (bytes), without a sync (step 1)."""
        # One download at a time: the core has no more, and one that begins anew replaces its file.
        if position == 0:
            self._drop_download()
            part = self._part_name(snapshot_id)
            file = self._disk.open(part, create=True)
            self._download = _Download(snapshot_id, part, file)
        download = self._download
        check(
            download is not None and (download.id, download.size) == (snapshot_id, position),
            "a chunk that does not continue the download",
            snapshot_id,
            position,
        )
        assert download is not None
        download.file.write_at(position, chunk)
        download.size += len(chunk)

    def abandon_download(self, snapshot_id: OffsetAndEpoch) -> None:
        if self._download is not None and self._download.id == snapshot_id:
            self._drop_download()

    def _drop_download(self) -> None:
        download, self._download = self._download, None
        if download is not None:
            download.file.close()
            self._disk.remove(download.part)

    def verify_download(self, snapshot_id: OffsetAndEpoch) -> SnapshotInfo:
        """Check the whole download (step 2).

        Raises CorruptLogError where it is damaged, or older than a snapshot that is there. Then the
        download is deleted.
        """
        download = self._download
        if download is None or download.id != snapshot_id:
            raise CorruptLogError(
                f"nothing of snapshot {snapshot_name(snapshot_id)} was downloaded"
            )
        try:
            info, _ = scan_snapshot(download.file, snapshot_id)
        except DamageError as damage:
            self._drop_download()
            if damage.newer:
                raise CorruptLogError(
                    f"the downloaded snapshot {snapshot_name(snapshot_id)} was thrown away: "
                    f"{damage.what}. A newer release of Kafka wrote it: {RUN_NEWER}"
                ) from None
            raise CorruptLogError(
                f"the downloaded snapshot {snapshot_name(snapshot_id)} is damaged at byte "
                f"{damage.position}: {damage.what}; it was thrown away, fetch it again"
            ) from None
        # Snapshots hold committed records only, so an older one would take the log back.
        newest = max(self._infos, default=snapshot_id)
        if newest > snapshot_id:
            self._drop_download()
            raise CorruptLogError(
                f"the downloaded snapshot {snapshot_name(snapshot_id)} is older than "
                f"{snapshot_name(newest)}, which this replica has: what that holds is committed; "
                "it was thrown away"
            )
        return info

    def publish_download(self, info: SnapshotInfo) -> None:
        """Sync and rename the download that was verified; durable on return."""
        download = self._download
        assert download is not None
        assert download.id == info.id
        download.file.sync()
        download.file.close()
        self._download = None
        self._publish(download.part, info)

    # -- dropping ----------------------------------------------------------------------------
    def drop_before(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete the snapshots before this one (step 4); durable on return."""
        # Forgotten first, so that no new read finds them. A read under way keeps its file open.
        with self._lock:
            old = sorted(known for known in self._infos if known < snapshot_id)
            for known in old:
                del self._infos[known]
                self._files.pop(known, None)
        for known in old:
            self._disk.remove(snapshot_name(known))
        if old:
            self._disk.sync()

    def close(self) -> None:
        with self._lock:
            self._files.clear()
        if self._download is not None:
            self._download.file.close()
            self._download = None


class _Download:
    __slots__ = ("file", "id", "part", "size")

    def __init__(self, snapshot_id: OffsetAndEpoch, part: str, file: File) -> None:
        self.id = snapshot_id
        self.part = part
        self.file = file
        self.size = 0


class OwnSnapshot:
    """See SnapshotWriter. A failure here does not touch the log: only this file is given up."""

    def __init__(
        self,
        disk: Disk,
        snapshot_id: OffsetAndEpoch,
        part: str,
        publish: Callable[[str, SnapshotInfo], None],
        sync_every: int,
    ) -> None:
        self._sync_every = sync_every
        self._disk = disk
        self._id = snapshot_id
        self._part = part
        self._publish = publish
        self._file: File | None = disk.open(part, create=True)
        self._size = 0
        self._synced = 0
        self._timestamp: int | None = None
        self._whole = False
        self._published = False

    def append(self, data: bytes) -> None:
        file = self._open_file()
        try:
            for view in iter_batches(data, self._size):
                if view.is_control:
                    for record in control_records(view):
                        if isinstance(record, SnapshotHeader):
                            self._timestamp = record.last_contained_log_timestamp
                        self._whole = isinstance(record, SnapshotFooter)
        except FormatError as error:
            raise InvariantError(f"bytes for a snapshot are not sound: {error}") from None
        file.write_at(self._size, data)
        self._size += len(data)
        if self._size - self._synced >= self._sync_every:
            # One sync of the whole file at its end would make the syncs of the log wait for it.
            file.sync()
            self._synced = self._size

    def freeze(self) -> None:
        file = self._open_file()
        check(self._whole, "a snapshot without header and footer", self._id)
        file.sync()
        file.close()
        self._file = None
        self._publish(self._part, SnapshotInfo(self._id, self._size, self._timestamp or 0))
        self._published = True

    def abort(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self._published:
            self._disk.remove(self._part)

    def _open_file(self) -> File:
        if self._file is None:
            raise InvariantError(f"snapshot {snapshot_name(self._id)} is not being written")
        return self._file
