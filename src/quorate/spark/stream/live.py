"""Asking a live quorum for its log: Fetch and FetchSnapshot, as a consumer of the metadata log.

The replica id is -1. Kafka's leader answers that like any observer but makes no row for it
(`LeaderState.updateReplicaState`), so nobody sees the reader in DescribeQuorum, it never counts for
a commit or for the leader's check of its quorum, and any number of tasks may ask at once. An id of
its own would need to be chosen so that no node ever has it, and would show the place of whichever
task asked last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from quorate.formats.batch import iter_batches, whole_batches_size
from quorate.spark.stream.live_leader import Asker
from quorate.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.wire.schema import Message

FETCH_BYTES: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Fetched:
    """A leader's answer; offsets: ends are exclusive."""

    leader_id: int
    epoch: int
    high_watermark: int
    """-1 while a new leader has committed nothing of its own."""
    log_start: int
    diverging: OffsetAndEpoch | None
    snapshot: OffsetAndEpoch | None
    """The leader's newest snapshot, in place of records that it cannot or will not give."""
    records: bytes
    """Whole batches; may begin before the offset asked for."""

    @property
    def first_offset(self) -> int:
        """Of the first batch; of none, beyond every offset."""
        return int.from_bytes(self.records[:8], "big") if self.records else 1 << 63

    @property
    def committed(self) -> OffsetAndEpoch | None:
        """The end of what is committed, and the epoch of the last record below it.

        A leader tells no high watermark before a record of its own epoch is committed, so the last
        record below one is of its epoch.
        """
        if self.high_watermark < 0:
            return None
        return OffsetAndEpoch(self.high_watermark, self.epoch)


class Observer(Asker):
    """The quorum of one cluster, asked for its log by whoever reads that."""

    def fetch(
        self,
        offset: int,
        last_epoch: int | None = None,
        max_bytes: int = FETCH_BYTES,
        patience_ms: int | None = None,
    ) -> Fetched:
        """What the leader has at this offset; its own epoch stands for a `last_epoch` of None.

        Raises Unreachable when no leader answers within `patience_ms` (default: the options'
        timeout), WrongQuorum, Diverged where for half of that timeout none did but one of an
        older epoch.
        """

        def make(epoch: int) -> Message:
            # an epoch ahead of a node that has yet to hear of it
            last = epoch if last_epoch is None else min(last_epoch, epoch)
            return self._fetch_request(offset, last, epoch, max_bytes)

        answer = self.ask(make, FetchResponse, _fetch_partition, patience_ms)
        return _fetched(answer)

    def read(self, offset: int) -> Fetched:
        """As fetch, without a check of what stands before; for offsets known to be committed.

        At the start of a cleaned log the leader wants to hear the epoch of the snapshot there.
        """
        got = self.fetch(offset)
        if got.snapshot is not None and offset == got.log_start > 0:
            epoch = self.start_epoch(got.log_start)
            return got if epoch is None else self.fetch(offset, epoch)
        if got.snapshot is not None and offset == got.log_start == 0:
            # an empty replica is better served by the snapshot; the log is still there
            return self.fetch(1)
        return got

    def start_epoch(self, log_start: int) -> int | None:
        """The epoch of the snapshot that ends where the log starts; None: it has moved on.

        Kafka answers with a snapshot to every last epoch that is older than that one's
        (`RaftLog.validateOffsetAndEpoch`), so the least that it answers otherwise is it.
        """
        low, high = 0, None
        while high is None or low < high:
            middle = None if high is None else (low + high) // 2
            got = self.fetch(log_start + 1, middle, max_bytes=1)
            if got.log_start != log_start:
                return None
            if got.snapshot is None:
                high = got.epoch if middle is None else middle
            elif middle is None:
                return None
            else:
                low = middle + 1
        return high

    def epoch_below(self, offset: int) -> int | None:
        """The epoch of the record before a committed offset; None: that is no more in the log."""
        got = self.read(offset - 1)
        if got.snapshot is not None:
            if offset == got.log_start:
                return self.start_epoch(offset)
            return None
        return _epoch_at(got.records, offset - 1)

    def copy_snapshot(self, snapshot_id: OffsetAndEpoch, to: IO[bytes]) -> int | None:
        """Write a snapshot to a file; its bytes. None: the leader has it no more."""
        position = 0
        while True:
            told = self._chunk(snapshot_id, position, _CHUNK_BYTES)
            if told is None:
                return None
            position += to.write(told.unaligned_records)
            if position >= told.size or not told.unaligned_records:
                return position

    def identify(self, patience_ms: int | None = None) -> str:
        """The cluster's id; asked for once."""
        if self.cluster_id is None:
            self.fetch(0, 0, max_bytes=1, patience_ms=patience_ms)
            assert self.cluster_id is not None
        return self.cluster_id

    # -- requests -------------------------------------------------------------------------
    def _fetch_request(self, offset: int, last: int, epoch: int, max_bytes: int) -> FetchRequest:
        topic = FetchRequest.FetchTopic
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica_id=_NOBODY,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            topics=[
                topic(
                    topic=METADATA_TOPIC,
                    topic_id=METADATA_TOPIC_ID,
                    partitions=[
                        topic.FetchPartition(
                            partition=0,
                            current_leader_epoch=epoch,
                            fetch_offset=offset,
                            last_fetched_epoch=last,
                            partition_max_bytes=max_bytes,
                        )
                    ],
                )
            ],
        )

    def _chunk(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> Any | None:
        topic = FetchSnapshotRequest.TopicSnapshot
        part = topic.PartitionSnapshot

        def make(epoch: int) -> Message:
            return FetchSnapshotRequest(
                cluster_id=self.cluster_id,
                replica_id=_NOBODY,
                max_bytes=max_bytes,
                topics=[
                    topic(
                        name=METADATA_TOPIC,
                        partitions=[
                            part(
                                partition=0,
                                current_leader_epoch=epoch,
                                snapshot_id=part.SnapshotId(
                                    end_offset=snapshot_id.offset, epoch=snapshot_id.epoch
                                ),
                                position=position,
                            )
                        ],
                    )
                ],
            )

        told = self.ask(make, FetchSnapshotResponse, _snapshot_partition, None)
        return None if told.error_code == ErrorCode.SNAPSHOT_NOT_FOUND else told


def _fetch_partition(answer: FetchResponse) -> Any | None:
    partitions = [partition for topic in answer.responses for partition in topic.partitions]
    return partitions[0] if len(partitions) == 1 else None


def _snapshot_partition(answer: FetchSnapshotResponse) -> Any | None:
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    return partitions[0] if len(partitions) == 1 else None


def _fetched(partition: Any) -> Fetched:
    records = bytes(partition.records or b"")
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return Fetched(
        partition.current_leader.leader_id,
        partition.current_leader.leader_epoch,
        partition.high_watermark,
        max(partition.log_start_offset, 0),
        _place(diverging.end_offset, diverging.epoch),
        _place(snapshot.end_offset, snapshot.epoch),
        records[: whole_batches_size(records)],
    )


def _place(offset: int, epoch: int) -> OffsetAndEpoch | None:
    return None if offset < 0 and epoch < 0 else OffsetAndEpoch(offset, epoch)


def _epoch_at(records: bytes, offset: int) -> int | None:
    """The epoch of the batch that holds an offset."""
    for view in iter_batches(records, cut_tail=True):
        if view.base_offset <= offset < view.end_offset:
            return view.epoch
    return None
