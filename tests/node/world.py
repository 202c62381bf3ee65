"""Controllers with their disks and network in memory, on a clock that tests advance.

Requests and responses are encoded, and take a millisecond each way. A crash drops what a disk has
not synced. Nothing happens unless `run` advances the clock.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from narrow import not_none
from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.node.audit import AuditEntry
from quorate.node.controller_node import ControllerNode
from quorate.node.feature_guard import FeatureGuard
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.node_io import NodeEffects, NodeInput, Registered
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.node.registration import Registrant
from quorate.node.requests import Call
from quorate.raft import inputs
from quorate.raft.ready import Send
from quorate.raft.values import RaftConfig, Voter
from quorate.replica.disk_jobs import WriteSnapshot
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.replica.replica import Replica
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import Now
from quorate.security.principal import ANONYMOUS
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import WireRequest, decode_request, decode_response, encode_request
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

CLUSTER = "world"
LISTENER = "CONTROLLER"
EPOCH_1970 = 1_700_000_000_000


def directory(node_id: int) -> Uuid:
    return Uuid(bytes([7]) + node_id.to_bytes(15, "big"))


def listener(node_id: int) -> Listener:
    return Listener(LISTENER, f"host{node_id}", 9000 + node_id)


@dataclass
class Node:
    """One controller with its disk."""

    node_id: int
    storage: MemoryStorage
    config: RaftConfig
    policy: SnapshotPolicy
    controller: ControllerNode | None = None
    disk: DiskWriter | None = None
    wake_at_ms: int | None = 0
    notes: list[str] = field(default_factory=list)
    audit: list[AuditEntry] = field(default_factory=list)
    """The audit trail. It survives a crash, as the operating system's files do."""
    faulted: str | None = None
    stopped: bool = False
    inbox: list[NodeInput] = field(default_factory=list)

    @property
    def running(self) -> ControllerNode:
        return not_none(self.controller)

    @property
    def core(self):
        return self.running.replica.core

    @property
    def image(self):
        return self.running.image


class World:
    """`versions` caps the version of an api that everybody speaks: {api key: version}."""

    def __init__(
        self,
        node_ids=(1, 2, 3),
        *,
        static=True,
        seed=1,
        policy=None,
        bootstrap=None,
        versions=None,
        segment_bytes=1 << 30,
        **config,
    ) -> None:
        """config: fields of every node's ControllerConfig. `unstable`: ids of nodes that take levels
        that are in development."""
        self.unstable = set(config.pop("unstable", ()))
        self.config = config
        self.now_ms = 0
        self.random = random.Random(seed)
        self.bootstrap = bootstrap or Bootstrap()
        self.versions = dict(versions or {})
        self.cut: set[int] = set()
        self._next = 0
        self._calls: dict[int, Callable[[bytes], None]] = {}
        self.closed: dict[int, str] = {}
        self.nodes: dict[int, Node] = {}
        voters = tuple(Voter(ReplicaKey(n), (listener(n),)) for n in node_ids) if static else ()
        for node_id in node_ids:
            self.nodes[node_id] = Node(
                node_id,
                MemoryStorage(options=LogOptions(segment_bytes=segment_bytes)),
                RaftConfig(
                    cluster_id=CLUSTER,
                    node_id=node_id,
                    directory_id=directory(node_id),
                    listeners=(listener(node_id),),
                    static_voters=voters,
                ),
                policy or SnapshotPolicy(),
            )
        for node_id in node_ids:
            self.start(node_id)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, EPOCH_1970 + self.now_ms)

    # -- nodes --------------------------------------------------------------------------------
    def start(self, node_id: int) -> Node:
        node = self.nodes[node_id]
        recovered = node.storage.open()
        incarnation = Uuid(self.random.randbytes(16))
        guard = FeatureGuard(node_id in self.unstable)
        registrant = Registrant(node_id, incarnation, (listener(node_id),), guard.unstable)
        machine = MetadataMachine(guard)
        replica = Replica(
            node.config,
            recovered,
            machine,
            self.random.random,
            node.policy,
            admit=guard.check_batch,
        )
        node.controller = ControllerNode(
            replica,
            machine,
            registrant,
            self.random,
            self.bootstrap,
            ControllerConfig(node_id, CLUSTER, guard.unstable, **self.config),
        )
        node.disk = DiskWriter(node.storage)
        node.wake_at_ms, node.faulted, node.stopped, node.inbox = self.now_ms, None, False, []
        return node

    def crash(self, node_id: int) -> None:
        """The process dies and its disk forgets what was not synced."""
        node = self.nodes[node_id]
        node.storage = node.storage.crash()
        node.controller = None
        for other in self.nodes.values():
            if other.controller is not None:
                self.give(other.node_id, inputs.ConnectionLost(node_id))

    @property
    def active(self) -> Node | None:
        """The node that leads and whose machine knows it."""
        found = [n for n in self.alive if n.running.is_active]
        return max(found, key=lambda n: n.core.epoch, default=None)

    @property
    def leader(self) -> Node:
        """The active node. AssertionError while there is none."""
        return not_none(self.active)

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes.values() if node.controller is not None]

    # -- time ---------------------------------------------------------------------------------
    def run(self, for_ms: int) -> None:
        end = self.now_ms + for_ms
        while self.now_ms < end:
            self.now_ms += 1
            taken = [(node, node.inbox) for node in self.alive]
            for node, _ in taken:
                node.inbox = []
            for node, happened in taken:
                due = node.wake_at_ms is not None and node.wake_at_ms <= self.now_ms
                if (happened or due) and not node.faulted and not node.stopped:
                    self._step(node, happened)

    def run_until(self, condition, for_ms: int = 20_000):
        end = self.now_ms + for_ms
        while self.now_ms < end:
            found = condition()
            if found:
                return found
            self.run(1)
        raise AssertionError(f"not within {for_ms} ms: {[n.notes[-5:] for n in self.alive]}")

    # -- events -------------------------------------------------------------------------------
    def give(self, node_id: int, *happened: NodeInput) -> None:
        """A node hears of this in the next millisecond."""
        self.nodes[node_id].inbox.extend(happened)

    def _step(self, node: Node, happened: list[NodeInput]) -> None:
        effects = node.running.step(happened, self.now)
        node.wake_at_ms = effects.wake_at_ms
        node.notes += effects.notes
        node.audit += effects.audit
        node.faulted, node.stopped = effects.faulted, effects.stopped
        log_jobs = [job for job in effects.jobs if not isinstance(job, WriteSnapshot)]
        self.give(node.node_id, *not_none(node.disk).perform(log_jobs))
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                self.give(node.node_id, write_snapshot(node.storage, job))
        self._carry(node, effects)

    def _carry(self, node: Node, effects: NodeEffects) -> None:
        for token, frame in effects.answers:
            self._calls.pop(token)(frame[4:])
        self.closed.update((closed.token, closed.reason) for closed in effects.closed)
        for send in effects.sends:
            self._send(node, send)
        for ask in effects.registrations:
            self._ask(
                node,
                ask.to,
                ask.request,
                lambda m: self.give(node.node_id, Registered(m)),
                lambda: self.give(node.node_id, Registered(None)),
            )

    def _send(self, node: Node, send: Send) -> None:
        hosts = {listener(n).address: n for n in self.nodes}

        def answered(message: Message) -> None:
            response = response_from_wire(message, LISTENER)
            self.give(node.node_id, inputs.Answered(send.correlation, response))

        def failed() -> None:
            failure = inputs.SendFailure.DISCONNECTED
            self.give(node.node_id, inputs.SendFailed(send.correlation, failure))

        version = self._version(api_key_of(send.request))
        message = request_to_wire(send.request, version)
        self._ask(node, hosts.get(send.address, -1), message, answered, failed)

    def _ask(self, node: Node, to: int, message: Message, answered, failed) -> None:
        key = not_none(type(message).schema.key)
        version = self._version(key)
        there = self.nodes.get(to)
        if there is None or there.controller is None or {to, node.node_id} & self.cut:
            failed()
            return
        frame = encode_request(message, version, 1, "world")
        token = self._answer_to(lambda f: answered(decode_response(f, key, version)[1]))
        self.give(to, Call(token, decode_request(frame[4:]), LISTENER))

    def _answer_to(self, deliver: Callable[[bytes], None]) -> int:
        self._next += 1
        self._calls[self._next] = deliver
        return self._next

    def _version(self, key: int) -> int:
        return min(APIS[key].max_version, self.versions.get(key, 999))

    # -- tools --------------------------------------------------------------------------------
    def call(
        self, node_id: int, message: Message, version: int | None = None, principal=ANONYMOUS
    ) -> list[Any]:
        """Ask a node as a tool would; the list gets the answer when it comes."""
        key = not_none(type(message).schema.key)
        version = APIS[key].max_version if version is None else version
        got: list[Any] = []
        token = self._answer_to(lambda frame: got.append(decode_response(frame, key, version)[1]))
        request = WireRequest(key, version, 5, "tool", message)
        self.give(node_id, Call(token, request, LISTENER, None, principal, "10.0.0.7"))
        return got

    def ask(
        self, node_id: int, message: Message, version: int | None = None, principal=ANONYMOUS
    ) -> Any:
        """The answer, however long it takes."""
        got = self.call(node_id, message, version, principal)
        self.run_until(lambda: got)
        return got[0]


def snapshots_of(node: Node) -> list[OffsetAndEpoch]:
    return [info.id for info in node.storage.snapshots()]
