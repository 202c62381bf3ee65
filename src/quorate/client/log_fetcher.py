"""Fetch and FetchSnapshot requests to a running quorum, as a consumer of the metadata log.

The requests carry replica id -1. Kafka's leader answers them like those of an observer but keeps no
state for that id (`LeaderState.updateReplicaState`). So the reader does not appear in
DescribeQuorum, never counts for a commit or for check quorum, and many tasks can fetch at once. A
replica id of its own would have to differ from the id of every node. DescribeQuorum would show the
offset of the task that fetched last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch
from quorate.client.leader import LeaderClient
from quorate.formats.batch import iter_batches, whole_batches_size
from quorate.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
)
from quorate.wire.schema import Message

FETCH_BYTES: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_CONSUMER_ID: Final = -1


@dataclass(frozen=True, slots=True)
class Fetched:
    """The response of a leader; end offsets are exclusive."""

    leader_id: int
    epoch: int
    high_watermark: int
    """-1 until a new leader has committed a record of its own epoch."""
    log_start: int
    diverging: OffsetAndEpoch | None
    snapshot: OffsetAndEpoch | None
    """The newest snapshot of the leader, in place of records that it does not return."""
    records: bytes
    """Whole batches; the first may begin before the requested offset."""

    @property
    def first_offset(self) -> int:
        """The base offset of the first batch; without batches, a number above every offset."""
        return int.from_bytes(self.records[:8], "big") if self.records else 1 << 63

    @property
    def committed(self) -> OffsetAndEpoch | None:
        """The high watermark, and the epoch of the last record below it.

        A leader returns no high watermark before a record of its own epoch is committed (Raft,
        5.4.2). So the last record below a high watermark has the epoch of the leader.
        """
        if self.high_watermark < 0:
            return None
        return OffsetAndEpoch(self.high_watermark, self.epoch)


class LogFetcher(LeaderClient):
    """Reads the log of one cluster from its leader."""

    def fetch(
        self,
        offset: int,
        last_epoch: int | None = None,
        max_bytes: int = FETCH_BYTES,
        timeout_ms: int | None = None,
    ) -> Fetched:
        """The leader's batches at this offset.

        last_epoch: the epoch of the record before the offset; None stands for the leader's epoch
        timeout_ms: by default that of the options

        Raises LeaderUnreachableError when no leader answers in time; ForeignQuorumError;
        LeaderDivergedError when for half of the timeout only a leader of an older epoch answered.
        """

        def make(epoch: int) -> Message:
            # no last epoch above the current epoch: a node that has not heard of it yet refuses it
            last = epoch if last_epoch is None else min(last_epoch, epoch)
            return self._fetch_request(offset, last, epoch, max_bytes)

        partition = self.call_leader(make, FetchResponse, _fetch_partition, timeout_ms)
        return _fetched(partition)

    def read(self, offset: int) -> Fetched:
        """Fetch from an offset that is known to be committed: its last epoch need not be given.

        A request for the leader's log start offset gets records only when it names the epoch of the
        snapshot that ends there (`RaftLog.validateOffsetAndEpoch`).
        """
        got = self.fetch(offset)
        if got.snapshot is not None and offset == got.log_start > 0:
            epoch = self.start_epoch(got.log_start)
            return got if epoch is None else self.fetch(offset, epoch)
        if got.snapshot is not None and offset == got.log_start == 0:
            # Kafka answers offset 0 with a snapshot when there is one; the log may still begin at 0
            return self.fetch(1)
        return got

    def start_epoch(self, log_start: int) -> int | None:
        """The epoch of the snapshot that ends at the log start offset.

        None when the leader has deleted more of its log meanwhile. No response names that epoch.
        But Kafka answers each last epoch below it with a snapshot
        (`RaftLog.validateOffsetAndEpoch`), so it is the lowest epoch that gets another answer. The
        method finds it by binary search.
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
        """The epoch of the record before a committed offset; None when the log no longer has it."""
        got = self.read(offset - 1)
        if got.snapshot is not None:
            if offset == got.log_start:
                return self.start_epoch(offset)
            return None
        return _epoch_at(got.records, offset - 1)

    def copy_snapshot(self, snapshot_id: OffsetAndEpoch, to: IO[bytes]) -> int | None:
        """Write a snapshot to a file. Returns its size in bytes; None when the leader deleted it."""
        position = 0
        while True:
            chunk = self._chunk(snapshot_id, position, _CHUNK_BYTES)
            if chunk is None:
                return None
            position += to.write(chunk.unaligned_records)
            if position >= chunk.size or not chunk.unaligned_records:
                return position

    def identify(self, timeout_ms: int | None = None) -> str:
        """The cluster id; the first call requests it."""
        if self.cluster_id is None:
            self.fetch(0, 0, max_bytes=1, timeout_ms=timeout_ms)
            assert self.cluster_id is not None
        return self.cluster_id

    # -- requests -------------------------------------------------------------------------
    def _fetch_request(self, offset: int, last: int, epoch: int, max_bytes: int) -> FetchRequest:
        topic = FetchRequest.FetchTopic
        return FetchRequest(
            cluster_id=self.cluster_id,
            replica_id=_CONSUMER_ID,
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
                replica_id=_CONSUMER_ID,
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

        found = self.call_leader(make, FetchSnapshotResponse, _snapshot_partition, None)
        return None if found.error_code == ErrorCode.SNAPSHOT_NOT_FOUND else found


def _fetch_partition(response: FetchResponse) -> Any | None:
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    return partitions[0] if len(partitions) == 1 else None


def _snapshot_partition(response: FetchSnapshotResponse) -> Any | None:
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    return partitions[0] if len(partitions) == 1 else None


def _fetched(partition: Any) -> Fetched:
    records = bytes(partition.records or b"")
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return Fetched(
        partition.current_leader.leader_id,
        partition.current_leader.leader_epoch,
        partition.high_watermark,
        max(partition.log_start_offset, 0),
        _offset_and_epoch(diverging.end_offset, diverging.epoch),
        _offset_and_epoch(snapshot.end_offset, snapshot.epoch),
        records[: whole_batches_size(records)],
    )


def _offset_and_epoch(offset: int, epoch: int) -> OffsetAndEpoch | None:
    return None if offset < 0 and epoch < 0 else OffsetAndEpoch(offset, epoch)


def _epoch_at(records: bytes, offset: int) -> int | None:
    """The epoch of the batch that holds an offset; None when no batch does."""
    for view in iter_batches(records, cut_tail=True):
        if view.base_offset <= offset < view.end_offset:
            return view.epoch
    return None
