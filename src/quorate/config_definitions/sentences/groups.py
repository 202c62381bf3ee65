"""Configs of consumer, share and streams groups."""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final

SENTENCES: Final = """\
consumer.session.timeout.ms: Time without a heartbeat after which a consumer leaves its group.
consumer.heartbeat.interval.ms: Time between two heartbeats of a consumer of the group.
consumer.assignment.interval.ms: Shortest time between two assignments of partitions in a consumer group.
share.session.timeout.ms: Time without a heartbeat after which a share consumer leaves its group.
share.heartbeat.interval.ms: Time between two heartbeats of a share consumer.
share.record.lock.duration.ms: Time for which a delivered record is locked until it is acknowledged.
share.delivery.count.limit: How often a record is delivered at most before it counts as undeliverable.
share.partition.max.record.locks: Most records of a partition that are locked at the same time.
share.auto.offset.reset: Where a share group begins: earliest, latest, or by_duration:PnDTnHnMn.nS before now.
share.isolation.level: Whether records of transactions are delivered before they are committed.
share.renew.acknowledge.enable: Whether a consumer may renew the lock of a record.
share.assignment.interval.ms: Shortest time between two assignments of partitions in a share group.
streams.session.timeout.ms: Time without a heartbeat after which a Streams client leaves its group.
streams.heartbeat.interval.ms: Time between two heartbeats of a Streams client.
streams.num.standby.replicas: How many standby copies each task of the group has.
streams.initial.rebalance.delay.ms: How long an empty Streams group waits for more clients before it assigns tasks.
streams.assignment.interval.ms: Shortest time between two assignments of tasks in a Streams group.
"""
