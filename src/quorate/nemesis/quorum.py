"""The node processes, the proxies between them, and the operator's changes of the voters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey
from quorate.client import Admin, ClientConfig, ClientError, QuorumInfo
from quorate.nemesis.node import NodeProcess
from quorate.nemesis.proxy import Link, ProxyNetwork
from quorate.server.ports import LOOPBACK

LISTENER: Final = "CONTROLLER"
_VOTER_CHANGE_TIMEOUT_MS: Final = 15_000
_DESCRIBE_TIMEOUT_MS: Final = 3_000
T = TypeVar("T")


class NemesisQuorum:
    """Every node of a run, by id. Iteration yields the nodes."""

    def __init__(self, nodes: Mapping[int, NodeProcess]) -> None:
        self.nodes = dict(nodes)
        self.network = ProxyNetwork()
        self.keys: dict[int, ReplicaKey] = {}
        """The replica key under which each node is to be a voter."""
        self.leaders: list[int] = []
        """The leaders that were seen, each change once."""

    def __iter__(self) -> Iterator[NodeProcess]:
        return iter(self.nodes.values())

    @property
    def contacts(self) -> tuple[str, ...]:
        return tuple(node.advertised for node in self)

    def links_of(
        self, node: NodeProcess, incoming: bool = True, outgoing: bool = True
    ) -> frozenset[Link]:
        others = [other for other in self.nodes if other != node.id]
        return frozenset(
            [(other, node.id) for other in others if incoming]
            + [(node.id, other) for other in others if outgoing]
        )

    def all_links(self) -> frozenset[Link]:
        return frozenset((a, b) for a in self.nodes for b in self.nodes if a != b)

    async def start_new(self) -> None:
        """Format every directory, open the proxies, start. Raises QuorateError or OSError."""
        for node in self:
            await asyncio.to_thread(node.format_founder, self.nodes)
            self.keys[node.id] = node.key
            await self.network.serve(node.id, LOOPBACK, node.proxy_port, node.raft_port)
        for node in self:
            self.start(node)

    def start(self, node: NodeProcess) -> None:
        node.start(self.contacts)

    # -- the operator -----------------------------------------------------------------------
    async def describe(self) -> QuorumInfo | None:
        """The leader's DescribeQuorum response; None while no leader is found."""
        try:
            found = await self._ask(lambda admin: admin.describe_quorum(), _DESCRIBE_TIMEOUT_MS)
        except ClientError:
            return None
        if found.leader_id not in self.nodes:
            return None
        if not self.leaders or self.leaders[-1] != found.leader_id:
            self.leaders.append(found.leader_id)
        return found

    async def remove(self, node: NodeProcess) -> None:
        """Make it an observer. Raises ClientError: then it may still be a voter, or not."""
        key = self.keys[node.id]
        await self._ask(lambda admin: admin.remove_voter(key), _VOTER_CHANGE_TIMEOUT_MS)

    async def add(self, node: NodeProcess) -> None:
        """Make it a voter. Raises ClientError: then it may be a voter already, or not."""
        key = self.keys[node.id]
        listener = Listener(LISTENER, LOOPBACK, node.proxy_port)
        await self._ask(lambda admin: admin.add_voter(key, (listener,)), _VOTER_CHANGE_TIMEOUT_MS)

    async def replace(self, node: NodeProcess) -> None:
        """Give a node that is no voter any more an empty disk with a new directory id."""
        await node.kill()
        node.wipe()
        await asyncio.to_thread(node.format_joiner)
        self.keys[node.id] = node.key
        self.start(node)

    async def _ask(self, question: Callable[[Admin], T], timeout_ms: int) -> T:
        nodes = [node for node in self if node.answers]
        if not nodes:
            raise ClientError("no node runs")
        # Past the proxies: an operator's requests are not part of the faults.
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
def reserved(node: NodeProcess) -> Iterator[NodeProcess]:
    """Keep other faults off a node. Raises QuorateError where another fault has it."""
    if node.reserved:
        raise QuorateError(f"node {node.id} is reserved by another fault")
    node.reserved = True
    try:
        yield node
    finally:
        node.reserved = False
