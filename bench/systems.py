"""The systems that are measured, each as three processes on loopback with a disk of its own."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the harness that the tests run their processes with

from bench.clients import (  # noqa: E402
    EtcdClient,
    KafkaClient,
    QuotaClient,
    QuotaHopsClient,
    RespClient,
)
from bench.load import Client  # noqa: E402

from interop.java import java_command  # noqa: E402
from interop.kafka import HOST, Quorum, describe_quorum  # noqa: E402
from interop.process import Node, free_port, run_tool, wait_for  # noqa: E402

__all__ = [
    "HOST",
    "SYSTEMS",
    "AbsentError",
    "Controllers",
    "Etcd",
    "Hops",
    "KRaft",
    "Kafka",
    "Node",
    "Quorate",
    "QuotaHops",
    "System",
    "cpu_seconds",
    "describe_quorum",
    "java_command",
    "memory_mb",
    "wait_for",
]

IDS = (1, 2, 3)
KV = ROOT / "examples" / "kv.py"
HOPS = ROOT / "bench" / "hops.py"
TICKS = os.sysconf("SC_CLK_TCK")


class AbsentError(Exception):
    """A system is not on this machine; the text says how to get it."""


def cpu_seconds(node: Node) -> float:
    """Processor time that a running node has used so far."""
    assert node.process is not None
    fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_mb(node: Node) -> float:
    """Resident memory of a running node."""
    assert node.process is not None
    for line in Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS in the status of the process")


class System(ABC):
    """Three nodes; the leader takes puts. Use as a context manager: it stops them all."""

    name = "?"
    nodes: Mapping[int, Node]

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def leader(self) -> Node:
        """The node that leads now, as soon as one does."""

    @abstractmethod
    async def client(self, port: int) -> Client: ...

    def is_whole(self) -> bool:
        """True when every node runs and the quorum has a leader."""
        return all(node.answers for node in self.nodes.values()) and bool(self.leader())

    def is_caught_up(self) -> bool:
        """True when every node has the leader's log, so that each could lead next."""
        view = describe_quorum(HOST, self.leader().port)
        return view is not None and view.lag == 0

    def clients_for(self, outstanding: int) -> int:
        """How many connections carry that many outstanding puts best."""
        return outstanding

    def port_of(self, node: Node) -> int:
        return node.port

    async def connect(self, outstanding: int) -> list[Client]:
        port = self.port_of(self.leader())
        return [await self.client(port) for _ in range(self.clients_for(outstanding))]

    def __enter__(self) -> System:
        self.start()
        self.leader()
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.stop()


class KRaft(System):
    kind = "?"
    putter: type[KafkaClient] = KafkaClient

    def __init__(self, root: Path, config: Mapping[str, Any] | None = None) -> None:
        self.quorum = Quorum(root / self.name, dict.fromkeys(IDS, self.kind), config=config)
        self.nodes = self.quorum.nodes

    def start(self) -> None:
        self.quorum.format()
        self.quorum.start()

    def leader(self) -> Node:
        return self.quorum.leader()

    async def client(self, port: int) -> Client:
        return await self.putter.connect(port)


class Kafka(KRaft):
    """Kafka's controllers at their defaults; a put is AlterClientQuotas."""

    name, kind, putter = "kafka", "java", QuotaClient

    def __init__(self, root: Path, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(root, config)
        for node in self.quorum.java_nodes:
            node.jvm = ("-Xmx1g", "-XX:+UseG1GC")  # as Kafka's own scripts start it


def _program(program: Path, sync_ms: float, words: list[Any]) -> list[str]:
    """The command of a Python program, on a disk whose syncs take `sync_ms` longer."""
    slow = ["-m", "bench.slow_sync", str(sync_ms)] if sync_ms else []
    return [sys.executable, *slow, str(program), *map(str, words)]


class _KvNode(Node):
    """A member of `examples/kv.py`: `port` is where members talk, `client_port` takes the puts."""

    kind = "kv"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.client_port = free_port()

    def write_properties(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    def found(self, members: str) -> None:
        self.write_properties()
        run = run_tool(
            [sys.executable, str(KV), "found", str(self.data), str(self.id), "--members", members]
        )
        assert run.returncode == 0, run.stderr

    def server_command(self, *args: str) -> list[str]:
        words = ["serve", self.data, "--raft", self.address, "--port", self.client_port]
        return _program(KV, self.config["sync_ms"], words)


class Quorate(System):
    """The key-value example of `quorate.embed` at its defaults; a put is SET over RESP.

    `sync_ms` is added to each sync of its disks.
    """

    name = "quorate"

    def __init__(self, root: Path, sync_ms: float = 0) -> None:
        self._members = {i: _KvNode(i, root / f"kv{i}", {"sync_ms": sync_ms}) for i in IDS}
        self.nodes = self._members

    def start(self) -> None:
        members = ",".join(f"{n.id}={n.address}" for n in self.nodes.values())
        for node in self._members.values():
            node.found(members)
            node.start()

    def leader(self) -> Node:
        def found() -> Node | None:
            for node in self.nodes.values():
                view = describe_quorum(HOST, node.port, 1.0) if node.answers else None
                if view is not None and view.high_watermark > 0:
                    return self.nodes[view.leader]
            return None

        return wait_for(found, "a leader of the key-value example")

    def port_of(self, node: Node) -> int:
        assert isinstance(node, _KvNode)
        return node.client_port

    async def client(self, port: int) -> Client:
        return await RespClient.connect(port)

    def clients_for(self, outstanding: int) -> int:
        return min(outstanding, 4)


def _listens(node: Node) -> bool:
    try:
        socket.create_connection((HOST, node.port)).close()
    except OSError:
        return False
    return True


class _HopsNode(Node):
    kind = "hops"

    def write_properties(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    def server_command(self, *args: str) -> list[str]:
        words = [self.port, self.directory / "file", *self.config["leader"]]
        return _program(HOPS, self.config["sync_ms"], words)


class Hops(System):
    """Three processes that do a commit's hops and syncs and nothing else (`bench.hops`).

    `sync_ms` is added to each sync.
    """

    name = "hops"

    def __init__(self, root: Path, sync_ms: float = 0) -> None:
        self.nodes = {i: _HopsNode(i, root / f"hops{i}", {"sync_ms": sync_ms}) for i in IDS}
        for node in self.nodes.values():
            node.config["leader"] = () if node.id == IDS[0] else (self.nodes[IDS[0]].port,)

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():  # a follower listens when it follows
            wait_for(lambda node=node: _listens(node), f"{node} to listen")

    def leader(self) -> Node:
        return self.nodes[IDS[0]]

    async def client(self, port: int) -> Client:
        return await RespClient.connect(port)


class QuotaHops(Hops):
    """The same; a put is the bytes of AlterClientQuotas."""

    name = "hops of a quota"

    async def client(self, port: int) -> Client:
        return await QuotaHopsClient.connect(port)


class Controllers(KRaft):
    """Our own controllers as processes; a put is AlterClientQuotas."""

    name, kind, putter = "quorate-controllers", "quorate", QuotaClient


class _EtcdNode(Node):
    kind = "etcd"

    def write_properties(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)

    def server_command(self, *args: str) -> list[str]:
        peers, client = self.config["peers"], f"http://{self.address}"
        words = {
            "name": f"n{self.id}",
            "data-dir": self.data,
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peers[self.id],
            "initial-advertise-peer-urls": peers[self.id],
            "initial-cluster": ",".join(f"n{i}={url}" for i, url in peers.items()),
            "initial-cluster-state": "new",
            "log-level": "error",
        }
        return ["etcd", *(f"--{key}={value}" for key, value in words.items()), *args]


class Etcd(System):
    """Debian's etcd at its defaults; a put is KV/Put over gRPC."""

    name = "etcd"

    def __init__(self, root: Path) -> None:
        if not (shutil.which("etcd") and shutil.which("etcdctl")):
            raise AbsentError("etcd is not installed: apt-get install etcd-server etcd-client")
        peers = {i: f"http://127.0.0.1:{free_port()}" for i in IDS}
        self.nodes = {i: _EtcdNode(i, root / f"etcd{i}", {"peers": peers}) for i in IDS}

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()

    def leader(self) -> Node:
        def found() -> Node | None:
            for node in self.nodes.values():
                words = ["--endpoints", node.address, "--command-timeout", "1s"]
                if not node.answers:
                    continue
                run = run_tool(["env", "ETCDCTL_API=3", "etcdctl", *words, "endpoint", "status"])
                cells = [cell.strip() for cell in run.stdout.split(",")]
                if run.returncode == 0 and len(cells) > 4 and cells[4] == "true":
                    return node
            return None

        return wait_for(found, "etcd's leader")

    def is_caught_up(self) -> bool:
        """Each answers a linearizable read."""
        return all(
            run_tool(
                ["env", "ETCDCTL_API=3", "etcdctl", "--endpoints", node.address, "get", "key"]
            ).returncode
            == 0
            for node in self.nodes.values()
        )

    async def client(self, port: int) -> Client:
        return await EtcdClient.connect(port)

    def clients_for(self, outstanding: int) -> int:
        return min(outstanding, 4)


SYSTEMS: dict[str, Callable[[Path], System]] = {"quorate": Quorate, "etcd": Etcd, "kafka": Kafka}
