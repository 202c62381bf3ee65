"""What a program brings to be replicated, and how a replica drives it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.embed.errors import EntryTooLarge
from quorate.formats.batch import HEADER_SIZE, MAX_BATCH_SIZE
from quorate.node.machine import Entry, Now
from quorate.node.proposals import RECORD_OVERHEAD
from quorate.raft.values import ControlState
from quorate.server.logs import LOG


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

_ROOM: Final = MAX_BATCH_SIZE - HEADER_SIZE
MAX_ENTRY_BYTES: Final = _ROOM - RECORD_OVERHEAD - len(_ENTRY)
"""Most bytes of an entry. Of entries that are proposed together the same, less 25 for each more."""


def encode_entry(entry: bytes) -> bytes:
    """The record value of an entry. Raises TypeError when it is not bytes."""
    if not isinstance(entry, bytes):
        raise TypeError(f"an entry or chunk is bytes, not {type(entry).__name__}")
    return _ENTRY + entry


def refuse_too_large(values: Sequence[bytes]) -> None:
    """Raise EntryTooLarge when the record values of entries do not fit one batch."""
    size, count = sum(map(len, values)), len(values)
    room = _ROOM - count * RECORD_OVERHEAD
    if size > room:
        raise EntryTooLarge(size - count * len(_ENTRY), count, room - count * len(_ENTRY))


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
        try:
            self._machine.restore(chunks)
        except Exception as error:
            raise _failed("restore failed", error) from error
        self.snapshots_loaded += 1

    def apply(self, entry: Entry) -> None:
        apply, offset = self._machine.apply, entry.base_offset
        results = self.results if self._leads else None
        try:
            for value in entry.values:
                result = None if value == BARRIER else apply(offset, value[1:])
                if results is not None:
                    results[offset] = result
                offset += 1
        except Exception as error:
            raise _failed(f"apply failed at offset {offset}, which is committed", error) from error

    def freeze(self) -> Iterable[bytes]:
        try:
            return map(encode_entry, self._machine.snapshot())
        except Exception as error:
            raise _failed("snapshot failed", error) from error

    def lead(self, epoch: int, now: Now) -> None:
        self._leads = True

    def follow(self, leader_id: int, epoch: int) -> None:
        self._leads = False
        self.results.clear()

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        return ()

    def wake_at_ms(self) -> int | None:
        return None


def _failed(what: str, error: Exception) -> QuorateError:
    """Why the member ends; the program's own traceback goes to the log."""
    LOG.error("The state machine's %s", what, exc_info=error)
    return QuorateError(f"the state machine's {what}: {type(error).__name__}: {error}")
