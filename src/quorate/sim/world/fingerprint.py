"""Fingerprints of messages, writes and disks for the trace: CRC-32 of bytes and texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    Request,
    Response,
)
from quorate.replica.disk_jobs import AppendBatches, Job, Write

_NOWHERE: Final = (-1, -1)
_MOST: Final = (1 << 63) - 1


def of_message(message: Request | Response) -> int:
    """Return at most 63 bits: for a Fetch a sum of its numbers, otherwise the CRC of its text.

    Most messages are Fetches, so they need a cheap rule. `of_writes` covers the records in them.
    """
    if isinstance(message, FetchRequest):
        return (
            message.offset * 1009
            + message.high_watermark * 7
            + message.epoch * 1_000_003
            + message.last_fetched_epoch * 10_007
            + message.max_wait_ms * 31
            + message.replica.id * 101
        ) & _MOST
    if isinstance(message, FetchResponse):
        leader, found = message.leader, message.error * 100_003
        if message.diverging is not None or message.snapshot_id is not None:
            offset, epoch = message.diverging or _NOWHERE
            end, of = message.snapshot_id or _NOWHERE
            found += offset * 211 + epoch * 20_011 + end * 307 + of * 30_011
        if message.batches:
            found += message.batches[0].base_offset * 401 + message.batches[-1].last_offset * 503
        return (
            found
            + message.high_watermark * 7
            + message.log_start_offset * 1009
            + leader.leader_id * 101
            + leader.epoch * 1_000_003
        ) & _MOST
    if isinstance(message, FetchSnapshotResponse) and isinstance(message.chunk, bytes):
        words = (message.error, message.leader, message.snapshot_id, message.size, message.position)
        return crc32(message.chunk, crc32(repr(words).encode()))
    return crc32(repr(message).encode())


def of_writes(jobs: Sequence[Job]) -> int:
    """The CRC of records by their bytes, of other writes by their text; 0: no writes."""
    found = 0
    for job in jobs:
        if isinstance(job, Write):
            for write in job.writes:
                if isinstance(write, AppendBatches):
                    for batch in write.batches:
                        found = crc32(batch.data, found)
                else:
                    found = crc32(repr(write).encode(), found)
    return found


def of_medium(files: Mapping[str, bytes]) -> int:
    """The CRC of every file of a disk, by name and bytes."""
    found = 0
    for name in sorted(files):
        found = crc32(files[name], crc32(name.encode(), found))
    return found
