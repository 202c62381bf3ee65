"""Configs of brokers: partitions' logs, remote storage, replication, and the metadata log."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
num.partitions: How many partitions a new topic has where the request does not say it.
default.replication.factor: How many replicas a new partition has where the request does not say it.
log.dir: Directory of the logs where log.dirs is not set.
log.dirs: Directories of the logs.
cordoned.log.dirs: Log directories that get no new replicas; * for all of them.
log.segment.bytes: Size at which a segment is closed, for topics without segment.bytes.
log.roll.ms: Age at which a segment is closed, for topics without segment.ms; else log.roll.hours counts.
log.roll.hours: Age at which a segment is closed, in hours.
log.roll.jitter.ms: Largest random time by which a segment is closed earlier; else log.roll.jitter.hours counts.
log.roll.jitter.hours: Largest random time by which a segment is closed earlier, in hours.
log.retention.ms: Age above which segments are deleted; else log.retention.minutes counts.
log.retention.minutes: Age above which segments are deleted, in minutes; else log.retention.hours counts.
log.retention.hours: Age above which segments are deleted, in hours.
log.retention.bytes: Size of a partition above which its oldest segments are deleted, for topics without retention.bytes.
log.retention.check.interval.ms: How often the broker looks for segments to delete.
log.cleanup.policy: Whether old records are deleted or compacted, for topics without cleanup.policy.
log.cleaner.threads: How many threads compact logs.
log.cleaner.io.max.bytes.per.second: Most bytes that compaction reads and writes in a second.
log.cleaner.dedupe.buffer.size: Memory for the keys of compaction, for all its threads together.
log.cleaner.io.buffer.size: Memory for reading and writing in compaction, for all its threads together.
log.cleaner.io.buffer.load.factor: How full the memory for keys may get; more keys mean more collisions.
log.cleaner.backoff.ms: How long compaction pauses where there is nothing to compact.
log.cleaner.min.cleanable.ratio: Share of uncompacted records that starts compaction, for topics without their own.
log.cleaner.enable: Whether logs are compacted at all.
log.cleaner.delete.retention.ms: How long tombstones are kept, for topics without delete.retention.ms.
log.cleaner.min.compaction.lag.ms: How long a record stays uncompacted at least, for topics without their own.
log.cleaner.max.compaction.lag.ms: How long a record may stay uncompacted, for topics without their own.
log.index.size.max.bytes: Size of the offset index of a segment, for topics without segment.index.bytes.
log.index.interval.bytes: Bytes between two entries of the offset index, for topics without their own.
log.flush.interval.messages: Records after which a log is synced, for topics without flush.messages.
log.segment.delete.delay.ms: How long the file of a deleted segment stays, for topics without file.delete.delay.ms.
log.flush.scheduler.interval.ms: How often the broker looks for logs that must be synced.
log.flush.interval.ms: Time after which a log is synced, for topics without flush.ms.
log.flush.offset.checkpoint.interval.ms: How often the offset up to which logs are synced is written down.
log.flush.start.offset.checkpoint.interval.ms: How often the start offsets of logs are written down.
log.preallocate: Whether the file of a new segment gets its full size at once, for topics without preallocate.
log.message.timestamp.type: Time of producer or of arrival, for topics without message.timestamp.type.
log.message.timestamp.before.max.ms: How far a timestamp may lie in the past, for topics without their own.
log.message.timestamp.after.max.ms: How far a timestamp may lie in the future, for topics without their own.
log.local.retention.ms: Age above which copied segments are deleted locally, for topics without their own.
log.local.retention.bytes: Local size above which copied segments are deleted, for topics without their own.
log.dir.failure.timeout.ms: How long a broker goes on after a directory failed without a word to the controller.
log.initial.task.delay.ms: How long after the start the periodic tasks on logs begin.
num.recovery.threads.per.data.dir: Threads per log directory that recover logs at the start and sync them at the end.
auto.create.topics.enable: Whether a topic is created when a client first asks for it.
min.insync.replicas: How many replicas must be in sync for acks=all, for topics without their own.
unclean.leader.election.enable: Whether a replica outside the in-sync set may lead, for topics without their own.
compression.type: How records are compressed in the log, for topics without compression.type.
compression.gzip.level: Level of gzip compression, for topics without their own.
compression.lz4.level: Level of lz4 compression, for topics without their own.
compression.zstd.level: Level of zstd compression, for topics without their own.
message.max.bytes: Largest batch of records that is taken, for topics without max.message.bytes.
controller.socket.timeout.ms: How long a channel from controller to broker waits for an answer.
replica.lag.time.max.ms: How long a follower may lag behind before it leaves the in-sync set.
replica.socket.timeout.ms: How long a follower waits for the network.
replica.socket.receive.buffer.bytes: Receive buffer of the sockets of followers.
replica.fetch.max.bytes: Bytes that a follower asks for per partition.
replica.fetch.wait.max.ms: How long a follower's fetch may wait at the leader.
replica.fetch.min.bytes: Bytes for which a follower's fetch waits.
replica.fetch.response.max.bytes: Bytes that a follower asks for in one fetch.
replica.fetch.backoff.ms: How long a follower waits after a failed fetch.
replica.high.watermark.checkpoint.interval.ms: How often high watermarks are written down.
replica.selector.class: Class that chooses the replica from which a consumer reads.
num.replica.fetchers: Threads that fetch from each other broker.
num.replica.alter.log.dirs.threads: Threads that move replicas between log directories.
fetch.purgatory.purge.interval.requests: How many answered fetches are kept before they are purged.
producer.purgatory.purge.interval.requests: How many answered writes are kept before they are purged.
delete.records.purgatory.purge.interval.requests: How many answered deletions are kept before they are purged.
follower.fetch.last.tiered.offset.enable: Whether a new follower begins at the end of what is in remote storage.
remote.log.storage.system.enable: Whether the broker offers remote storage to topics.
remote.log.storage.manager.impl.prefix: Prefix of the configs for the remote storage plugin.
remote.log.metadata.manager.impl.prefix: Prefix of the configs for the plugin that keeps the remote metadata.
remote.log.storage.manager.class.path: Path of the classes of the remote storage plugin.
remote.log.storage.manager.class.name: Class of the remote storage plugin.
remote.log.metadata.manager.class.path: Path of the classes of the plugin that keeps the remote metadata.
remote.log.metadata.manager.class.name: Class of the plugin that keeps the remote metadata.
remote.log.metadata.manager.listener.name: Listener through which that plugin reaches the brokers.
remote.log.metadata.custom.metadata.max.bytes: Most bytes that the storage plugin may add to a segment's metadata.
remote.log.index.file.cache.total.size.bytes: Disk space for indexes of remote segments.
remote.log.index.file.cache.ttl.ms: How long an unused index of a remote segment is kept.
remote.log.manager.thread.pool.size: Threads of the tasks that have no pool of their own.
remote.log.manager.copier.thread.pool.size: Threads that copy segments to remote storage.
remote.log.manager.expiration.thread.pool.size: Threads that delete expired remote segments.
remote.log.manager.follower.thread.pool.size: Threads that follow the remote state of partitions led elsewhere.
remote.log.manager.task.interval.ms: How often segments are copied, deleted and looked up.
remote.log.manager.task.retry.backoff.ms: First pause after a failed task of remote storage.
remote.log.manager.task.retry.backoff.max.ms: Longest pause after failed tasks of remote storage.
remote.log.manager.task.retry.jitter: Random share by which these pauses differ.
remote.log.reader.threads: Threads that read from remote storage.
remote.log.reader.max.pending.tasks: Most reads from remote storage that wait.
remote.log.manager.copy.max.bytes.per.second: Most bytes that are copied to remote storage in a second.
remote.log.manager.copy.quota.window.num: How many samples the quota of copying keeps.
remote.log.manager.copy.quota.window.size.seconds: Time of one sample of the quota of copying.
remote.log.manager.fetch.max.bytes.per.second: Most bytes that are read from remote storage in a second.
remote.log.manager.fetch.quota.window.num: How many samples the quota of reading keeps.
remote.log.manager.fetch.quota.window.size.seconds: Time of one sample of the quota of reading.
remote.fetch.max.wait.ms: How long a fetch waits for remote storage.
remote.list.offsets.request.timeout.ms: How long a request for offsets waits for remote storage.
metadata.log.dir: Directory of the metadata log; without it the first log directory.
metadata.log.max.record.bytes.between.snapshots: Bytes of new records after which a snapshot is written.
metadata.log.max.snapshot.interval.ms: Time after which a snapshot is written where there are new records; 0 for none.
metadata.log.segment.bytes: Size at which a segment of the metadata log is closed.
metadata.log.segment.ms: Age at which a segment of the metadata log is closed.
metadata.max.retention.bytes: Size of metadata log and snapshots above which the oldest are deleted.
metadata.max.retention.ms: Age above which segments and snapshots of the metadata log are deleted.
metadata.max.idle.interval.ms: How often an idle leader writes a NoOpRecord; 0 for never.
internal.metadata.log.segment.bytes: Size of a segment of the metadata log, for tests.
internal.metadata.max.batch.size.in.bytes: Largest batch of the metadata log, for tests.
internal.metadata.delete.delay.millis: How long deleted files of the metadata log stay, for tests.
"""
