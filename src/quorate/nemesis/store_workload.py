"""The workload of a replicated store: members that `quorate.embed` runs, and their clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quorate.base.errors import QuorateError
from quorate.embed.machine import ENTRY
from quorate.nemesis.checks import RECOVERS, Violation
from quorate.nemesis.clients import KEYS, StoreClient, ask_member
from quorate.nemesis.disk_contents import DiskContents, read_disk
from quorate.nemesis.history import ClientHistory
from quorate.nemesis.node import NodeProcess, StoreMemberProcess
from quorate.nemesis.quorum import NemesisQuorum
from quorate.nemesis.recovery import wait_until
from quorate.nemesis.run import NemesisOptions, NemesisWorkload
from quorate.nemesis.store import bits_set, decode_snapshot, decode_write
from quorate.nemesis.watchdog import Watchdog


class StoreWorkload(NemesisWorkload):
    """`mutant`: a bug that every member has, as `MODULE:NAME` (`sim.run.plant`)."""

    def __init__(self, members: int = 3, clients: int = 4, mutant: str | None = None) -> None:
        self.members = members
        self.clients = clients
        self.mutant = mutant

    def nodes(self, options: NemesisOptions, watchdog: Watchdog) -> Mapping[int, NodeProcess]:
        seed = str(options.seed)
        return {
            i: StoreMemberProcess(i, options.directory, seed, watchdog, mutant=self.mutant)
            for i in range(1, self.members + 1)
        }

    def client(
        self, name: int, quorum: NemesisQuorum, history: ClientHistory, seed: str
    ) -> StoreClient:
        return StoreClient(name, tuple(quorum), history, seed)

    async def final_checks(self, quorum: NemesisQuorum, history: ClientHistory) -> list[Violation]:
        """A client reads every recent key, and every member has the same state."""
        client = StoreClient(self.clients, tuple(quorum), history, "the final checks")
        for key in sorted({op.key for op in history.ops})[-4 * KEYS :]:
            op = await client.do("get", key)
            if op.outcome != "ok":
                return [Violation(RECOVERS, f"a get of key {key}: {op.outcome}")]
        client.close()
        states: dict[int, dict[str, Any]] = {}

        async def all_applied() -> bool:
            for node in quorum:
                states[node.id] = await ask_member(node, {"do": "state"})
            return len({state["offset"] for state in states.values()}) == 1

        await wait_until(all_applied, 20.0, "the members have not all applied the same")
        if len({str(state) for state in states.values()}) > 1:
            digests = {i: state["digest"] for i, state in states.items()}
            offset = states[min(states)]["offset"]
            details = f"at offset {offset} the members' histories have the digests {digests}"
            return [Violation("every member has the same state", details)]
        return []

    def read_disk(self, node: NodeProcess) -> DiskContents:
        return read_disk(f"{node.kind} {node.id}", node.partition, write_number, writes_in_snapshot)


def write_number(value: bytes) -> int | None:
    """The number that a record writes, if any. Raises QuorateError."""
    return decode_write(value[1:]).value if value[:1] == ENTRY else None


def writes_in_snapshot(values: tuple[bytes, ...]) -> set[int]:
    """The numbers of all writes that a snapshot covers. Raises QuorateError."""
    if any(value[:1] != ENTRY for value in values):
        raise QuorateError("not a snapshot of the store")
    return bits_set(decode_snapshot(value[1:] for value in values).applied)
