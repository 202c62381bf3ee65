"""The workload of a mixed quorum: Quorate's and Kafka's controllers, and clients that set quotas.

A leader of either kind serves AlterClientQuotas. A controller has no API that reads a quota back,
so the checks compare the acknowledged writes with the logs on disk alone.
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
from quorate.client.connection import Connection
from quorate.client.errors import ClientError
from quorate.config.dynamic_voters import DynamicVoter
from quorate.config.node_file import load_config
from quorate.formats.metadata_records import ClientQuotaRecord
from quorate.formats.records import decode_record
from quorate.log_dirs import FormatRequest, formatter
from quorate.nemesis.checks import Violation
from quorate.nemesis.clients import KEYS
from quorate.nemesis.disk_contents import DiskContents, read_disk
from quorate.nemesis.history import ClientHistory
from quorate.nemesis.node import NodeProcess
from quorate.nemesis.quorum import LISTENER, NemesisQuorum
from quorate.nemesis.run import NemesisOptions, NemesisWorkload
from quorate.nemesis.watchdog import Watchdog
from quorate.server.ports import LOOPBACK
from quorate.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse

_CLUSTER: Final = uuid_to_text(Uuid(b"a mixed nemesis!"))
_QUOTA: Final = "producer_byte_rate"
_REQUEST_TIMEOUT_MS: Final = 3_000
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
class QuorateController(NodeProcess):
    """A controller of Quorate, formatted and started as by its command line tools."""

    kind = "quorate"

    def format_founder(self, founders: Mapping[int, NodeProcess]) -> None:
        self._format(
            DynamicVoter(
                ReplicaKey(i, Uuid(b"nemesis founder" + bytes([i]))),
                Address(LOOPBACK, node.proxy_port),
            )
            for i, node in founders.items()
        )

    def format_joiner(self) -> None:
        self._format(())

    def _format(self, voters: Iterable[DynamicVoter]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = load_config(self.configure([self.advertised]))
        request = FormatRequest(_CLUSTER, initial_controllers=tuple(voters))
        formatter.write(formatter.plan(config, request))

    def command(self, contacts: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "quorate", "server-start", self.configure(contacts)]

    def configure(self, contacts: Sequence[str]) -> str:
        """Write the properties file; its path."""
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
class KafkaController(QuorateController):
    """A controller of Kafka; `libs` is the directory of its jars."""

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


class ControllerWorkload(NemesisWorkload):
    """A minority of the nodes is Kafka's: one of three, two of five."""

    def __init__(self, libs: Path, members: int = 3, clients: int = 3) -> None:
        """Prepare the workload. Raises KafkaMissingError where Kafka cannot be run."""
        if not list(libs.glob("kafka_2.13-*.jar")):
            raise KafkaMissingError(
                f"Kafka's jars are not in {libs}: run 'make .kafka/libs.stamp', or name a directory "
                "that has them with --kafka-libs"
            )
        if shutil.which("java") is None:
            raise KafkaMissingError(
                "no java on the PATH: Kafka's controllers need Java 17 or later"
            )
        self._libs = libs.absolute()
        self._members = members
        self.clients = clients

    def nodes(self, options: NemesisOptions, watchdog: Watchdog) -> Mapping[int, NodeProcess]:
        ours = range(1, self._members - self._members // 2 + 1)
        theirs = range(ours.stop, self._members + 1)
        root, seed = options.directory, str(options.seed)
        nodes: dict[int, NodeProcess] = {
            i: QuorateController(i, root, seed, watchdog) for i in ours
        }
        for i in theirs:
            nodes[i] = KafkaController(i, root, seed, watchdog, libs=self._libs)
        return nodes

    def client(
        self, name: int, quorum: NemesisQuorum, history: ClientHistory, seed: str
    ) -> QuotaClient:
        return QuotaClient(name, tuple(quorum), history, seed)

    async def final_checks(self, quorum: NemesisQuorum, history: ClientHistory) -> list[Violation]:
        return []

    def read_disk(self, node: NodeProcess) -> DiskContents:
        return read_disk(f"{node.kind} {node.id}", node.partition, write_number)


class KafkaMissingError(QuorateError):
    """Kafka's jars or Java are missing."""

    exit_code = 2


class QuotaClient:
    """Sets the quota of a user to a new number, one operation at a time."""

    def __init__(
        self, name: int, nodes: Sequence[NodeProcess], history: ClientHistory, seed: str
    ) -> None:
        self.name = name
        self._nodes = nodes
        self._history = history
        self._rng = random.Random(f"client {name} of {seed}")
        self._current = self._rng.randrange(len(nodes))
        self._connection: Connection | None = None

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            # Connecting is not part of the operation: without a connection nothing was requested.
            if await asyncio.to_thread(self._connected):
                op = self._history.invoke(self.name, "put", self._rng.randrange(KEYS))
                op.attempts = 1
                assert op.value is not None
                done = await asyncio.to_thread(self._put, op.key, op.value)
                # An error is no refusal: a leader that resigns answers NOT_CONTROLLER for what it
                # has appended already, and its successor may commit that.
                self._history.complete(op, "ok" if done else "unknown")
                if done:
                    await asyncio.sleep(self._rng.expovariate(1 / _PAUSE_S))
                    continue
            self._switch_node()
            await asyncio.sleep(2 * _PAUSE_S)
        self._switch_node()

    def _connected(self) -> bool:
        if self._connection is not None:
            return True
        node = self._nodes[self._current]
        try:
            address = Address(LOOPBACK, node.raft_port)
            self._connection = Connection(address, "nemesis-client", _REQUEST_TIMEOUT_MS // 3)
        except ClientError:
            return False
        return True

    def _put(self, key: int, number: int) -> bool:
        """Set the quota of user `key`; True where that was acknowledged."""
        data = AlterClientQuotasRequest.EntryData
        user = data.EntityData(entity_type="user", entity_name=f"nemesis-{key}")
        op = data.OpData(key=_QUOTA, value=float(number))
        request = AlterClientQuotasRequest(entries=[data(entity=[user], ops=[op])])
        assert self._connection is not None
        try:
            response = self._connection.call(
                request, AlterClientQuotasResponse, _REQUEST_TIMEOUT_MS
            )
        except ClientError:
            return False
        return [entry.error_code for entry in response.entries] == [ErrorCode.NONE]

    def _switch_node(self) -> None:
        """Close the connection and use the next node."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._current = (self._current + 1) % len(self._nodes)


def write_number(value: bytes) -> int | None:
    """The number in a record that sets a quota. Raises QuorateError."""
    record, _ = decode_record(value)
    if isinstance(record, ClientQuotaRecord) and record.key == _QUOTA:
        return int(record.value)
    return None
