"""Make the sample of this folder again: people of several names change a real Kafka 4.3.1.

    PYTHONPATH=tests:src .venv/bin/python tests/data/who/record.py FOLDER

Writes FOLDER/{controller,broker11,broker12}/*.log (times of Europe/Berlin) and FOLDER/metadata.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interop import kafka
from interop.java import QUICK_JVM, SERVER, JavaNode, _class_archive, java_command
from interop.kafka import Quorum, free_port, wait_for

LOG4J = Path(__file__).with_name("log4j2.xml")
ZONE = "Europe/Berlin"
PEOPLE = ("alice", "bob", "admin")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
NOISE = re.compile(
    r'"requestApiKeyName":"(?:FETCH|FETCH_SNAPSHOT|BROKER_HEARTBEAT|API_VERSIONS|DESCRIBE_QUORUM)"'
    r"|for request = (?:Fetch|BrokerHeartbeat|FetchSnapshot|DescribeQuorum|ApiVersions) "
)
"""What nodes ask each other all the time: most of the lines, and none of them changes anything."""


class AuditedNode(JavaNode):
    """Kafka that logs what it allows, and what it is asked, in the local time of Berlin."""

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    def server_command(self, *args: str) -> list[str]:
        jvm = (
            *QUICK_JVM,
            f"-XX:SharedArchiveFile={_class_archive()}",
            f"-Duser.timezone={ZONE}",
            f"-Dkafka.logs.dir={self.logs}",
        )
        return java_command(SERVER, str(self.properties), *args, log4j=LOG4J, jvm=jvm)


class AuditedKafka:
    """One controller and two brokers with an authorizer; clients log in as who they are."""

    def __init__(self, root: Path) -> None:
        kafka.KINDS = {**kafka.KINDS, "java": AuditedNode}
        self.root = root
        self.quorum = Quorum(root, {1: "java"}, config=self._common())
        self.ports: dict[int, int] = {}

    @staticmethod
    def _common() -> dict[str, Any]:
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "delegation.token.secret.key": "not-very-secret",
            "leader.imbalance.check.interval.seconds": 3600,
        }

    def start(self, brokers: tuple[int, ...] = (11, 12)) -> None:
        self.quorum.format()
        self.quorum.start()
        self.quorum.leader(90)
        for number in brokers:
            self._add_broker(number)
        for number in brokers:
            log = self.node(number).log_file
            wait_for(lambda log=log: "Kafka Server started" in log.read_text(), "a broker", 90)

    def _add_broker(self, number: int) -> None:
        login = " ".join(f'user_{name}="{name}"' for name in PEOPLE)
        node = AuditedNode(number, self.root / f"node{number}", roles="broker")
        self.ports[number] = free_port()
        self.quorum._configure(node)
        node.config.update(
            {
                "listeners": f"PLAINTEXT://{node.address},SASL://127.0.0.1:{self.ports[number]}",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
                "SASL:SASL_PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl.plain.sasl.jaas.config": f"{_LOGIN} {login};",
                "offsets.topic.num.partitions": 1,
                "offsets.topic.replication.factor": 1,
            }
        )
        self.quorum.nodes[number] = node
        node.format(self.quorum.cluster_id)
        node.start()

    def node(self, number: int) -> AuditedNode:
        found = self.quorum.nodes[number]
        assert isinstance(found, AuditedNode)
        return found

    def run(self, who: str, tool: str, *words: str, given: str = "") -> str:
        """Run a tool of Kafka as `who` (`anonymous`: on the listener without login)."""
        properties = self.root / f"{who}.properties"
        address = f"127.0.0.1:{self.ports[11]}" if who in PEOPLE else self.node(11).address
        properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={_LOGIN} username="{who}" password="{who}";\n'
            f"client.id={who}-laptop\n"
            if who in PEOPLE
            else "client.id=nobody-knows\n"
        )
        config = "--config" if tool == CLUSTER else "--command-config"
        login = ("--bootstrap-server", address, config, str(properties))
        done = subprocess.run(
            java_command(tool, *words, *login),
            input=given,
            capture_output=True,
            text=True,
            timeout=90,
        )
        output = done.stdout + done.stderr
        print(f"{who}: {tool.rpartition('.')[2]} {' '.join(words)}: {output.strip()[-300:]}")
        return output

    def stop(self) -> None:
        self.quorum.stop()


TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
ACLS = "org.apache.kafka.tools.AclCommand"


def record_operations(cluster: AuditedKafka, work: Path) -> None:
    """What alice, bob, the admin and somebody without a name do."""
    run = cluster.run
    allow = ("--add", "--allow-principal")
    orders = ("--topic", "orders", "--resource-pattern-type", "prefixed")
    run("admin", ACLS, *allow, "User:alice", "--operation", "All", *orders)
    for operation in ("Alter", "AlterConfigs"):
        run("admin", ACLS, *allow, "User:bob", "--operation", operation, "--cluster")
    create = ("--create", "--partitions", "2", "--replication-factor", "2", "--topic")
    run("alice", TOPICS, *create, "orders.eu", "--config", "retention.ms=3600000")
    run("bob", TOPICS, *create, "orders.bob")
    run("anonymous", TOPICS, *create, "nobodys")
    quota = ("--alter", "--add-config", "producer_byte_rate=1000", "--entity-type", "users")
    run("bob", CONFIGS, *quota, "--entity-name", "carol")
    topic = ("--alter", "--entity-type", "topics", "--entity-name", "orders.eu", "--add-config")
    run("alice", CONFIGS, *topic, "retention.ms=7200000")
    run("alice", TOPICS, "--alter", "--topic", "orders.eu", "--partitions", "3")
    scram = "SCRAM-SHA-256=[iterations=4096,password=carols]"
    users = ("--alter", "--entity-type", "users", "--entity-name", "carol", "--add-config")
    run("admin", CONFIGS, *users, scram)
    run(
        "bob",
        CONFIGS,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        "message.max.bytes=2000000",
    )
    _two_at_once(cluster)
    run("alice", "org.apache.kafka.tools.ConsoleProducer", "--topic", "orders.auto", given="1\n")
    run("bob", "org.apache.kafka.tools.FeatureCommand", "downgrade", "--feature", "group.version=0")
    run(
        "alice",
        "org.apache.kafka.tools.DelegationTokenCommand",
        "--create",
        "--max-life-time-period",
        "-1",
    )
    plan = work / "reassign.json"
    plan.write_text(
        '{"version":1,"partitions":[{"topic":"orders.eu","partition":0,"replicas":[12]}]}'
    )
    run(
        "admin",
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        "--execute",
        "--reassignment-json-file",
        str(plan),
    )
    _lose_a_broker(cluster)
    run(
        "admin",
        "org.apache.kafka.tools.LeaderElectionCommand",
        "--election-type",
        "preferred",
        "--all-topic-partitions",
    )
    run("alice", TOPICS, "--delete", "--topic", "orders.eu")
    cluster.node(12).kill()
    wait_for(lambda: _fencings(cluster) >= 2, "broker 12 to be fenced again")
    run("admin", CLUSTER, "unregister", "--id", "12")


def _two_at_once(cluster: AuditedKafka) -> None:
    """Both may set the config of the topic; one after the other, within five seconds."""
    topic = ("--alter", "--entity-type", "topics", "--entity-name", "orders.eu", "--add-config")
    cluster.run("alice", CONFIGS, *topic, "retention.ms=100000")
    cluster.run("admin", CONFIGS, *topic, "retention.ms=200000")


def _fencings(cluster: AuditedKafka) -> int:
    log = (cluster.node(1).logs / "controller.log").read_text()
    return log.count("Fencing broker 12 ")


def _lose_a_broker(cluster: AuditedKafka) -> None:
    node = cluster.node(12)
    node.kill()
    wait_for(lambda: _fencings(cluster) >= 1, "broker 12 to be fenced")
    node.log_file.unlink()
    node.start()
    wait_for(lambda: "Kafka Server started" in node.log_file.read_text(), "broker 12", 90)
    time.sleep(2)  # the ISR grows again


def _quiet(lines: Iterator[str]) -> Iterator[str]:
    """Of the noise the first three lines."""
    seen = 0
    for line in lines:
        if NOISE.search(line):
            seen += 1
            if seen > 3:
                continue
        yield line


def keep(cluster: AuditedKafka, folder: Path) -> None:
    """The logs without most of the noise, and the metadata log of the controller."""
    for number, name in ((1, "controller"), (11, "broker11"), (12, "broker12")):
        out = folder / name
        out.mkdir(parents=True, exist_ok=True)
        for log in ("kafka-authorizer.log", "kafka-request.log", "controller.log"):
            source = cluster.node(number).logs / log
            if number != 1 and log == "controller.log":
                continue
            with source.open() as lines:
                text = "".join(_quiet(lines)).replace(str(cluster.root), "/var/kafka")
            if log == "kafka-request.log":
                (out / f"{log}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            else:
                (out / log).write_text(text)
    home = folder / "metadata"
    shutil.copytree(
        cluster.node(1).partition,
        home / "__cluster_metadata-0",
        ignore=shutil.ignore_patterns("*index", "*.snapshot"),
        dirs_exist_ok=True,
    )
    shutil.copy(cluster.node(1).data / "meta.properties", home)


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        cluster = AuditedKafka(Path(work))
        try:
            cluster.start()
            record_operations(cluster, Path(work))
            cluster.quorum.nodes[1].kill(15)
            keep(cluster, folder)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
