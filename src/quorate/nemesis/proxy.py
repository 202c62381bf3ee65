"""What stands between the nodes: a proxy before each that knows who calls, and can be cruel.

A node gives `raft-client-ID` as its client id in every request (Kafka's do, and ours), so the first
request tells whose connection it is. Other callers pass untouched.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

Link = tuple[int, int]
"""From a node, to a node: one direction."""

_CALLER = re.compile(rb"raft-client-(\d{1,9})")
_HEADER = struct.Struct(">ihhih")
_ABORT = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Something that is wrong with links, for as long as the network has it."""

    links: frozenset[Link]
    held: bool = False
    """Bytes wait until the rule is lifted; nobody is told."""
    cut: bool = False
    """Connections are reset, and new ones closed."""
    delay_s: float = 0.0


@dataclass(slots=True, eq=False)
class Flow:
    """A connection through the proxy."""

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
class Network:
    """All proxies, on one loop. `serve` begins one; `impose` and `lift` change what is wrong."""

    rules: list[Rule] = field(default_factory=list)
    flows: set[Flow] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _servers: list[asyncio.Server] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, node_id: int, host: str, port: int, behind: int) -> None:
        """Listen on `port` for the node that listens on `behind`. Raises OSError."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._carry(node_id, host, behind, reader, writer)
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

    def impose(self, rule: Rule) -> Rule:
        self.rules.append(rule)
        self._news()
        if rule.cut:
            self.reset(rule.links)
        return rule

    def lift(self, rule: Rule) -> None:
        self.rules.remove(rule)
        self._news()

    def reset(self, links: Iterable[Link]) -> int:
        """Reset the connections that use one of these links; how many there were."""
        hit = set(links)
        found = [
            flow
            for flow in self.flows
            if flow.caller is not None
            and ((flow.caller, flow.to) in hit or (flow.to, flow.caller) in hit)
        ]
        for flow in found:
            flow.reset()
        return len(found)

    def is_cut(self, link: Link) -> bool:
        return any(rule.cut and link in rule.links for rule in self.rules)

    def _is_held(self, link: Link) -> bool:
        return any(rule.held and link in rule.links for rule in self.rules)

    def _delay_s(self, link: Link) -> float:
        return sum(rule.delay_s for rule in self.rules if link in rule.links)

    def _news(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _carry(
        self,
        to: int,
        host: str,
        behind: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        flow = Flow(to, [writer])
        first = await _first_request(reader)
        flow.caller = _caller_of(first)
        links = None if flow.caller is None else ((flow.caller, to), (to, flow.caller))
        if links is not None and any(map(self.is_cut, links)):
            return
        there, back = await asyncio.open_connection(host, behind)
        flow.ends.append(back)
        self.flows.add(flow)
        try:
            await self._pass(first, links and links[0])
            back.write(first)
            await asyncio.gather(
                self._pump(reader, back, links and links[0]),
                self._pump(there, writer, links and links[1]),
            )
        finally:
            self.flows.discard(flow)
            back.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, link: Link | None
    ) -> None:
        while data := await source.read(65536):
            await self._pass(data, link)
            to.write(data)
            await to.drain()
        await self._pass(b"", link)
        # One end has finished: so has the other, as far as these protocols go.
        raise ConnectionResetError

    async def _pass(self, data: bytes, link: Link | None) -> None:
        """Wait for as long as these bytes take."""
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


def _caller_of(first: bytes) -> int | None:
    found = _CALLER.fullmatch(first, _HEADER.size)
    return int(found[1]) if found else None
