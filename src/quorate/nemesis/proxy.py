"""TCP proxies between the nodes: they hold, delay and reset connections by who opened them.

Nodes of Quorate and of Kafka send the client id `raft-client-ID` in every request, so the first
request identifies the node that opened a connection. Connections of others pass without faults.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

Link = tuple[int, int]
"""(from node, to node): one direction."""

_CALLER = re.compile(rb"raft-client-(\d{1,9})")
_HEADER = struct.Struct(">ihhih")
_ABORT = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, eq=False)
class LinkRule:
    """A fault of some links, from `add_rule` to `remove_rule`."""

    links: frozenset[Link]
    held: bool = False
    """Bytes wait until the rule is removed; the connection stays open."""
    cut: bool = False
    """Connections are reset, and new ones are closed."""
    delay_s: float = 0.0


@dataclass(slots=True, eq=False)
class ProxiedConnection:
    """A connection through a proxy, to the node `to`. `caller`: the node that opened it."""

    to: int
    ends: list[asyncio.StreamWriter]
    caller: int | None = None

    def reset(self) -> None:
        """Close both ends at once, with RST."""
        for end in self.ends:
            sock = end.get_extra_info("socket")
            if sock is not None and not end.transport.is_closing():
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            end.transport.abort()


@dataclass(slots=True)
class ProxyNetwork:
    """The proxies of all nodes, on one event loop, and the rules that apply to them."""

    rules: list[LinkRule] = field(default_factory=list)
    connections: set[ProxiedConnection] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, node_id: int, host: str, port: int, behind: int) -> None:
        """Start the proxy of a node: from `port` to the node's own port `behind`. Raises OSError."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._forward(node_id, host, behind, reader, writer)
            except (OSError, asyncio.CancelledError):
                pass
            finally:
                self._tasks.discard(task)
                writer.transport.abort()

        self._servers.append(await asyncio.start_server(accept, host, port))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def add_rule(self, rule: LinkRule) -> LinkRule:
        self.rules.append(rule)
        self._notify()
        if rule.cut:
            self.reset(rule.links)
        return rule

    def remove_rule(self, rule: LinkRule) -> None:
        self.rules.remove(rule)
        self._notify()

    def reset(self, links: Iterable[Link]) -> int:
        """Reset the connections that use one of these links; returns how many."""
        affected = set(links)
        found = [
            connection
            for connection in self.connections
            if not affected.isdisjoint(_links_of(connection))
        ]
        for connection in found:
            connection.reset()
        return len(found)

    def is_cut(self, link: Link) -> bool:
        return any(rule.cut and link in rule.links for rule in self.rules)

    def _is_held(self, link: Link) -> bool:
        return any(rule.held and link in rule.links for rule in self.rules)

    def _delay_s(self, link: Link) -> float:
        return sum(rule.delay_s for rule in self.rules if link in rule.links)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _forward(
        self,
        to: int,
        host: str,
        behind: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        connection = ProxiedConnection(to, [writer])
        first = await _first_request(reader)
        connection.caller = _caller_of(first)
        request_link, response_link = _links_of(connection) or (None, None)
        if any(map(self.is_cut, _links_of(connection))):
            return
        there, back = await asyncio.open_connection(host, behind)
        connection.ends.append(back)
        self.connections.add(connection)
        try:
            await self._wait_for_link(request_link)
            back.write(first)
            await asyncio.gather(
                self._pump(reader, back, request_link),
                self._pump(there, writer, response_link),
            )
        finally:
            self.connections.discard(connection)
            back.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, link: Link | None
    ) -> None:
        while data := await source.read(65536):
            await self._wait_for_link(link)
            to.write(data)
            await to.drain()
        await self._wait_for_link(link)
        # Kafka's protocol has no half-closed connections: the end of one direction ends both.
        raise ConnectionResetError

    async def _wait_for_link(self, link: Link | None) -> None:
        """Wait for as long as the rules hold or delay bytes on this link."""
        if link is None:
            return
        delay_s = self._delay_s(link)
        if delay_s:
            await asyncio.sleep(delay_s)
        while self._is_held(link):
            await self._changed.wait()


async def _first_request(reader: asyncio.StreamReader) -> bytes:
    """The bytes up to the end of the client id of the first request. Raises OSError."""
    try:
        head = await reader.readexactly(_HEADER.size)
        return head + await reader.readexactly(max(0, _HEADER.unpack(head)[4]))
    except asyncio.IncompleteReadError:
        raise ConnectionResetError from None


def _links_of(connection: ProxiedConnection) -> tuple[Link, ...]:
    """The links of the requests and of the responses; none where no node opened it."""
    caller, to = connection.caller, connection.to
    return () if caller is None else ((caller, to), (to, caller))


def _caller_of(first: bytes) -> int | None:
    """The node that sent a request; None for other clients."""
    found = _CALLER.fullmatch(first, _HEADER.size)
    return int(found[1]) if found else None
