"""Configs of topics."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
segment.bytes: Size at which a segment of the log is closed and the next one begins.
segment.ms: Age at which a segment is closed even if it is not full.
segment.jitter.ms: Largest random time by which a segment is closed earlier, so that not all close at once.
segment.index.bytes: Size of the offset index of a segment.
flush.messages: Number of records after which the log is synced to the disk.
flush.ms: Time after which the log is synced to the disk.
retention.bytes: Size of a partition above which its oldest segments are deleted; -1 for no limit.
retention.ms: Age above which segments are deleted; -1 for no limit.
max.message.bytes: Largest batch of records that the topic takes, after compression.
index.interval.bytes: How many bytes of records lie between two entries of the offset index.
delete.retention.ms: How long a compacted topic keeps the tombstones of deleted keys.
min.compaction.lag.ms: How long a record stays uncompacted at least.
max.compaction.lag.ms: How long a record may stay uncompacted at most.
file.delete.delay.ms: How long the file of a deleted segment stays on the disk.
min.cleanable.dirty.ratio: Share of uncompacted records from which on the log is compacted.
cleanup.policy: Whether old records are deleted, compacted by key, or both; empty for neither.
unclean.leader.election.enable: Whether a replica outside the in-sync set may lead, at the price of lost records.
min.insync.replicas: How many replicas must be in sync for a write with acks=all.
compression.type: How records are compressed in the log; producer keeps the compression of the producer.
compression.gzip.level: Level of compression where compression.type is gzip.
compression.lz4.level: Level of compression where compression.type is lz4.
compression.zstd.level: Level of compression where compression.type is zstd.
preallocate: Whether the file of a new segment gets its full size at once.
message.timestamp.type: Whether a record has the time of its producer or the time of its arrival.
message.timestamp.before.max.ms: How far a record's timestamp may lie in the past.
message.timestamp.after.max.ms: How far a record's timestamp may lie in the future.
leader.replication.throttled.replicas: Replicas that are throttled on the leader's side, as partition:broker, or *.
follower.replication.throttled.replicas: Replicas that are throttled on the follower's side, as partition:broker, or *.
remote.storage.enable: Whether closed segments are copied to remote storage.
local.retention.ms: Age above which segments that were copied are deleted locally; -2 for that of retention.ms.
local.retention.bytes: Local size above which copied segments are deleted; -2 for that of retention.bytes.
remote.log.copy.disable: Whether remote storage is only read, and nothing more is copied to it.
remote.log.delete.on.disable: Whether the remote data are deleted when remote storage is turned off.
internal.segment.bytes: Size of a segment for tests, without the lower bound of segment.bytes.
"""
