"""The state machine of a controller: the metadata image, committed and head."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.controller.head import Head
from quorate.controller.register_offsets import RegisterOffsets
from quorate.formats.errors import NewerRecordError
from quorate.formats.files import snapshot_name
from quorate.formats.supported_levels import RUN_NEWER
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Image
from quorate.metadata.loader import Loader, LogBatch, Provenance, Published, SnapshotBuilder
from quorate.metadata.replay import record_values
from quorate.metadata.topics import ElectionCounts, Touched
from quorate.node.feature_guard import FeatureGuard
from quorate.raft.values import ControlState
from quorate.replica.state_machine import CommittedBatch, Now

FREEZE_EVERY: Final = 1_000
"""Records that are applied between two calls of `gc.freeze`."""


def _with_advice(error: ReplayError) -> ReplayError:
    """The error; it says what to do about a record that a later release wrote."""
    if isinstance(error.__cause__, NewerRecordError):
        return ReplayError(f"{error}. A newer release of Kafka wrote it: {RUN_NEWER}")
    return error


class MetadataMachine:
    """`ReplicatedStateMachine` of a controller. It keeps `head` at or ahead of what is committed.

    It writes nothing by itself: what an active controller writes goes through the write queue.
    """

    def __init__(self, guard: FeatureGuard | None = None, *, owns_process: bool = False) -> None:
        """Begin with an empty image.

        guard: None for that of the levels in production. owns_process: the garbage collector of the
        interpreter is kept from the image. This also keeps it from all else that exists, so it is
        only for a process in which everything lives as long as the node.
        """
        self._guard = guard or FeatureGuard()
        self._owns_process = owns_process
        self._loader = Loader()
        self.head = Head(self._loader.delta().interner)
        self.register_offsets = RegisterOffsets()
        self._builder: SnapshotBuilder | None = None
        self._unfrozen_records = 0
        """How many were applied since `gc.freeze` was last called."""
        self.notes: list[str] = []
        self.snapshots_loaded = 0
        """`HandleLoadSnapshotCount`."""

    @property
    def image(self) -> Image:
        """Everything that is committed, without the records of an open transaction."""
        return self._loader.published.image

    @property
    def provenance(self) -> Provenance:
        """Up to where `image` holds the log."""
        return self._loader.published.provenance

    @property
    def elections(self) -> ElectionCounts:
        """Committed elections since the start; those of a snapshot are not counted."""
        total = ElectionCounts()
        total.add(self._loader.elections)
        total.add(self.head.elections)
        return total

    # -- what is committed --------------------------------------------------------------------
    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        # A million partitions make some millions of objects that all live on: the collector would
        # walk through them again and again while they are made.
        if self._owns_process:
            gc.disable()
        self._builder = SnapshotBuilder(snapshot_id, timestamp_ms)

    def load(self, values: Sequence[bytes]) -> None:
        assert self._builder is not None
        where = f"snapshot {snapshot_name(self._builder.snapshot_id)}"
        self._guard.check_values(values, where)
        try:
            self._builder.feed(values)
        except ReplayError as error:
            raise _with_advice(error) from error.__cause__

    def end_load(self) -> None:
        assert self._builder is not None
        self._loader.install(self._builder.finish())
        self._builder = None
        self.register_offsets.loaded(self.image.cluster, self.provenance.offset)
        self._loader.take_touched()
        self._follow(None)
        self.snapshots_loaded += 1
        self._freeze()
        if self._owns_process:
            gc.enable()

    def apply(self, batch: CommittedBatch) -> int:
        loader, values = self._loader, batch.values
        known = self.head.commit(values) if values else None
        if known is not None and loader.next_offset == batch.base_offset:
            # Our own batch: the head has this image already, so nothing is decoded or replayed.
            provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms, True)
            loader.install(Published(known, provenance))
        else:
            where = f"offsets {batch.base_offset} to {batch.last_offset}"
            self._guard.check_values(values, where)
            fed = LogBatch(
                batch.base_offset, batch.last_offset, batch.epoch, batch.timestamp_ms, values
            )
            try:
                loader.feed(fed)
            except ReplayError as error:
                raise _with_advice(error) from error.__cause__
        self._follow(loader.take_touched())
        self.register_offsets.applied(batch.base_offset, values)
        self._unfrozen_records += len(values)
        if self._unfrozen_records >= FREEZE_EVERY:
            self._freeze(after_young=True)
        return len(values)

    def _follow(self, touched: Touched | None) -> None:
        loader = self._loader
        committed, transaction = loader.published.image, loader.transaction
        pending = committed if transaction is None else loader.delta().image
        self.head.set_committed(committed, pending, transaction, touched)

    def freeze(self) -> Iterable[bytes] | None:
        image = self.image
        if self._loader.transaction is not None or image.features.metadata_version is None:
            return None
        self._freeze()
        return record_values(image)

    def _freeze(self, *, after_young: bool = False) -> None:
        """Keep the collector from the image, in a process of its own.

        A full collection would visit each new object of the image and free none, while every request
        waits: 0.4 s for 300,000 partitions. Garbage that is frozen is never freed. So the young
        generations are collected before, where asked for: that takes some milliseconds.
        """
        self._unfrozen_records = 0
        if self._owns_process:
            if after_young:
                gc.collect(1)
            gc.freeze()

    # -- leadership: the write queue acts on it, and reverts the head --------------------------
    def lead(self, epoch: int, now: Now) -> None:
        pass

    def follow(self, leader_id: int, epoch: int) -> None:
        pass

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        return ()

    def wake_at_ms(self) -> int | None:
        return None
