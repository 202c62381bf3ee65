"""Clients of the store: one operation at a time each, told to the history.

What a member surely refused is asked of another one. What may have been done is not asked again.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.nemesis.history import History
from quorate.nemesis.node import Node
from quorate.server.ports import LOOPBACK
from quorate.sim.observe import ClientOp, OpKind

PATIENCE_S: Final = 2.0
"""How long a client waits for an answer, and looks for someone who takes its request."""
_ERA_US: Final = 15_000_000
"""Keys are new every so often: that keeps the search for an order of each key's history short."""
KEYS: Final = 4
_STRAY: Final = 0.1
"""How often a client begins at any member, though it knows the leader."""


class NotSent(Exception):
    """The request surely never arrived."""


class Lost(Exception):
    """The request may have arrived; there is no answer."""


class StoreClient:
    """`name` counts from 0. `run` until cancelled or told to stop."""

    def __init__(
        self, name: int, nodes: Sequence[Node], history: History, seed: str, pause_s: float = 0.02
    ) -> None:
        self.name = name
        self._nodes = nodes
        self._history = history
        self._chance = random.Random(f"client {name} of {seed}")
        self._pause_s = pause_s
        self._at = self._chance.randrange(len(nodes))
        self._streams: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}
        self._last: dict[int, int | None] = {}

    async def run(self, over: asyncio.Event) -> None:
        while not over.is_set():
            chance = self._chance.random()
            kind: OpKind = "get" if chance < 0.35 else "put" if chance < 0.7 else "cas"
            if self._chance.random() < _STRAY:
                self._at = self._chance.randrange(len(self._nodes))
            era = self._history.now_us() // _ERA_US
            await self.do(kind, era * KEYS + self._chance.randrange(KEYS))
            await asyncio.sleep(self._chance.expovariate(1 / self._pause_s))
        self.close()

    async def do(self, kind: OpKind, key: int) -> ClientOp:
        """One operation, from its call to what became of it."""
        expected = self._last.get(key) if kind == "cas" else None
        op = self._history.invoke(self.name, kind, key, expected)
        asked = {"do": kind, "key": key, "value": op.value, "expected": expected}
        try:
            answer = await self._ask_around(asked, op)
        except Lost:
            self._history.answer(op, "unknown")
            self._turn()
            return op
        if answer is None:
            self._history.answer(op, "refused")
            return op
        result = answer["result"]
        self._history.answer(op, "ok", None if kind == "put" else result)
        self._last[key] = result if kind == "get" else op.value if result else expected
        return op

    async def _ask_around(self, asked: dict[str, Any], op: ClientOp) -> dict[str, Any] | None:
        """The answer of whoever leads; None when nobody took it in time. Raises Lost."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_S
        while loop.time() < end:
            op.attempts += 1
            try:
                answer = await self.ask(self._nodes[self._at], asked)
            except NotSent:
                self._turn()
            else:
                if "result" in answer:
                    return answer
                if answer["error"] == "in-doubt":
                    raise Lost
                self._turn(answer.get("leader", -1))
            await asyncio.sleep(0.03)
        return None

    async def ask(self, node: Node, asked: dict[str, Any]) -> dict[str, Any]:
        """One question to one member. Raises NotSent or Lost."""
        try:
            if node.id not in self._streams:
                self._streams[node.id] = await asyncio.wait_for(
                    asyncio.open_connection(LOOPBACK, node.client_port), PATIENCE_S / 4
                )
        except (OSError, TimeoutError):
            raise NotSent from None
        reader, writer = self._streams[node.id]
        try:
            writer.write(json.dumps(asked).encode() + b"\n")
            line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        except (OSError, TimeoutError):
            pass
        self._drop(node.id)
        raise Lost

    def close(self) -> None:
        for node_id in list(self._streams):
            self._drop(node_id)

    def _drop(self, node_id: int) -> None:
        self._streams.pop(node_id)[1].transport.abort()

    def _turn(self, leader: int = -1) -> None:
        """Ask somebody else next: the leader where one is known."""
        for at, node in enumerate(self._nodes):
            if node.id == leader and at != self._at:
                self._at = at
                return
        self._at = (self._at + 1) % len(self._nodes)


async def ask_member(node: Node, asked: dict[str, Any]) -> Any:
    """The result of a question of the nemesis itself. Raises QuorateError when there is none."""
    client = StoreClient(-1, (node,), History(), "")
    try:
        answer = await client.ask(node, asked)
    except (NotSent, Lost):
        raise QuorateError(f"member {node.id} does not answer") from None
    finally:
        client.close()
    if "result" not in answer:
        raise QuorateError(f"member {node.id} refused: {answer}")
    return answer["result"]
