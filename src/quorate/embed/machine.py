"""What a program brings to be replicated, and how a replica drives it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from quorate.base.ids import OffsetAndEpoch
from quorate.node.machine import Entry, Now
from quorate.raft.values import ControlState


class StateMachine(Protocol):
    """Deterministic: the same entries in the same order give the same state on every member.

    All three run on the loop that also answers the peers: what takes longer than the fetch timeout
    costs an election. That goes for Python's garbage collector, too, which walks through a large
    state of small containers (not through a dict of bytes, whatever its size).

    All three are called from one thread, in the order of the log. An exception stops the member:
    a machine that can refuse an entry returns the refusal as its result instead.
    """

    def apply(self, offset: int, entry: bytes) -> object:
        """A committed entry. What it returns is what `propose` returns to whoever proposed it."""

    def snapshot(self) -> Iterable[bytes]:
        """The whole state, in chunks of at most a few MiB.

        The chunks are taken later and on another thread, while `apply` goes on: return an
        iterator over something that no longer changes (a copy, or a persistent map). An exception
        of that iterator fails this one snapshot, loudly, and not the member.
        """

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Forget everything and take the state of these chunks."""


_ENTRY: Final = b"\x01"
BARRIER: Final = b"\x00"
"""First byte of each record: an entry (or a snapshot's chunk), or nothing but a place in the log.

Kafka's readers refuse records without a value; behind this byte an empty entry is as good as any.
"""


def encode_entry(entry: bytes) -> bytes:
    """The record value of an entry. Raises TypeError when it is not bytes."""
    if not isinstance(entry, bytes):
        raise TypeError(f"an entry or chunk is bytes, not {type(entry).__name__}")
    return _ENTRY + entry


class OpaqueMachine:
    """A `node.machine.Machine` around a StateMachine.

    `results` holds what apply returned, by offset, while this member leads: the member takes each
    out when it answers the proposal.
    """

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self._chunks: list[bytes] = []
        self._leads = False
        self.snapshots_loaded = 0
        self.results: dict[int, object] = {}
        self.notes: list[str] = []

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self._chunks = []

    def load(self, values: Sequence[bytes]) -> None:
        self._chunks.extend(value[1:] for value in values)

    def end_load(self) -> None:
        chunks, self._chunks = self._chunks, []
        self._machine.restore(chunks)
        self.snapshots_loaded += 1

    def apply(self, entry: Entry) -> None:
        apply, offset = self._machine.apply, entry.base_offset
        if not self._leads:
            for value in entry.values:
                if value != BARRIER:
                    apply(offset, value[1:])
                offset += 1
            return
        results = self.results
        for value in entry.values:
            results[offset] = None if value == BARRIER else apply(offset, value[1:])
            offset += 1

    def freeze(self) -> Iterable[bytes]:
        return map(encode_entry, self._machine.snapshot())

    def lead(self, epoch: int, now: Now) -> None:
        self._leads = True

    def follow(self, leader_id: int, epoch: int) -> None:
        self._leads = False
        self.results.clear()

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        return ()

    def wake_at_ms(self) -> int | None:
        return None
