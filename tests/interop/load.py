"""Load on a cluster while its controllers change: records with acks=all, and changes of every kind.

What was acknowledged is noted, and `assert_kept` looks for it at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from interop.process import Node, wait_for
from quorate.client import Admin
from quorate.client.admin.acls import AclBinding, AclFilter
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.topics import TopicCreation, TopicDescription
from quorate.security.acl import AclOperation, AclResource
from retries import DurabilityViolationError

LITERAL, ALLOW = 3, 3
"""Codes of an ACL: its pattern type and permission."""
RECORDS = "records"
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""Keys of every node: without an authorizer there are no ACLs."""
_PATIENCE_S = 120


class ClusterLoad:
    """Produces to `records` on the first of `brokers` until the context ends; changes on demand."""

    def __init__(self, brokers: Sequence[Node]) -> None:
        from kafka import KafkaProducer

        self.brokers = brokers
        self.acknowledged: list[bytes] = []
        self.changes: list[str] = []
        """Names of topics; each stands for a topic, its config, its ACL and a quota of its name."""
        self.moved: dict[str, tuple[int, ...]] = {}
        self.failed: list[Exception] = []
        self.admin = Admin.open(bootstrap_servers=brokers[0].address)
        self._stop = threading.Event()
        self._create(RECORDS)
        self._producer = KafkaProducer(
            bootstrap_servers=brokers[0].address,
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=_PATIENCE_S * 1000,
        )
        self._thread = threading.Thread(target=self._produce, daemon=True)

    def __enter__(self) -> ClusterLoad:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop producing; may be called again."""
        self._stop.set()
        self._thread.join(_PATIENCE_S + 10)
        self._producer.close()

    def _produce(self) -> None:
        try:
            while not self._stop.is_set():
                value = f"record {len(self.acknowledged)}".encode()
                self._producer.send(RECORDS, value, partition=0).get(_PATIENCE_S)
                self.acknowledged.append(value)
        except Exception as error:
            self.failed.append(error)

    def wait_for_more(self, count: int = 50) -> None:
        """Wait until `count` more records are acknowledged."""
        end = len(self.acknowledged) + count

        def more() -> bool:
            assert not self.failed, self.failed
            return len(self.acknowledged) >= end

        wait_for(more, f"{count} more acknowledged records", 60)

    def change(self) -> None:
        """A topic, a config of it, an ACL, a quota, and a partition that moves to the next broker."""
        name = f"change-{len(self.changes)}"
        self._create(name)
        resource = Resource(ResourceType.TOPIC, name)
        op = AlterConfigOp("retention.ms", OpType.SET, "3600000")
        _accept(self.admin.incremental_alter_configs({resource: [op]}))
        acl = AclBinding(
            AclResource.TOPIC, name, LITERAL, f"User:{name}", "*", AclOperation.READ, ALLOW
        )
        assert self.admin.create_acls([acl]) == (None,)
        self.admin.alter_client_quota({"user": name}, {"producer_byte_rate": 1_000_000.0})
        if len(self.brokers) > 1:
            _accept(
                self.admin.alter_partition_reassignments(
                    {PartitionName(name, 0): [self.brokers[-1].id]}
                )
            )
            self.moved[name] = (self.brokers[-1].id,)
        self.changes.append(name)

    def _create(self, name: str) -> None:
        topic = TopicCreation(name, assignments={0: [self.brokers[0].id]})
        (found,) = self.admin.create_topics([topic]).values()
        assert not isinstance(found, Exception), found

    def assert_kept(self) -> None:
        """Every acknowledged record once and in order, and every acknowledged change."""
        from kafka import KafkaConsumer, TopicPartition

        assert not self.failed, self.failed
        place = TopicPartition(RECORDS, 0)
        consumer = KafkaConsumer(
            bootstrap_servers=self.brokers[0].address, group_id=None, auto_offset_reset="earliest"
        )
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        values: list[bytes] = []

        def at_the_end() -> bool:
            for messages in consumer.poll(timeout_ms=200).values():
                values.extend(message.value for message in messages)
            return bool(consumer.position(place) >= end)

        wait_for(at_the_end, f"the records to be read up to {end}", 60)
        consumer.close()
        if values != self.acknowledged:
            raise DurabilityViolationError(
                f"{len(self.acknowledged)} records acknowledged, {len(values)} read"
            )
        wait_for(lambda: not self._lost(), "the changes to be there", 30)

    def _lost(self) -> dict[str, Any]:
        """What is not as it was acknowledged."""
        topics = self.admin.describe_topics(self.changes)
        resources = [Resource(ResourceType.TOPIC, name) for name in self.changes]
        configs = self.admin.describe_configs(resources, defaults=False)
        acls = {binding.resource_name for binding in self.admin.describe_acls(AclFilter())}
        lost: dict[str, Any] = {}
        for name, resource in zip(self.changes, resources, strict=True):
            topic, entries = topics[name], configs[resource]
            if not isinstance(topic, TopicDescription) or isinstance(entries, Exception):
                lost[name] = topic
                continue
            replicas = self.moved.get(name, (self.brokers[0].id,))
            held = {entry.name: entry.value for entry in entries}
            quotas = self.admin.describe_client_quotas({"user": name})
            if (
                topic.partitions[0].replicas != replicas
                or held.get("retention.ms") != "3600000"
                or name not in acls
                or not quotas
            ):
                lost[name] = (topic, held, name in acls, quotas)
        return lost


def _accept(results: Any) -> None:
    """Raise AssertionError unless every item was accepted."""
    failures = {key: value for key, value in results.items() if value is not None}
    assert not failures, failures
