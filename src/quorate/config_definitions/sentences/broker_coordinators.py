"""Configs of brokers: the coordinators of groups, transactions and share groups."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
group.min.session.timeout.ms: Shortest session timeout that a member of a classic group may ask for.
group.max.session.timeout.ms: Longest session timeout that a member of a classic group may ask for.
group.initial.rebalance.delay.ms: How long a new classic group waits for more members.
group.max.size: Most members of a classic group.
group.coordinator.rebalance.protocols: Kinds of groups that the coordinator serves.
group.coordinator.threads: Threads that handle requests about groups.
group.coordinator.background.threads: Threads for longer work of the group coordinator.
group.coordinator.append.linger.ms: How long writes of the group coordinator are gathered; -1 adapts to the load.
group.coordinator.cached.buffer.max.bytes: Largest buffer that the group coordinator keeps for its next write.
group.consumer.session.timeout.ms: Time without a heartbeat after which a consumer leaves its group.
group.consumer.min.session.timeout.ms: Shortest session timeout that a consumer group may set.
group.consumer.max.session.timeout.ms: Longest session timeout that a consumer group may set.
group.consumer.heartbeat.interval.ms: Time between two heartbeats of a consumer.
group.consumer.min.heartbeat.interval.ms: Shortest heartbeat interval that a consumer group may set.
group.consumer.max.heartbeat.interval.ms: Longest heartbeat interval that a consumer group may set.
group.consumer.max.size: Most members of a consumer group.
group.consumer.assignors: Assignors of consumer groups, by name or class; the first one is the default.
group.consumer.migration.policy: Whether groups move between the classic and the consumer protocol, and which way.
group.consumer.regex.refresh.interval.ms: How often subscriptions by pattern are matched with the topics anew.
group.consumer.assignment.interval.ms: Shortest time between two assignments in a consumer group.
group.consumer.min.assignment.interval.ms: Smallest assignment interval that a consumer group may set.
group.consumer.max.assignment.interval.ms: Largest assignment interval that a consumer group may set.
group.share.session.timeout.ms: Time without a heartbeat after which a share consumer leaves its group.
group.share.min.session.timeout.ms: Shortest session timeout that a share group may set.
group.share.max.session.timeout.ms: Longest session timeout that a share group may set.
group.share.heartbeat.interval.ms: Time between two heartbeats of a share consumer.
group.share.min.heartbeat.interval.ms: Shortest heartbeat interval that a share group may set.
group.share.max.heartbeat.interval.ms: Longest heartbeat interval that a share group may set.
group.share.max.size: Most members of a share group.
group.share.assignors: Assignors of share groups, by name or class.
group.share.assignment.interval.ms: Shortest time between two assignments in a share group.
group.share.min.assignment.interval.ms: Smallest assignment interval that a share group may set.
group.share.max.assignment.interval.ms: Largest assignment interval that a share group may set.
group.share.initialize.retry.interval.ms: Pause before the state of a share partition is set up again after a failure.
group.share.partition.max.record.locks: Most records of a share partition that are locked at the same time.
group.share.min.partition.max.record.locks: Smallest number of record locks that a share group may set.
group.share.max.partition.max.record.locks: Largest number of record locks that a share group may set.
group.share.delivery.count.limit: How often a record is delivered to a share group at most.
group.share.min.delivery.count.limit: Smallest delivery limit that a share group may set.
group.share.max.delivery.count.limit: Largest delivery limit that a share group may set.
group.share.record.lock.duration.ms: Time for which a delivered record is locked.
group.share.min.record.lock.duration.ms: Shortest lock that a share group may set.
group.share.max.record.lock.duration.ms: Longest lock that a share group may set.
group.share.max.share.sessions: Most share sessions on one broker.
group.share.persister.class.name: Class that keeps the state of share groups.
group.streams.session.timeout.ms: Time without a heartbeat after which a Streams client leaves its group.
group.streams.min.session.timeout.ms: Shortest session timeout that a Streams group may set.
group.streams.max.session.timeout.ms: Longest session timeout that a Streams group may set.
group.streams.heartbeat.interval.ms: Time between two heartbeats of a Streams client.
group.streams.min.heartbeat.interval.ms: Shortest heartbeat interval that a Streams group may set.
group.streams.max.heartbeat.interval.ms: Longest heartbeat interval that a Streams group may set.
group.streams.max.size: Most clients of a Streams group.
group.streams.num.standby.replicas: How many standby copies each task has.
group.streams.max.standby.replicas: Most standby copies that a Streams group may set.
group.streams.initial.rebalance.delay.ms: How long an empty Streams group waits for more clients.
group.streams.assignment.interval.ms: Shortest time between two assignments in a Streams group.
group.streams.min.assignment.interval.ms: Smallest assignment interval that a Streams group may set.
group.streams.max.assignment.interval.ms: Largest assignment interval that a Streams group may set.
offset.metadata.max.bytes: Most bytes of metadata with a committed offset.
offsets.load.buffer.size: Bytes that are read at once when the state of groups is loaded.
offsets.topic.replication.factor: Replicas of the topic of committed offsets when it is created.
offsets.topic.num.partitions: Partitions of the topic of committed offsets when it is created.
offsets.topic.segment.bytes: Size of a segment of the topic of committed offsets.
offsets.topic.compression.codec: Number of the codec for committed offsets.
offsets.retention.minutes: How long the offsets of an empty group are kept.
offsets.retention.check.interval.ms: How often the broker looks for expired offsets.
offsets.commit.timeout.ms: How long a commit of offsets waits for the replicas.
transactional.id.expiration.ms: How long a transactional id without a transaction is kept.
transaction.max.timeout.ms: Longest timeout that a producer may ask for its transactions.
transaction.state.log.min.isr: Replicas of the transaction topic that must be in sync for a write.
transaction.state.log.load.buffer.size: Bytes that are read at once when the state of transactions is loaded.
transaction.state.log.replication.factor: Replicas of the transaction topic when it is created.
transaction.state.log.num.partitions: Partitions of the transaction topic when it is created.
transaction.state.log.segment.bytes: Size of a segment of the transaction topic.
transaction.abort.timed.out.transaction.cleanup.interval.ms: How often transactions past their timeout are aborted.
transaction.remove.expired.transaction.cleanup.interval.ms: How often expired transactional ids are removed.
transaction.two.phase.commit.enable: Whether a producer may prepare a transaction and commit it later, without a timeout.
transaction.partition.verification.enable: Whether a write is checked to belong to an open transaction.
producer.id.expiration.ms: How long the state of an idle producer is kept in a partition.
producer.id.expiration.check.interval.ms: How often the broker looks for expired producers.
add.partitions.to.txn.retry.backoff.ms: First pause before a partition is added to a transaction again.
add.partitions.to.txn.retry.backoff.max.ms: Longest time for these retries.
share.coordinator.state.topic.num.partitions: Partitions of the topic of share group state when it is created.
share.coordinator.state.topic.replication.factor: Replicas of the topic of share group state when it is created.
share.coordinator.state.topic.segment.bytes: Size of a segment of the topic of share group state.
share.coordinator.state.topic.min.isr: Replicas of that topic that must be in sync for a write.
share.coordinator.state.topic.compression.codec: Number of the codec for share group state.
share.coordinator.state.topic.prune.interval.ms: How often superseded share group state is deleted.
share.coordinator.threads: Threads that handle requests about share group state.
share.coordinator.snapshot.update.records.per.snapshot: Updates of a share partition between two snapshots of its state.
share.coordinator.write.timeout.ms: How long a write of share group state waits for the replicas.
share.coordinator.load.buffer.size: Bytes that are read at once when share group state is loaded.
share.coordinator.append.linger.ms: How long writes of the share coordinator are gathered; -1 adapts to the load.
share.coordinator.cold.partition.snapshot.interval.ms: How often the state of idle share partitions is written anew.
share.coordinator.cached.buffer.max.bytes: Largest buffer that the share coordinator keeps for its next write.
share.fetch.purgatory.purge.interval.requests: How many answered share fetches are kept before they are purged.
"""
