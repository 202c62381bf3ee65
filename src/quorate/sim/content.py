"""What messages, writes and disks are made of, as one small number for the trace.

Of bytes and words that is their CRC-32.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

from quorate.node.jobs import AppendBatches, Job, Write
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    Request,
    Response,
)

_NOWHERE: Final = (-1, -1)
_MOST: Final = (1 << 63) - 1


def of_message(message: Request | Response) -> int:
    """At most 63 bits. Fetches, of which most of a world consists, by a sum of their numbers (the
    records that they carry are written somewhere); all else by its words."""
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
    """Records by their bytes, elections and all else by their words; 0: nothing is written."""
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
    """Every file of a disk, by name and bytes."""
    found = 0
    for name in sorted(files):
        found = crc32(files[name], crc32(name.encode(), found))
    return found
