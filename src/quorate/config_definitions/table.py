"""The configs of Kafka 4.3.1, in its order: made by `python tools/config_definitions.py`.

A line has the name, the type, the default, a column that depends on the resource, the visibility and
the allowed values. The default is a text in quotes, `null`, or `required` where there is none. The
fourth column of a topic or group names the configs of a broker in its place, with what their value is
multiplied by. That of a broker says how the config changes.
"""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

TOPIC: Final = """\
segment.bytes INT "1073741824" log.segment.bytes public [1048576,...]
segment.ms LONG "604800000" log.roll.ms,log.roll.hours*3600000 public [1,...]
segment.jitter.ms LONG "0" log.roll.jitter.ms,log.roll.jitter.hours*3600000 public [0,...]
segment.index.bytes INT "10485760" log.index.size.max.bytes public [4,...]
flush.messages LONG "9223372036854775807" log.flush.interval.messages public [1,...]
flush.ms LONG "9223372036854775807" log.flush.interval.ms,log.flush.scheduler.interval.ms public [0,...]
retention.bytes LONG "-1" log.retention.bytes public
retention.ms LONG "604800000" log.retention.ms,log.retention.minutes*60000,log.retention.hours*3600000 public [-1,...]
max.message.bytes INT "1048588" message.max.bytes public [0,...]
index.interval.bytes INT "4096" log.index.interval.bytes public [0,...]
delete.retention.ms LONG "86400000" log.cleaner.delete.retention.ms public [0,...]
min.compaction.lag.ms LONG "0" log.cleaner.min.compaction.lag.ms public [0,...]
max.compaction.lag.ms LONG "9223372036854775807" log.cleaner.max.compaction.lag.ms public [1,...]
file.delete.delay.ms LONG "60000" log.segment.delete.delay.ms public [0,...]
min.cleanable.dirty.ratio DOUBLE "0.5" log.cleaner.min.cleanable.ratio public [0,...,1]
cleanup.policy LIST "delete" log.cleanup.policy public distinct [compact, delete]
unclean.leader.election.enable BOOLEAN "false" unclean.leader.election.enable public
min.insync.replicas INT "1" min.insync.replicas public [1,...]
compression.type STRING "producer" compression.type public [uncompressed, zstd, lz4, snappy, gzip, producer]
compression.gzip.level INT "-1" compression.gzip.level public [1,...,9] or -1
compression.lz4.level INT "9" compression.lz4.level public [1,...,17]
compression.zstd.level INT "3" compression.zstd.level public [-131072,...,22]
preallocate BOOLEAN "false" log.preallocate public
message.timestamp.type STRING "CreateTime" log.message.timestamp.type public [CreateTime, LogAppendTime]
message.timestamp.before.max.ms LONG "9223372036854775807" log.message.timestamp.before.max.ms public [0,...]
message.timestamp.after.max.ms LONG "3600000" log.message.timestamp.after.max.ms public [0,...]
leader.replication.throttled.replicas LIST "" - public [partitionId]:[brokerId],[partitionId]:[brokerId],...
follower.replication.throttled.replicas LIST "" - public [partitionId]:[brokerId],[partitionId]:[brokerId],...
remote.storage.enable BOOLEAN "false" - public
local.retention.ms LONG "-2" log.local.retention.ms public [-2,...]
local.retention.bytes LONG "-2" log.local.retention.bytes public [-2,...]
remote.log.copy.disable BOOLEAN "false" - public
remote.log.delete.on.disable BOOLEAN "false" - public
internal.segment.bytes INT null - internal
"""

CLIENT_METRICS: Final = """\
metrics LIST "" - public distinct
interval.ms INT "300000" - public
match LIST "" - public distinct
"""

GROUP: Final = """\
consumer.session.timeout.ms INT "45000" group.consumer.session.timeout.ms public [1,...]
consumer.heartbeat.interval.ms INT "5000" group.consumer.heartbeat.interval.ms public [1,...]
consumer.assignment.interval.ms INT "1000" group.consumer.assignment.interval.ms public [0,...]
share.session.timeout.ms INT "45000" group.share.session.timeout.ms public [1,...]
share.heartbeat.interval.ms INT "5000" group.share.heartbeat.interval.ms public [1,...]
share.record.lock.duration.ms INT "30000" group.share.record.lock.duration.ms public [1000,...]
share.delivery.count.limit INT "5" group.share.delivery.count.limit public [2,...]
share.partition.max.record.locks INT "2000" group.share.partition.max.record.locks public [100,...]
share.auto.offset.reset STRING "latest" - public [latest, earliest, by_duration:PnDTnHnMn.nS]
share.isolation.level STRING "read_uncommitted" - public [read_committed, read_uncommitted]
share.renew.acknowledge.enable BOOLEAN "true" - public
share.assignment.interval.ms INT "1000" group.share.assignment.interval.ms public [0,...]
streams.session.timeout.ms INT "45000" group.streams.session.timeout.ms public [1,...]
streams.heartbeat.interval.ms INT "5000" group.streams.heartbeat.interval.ms public [1,...]
streams.num.standby.replicas INT "0" group.streams.num.standby.replicas public [0,...]
streams.initial.rebalance.delay.ms INT "3000" group.streams.initial.rebalance.delay.ms public [0,...]
streams.assignment.interval.ms INT "1000" group.streams.assignment.interval.ms public [0,...]
"""

BROKER_QUOTA: Final = """\
leader.replication.throttled.rate LONG "9223372036854775807" cluster-wide public [0,...]
follower.replication.throttled.rate LONG "9223372036854775807" cluster-wide public [0,...]
replica.alter.log.dirs.io.max.bytes.per.second LONG "9223372036854775807" cluster-wide public [0,...]
"""

BROKER: Final = """\
remote.log.storage.system.enable BOOLEAN "false" read-only public
remote.log.storage.manager.impl.prefix STRING "rsm.config." read-only public non-empty string
remote.log.metadata.manager.impl.prefix STRING "rlmm.config." read-only public non-empty string
remote.log.storage.manager.class.name STRING null read-only public non-empty string
remote.log.storage.manager.class.path STRING null read-only public
remote.log.metadata.manager.class.name STRING "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager" read-only public non-empty string
remote.log.metadata.manager.class.path STRING null read-only public
remote.log.metadata.manager.listener.name STRING null read-only public non-empty string
remote.log.metadata.custom.metadata.max.bytes INT "128" read-only public [0,...]
remote.log.index.file.cache.total.size.bytes LONG "1073741824" cluster-wide public [1,...]
remote.log.index.file.cache.ttl.ms LONG "900000" read-only internal [-1,...]
remote.log.manager.thread.pool.size INT "2" read-only public [1,...]
remote.log.manager.copier.thread.pool.size INT "10" cluster-wide public [1,...]
remote.log.manager.expiration.thread.pool.size INT "10" cluster-wide public [1,...]
remote.log.manager.follower.thread.pool.size INT "2" cluster-wide public [1,...]
remote.log.manager.task.interval.ms LONG "30000" read-only public [1,...]
remote.log.manager.task.retry.backoff.ms LONG "500" read-only internal [1,...]
remote.log.manager.task.retry.backoff.max.ms LONG "30000" read-only internal [1,...]
remote.log.manager.task.retry.jitter DOUBLE "0.2" read-only internal [0,...,0.5]
remote.log.reader.threads INT "10" cluster-wide public [1,...]
remote.log.reader.max.pending.tasks INT "100" read-only public [1,...]
log.local.retention.ms LONG "-2" cluster-wide public [-2,...]
log.local.retention.bytes LONG "-2" cluster-wide public [-2,...]
remote.log.manager.copy.max.bytes.per.second LONG "9223372036854775807" cluster-wide public [1,...]
remote.log.manager.copy.quota.window.num INT "11" read-only public [1,...]
remote.log.manager.copy.quota.window.size.seconds INT "1" read-only public [1,...]
remote.log.manager.fetch.max.bytes.per.second LONG "9223372036854775807" cluster-wide public [1,...]
remote.log.manager.fetch.quota.window.num INT "11" read-only public [1,...]
remote.log.manager.fetch.quota.window.size.seconds INT "1" read-only public [1,...]
remote.fetch.max.wait.ms INT "500" cluster-wide public [1,...]
remote.list.offsets.request.timeout.ms LONG "30000" cluster-wide public [1,...]
broker.id INT "-1" read-only public
message.max.bytes INT "1048588" cluster-wide public [0,...]
num.io.threads INT "8" cluster-wide public [1,...]
num.replica.alter.log.dirs.threads INT null read-only public
background.threads INT "10" cluster-wide public [1,...]
request.timeout.ms INT "30000" read-only public
socket.connection.setup.timeout.ms LONG "10000" read-only public
socket.connection.setup.timeout.max.ms LONG "30000" read-only public
config.providers LIST "" cluster-wide public distinct
authorizer.class.name STRING "" read-only public non-null string
early.start.listeners LIST null read-only public distinct
broker.rack STRING null read-only public
controlled.shutdown.enable BOOLEAN "true" read-only public
delete.topic.enable BOOLEAN "true" read-only public
compression.type STRING "producer" cluster-wide public [uncompressed, zstd, lz4, snappy, gzip, producer]
compression.gzip.level INT "-1" cluster-wide public [1,...,9] or -1
compression.lz4.level INT "9" cluster-wide public [1,...,17]
compression.zstd.level INT "3" cluster-wide public [-131072,...,22]
max.incremental.fetch.session.cache.slots INT "1000" read-only public [0,...]
fetch.max.bytes INT "57671680" read-only public [1024,...]
max.request.partition.size.limit INT "2000" read-only public [1,...]
unstable.api.versions.enable BOOLEAN "false" read-only internal
unstable.feature.versions.enable BOOLEAN "false" read-only internal
process.roles LIST required read-only public distinct non-empty [broker, controller]
node.id INT required read-only public [0,...]
initial.broker.registration.timeout.ms INT "60000" read-only public
broker.heartbeat.interval.ms INT "2000" read-only public
broker.session.timeout.ms INT "9000" read-only public
controller.listener.names LIST required read-only public distinct non-empty
sasl.mechanism.controller.protocol STRING "GSSAPI" read-only public
controller.performance.sample.period.ms LONG "60000" read-only internal [100,...]
controller.performance.always.log.threshold.ms LONG "2000" read-only internal [0,...]
server.max.startup.time.ms LONG "9223372036854775807" read-only internal [0,...]
metadata.log.max.record.bytes.between.snapshots LONG "20971520" read-only public [1,...]
metadata.log.max.snapshot.interval.ms LONG "3600000" read-only public [0,...]
metadata.log.dir STRING null read-only public
metadata.log.segment.bytes INT "1073741824" read-only public [8388608,...]
metadata.log.segment.ms LONG "604800000" read-only public
metadata.max.retention.bytes LONG "104857600" read-only public
metadata.max.retention.ms LONG "604800000" read-only public
metadata.max.idle.interval.ms INT "500" read-only public [0,...]
internal.metadata.log.segment.bytes INT null read-only internal
internal.metadata.max.batch.size.in.bytes INT "8388608" read-only internal
internal.metadata.delete.delay.millis LONG "60000" read-only internal
listeners LIST "PLAINTEXT://:9092" per-broker public distinct non-empty
advertised.listeners LIST null read-only public distinct non-empty
listener.security.protocol.map STRING "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" per-broker public
socket.send.buffer.bytes INT "102400" read-only public
socket.receive.buffer.bytes INT "102400" read-only public
socket.request.max.bytes INT "104857600" read-only public [1,...]
socket.listen.backlog.size INT "50" read-only public [1,...]
max.connections.per.ip INT "2147483647" cluster-wide public [0,...]
max.connections.per.ip.overrides STRING "" cluster-wide public
max.connections INT "2147483647" cluster-wide public [0,...]
max.connection.creation.rate INT "2147483647" cluster-wide public [0,...]
connections.max.idle.ms LONG "600000" read-only public
connection.failed.authentication.delay.ms INT "100" read-only public [0,...]
queued.max.requests INT "500" read-only public [1,...]
queued.max.request.bytes LONG "-1" read-only public
num.network.threads INT "3" cluster-wide public [1,...]
controller.socket.timeout.ms INT "30000" read-only public
default.replication.factor INT "1" read-only public
replica.lag.time.max.ms LONG "30000" read-only public
replica.socket.timeout.ms INT "30000" read-only public
replica.socket.receive.buffer.bytes INT "65536" read-only public
replica.fetch.max.bytes INT "1048576" read-only public [0,...]
replica.fetch.wait.max.ms INT "500" read-only public
replica.fetch.backoff.ms INT "1000" read-only public [0,...]
replica.fetch.min.bytes INT "1" read-only public
replica.fetch.response.max.bytes INT "10485760" read-only public [0,...]
num.replica.fetchers INT "1" cluster-wide public [1,...]
replica.high.watermark.checkpoint.interval.ms LONG "5000" read-only public
fetch.purgatory.purge.interval.requests INT "1000" read-only public
producer.purgatory.purge.interval.requests INT "1000" read-only public
delete.records.purgatory.purge.interval.requests INT "1" read-only public
auto.leader.rebalance.enable BOOLEAN "true" read-only public
leader.imbalance.check.interval.seconds LONG "300" read-only public [1,...]
unclean.leader.election.interval.ms LONG "300000" read-only internal [1,...]
unclean.leader.election.enable BOOLEAN "false" cluster-wide public
security.inter.broker.protocol STRING "PLAINTEXT" read-only public [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]
inter.broker.listener.name STRING null read-only public
replica.selector.class STRING null read-only public
follower.fetch.last.tiered.offset.enable BOOLEAN "false" cluster-wide public
group.coordinator.rebalance.protocols LIST "classic,consumer,streams" read-only public distinct non-empty [consumer, classic, share, streams]
group.coordinator.threads INT "4" read-only public [1,...]
group.coordinator.background.threads INT "2" read-only public [1,...]
group.coordinator.append.linger.ms INT "-1" read-only public [-1,...]
offsets.commit.timeout.ms INT "5000" read-only public [1,...]
offsets.load.buffer.size INT "5242880" read-only public [1,...]
offsets.topic.replication.factor SHORT "3" read-only public [1,...]
offsets.topic.num.partitions INT "50" read-only public [1,...]
offsets.topic.segment.bytes INT "104857600" read-only public [1,...]
offsets.topic.compression.codec INT "0" read-only public
group.coordinator.cached.buffer.max.bytes INT "1048588" cluster-wide public [524288,...]
offset.metadata.max.bytes INT "4096" read-only public
offsets.retention.minutes INT "10080" read-only public [1,...]
offsets.retention.check.interval.ms LONG "600000" read-only public [1,...]
group.min.session.timeout.ms INT "6000" read-only public
group.max.session.timeout.ms INT "1800000" read-only public
group.initial.rebalance.delay.ms INT "3000" read-only public
group.max.size INT "2147483647" read-only public [1,...]
group.consumer.session.timeout.ms INT "45000" read-only public [1,...]
group.consumer.min.session.timeout.ms INT "45000" read-only public [1,...]
group.consumer.max.session.timeout.ms INT "60000" read-only public [1,...]
group.consumer.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.consumer.min.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.consumer.max.heartbeat.interval.ms INT "15000" read-only public [1,...]
group.consumer.max.size INT "2147483647" read-only public [1,...]
group.consumer.assignors LIST "uniform,range" read-only public distinct non-empty
group.consumer.migration.policy STRING "bidirectional" read-only public (case insensitive) [DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL]
group.consumer.assignment.interval.ms INT "1000" cluster-wide public [0,...]
group.consumer.min.assignment.interval.ms INT "0" read-only public [0,...]
group.consumer.max.assignment.interval.ms INT "15000" read-only public [0,...]
group.consumer.regex.refresh.interval.ms INT "600000" read-only internal [10000,...]
group.share.session.timeout.ms INT "45000" read-only public [1,...]
group.share.min.session.timeout.ms INT "45000" read-only public [1,...]
group.share.max.session.timeout.ms INT "60000" read-only public [1,...]
group.share.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.share.min.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.share.max.heartbeat.interval.ms INT "15000" read-only public [1,...]
group.share.max.size INT "200" read-only public [1,...,1000]
group.share.assignors LIST "simple" read-only public distinct non-empty
group.share.assignment.interval.ms INT "1000" cluster-wide public [0,...]
group.share.min.assignment.interval.ms INT "0" read-only public [0,...]
group.share.max.assignment.interval.ms INT "15000" read-only public [0,...]
group.share.initialize.retry.interval.ms INT "30000" read-only internal [1,...]
group.streams.session.timeout.ms INT "45000" read-only public [1,...]
group.streams.min.session.timeout.ms INT "45000" read-only public [1,...]
group.streams.max.session.timeout.ms INT "60000" read-only public [1,...]
group.streams.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.streams.min.heartbeat.interval.ms INT "5000" read-only public [1,...]
group.streams.max.heartbeat.interval.ms INT "15000" read-only public [1,...]
group.streams.max.size INT "2147483647" read-only public [1,...]
group.streams.num.standby.replicas INT "0" read-only public [0,...]
group.streams.max.standby.replicas INT "2" read-only public [0,...]
group.streams.initial.rebalance.delay.ms INT "3000" read-only public [0,...]
group.streams.assignment.interval.ms INT "1000" cluster-wide public [0,...]
group.streams.min.assignment.interval.ms INT "0" read-only public [0,...]
group.streams.max.assignment.interval.ms INT "15000" read-only public [0,...]
log.cleaner.threads INT "1" cluster-wide public [0,...]
log.cleaner.io.max.bytes.per.second DOUBLE "1.7976931348623157E308" cluster-wide public
log.cleaner.dedupe.buffer.size LONG "134217728" cluster-wide public
log.cleaner.io.buffer.size INT "524288" cluster-wide public [0,...]
log.cleaner.io.buffer.load.factor DOUBLE "0.9" cluster-wide public
log.cleaner.backoff.ms LONG "15000" cluster-wide public [0,...]
log.cleaner.min.cleanable.ratio DOUBLE "0.5" cluster-wide public [0,...,1]
log.cleaner.enable BOOLEAN "true" read-only public
log.cleaner.delete.retention.ms LONG "86400000" cluster-wide public [0,...]
log.cleaner.min.compaction.lag.ms LONG "0" cluster-wide public [0,...]
log.cleaner.max.compaction.lag.ms LONG "9223372036854775807" cluster-wide public [1,...]
num.partitions INT "1" read-only public [1,...]
log.dir LIST "/tmp/kafka-logs" read-only public distinct non-empty
log.dirs LIST null read-only public distinct non-empty
cordoned.log.dirs LIST "" per-broker public distinct
log.segment.bytes INT "1073741824" cluster-wide public [1048576,...]
log.roll.ms LONG null cluster-wide public
log.roll.hours INT "168" read-only public [1,...]
log.roll.jitter.ms LONG null cluster-wide public
log.roll.jitter.hours INT "0" read-only public [0,...]
log.retention.ms LONG null cluster-wide public
log.retention.minutes INT null read-only public
log.retention.hours INT "168" read-only public
log.retention.bytes LONG "-1" cluster-wide public
log.retention.check.interval.ms LONG "300000" read-only public [1,...]
log.cleanup.policy LIST "delete" cluster-wide public distinct [compact, delete]
log.index.size.max.bytes INT "10485760" cluster-wide public [4,...]
log.index.interval.bytes INT "4096" cluster-wide public [0,...]
log.flush.interval.messages LONG "9223372036854775807" cluster-wide public [1,...]
log.segment.delete.delay.ms LONG "60000" cluster-wide public [0,...]
log.flush.scheduler.interval.ms LONG "9223372036854775807" read-only public
log.flush.interval.ms LONG null cluster-wide public
log.flush.offset.checkpoint.interval.ms INT "60000" read-only public [0,...]
log.flush.start.offset.checkpoint.interval.ms INT "60000" read-only public [0,...]
log.preallocate BOOLEAN "false" cluster-wide public
num.recovery.threads.per.data.dir INT "2" cluster-wide public [1,...]
auto.create.topics.enable BOOLEAN "true" read-only public
min.insync.replicas INT "1" cluster-wide public [1,...]
log.message.timestamp.type STRING "CreateTime" cluster-wide public [CreateTime, LogAppendTime]
log.message.timestamp.before.max.ms LONG "9223372036854775807" cluster-wide public [0,...]
log.message.timestamp.after.max.ms LONG "3600000" cluster-wide public [0,...]
create.topic.policy.class.name CLASS null read-only public
alter.config.policy.class.name CLASS null read-only public
log.dir.failure.timeout.ms LONG "30000" read-only public [1,...]
log.initial.task.delay.ms LONG "30000" read-only internal [0,...]
group.share.delivery.count.limit INT "5" read-only public [2,...,10]
group.share.max.delivery.count.limit INT "10" read-only public [5,...,25]
group.share.min.delivery.count.limit INT "2" read-only public [2,...,5]
group.share.record.lock.duration.ms INT "30000" read-only public [1000,...,3600000]
group.share.min.record.lock.duration.ms INT "15000" read-only public [1000,...,30000]
group.share.max.record.lock.duration.ms INT "60000" read-only public [30000,...,3600000]
group.share.partition.max.record.locks INT "2000" read-only public [100,...,10000]
group.share.max.partition.max.record.locks INT "4000" read-only public [2000,...,10000]
group.share.min.partition.max.record.locks INT "100" read-only public [100,...,2000]
share.fetch.purgatory.purge.interval.requests INT "1000" read-only public
group.share.max.share.sessions INT "2000" read-only public [1,...]
group.share.persister.class.name STRING "org.apache.kafka.server.share.persister.DefaultStatePersister" read-only internal
share.coordinator.state.topic.num.partitions INT "50" read-only public [1,...]
share.coordinator.state.topic.replication.factor SHORT "3" read-only public [1,...]
share.coordinator.state.topic.min.isr SHORT "2" read-only public [1,...]
share.coordinator.state.topic.segment.bytes INT "104857600" read-only public [1,...]
share.coordinator.threads INT "1" read-only public [1,...]
share.coordinator.snapshot.update.records.per.snapshot INT "500" read-only public [0,...,500]
share.coordinator.load.buffer.size INT "5242880" read-only public [1,...]
share.coordinator.state.topic.compression.codec INT "0" read-only public
share.coordinator.append.linger.ms INT "-1" read-only public [-1,...]
share.coordinator.write.timeout.ms INT "5000" read-only public [1,...]
share.coordinator.state.topic.prune.interval.ms INT "300000" read-only internal [1,...]
share.coordinator.cold.partition.snapshot.interval.ms INT "300000" read-only internal [1,...]
share.coordinator.cached.buffer.max.bytes INT "1048588" cluster-wide public [524288,...]
transaction.state.log.min.isr INT "2" read-only public [1,...]
transaction.state.log.load.buffer.size INT "5242880" read-only public [1,...]
transaction.state.log.replication.factor SHORT "3" read-only public [1,...]
transaction.state.log.num.partitions INT "50" read-only public [1,...]
transaction.state.log.segment.bytes INT "104857600" read-only public [1,...]
transaction.partition.verification.enable BOOLEAN "true" cluster-wide public
producer.id.expiration.ms INT "86400000" cluster-wide public [1,...]
producer.id.expiration.check.interval.ms INT "600000" read-only internal [1,...]
transactional.id.expiration.ms INT "604800000" read-only public [1,...]
transaction.max.timeout.ms INT "900000" read-only public [1,...]
transaction.abort.timed.out.transaction.cleanup.interval.ms INT "10000" read-only public [1,...]
transaction.remove.expired.transaction.cleanup.interval.ms INT "3600000" read-only public [1,...]
transaction.two.phase.commit.enable BOOLEAN "false" read-only public
controller.quorum.voters LIST "" read-only public non-empty list
controller.quorum.bootstrap.servers LIST "" read-only public non-empty list
controller.quorum.election.timeout.ms INT "1000" read-only public [0,...]
controller.quorum.fetch.timeout.ms INT "2000" read-only public [0,...]
controller.quorum.election.backoff.max.ms INT "1000" read-only public [0,...]
controller.quorum.append.linger.ms INT "25" read-only public [0,...]
controller.quorum.request.timeout.ms INT "2000" read-only public [0,...]
controller.quorum.retry.backoff.ms INT "20" read-only public [0,...]
controller.quorum.auto.join.enable BOOLEAN "false" read-only public
controller.quorum.fetch.snapshot.max.bytes INT "1048576" read-only public [1,...]
controller.quorum.fetch.max.bytes INT "1048576" read-only public [1,...]
metrics.num.samples INT "2" read-only public [1,...]
metrics.sample.window.ms LONG "30000" read-only public [1,...]
metric.reporters LIST "org.apache.kafka.common.metrics.JmxReporter" cluster-wide public distinct
metrics.recording.level STRING "INFO" read-only public
kafka.metrics.reporters LIST "" read-only public distinct
kafka.metrics.polling.interval.secs INT "10" read-only public [1,...]
telemetry.max.bytes INT "1048576" read-only public [1,...]
quota.window.num INT "11" read-only public [1,...]
replication.quota.window.num INT "11" read-only public [1,...]
alter.log.dirs.replication.quota.window.num INT "11" read-only public [1,...]
controller.quota.window.num INT "11" read-only public [1,...]
quota.window.size.seconds INT "1" read-only public [1,...]
replication.quota.window.size.seconds INT "1" read-only public [1,...]
alter.log.dirs.replication.quota.window.size.seconds INT "1" read-only public [1,...]
controller.quota.window.size.seconds INT "1" read-only public [1,...]
client.quota.callback.class CLASS null read-only public
connections.max.reauth.ms LONG "0" read-only public
sasl.server.max.receive.size INT "524288" read-only public
security.providers STRING null read-only public
principal.builder.class CLASS "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" per-broker public
ssl.client.auth STRING "none" per-broker public [required, requested, none]
ssl.principal.mapping.rules STRING "DEFAULT" read-only public
ssl.allow.dn.changes BOOLEAN "false" read-only public
ssl.allow.san.changes BOOLEAN "false" read-only public
ssl.protocol STRING "TLSv1.3" per-broker public
ssl.provider STRING null per-broker public
ssl.enabled.protocols LIST "TLSv1.2,TLSv1.3" per-broker public distinct
ssl.keystore.type STRING "JKS" per-broker public
ssl.keystore.location STRING null per-broker public
ssl.keystore.password PASSWORD null per-broker public
ssl.key.password PASSWORD null per-broker public
ssl.keystore.key PASSWORD null per-broker public
ssl.keystore.certificate.chain PASSWORD null per-broker public
ssl.truststore.type STRING "JKS" per-broker public
ssl.truststore.location STRING null per-broker public
ssl.truststore.password PASSWORD null per-broker public
ssl.truststore.certificates PASSWORD null per-broker public
ssl.keymanager.algorithm STRING "SunX509" per-broker public
ssl.trustmanager.algorithm STRING "PKIX" per-broker public
ssl.endpoint.identification.algorithm STRING "https" per-broker public
ssl.secure.random.implementation STRING null per-broker public
ssl.cipher.suites LIST "" per-broker public distinct
ssl.engine.factory.class CLASS null per-broker public
sasl.mechanism.inter.broker.protocol STRING "GSSAPI" per-broker public
sasl.enabled.mechanisms LIST "GSSAPI" per-broker public distinct
sasl.server.callback.handler.class CLASS null read-only public
sasl.kerberos.principal.to.local.rules LIST "DEFAULT" per-broker public distinct
sasl.jaas.config PASSWORD null per-broker public
sasl.client.callback.handler.class CLASS null read-only public
sasl.login.class CLASS null read-only public
sasl.login.callback.handler.class CLASS null read-only public
sasl.kerberos.service.name STRING null per-broker public
sasl.kerberos.kinit.cmd STRING "/usr/bin/kinit" per-broker public
sasl.kerberos.ticket.renew.window.factor DOUBLE "0.8" per-broker public
sasl.kerberos.ticket.renew.jitter DOUBLE "0.05" per-broker public
sasl.kerberos.min.time.before.relogin LONG "60000" per-broker public
sasl.login.refresh.window.factor DOUBLE "0.8" per-broker public
sasl.login.refresh.window.jitter DOUBLE "0.05" per-broker public
sasl.login.refresh.min.period.seconds SHORT "60" per-broker public
sasl.login.refresh.buffer.seconds SHORT "300" per-broker public
sasl.login.connect.timeout.ms INT null read-only public
sasl.login.read.timeout.ms INT null read-only public
sasl.login.retry.backoff.max.ms LONG "10000" read-only public
sasl.login.retry.backoff.ms LONG "100" read-only public
sasl.oauthbearer.jwt.retriever.class CLASS "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever" read-only public
sasl.oauthbearer.jwt.validator.class CLASS "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator" read-only public
sasl.oauthbearer.scope STRING null read-only public
sasl.oauthbearer.client.credentials.client.id STRING null read-only public
sasl.oauthbearer.client.credentials.client.secret PASSWORD null read-only public
sasl.oauthbearer.assertion.algorithm STRING "RS256" read-only public (case insensitive) [ES256, RS256]
sasl.oauthbearer.assertion.claim.aud STRING null read-only public
sasl.oauthbearer.assertion.claim.exp.seconds INT "300" read-only public [0,...,86400]
sasl.oauthbearer.assertion.claim.iss STRING null read-only public
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN "false" read-only public
sasl.oauthbearer.assertion.claim.nbf.seconds INT "60" read-only public [0,...,3600]
sasl.oauthbearer.assertion.claim.sub STRING null read-only public
sasl.oauthbearer.assertion.file STRING null read-only public
sasl.oauthbearer.assertion.private.key.file STRING null read-only public
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD null read-only public
sasl.oauthbearer.assertion.template.file STRING null read-only public
sasl.oauthbearer.scope.claim.name STRING "scope" read-only public
sasl.oauthbearer.sub.claim.name STRING "sub" read-only public
sasl.oauthbearer.token.endpoint.url STRING null read-only public
sasl.oauthbearer.jwks.endpoint.url STRING null read-only public
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG "3600000" read-only public
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG "100" read-only public
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG "10000" read-only public
sasl.oauthbearer.clock.skew.seconds INT "30" read-only public
sasl.oauthbearer.expected.audience LIST "" read-only public distinct
sasl.oauthbearer.expected.issuer STRING null read-only public
delegation.token.secret.key PASSWORD null read-only public
delegation.token.max.lifetime.ms LONG "604800000" read-only public [1,...]
delegation.token.expiry.time.ms LONG "86400000" read-only public [1,...]
delegation.token.expiry.check.interval.ms LONG "3600000" read-only public [1,...]
add.partitions.to.txn.retry.backoff.max.ms INT "100" read-only public [0,...]
add.partitions.to.txn.retry.backoff.ms INT "20" read-only public [1,...]
"""
