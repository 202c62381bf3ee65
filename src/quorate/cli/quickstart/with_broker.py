"""The quickstart with brokers: one of Kafka where Java and its jars are, simulated ones elsewhere."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.broker.lifecycle import BrokerState
from quorate.cli.quickstart.java_broker import BROKER_ID, KafkaBroker, kafka_jars
from quorate.cli.quickstart.quorum_client import admin_of, describe_or_none
from quorate.cli.quickstart.simulated_broker import QuickstartBroker, in_state, run_until, start
from quorate.cli.quickstart.steps import running_quorum, show_step
from quorate.cli.quickstart.supervisor import Supervisor, wait_for
from quorate.client import Admin, ClientError, ConnectError, QuorumInfo
from quorate.client.admin.topics import TopicCreation, TopicDescription

_PATIENCE_MS: Final = 15_000
_START_S: Final = 90.0
_SIMULATED: Final = (101, 102, 103)
_PARTITIONS: Final = 3
_REPLICAS: Final = 2


class BrokerDemoError(QuorateError):
    """A step with the brokers failed. The message gives the reason."""


def run_with_broker(data: Path | None, controllers: int | None) -> int:
    """Run a quorum, let brokers join, create a topic and use it; returns 0.

    Raises QuorateError at the first step that fails. Everything is stopped at the end.
    """
    with ExitStack() as stack:
        quorum = stack.enter_context(running_quorum(data, controllers, "broker"))
        if quorum.secured is not None:
            raise BrokerDemoError(
                f"the quorum of {quorum.data} has TLS and passwords, which the broker of this "
                "quickstart has not: name another directory with --data"
            )
        admin = stack.enter_context(admin_of(quorum, _PATIENCE_MS))

        def led() -> QuorumInfo | None:
            quorum.check()
            return describe_or_none(admin)

        found = wait_for("a leader", led)
        click.echo(f"   leader {found.leader_id} in epoch {found.leader_epoch}")
        jars = kafka_jars()
        if jars is None:
            _simulated(quorum, admin)
        else:
            _real(stack.enter_context(KafkaBroker(quorum, jars)))
    click.secho("\nAll steps succeeded.", bold=True)
    return 0


def _topic_name() -> str:
    """New at each run: the data may be that of an earlier one."""
    return f"quickstart-{int(time.time() * 1000)}"


# -- a broker of Kafka ----------------------------------------------------------------------------
def _real(broker: KafkaBroker) -> None:
    show_step(
        f"Start an unmodified Kafka broker, {BROKER_ID}: it registers with the active controller"
    )
    broker.start()
    with Admin.open(bootstrap_servers=broker.address) as admin:

        def joined() -> bool | None:
            broker.check()
            try:
                return BROKER_ID in admin.describe_cluster().nodes or None
            except ConnectError:
                return None  # it does not listen yet

        wait_for("the broker to serve", joined, _START_S)
        click.echo(f"   broker {BROKER_ID} is in service at {broker.address}")
        topic = _topic_name()
        show_step(f"Create the topic {topic}")
        _create(admin, topic, 1, 1)
        _show(_described(admin, topic))
    show_step("Produce a record and consume it, with Kafka's console clients")
    record = "a record through a Quorate quorum"
    broker.produce(topic, record)
    read = broker.consume(topic)
    if read != record:
        raise BrokerDemoError(f"produced {record!r}, but consumed {read!r}")
    click.echo(f"   consumed: {read}")


# -- simulated brokers ----------------------------------------------------------------------------
def _simulated(quorum: Supervisor, admin: Admin) -> None:
    show_step(f"Java or Kafka's jars are missing: {len(_SIMULATED)} simulated brokers register")
    addresses = [Address("127.0.0.1", node.port) for node in quorum.nodes.values()]
    brokers = [QuickstartBroker(i, quorum.cluster_id, addresses) for i in _SIMULATED]

    def offset() -> int:
        try:
            return admin.describe_quorum().high_watermark - 1
        except ClientError:
            return -1  # no leader now: the broker says that it has applied nothing

    try:
        start(brokers)
        run_until(brokers, offset, lambda: in_state(brokers, BrokerState.RUNNING))
        for broker in brokers:
            click.echo(
                f"   broker {broker.lifecycle.identity.broker_id} is in service, "
                f"epoch {broker.lifecycle.epoch}"
            )
        topic = _topic_name()
        show_step(f"Create the topic {topic}: {_PARTITIONS} partitions, {_REPLICAS} replicas each")
        _create(admin, topic, _PARTITIONS, _REPLICAS)
        before = _described(admin, topic)
        _show(before)
        leaving = brokers[0]
        show_step(f"Broker {_SIMULATED[0]} asks for a controlled shutdown: its leaderships move")
        leaving.lifecycle.begin_shutdown(int(time.monotonic() * 1000))
        run_until(brokers, offset, lambda: leaving.lifecycle.state is BrokerState.SHUTTING_DOWN)
        click.echo(f"   broker {_SIMULATED[0]} ended: {leaving.lifecycle.ended}")
        after = _described(admin, topic)
        _show(after)
        if any(row.leader in (None, _SIMULATED[0]) for row in after.partitions):
            raise BrokerDemoError(
                f"broker {_SIMULATED[0]} ended, and partitions have no other leader"
            )
    finally:
        for broker in brokers:
            broker.close()
    click.echo(
        "\nRecords need a real broker: install Java 17, run 'make .kafka/libs.stamp' or set "
        "QUORATE_KAFKA_LIBS to the folder of Kafka's jars, and run this command again."
    )


# -- both -----------------------------------------------------------------------------------------
def _create(admin: Admin, topic: str, partitions: int, replicas: int) -> None:
    (result,) = admin.create_topics([TopicCreation(topic, partitions, replicas)]).values()
    if isinstance(result, Exception):
        raise BrokerDemoError(f"the topic {topic} was not created: {result}")


def _described(admin: Admin, topic: str) -> TopicDescription:
    """The topic, as soon as the node that is asked knows it."""

    def known() -> TopicDescription | None:
        found = admin.describe_topics([topic])[topic]
        return found if isinstance(found, TopicDescription) else None

    return wait_for(f"the topic {topic} to be known", known)


def _show(topic: TopicDescription) -> None:
    for row in topic.partitions:
        replicas, isr = (", ".join(map(str, ids)) for ids in (row.replicas, row.isr))
        click.echo(
            f"   partition {row.index}: leader {row.leader}, replicas {replicas}, in sync {isr}"
        )
