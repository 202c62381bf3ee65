"""The nodes, the network between them, and what an operator does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey
from quorate.client.admin import Admin, ClientConfig, ClientError, Quorum
from quorate.nemesis.node import Node
from quorate.nemesis.proxy import Link, Network
from quorate.server.ports import LOOPBACK

LISTENER: Final = "CONTROLLER"
T = TypeVar("T")


class Ensemble:
    """Every node of a run, by id."""

    def __init__(self, nodes: Mapping[int, Node]) -> None:
        self.nodes = dict(nodes)
        self.network = Network()
        self.keys: dict[int, ReplicaKey] = {}
        """The replica that each node is meant to be as a voter."""
        self.leaders: list[int] = []
        """Who was seen to lead, each change once."""

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    @property
    def contacts(self) -> tuple[str, ...]:
        return tuple(node.advertised for node in self)

    def links_of(self, node: Node, to: bool = True, out: bool = True) -> frozenset[Link]:
        others = [other for other in self.nodes if other != node.id]
        return frozenset(
            [(other, node.id) for other in others if to]
            + [(node.id, other) for other in others if out]
        )

    def all_links(self) -> frozenset[Link]:
        return frozenset((a, b) for a in self.nodes for b in self.nodes if a != b)

    async def found(self) -> None:
        """Make every directory, open the proxies, start. Raises QuorateError or OSError."""
        for node in self:
            await asyncio.to_thread(node.found, self.nodes)
            self.keys[node.id] = node.key
            await self.network.serve(node.id, LOOPBACK, node.proxy_port, node.raft_port)
        for node in self:
            self.start(node)

    def start(self, node: Node) -> None:
        node.start(self.contacts)

    # -- the operator -----------------------------------------------------------------------
    async def view(self) -> Quorum | None:
        """What the leader tells, or None while none is found."""
        try:
            found = await self._ask(lambda admin: admin.describe_quorum(), 3_000)
        except ClientError:
            return None
        if found.leader_id not in self.nodes:
            return None
        if not self.leaders or self.leaders[-1] != found.leader_id:
            self.leaders.append(found.leader_id)
        return found

    async def remove(self, node: Node) -> None:
        """Make it an observer. Raises ClientError: then it may still be a voter, or not."""
        key = self.keys[node.id]
        await self._ask(lambda admin: admin.remove_voter(key), 15_000)

    async def add(self, node: Node) -> None:
        """Make it a voter. Raises ClientError, as `remove`."""
        key = self.keys[node.id]
        listener = Listener(LISTENER, LOOPBACK, node.proxy_port)
        await self._ask(lambda admin: admin.add_voter(key, (listener,)), 15_000)

    async def replace(self, node: Node) -> None:
        """Another disk for a node that is no voter any more."""
        await node.kill()
        node.wipe()
        await asyncio.to_thread(node.make_joiner)
        self.keys[node.id] = node.key
        self.start(node)

    async def _ask(self, question: Callable[[Admin], T], timeout_ms: int) -> T:
        nodes = [node for node in self if node.answers]
        if not nodes:
            raise ClientError("no node runs")
        config = ClientConfig(
            tuple(Address(LOOPBACK, node.raft_port) for node in nodes),
            controllers=True,
            default_api_timeout_ms=timeout_ms,
            request_timeout_ms=min(timeout_ms, 4_000),
            connect_timeout_ms=1_000,
            unreachable_after_ms=2_000,
        )

        def ask() -> T:
            with Admin(config) as admin:
                return question(admin)

        return await asyncio.to_thread(ask)


@contextmanager
def taken(node: Node) -> Iterator[Node]:
    """Keep other deeds off a node."""
    if node.busy:
        raise QuorateError(f"node {node.id} is taken")
    node.busy = True
    try:
        yield node
    finally:
        node.busy = False
