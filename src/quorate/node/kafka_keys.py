"""The keys of Kafka's that a Quorate node does not use: what Kafka takes as their values.

Types, ranges and choices of numbers and truth values are those of `KafkaConfig.configDef` of Kafka
4.3.1, and a wrong one is refused in its words; an interop test compares them. What ties keys
together is in `cross_checks` and `group_checks`. Not looked at is what only a broker with its
libraries can judge: names of classes, files and protocols of security, reporters, remote storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from quorate.node.group_checks import check_group_lists, check_groups
from quorate.node.settings import Settings

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}
_RANGES: Final = """\
BOOLEAN: auto.create.topics.enable auto.leader.rebalance.enable controlled.shutdown.enable
    delete.topic.enable follower.fetch.last.tiered.offset.enable log.cleaner.enable
    log.preallocate remote.log.storage.system.enable sasl.oauthbearer.assertion.claim.jti.include
    ssl.allow.dn.changes ssl.allow.san.changes transaction.partition.verification.enable
    transaction.two.phase.commit.enable unclean.leader.election.enable
    unstable.api.versions.enable
DOUBLE 0..0.5: remote.log.manager.task.retry.jitter
DOUBLE 0..1: log.cleaner.min.cleanable.ratio
DOUBLE ..: log.cleaner.io.buffer.load.factor log.cleaner.io.max.bytes.per.second
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
INT -1..: group.coordinator.append.linger.ms share.coordinator.append.linger.ms
INT -131072..22: compression.zstd.level
INT 0..3600: sasl.oauthbearer.assertion.claim.nbf.seconds
INT 0..500: share.coordinator.snapshot.update.records.per.snapshot
INT 0..86400: sasl.oauthbearer.assertion.claim.exp.seconds
INT 0..: add.partitions.to.txn.retry.backoff.max.ms connection.failed.authentication.delay.ms
    group.consumer.assignment.interval.ms group.consumer.max.assignment.interval.ms
    group.consumer.min.assignment.interval.ms group.share.assignment.interval.ms
    group.share.max.assignment.interval.ms group.share.min.assignment.interval.ms
    group.streams.assignment.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.standby.replicas
    group.streams.min.assignment.interval.ms group.streams.num.standby.replicas
    log.cleaner.io.buffer.size log.cleaner.threads log.flush.offset.checkpoint.interval.ms
    log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes log.roll.jitter.hours
    max.connection.creation.rate max.incremental.fetch.session.cache.slots message.max.bytes
    remote.log.metadata.custom.metadata.max.bytes replica.fetch.backoff.ms replica.fetch.max.bytes
    replica.fetch.response.max.bytes
INT 1..1000: group.share.max.size
INT 1..17: compression.lz4.level
INT 1..: add.partitions.to.txn.retry.backoff.ms alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds background.threads
    controller.quota.window.num controller.quota.window.size.seconds
    group.consumer.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms
    group.consumer.max.session.timeout.ms group.consumer.max.size
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
    group.consumer.session.timeout.ms group.coordinator.background.threads
    group.coordinator.threads group.max.size group.share.heartbeat.interval.ms
    group.share.initialize.retry.interval.ms group.share.max.heartbeat.interval.ms
    group.share.max.session.timeout.ms group.share.max.share.sessions
    group.share.min.heartbeat.interval.ms group.share.min.session.timeout.ms
    group.share.session.timeout.ms group.streams.heartbeat.interval.ms
    group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
    group.streams.max.size group.streams.min.heartbeat.interval.ms
    group.streams.min.session.timeout.ms group.streams.session.timeout.ms
    kafka.metrics.polling.interval.secs log.roll.hours max.request.partition.size.limit
    metrics.num.samples num.io.threads num.network.threads num.partitions
    num.recovery.threads.per.data.dir num.replica.fetchers offsets.commit.timeout.ms
    offsets.load.buffer.size offsets.retention.minutes offsets.topic.num.partitions
    offsets.topic.segment.bytes producer.id.expiration.check.interval.ms producer.id.expiration.ms
    quota.window.num quota.window.size.seconds remote.fetch.max.wait.ms
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds
    remote.log.manager.follower.thread.pool.size remote.log.manager.thread.pool.size
    remote.log.reader.max.pending.tasks remote.log.reader.threads replication.quota.window.num
    replication.quota.window.size.seconds share.coordinator.cold.partition.snapshot.interval.ms
    share.coordinator.load.buffer.size share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.segment.bytes
    share.coordinator.threads share.coordinator.write.timeout.ms telemetry.max.bytes
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.max.timeout.ms
    transaction.remove.expired.transaction.cleanup.interval.ms
    transaction.state.log.load.buffer.size transaction.state.log.min.isr
    transaction.state.log.num.partitions transaction.state.log.segment.bytes
    transactional.id.expiration.ms
INT 100..10000: group.share.partition.max.record.locks
INT 100..2000: group.share.min.partition.max.record.locks
INT 1000..30000: group.share.min.record.lock.duration.ms
INT 1000..3600000: group.share.record.lock.duration.ms
INT 10000..: group.consumer.regex.refresh.interval.ms
INT 1024..: fetch.max.bytes
INT 1048576..: log.segment.bytes
INT 2..10: group.share.delivery.count.limit
INT 2..5: group.share.min.delivery.count.limit
INT 2000..10000: group.share.max.partition.max.record.locks
INT 30000..3600000: group.share.max.record.lock.duration.ms
INT 4..: log.index.size.max.bytes
INT 5..25: group.share.max.delivery.count.limit
INT 524288..: group.coordinator.cached.buffer.max.bytes share.coordinator.cached.buffer.max.bytes
INT ..: broker.heartbeat.interval.ms broker.session.timeout.ms controller.socket.timeout.ms
    default.replication.factor delete.records.purgatory.purge.interval.requests
    fetch.purgatory.purge.interval.requests group.initial.rebalance.delay.ms
    group.max.session.timeout.ms group.min.session.timeout.ms
    initial.broker.registration.timeout.ms log.retention.hours log.retention.minutes
    num.replica.alter.log.dirs.threads offset.metadata.max.bytes offsets.topic.compression.codec
    producer.purgatory.purge.interval.requests replica.fetch.min.bytes replica.fetch.wait.max.ms
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms request.timeout.ms
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.oauthbearer.clock.skew.seconds
    sasl.server.max.receive.size share.coordinator.state.topic.compression.codec
    share.fetch.purgatory.purge.interval.requests
LONG -1..: remote.log.index.file.cache.ttl.ms
LONG -2..: log.local.retention.bytes log.local.retention.ms
LONG 0..: controller.performance.always.log.threshold.ms log.cleaner.backoff.ms
    log.cleaner.delete.retention.ms log.cleaner.min.compaction.lag.ms log.initial.task.delay.ms
    log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.segment.delete.delay.ms server.max.startup.time.ms
LONG 1..: delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms leader.imbalance.check.interval.seconds
    log.cleaner.max.compaction.lag.ms log.dir.failure.timeout.ms log.flush.interval.messages
    log.retention.check.interval.ms metrics.sample.window.ms offsets.retention.check.interval.ms
    remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms unclean.leader.election.interval.ms
LONG 100..: controller.performance.sample.period.ms
LONG ..: connections.max.reauth.ms log.cleaner.dedupe.buffer.size log.flush.interval.ms
    log.flush.scheduler.interval.ms log.retention.bytes log.retention.ms log.roll.jitter.ms
    log.roll.ms replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms
    sasl.kerberos.min.time.before.relogin sasl.login.retry.backoff.max.ms
    sasl.login.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms
SHORT 1..: offsets.topic.replication.factor share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.replication.factor transaction.state.log.replication.factor
SHORT ..: sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
"""
"""Type and range (`least..most`): keys."""

_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "compression.type": ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "log.message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "security.inter.broker.protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "ssl.client.auth": ("required", "requested", "none"),
}
_GROUPS: Final = "group.coordinator.rebalance.protocols"
_GZIP: Final = "compression.gzip.level"


class Rule(NamedTuple):
    """The values of a number (`type` INT and so on) or a truth value (BOOLEAN)."""

    type: str
    least: str
    most: str


def rules(ranges: str = _RANGES) -> Iterator[tuple[str, Rule]]:
    """Each key with a type or range, and its rule; `ranges` is written as that of the nodes is."""
    rule = Rule("", "", "")
    for line in ranges.splitlines():
        head, colon, keys = line.partition(":")
        if colon:
            type_name, _, bounds = head.partition(" ")
            least, _, most = bounds.partition("..")
            rule = Rule(type_name, least, most)
        for key in (keys if colon else line).split():
            yield key, rule


def check_unused(settings: Settings) -> None:
    """Raise ConfigError for the first value that Kafka would refuse, by itself or beside others."""
    check_values(settings, _RANGES, _CHOICES)
    settings.distinct("log.cleanup.policy", one_of=("compact", "delete"), may_be_empty=True)
    protocols = settings.distinct(_GROUPS, one_of=("consumer", "classic", "share", "streams"))
    if protocols is not None and "classic" not in protocols:
        settings.refuse(_GROUPS, "Disabling the 'classic' protocol is not supported.")
    level = settings.integer(_GZIP, None)
    if level is not None and level != -1 and not 1 <= level <= 9:
        settings.invalid(_GZIP, level, "Value must be between 1 and 9 or equal to -1")
    settings.distinct("sasl.enabled.mechanisms", may_be_empty=True)
    check_group_lists(settings)
    check_groups(settings)


def check_values(settings: Settings, ranges: str, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ConfigError for the first value outside these ranges, or that is no choice."""
    for key, rule in rules(ranges):
        if key in settings:
            _check(settings, key, rule)
    for key, allowed in choices.items():
        value = settings.text(key)
        if value is not None and value not in allowed:
            settings.invalid(key, value, f"String must be one of: {', '.join(allowed)}")


def _check(settings: Settings, key: str, rule: Rule) -> None:
    if rule.type == "BOOLEAN":
        settings.boolean(key, False)
        return
    value: float | None
    if rule.type == "DOUBLE":
        value = settings.double(key)
    else:
        value = settings.integer(key, None, bits=_BITS[rule.type])
    assert value is not None
    if rule.least and value < float(rule.least):
        settings.invalid(key, value, f"Value must be at least {rule.least}")
    if rule.most and value > float(rule.most):
        settings.invalid(key, value, f"Value must be no more than {rule.most}")
