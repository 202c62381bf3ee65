"""Clients of the store. Each does one operation at a time and records it in the history.

A client retries an operation with another member where the first one certainly did not do it. It
never retries what may have been done: the history could not distinguish one write from two.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.nemesis.history import ClientHistory
from quorate.nemesis.node import NodeProcess
from quorate.server.ports import LOOPBACK
from quorate.sim.world.client_op import ClientOp, OpKind

REQUEST_TIMEOUT_S: Final = 2.0
"""How long a client waits for a response, and for how long it looks for a leader."""
_KEY_PERIOD_US: Final = 15_000_000
"""Clients change to new keys after so long: checking linearizability takes exponential time in the
length of a key's history."""
KEYS: Final = 4
_RANDOM_MEMBER_RATE: Final = 0.1
"""How often a client asks a random member although it knows the leader."""


class NotSentError(Exception):
    """The member certainly never got the request."""


class ResponseLostError(Exception):
    """The member may have got the request; there is no response."""


class StoreClient:
    """Client number `name`, from 0. `run` returns after `over` is set."""

    def __init__(
        self,
        name: int,
        nodes: Sequence[NodeProcess],
        history: ClientHistory,
        seed: str,
        pause_s: float = 0.02,
    ) -> None:
        self.name = name
        self._nodes = nodes
        self._history = history
        self._rng = random.Random(f"client {name} of {seed}")
        self._pause_s = pause_s
        self._current = self._rng.randrange(len(nodes))
        self._streams: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._last: dict[int, int | None] = {}

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            draw = self._rng.random()
            kind: OpKind = "get" if draw < 0.35 else "put" if draw < 0.7 else "cas"
            if self._rng.random() < _RANDOM_MEMBER_RATE:
                self._current = self._rng.randrange(len(self._nodes))
            period = self._history.now_us() // _KEY_PERIOD_US
            await self.do(kind, period * KEYS + self._rng.randrange(KEYS))
            await asyncio.sleep(self._rng.expovariate(1 / self._pause_s))
        self.close()

    async def do(self, kind: OpKind, key: int) -> ClientOp:
        """Do one operation and record it."""
        expected = self._last.get(key) if kind == "cas" else None
        op = self._history.invoke(self.name, kind, key, expected)
        request = {"do": kind, "key": key, "value": op.value, "expected": expected}
        try:
            response = await self._ask_leader(request, op)
        except ResponseLostError:
            self._history.complete(op, "unknown")
            self._switch_node()
            return op
        if response is None:
            self._history.complete(op, "refused")
            return op
        result = response["result"]
        self._history.complete(op, "ok", None if kind == "put" else result)
        self._last[key] = result if kind == "get" else op.value if result else expected
        return op

    async def _ask_leader(self, request: dict[str, Any], op: ClientOp) -> dict[str, Any] | None:
        """The leader's response; None where no member took it in time. Raises ResponseLostError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + REQUEST_TIMEOUT_S
        while loop.time() < end:
            op.attempts += 1
            try:
                response = await self.ask(self._nodes[self._current], request)
            except NotSentError:
                self._switch_node()
            else:
                if "result" in response:
                    return response
                if response["error"] == "in-doubt":
                    raise ResponseLostError
                self._switch_node(response.get("leader", -1))
            await asyncio.sleep(0.03)
        return None

    async def ask(self, node: NodeProcess, request: dict[str, Any]) -> dict[str, Any]:
        """One request to one member. Raises NotSentError or ResponseLostError."""
        try:
            if node.id not in self._streams:
                self._streams[node.id] = await asyncio.wait_for(
                    asyncio.open_connection(LOOPBACK, node.client_port), REQUEST_TIMEOUT_S / 4
                )
        except (OSError, TimeoutError):
            raise NotSentError from None
        reader, writer = self._streams[node.id]
        try:
            writer.write(json.dumps(request).encode() + b"\n")
            line = await asyncio.wait_for(reader.readline(), REQUEST_TIMEOUT_S)
            if line.endswith(b"\n"):
                response: dict[str, Any] = json.loads(line)
                return response
        except (OSError, TimeoutError):
            pass
        self._drop(node.id)
        raise ResponseLostError

    def close(self) -> None:
        for node_id in list(self._streams):
            self._drop(node_id)

    def _drop(self, node_id: int) -> None:
        self._streams.pop(node_id)[1].transport.abort()

    def _switch_node(self, leader: int = -1) -> None:
        """Use another member next: the leader where it is known."""
        for index, node in enumerate(self._nodes):
            if node.id == leader and index != self._current:
                self._current = index
                return
        self._current = (self._current + 1) % len(self._nodes)


async def ask_member(node: NodeProcess, request: dict[str, Any]) -> Any:
    """The result of a request of the fault injector. Raises QuorateError where there is none."""
    client = StoreClient(-1, (node,), ClientHistory(), "")
    try:
        response = await client.ask(node, request)
    except (NotSentError, ResponseLostError):
        raise QuorateError(f"member {node.id} does not response") from None
    finally:
        client.close()
    if "result" not in response:
        raise QuorateError(f"member {node.id} refused: {response}")
    return response["result"]
