"""The test harness: quorums of real processes, Kafka's and ours, mixed as a test wants.

    with Quorum(tmp_path, {1: "quorate", 2: "java", 3: "java"}) as quorum:
        quorum.format()
        quorum.start()
        leader = quorum.leader()

QUORATE_INTEROP_CONTROL=1 runs every node as Kafka's: the control experiment that shows whether a
test that fails with ours would hold for Kafka alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from kio.schema.errors import ErrorCode

from interop.java import (
    DUMP_LOG,
    FEATURES,
    KAFKA_3_9,
    KAFKA_4_0,
    KAFKA_4_1,
    KAFKA_4_4,
    METADATA_QUORUM,
    STORAGE,
    JavaNode,
    java_command,
    java_tool,
    libs,
)
from interop.probe import (
    Connection,
    View,
    describe_quorum,
    end_epoch_for,
    put_quota,
    register_controller,
)
from interop.process import HOST, Node, QuorateNode, free_port, run_tool, wait_for
from quorate.base.ids import Uuid, uuid_to_text

__all__ = [
    "DUMP_LOG",
    "FEATURES",
    "HOST",
    "METADATA_QUORUM",
    "STORAGE",
    "Connection",
    "JavaNode",
    "Node",
    "QuorateNode",
    "Quorum",
    "View",
    "describe_quorum",
    "free_port",
    "java_command",
    "java_tool",
    "libs",
    "new_uuid",
    "run_tool",
    "wait_for",
]


class JavaNode44(JavaNode):
    release = KAFKA_4_4


class JavaNode41(JavaNode):
    release = KAFKA_4_1


class JavaNode40(JavaNode):
    release = KAFKA_4_0


class JavaNode39(JavaNode):
    release = KAFKA_3_9


KINDS: Mapping[str, type[Node]] = {
    "java": JavaNode,
    "java-4.4": JavaNode44,
    "java-4.1": JavaNode41,
    "java-4.0": JavaNode40,
    "java-3.9": JavaNode39,
    "quorate": QuorateNode,
}


def new_uuid() -> str:
    """A random uuid in Kafka's text form; Kafka wants none that begins with '-'."""
    while (text := uuid_to_text(Uuid(uuid4().bytes))).startswith("-"):
        pass
    return text


def node_class(kind: str) -> type[Node]:
    return JavaNode if os.environ.get("QUORATE_INTEROP_CONTROL") else KINDS[kind]


class NotWrittenError(Exception):
    """The active controller refused a write, so nothing can be said of it."""


class Quorum:
    """Controllers (and Java brokers) under one root directory; stops them all at its end.

    `kinds` maps node id to "java" (4.3.1), "java-4.4" or "quorate". A static quorum is written into
    `controller.quorum.voters`; the voters of a dynamic one come from `--initial-controllers`.
    """

    def __init__(
        self,
        root: Path,
        kinds: Mapping[int, str],
        *,
        static: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.root = root
        self.static = static
        self.config = dict(config or {})
        self.cluster_id = new_uuid()
        self.nodes: dict[int, Node] = {}
        self.acknowledged: list[str] = []
        """The names of all records that a leader has confirmed, for the loss check at the end."""
        self._made_up = 1000
        self.broker_class: type[JavaNode] = JavaNode
        for node_id, kind in kinds.items():
            self.nodes[node_id] = node_class(kind)(node_id, root / f"node{node_id}")
        self.founders = list(self.nodes.values())
        for node in self.founders:
            self._configure(node)

    def __enter__(self) -> Quorum:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """All controllers, for `--bootstrap-controller`."""
        return ",".join(n.address for n in self.controllers)

    @property
    def controllers(self) -> list[Node]:
        return [n for n in self.nodes.values() if n.roles == "controller"]

    @property
    def java_nodes(self) -> list[JavaNode]:
        return [n for n in self.nodes.values() if isinstance(n, JavaNode)]

    def of_kind(self, kind: str) -> list[Node]:
        return [n for n in self.controllers if isinstance(n, node_class(kind))]

    def _configure(self, node: Node) -> None:
        node.config.update(self.config)
        if self.static:
            voters = ",".join(f"{n.id}@{n.address}" for n in self.founders)
            node.config["controller.quorum.voters"] = voters
        else:
            servers = ",".join(n.address for n in self.founders)
            node.config["controller.quorum.bootstrap.servers"] = servers

    # Setting up and changing

    def format(self, *args: str) -> None:
        """Format every founder with its own tool."""
        ids = {n.id: new_uuid() for n in self.founders}
        initial = ",".join(f"{n.id}@{n.address}:{ids[n.id]}" for n in self.founders)
        for node in self.founders:
            first = () if self.static else ("--initial-controllers", initial)
            node.format(self.cluster_id, *first, *args)

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()

    def wait_until_listening(self) -> None:
        """Wait until every node accepts connections: until then a tool says that it cannot connect."""
        for node in self.nodes.values():
            node.wait_until_listening()

    def stop(self) -> None:
        for node in self.nodes.values():
            node.stop()

    def join(
        self,
        node_id: int,
        kind: str,
        config: Mapping[str, Any] | None = None,
        port: int | None = None,
    ) -> Node:
        """Format and start one more controller, as an observer without any voter set."""
        node = node_class(kind)(node_id, self.root / f"node{node_id}", config, port=port)
        self._configure(node)
        node.config.update(config or {})
        self.nodes[node_id] = node
        node.format(self.cluster_id, *(() if self.static else ("--no-initial-controllers",)))
        return node.start()

    def add_broker(
        self,
        node_id: int,
        config: Mapping[str, Any] | None = None,
        jvm: Sequence[str] | None = None,
    ) -> JavaNode:
        """Format and start a Java broker; `jvm`: see `java_command`."""
        one = {
            f"{name}": 1
            for name in (
                "offsets.topic.replication.factor",
                "offsets.topic.num.partitions",
                "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr",
                "share.coordinator.state.topic.replication.factor",
                "share.coordinator.state.topic.min.isr",
            )
        }
        node = self.broker_class(node_id, self.root / f"node{node_id}", one, roles="broker")
        node.jvm = jvm
        self._configure(node)
        node.config.update(config or {})
        self.nodes[node_id] = node
        node.format(self.cluster_id)
        node.start()
        return node

    def swap(self, node_id: int, kind: str) -> Node:
        """Another program on the directory, port and configuration of a stopped node."""
        old = self.nodes[node_id]
        assert not old.is_alive, f"{old} still runs"
        node = node_class(kind)(old.id, old.directory, old.config, old.roles, old.port)
        self.nodes[node_id] = node
        return node

    # Looking at it

    def view(self) -> View | None:
        """What the leader of the highest epoch reports, or None while no node leads."""
        found = [
            view
            for node in self.controllers
            if node.answers and (view := describe_quorum(HOST, node.port, 1.0))
        ]
        return max(found, key=lambda v: v.epoch, default=None)

    def wait_until(
        self, condition: Callable[[View], Any], what: str, timeout: float = 30.0
    ) -> View:
        """Ask the leader until `condition` holds for its view; the view."""

        def asked() -> View | None:
            for node in self.nodes.values():
                assert node.process is None or node.is_alive, f"{node} died:\n{node.log[-3000:]}"
            view = self.view()
            return view if view is not None and condition(view) else None

        try:
            return wait_for(asked, what, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}; the leader says: {self.view()}") from None

    def leader(self, timeout: float = 30.0) -> Node:
        """The leader, as soon as one has committed something in its epoch."""
        view = self.wait_until(lambda v: v.high_watermark > 0, "a leader", timeout)
        return self.nodes[view.leader]

    def wait_for_commit_by_all(self, timeout: float = 30.0) -> View:
        """Wait until every voter has what was committed at the time of the call, and it grew."""
        start = self.wait_until(lambda v: v.high_watermark > 0, "a leader", timeout).high_watermark
        return self.wait_until(
            lambda v: (
                all(r.end_offset > start for r in v.voters.values()) and v.high_watermark > start
            ),
            f"every voter to pass offset {start}",
            timeout,
        )

    # Acting on it

    def hand_over(self, node: Node, timeout: float = 30.0) -> View:
        """Make `node` the leader: freeze the leader and notify the followers that it stepped down.

        The others start their pre-vote first, so that they will grant the one of `node`.
        """
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            view = self.wait_until(lambda v: v.high_watermark > 0 and v.lag <= 0, "a quiet leader")
            if view.leader == node.id:
                return view
            leader = self.nodes[view.leader]
            leader.freeze()
            try:
                for follower in sorted(view.voters, key=lambda i: i == node.id):
                    if follower != leader.id:
                        self._end_epoch(view, follower)
                wait_for(lambda v=view: (w := self.view()) and w.epoch > v.epoch, "an election", 8)
            finally:
                leader.thaw()
        raise AssertionError(f"{node} did not become leader in {timeout} s: {self.view()}")

    def _end_epoch(self, view: View, follower: int) -> None:
        try:
            with Connection(HOST, self.nodes[follower].port) as connection:
                error = end_epoch_for(connection, self.cluster_id, view, [follower])
        except ConnectionRefusedError:
            return  # a node that has just started fetches before it listens
        assert error == ErrorCode.none, f"EndQuorumEpoch to node {follower}: {error}"

    def write(self, count: int, timeout: float = 30.0) -> None:
        """Commit `count` records through the active controller and note what it confirmed.

        They are quotas where Kafka leads; one of ours takes registrations of made-up controllers.
        """
        end = len(self.acknowledged) + count

        def written() -> bool:
            view = self.view()
            if view is None:
                return False
            leader = self.nodes[view.leader]
            try:
                with Connection(HOST, leader.port, 5.0) as connection:
                    while len(self.acknowledged) < end:
                        self.acknowledged.append(self._write_one(connection, leader))
            except (OSError, NotWrittenError):
                return False
            return True

        wait_for(written, f"{count} writes", timeout)

    def _write_one(self, connection: Connection, leader: Node) -> str:
        """Commit one record; the name by which a dump of the log shows it."""
        incarnation = uuid4()
        name = uuid_to_text(Uuid(incarnation.bytes))
        if leader.kind == "java":
            error = put_quota(connection, name, 1000.0)
        else:
            self._made_up += 1
            error = register_controller(connection, self._made_up, incarnation)
        if error != ErrorCode.none:
            raise NotWrittenError(error)
        return name

    def lender(self, kind: str) -> Node:
        """A node that never runs, for the tools of its kind."""
        return node_class(kind)(0, self.root / "tools")

    def tool_arguments(self, nodes: Iterable[Node] | None = None) -> tuple[str, str]:
        servers = ",".join(n.address for n in nodes) if nodes else self.bootstrap
        return ("--bootstrap-controller", servers)
