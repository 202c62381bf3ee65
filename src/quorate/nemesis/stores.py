"""The workload of the store: members of `quorate.embed`, clients that put, get and cas."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from quorate.base.errors import QuorateError
from quorate.embed.machine import ENTRY
from quorate.nemesis.checks import Broken
from quorate.nemesis.clients import KEYS, StoreClient, ask_member
from quorate.nemesis.harvest import Harvest, harvest
from quorate.nemesis.heal import until
from quorate.nemesis.history import History
from quorate.nemesis.node import Node, StoreNode
from quorate.nemesis.quorum import Ensemble
from quorate.nemesis.run import Options, Workload
from quorate.nemesis.store import decode_snapshot, decode_write, marked
from quorate.nemesis.watchdog import Watchdog


class StoreWorkload(Workload):
    """`plant` names one of `planted.BUGS`, for every member."""

    def __init__(self, members: int = 3, clients: int = 4, plant: str = "none") -> None:
        self.members = members
        self.clients = clients
        self.plant = plant

    def nodes(self, options: Options, watchdog: Watchdog) -> Mapping[int, Node]:
        seed = str(options.seed)
        return {
            i: StoreNode(i, options.directory, seed, watchdog, plant=self.plant)
            for i in range(1, self.members + 1)
        }

    async def traffic(
        self, ensemble: Ensemble, history: History, options: Options, over: asyncio.Event
    ) -> None:
        clients = [
            StoreClient(name, tuple(ensemble), history, str(options.seed))
            for name in range(self.clients)
        ]
        await asyncio.gather(*(client.run(over) for client in clients))

    async def last_look(self, ensemble: Ensemble, history: History) -> list[Broken]:
        """A get of every recent key, and the same state in every member."""
        client = StoreClient(self.clients, tuple(ensemble), history, "the last look")
        for key in sorted({op.key for op in history.ops})[-4 * KEYS :]:
            op = await client.do("get", key)
            if op.outcome != "ok":
                return [Broken("a healed quorum works again", f"a get of key {key}: {op.outcome}")]
        client.close()
        states: dict[int, dict[str, Any]] = {}

        async def all_applied() -> bool:
            for node in ensemble:
                states[node.id] = await ask_member(node, {"do": "state"})
            return len({state["offset"] for state in states.values()}) == 1

        await until(all_applied, 20.0, "the members have not all applied the same")
        if len({str(state) for state in states.values()}) > 1:
            told = {i: state["digest"] for i, state in states.items()}
            offset = states[min(states)]["offset"]
            how = f"at offset {offset} the members' histories have the digests {told}"
            return [Broken("every member has the same state", how)]
        return []

    def harvest(self, node: Node) -> Harvest:
        return harvest(f"{node.kind} {node.id}", node.partition, number_of, seen_in)


def number_of(value: bytes) -> int | None:
    """The number of a record's write. Raises QuorateError."""
    return decode_write(value[1:]).value if value[:1] == ENTRY else None


def seen_in(values: tuple[bytes, ...]) -> set[int]:
    """The numbers of all writes before a snapshot. Raises QuorateError."""
    if any(value[:1] != ENTRY for value in values):
        raise QuorateError("not a snapshot of the store")
    return marked(decode_snapshot(value[1:] for value in values).seen)
