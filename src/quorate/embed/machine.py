"""The state machine that a program brings, and its adapter for a replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from math import inf
from time import monotonic
from typing import Final, Protocol

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.embed.errors import EntryTooLargeError
from quorate.formats.batch import HEADER_SIZE, MAX_BATCH_SIZE
from quorate.raft.values import ControlState
from quorate.replica.proposals import RECORD_OVERHEAD
from quorate.replica.state_machine import CommittedBatch, Now
from quorate.server.logs import LOG


class StateMachine(Protocol):
    """A deterministic state machine: the same entries in the same order give the same state.

    All three methods run on the event loop that also answers the peers. A call that takes longer than
    the fetch timeout costs an election. So does a long pause of Python's garbage collector. It scans
    large states of many small containers, but not a dict of bytes, whatever its size. The loop may run
    other work between two entries, even of one proposal.

    The methods are called from one thread, in the order of the log. Their work must be complete when
    they return: `async def` is refused. An exception stops the member, CancelledError and SystemExit
    included, and so does an awaitable as result. A machine that refuses an entry returns the refusal.
    """

    def apply(self, offset: int, entry: bytes) -> object:
        """Apply a committed entry. `propose` returns the result to the proposer."""

    def snapshot(self) -> Iterable[bytes]:
        """The whole state, in chunks of at most MAX_ENTRY_BYTES.

        Another thread consumes the chunks later, while `apply` continues: return an iterator over an
        immutable copy or a persistent map. An exception of the iterator, or a larger chunk, fails
        this snapshot and is logged; the member continues.
        """

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace the whole state by the one in these chunks."""


_AWAITABLE: Final = "returned an awaitable: its work must be complete when it returns"
"""Work done later would be missing from a snapshot that lets the log drop its entry."""

ENTRY: Final = b"Q"
BARRIER: Final = b"\x00"
"""The first byte of each record value: an entry (or a chunk of a snapshot), or a barrier.

A metadata record of Kafka starts with the version of its frame, 1, so neither is mistaken for the other.
Kafka's readers refuse records without a value; with this byte even an empty entry has one.
"""

STEP_S: Final = 0.01
"""How long a step applies entries: short compared with any fetch timeout."""
_CLOCK_EVERY: Final = 8
"""How many fast entries are applied between two looks at the clock; one after a slow entry."""
_SLOW_S: Final = 0.001

_ROOM: Final = MAX_BATCH_SIZE - HEADER_SIZE
MAX_ENTRY_BYTES: Final = _ROOM - RECORD_OVERHEAD - len(ENTRY)
"""Maximum bytes of an entry. Entries proposed together share it, less 25 bytes per further entry."""


def encode_entry(entry: bytes) -> bytes:
    """The record value of an entry. Raises TypeError when the entry is not bytes."""
    if not isinstance(entry, bytes):
        raise TypeError(f"an entry or chunk must be bytes, not {type(entry).__name__}")
    return ENTRY + entry


def check_batch_size(values: Sequence[bytes]) -> None:
    """Raise EntryTooLargeError when these record values do not fit one batch."""
    size, count = sum(map(len, values)), len(values)
    room = _ROOM - count * RECORD_OVERHEAD
    if size > room:
        raise EntryTooLargeError(size - count * len(ENTRY), count, room - count * len(ENTRY))


def check_machine(machine: object) -> None:
    """Raise TypeError unless `machine` has all methods of StateMachine, as plain functions."""
    if isinstance(machine, type):
        name = machine.__name__
        raise TypeError(f"a state machine must be an object, {name}(), not the class {name}")
    class_name = type(machine).__name__
    for name in ("apply", "snapshot", "restore"):
        method = getattr(machine, name, None)
        if not callable(method):
            raise TypeError(f"the state machine {class_name} has no method {name}")
        yields = name != "snapshot" and isgeneratorfunction(method)
        if yields or iscoroutinefunction(method) or isasyncgenfunction(method):
            raise TypeError(
                f"{class_name}.{name} does nothing when it is called, as it is 'async' or yields: its "
                "work must be complete when it returns"
            )


class _ForeignMemberError(QuorateError):
    """The log holds other records than a member's entries."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is not an entry of a member: the directory holds the log of a Kafka "
            "controller or of another program"
        )


class OpaqueMachine:
    """A ReplicatedStateMachine around a program's StateMachine. Raises TypeError.

    While this member leads, `results` holds the results of `apply` by offset; the member removes each
    when it answers the proposal.
    """

    def __init__(self, machine: StateMachine, clock: Callable[[], float] = monotonic) -> None:
        """Wrap `machine`. `clock`: monotonic, in s."""
        check_machine(machine)
        self._machine = machine
        self._clock = clock
        self._until: float | None = None
        """When this step must stop applying entries; None before its first entry."""
        self._chunks: list[bytes] = []
        self._leads = False
        self.snapshots_loaded = 0
        self.results: dict[int, object] = {}
        self.notes: list[str] = []

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self._chunks = []

    def load(self, values: Sequence[bytes]) -> None:
        for value in values:
            if value[:1] != ENTRY:
                raise _ForeignMemberError("a record of the snapshot")
        self._chunks.extend(value[1:] for value in values)

    def end_load(self) -> None:
        chunks, self._chunks = self._chunks, []
        try:
            result: object = self._machine.restore(chunks)  # type: ignore[func-returns-value]
            if hasattr(result, "__await__"):
                raise TypeError(f"restore {_AWAITABLE}")
        except BaseException as error:
            raise _failed("restore failed", error) from error
        self.snapshots_loaded += 1

    def begin_step(self) -> None:
        """Start a step: entries may take STEP_S."""
        self._until = None

    def apply(self, entry: CommittedBatch) -> int:
        # The loop must keep answering peers while a long log is applied, so `apply` stops after STEP_S
        # and returns how many records it took; the replica continues in the next step. Reading the
        # clock costs as much as a small `apply`: look at it only after some entries, or a slow one.
        apply, clock, offset = self._machine.apply, self._clock, entry.base_offset
        results = self.results if self._leads else None
        if self._until is None:
            self._until = clock() + STEP_S
        until, looked_at, look = self._until, -inf, offset
        try:
            for value in entry.values:
                if offset == look:
                    now = clock()
                    if now >= until:
                        break
                    look += _CLOCK_EVERY if now - looked_at < _SLOW_S else 1
                    looked_at = now
                result = None
                if value[:1] == ENTRY:
                    result = apply(offset, value[1:])
                    if hasattr(result, "__await__"):
                        raise TypeError(f"apply {_AWAITABLE}")
                elif value != BARRIER:
                    raise _ForeignMemberError(f"the record at offset {offset}")
                if results is not None:
                    results[offset] = result
                offset += 1
        except _ForeignMemberError:
            raise
        except BaseException as error:
            raise _failed(f"apply failed at offset {offset}, which is committed", error) from error
        return offset - entry.base_offset

    def freeze(self) -> Iterable[bytes]:
        try:
            return map(_encode_chunk, _guarded(iter(self._machine.snapshot())))
        except BaseException as error:
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


def _guarded(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks; an interruption in them fails the snapshot instead of ending the thread."""
    try:
        yield from chunks
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        raise QuorateError(f"snapshot() was interrupted by {type(error).__name__}") from error


def _encode_chunk(chunk: bytes) -> bytes:
    """The record value of a chunk. Raises TypeError; QuorateError when the chunk is too large."""
    value = encode_entry(chunk)
    if len(chunk) > MAX_ENTRY_BYTES:
        raise QuorateError(
            f"snapshot() returned a chunk of {len(chunk)} bytes; the limit is MAX_ENTRY_BYTES, "
            f"{MAX_ENTRY_BYTES}"
        )
    return value


def _failed(what: str, error: BaseException) -> QuorateError:
    """Log the program's exception and turn it into the reason for which the member stops."""
    LOG.error("The state machine's %s", what, exc_info=error)
    return QuorateError(f"the state machine's {what}: {type(error).__name__}: {error}")
