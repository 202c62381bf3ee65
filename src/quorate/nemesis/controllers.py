"""The workload of a mixed quorum: controllers of ours and of Kafka, clients that set quotas.

A quota is what both kinds take as leaders (AlterClientQuotas). There is nothing on a controller to
read it back with, so the logs tell what was done, and in which order.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import Address, ReplicaKey, Uuid, uuid_to_text
from quorate.client.connection import ClientError, Connection
from quorate.formats.metadata_records import ClientQuotaRecord
from quorate.formats.records import decode_record
from quorate.nemesis.checks import Broken
from quorate.nemesis.clients import KEYS
from quorate.nemesis.harvest import Harvest, harvest
from quorate.nemesis.history import History
from quorate.nemesis.node import Node
from quorate.nemesis.quorum import LISTENER, Ensemble
from quorate.nemesis.run import Options, Workload
from quorate.nemesis.watchdog import Watchdog
from quorate.node import formatter
from quorate.node.config import load_config
from quorate.node.dynamic_voters import DynamicVoter
from quorate.server.ports import LOOPBACK
from quorate.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

_CLUSTER: Final = uuid_to_text(Uuid(b"a mixed nemesis!"))
_QUOTA: Final = "producer_byte_rate"
_PATIENCE_MS: Final = 3_000
_PAUSE_S: Final = 0.05
_LOG4J: Final = """\
<Configuration status="WARN">
  <Appenders><Console name="C" target="SYSTEM_OUT">
    <PatternLayout pattern="%d{HH:mm:ss.SSS} %p %m (%c)%n"/>
  </Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="C"/></Root></Loggers>
</Configuration>
"""


@dataclass
class Controller(Node):
    """One of ours, as `quorate storage format` makes it and `quorate server-start` runs it."""

    kind = "quorate"

    def found(self, founders: Mapping[int, Node]) -> None:
        self._format(
            DynamicVoter(
                ReplicaKey(i, Uuid(b"nemesis founder" + bytes([i]))),
                Address(LOOPBACK, node.proxy_port),
            )
            for i, node in founders.items()
        )

    def make_joiner(self) -> None:
        self._format(())

    def _format(self, voters: Iterable[DynamicVoter]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = load_config(self.configure([self.advertised]))
        request = formatter.Request(_CLUSTER, initial_controllers=tuple(voters))
        formatter.write(formatter.plan(config, request))

    def command(self, contacts: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "quorate", "server-start", self.configure(contacts)]

    def configure(self, contacts: Sequence[str]) -> str:
        """Write its properties; the path of the file."""
        properties = {
            "node.id": self.id,
            "process.roles": "controller",
            "controller.listener.names": LISTENER,
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT",
            "listeners": f"{LISTENER}://{LOOPBACK}:{self.raft_port}",
            "advertised.listeners": f"{LISTENER}://{self.advertised}",
            "controller.quorum.bootstrap.servers": ",".join(contacts),
            "log.dirs": self.data,
            "metadata.log.max.record.bytes.between.snapshots": 32_768,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return str(path)


@dataclass
class KafkaController(Controller):
    """One of Kafka's; `libs` is the folder of its jars."""

    libs: Path = field(default_factory=Path)
    kind = "kafka"

    def command(self, contacts: Sequence[str]) -> list[str]:
        logging = self.directory / "log4j2.xml"
        logging.write_text(_LOG4J)
        return [
            *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"),
            *(f"-Dlog4j2.configurationFile={logging}", "-cp", f"{self.libs}/*"),
            *("kafka.Kafka", self.configure(contacts)),
        ]


class ControllerWorkload(Workload):
    """Of every five nodes two are Kafka's, of every three one."""

    def __init__(self, libs: Path, members: int = 3, clients: int = 3) -> None:
        """Raises QuorateError when Kafka cannot be run."""
        if not list(libs.glob("kafka_2.13-*.jar")):
            raise NoKafka(
                f"Kafka's jars are not in {libs}: run 'make .kafka/libs.stamp', or name a folder "
                "that has them with --kafka-libs"
            )
        if shutil.which("java") is None:
            raise NoKafka("no java on the PATH: Kafka's controllers need Java 17 or later")
        self._libs = libs.absolute()
        self._members = members
        self._clients = clients

    def nodes(self, options: Options, watchdog: Watchdog) -> Mapping[int, Node]:
        ours = range(1, self._members - self._members // 2 + 1)
        theirs = range(ours.stop, self._members + 1)
        root, seed = options.directory, str(options.seed)
        nodes: dict[int, Node] = {i: Controller(i, root, seed, watchdog) for i in ours}
        for i in theirs:
            nodes[i] = KafkaController(i, root, seed, watchdog, libs=self._libs)
        return nodes

    async def traffic(
        self, ensemble: Ensemble, history: History, options: Options, over: asyncio.Event
    ) -> None:
        clients = [
            QuotaClient(name, tuple(ensemble), history, str(options.seed))
            for name in range(self._clients)
        ]
        await asyncio.gather(*(client.run(over) for client in clients))

    async def last_look(self, ensemble: Ensemble, history: History) -> list[Broken]:
        return []

    def harvest(self, node: Node) -> Harvest:
        return harvest(f"{node.kind} {node.id}", node.partition, number_of)


class NoKafka(QuorateError):
    exit_code = 2


class QuotaClient:
    """Sets the quota of a user to a new number, one at a time."""

    def __init__(self, name: int, nodes: Sequence[Node], history: History, seed: str) -> None:
        self.name = name
        self._nodes = nodes
        self._history = history
        self._chance = random.Random(f"client {name} of {seed}")
        self._at = self._chance.randrange(len(nodes))
        self._connection: Connection | None = None

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            # Connecting is no part of the operation: without it nothing was asked.
            if await asyncio.to_thread(self._connected):
                op = self._history.invoke(self.name, "put", self._chance.randrange(KEYS))
                op.attempts = 1
                assert op.value is not None
                done = await asyncio.to_thread(self._put, op.key, op.value)
                # A leader that falls answers NOT_CONTROLLER for what it has appended already.
                self._history.answer(op, "ok" if done else "unknown")
                if done:
                    await asyncio.sleep(self._chance.expovariate(1 / _PAUSE_S))
                    continue
            self._turn()
            await asyncio.sleep(2 * _PAUSE_S)
        self._turn()

    def _connected(self) -> bool:
        if self._connection is not None:
            return True
        node = self._nodes[self._at]
        try:
            address = Address(LOOPBACK, node.raft_port)
            self._connection = Connection(address, "nemesis-client", _PATIENCE_MS // 3)
        except ClientError:
            return False
        return True

    def _put(self, key: int, number: int) -> bool:
        """Whether it was acknowledged."""
        entry = AlterClientQuotasRequest.EntryData
        user = entry.EntityData(entity_type="user", entity_name=f"nemesis-{key}")
        op = entry.OpData(key=_QUOTA, value=float(number))
        request = AlterClientQuotasRequest(entries=[entry(entity=[user], ops=[op])])
        assert self._connection is not None
        try:
            answer = self._connection.call(request, AlterClientQuotasResponse, _PATIENCE_MS)
        except ClientError:
            return False
        return [told.error_code for told in answer.entries] == [ErrorCode.NONE]

    def _turn(self) -> None:
        """Let go of this node and try the next."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._at = (self._at + 1) % len(self._nodes)


def number_of(value: bytes) -> int | None:
    """The number in a record that sets a quota. Raises QuorateError."""
    record, _ = decode_record(value)
    if isinstance(record, ClientQuotaRecord) and record.key == _QUOTA:
        return int(record.value)
    return None
