"""What a program brings to be replicated, and how a replica drives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from math import inf
from time import monotonic
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

    All three run on the loop that also answers the peers: one call that takes longer than the fetch
    timeout costs an election. That goes for Python's garbage collector, too, which walks through a
    large state of small containers (not through a dict of bytes, whatever its size). Between two
    entries, also of those that were proposed together, the loop may have its turn.

    All three are called from one thread, in the order of the log, and have done their work when
    they return: no `async def`. An exception stops the member (CancelledError and SystemExit, too),
    and so does an awaitable: a machine that can refuse an entry returns the refusal as its result.
    """

    def apply(self, offset: int, entry: bytes) -> object:
        """A committed entry. What it returns is what `propose` returns to whoever proposed it."""

    def snapshot(self) -> Iterable[bytes]:
        """The whole state, in chunks of at most a few MiB (MAX_ENTRY_BYTES; one that is larger
        fails the snapshot).

        The chunks are taken later and on another thread, while `apply` goes on: return an
        iterator over something that no longer changes (a copy, or a persistent map). An exception
        of that iterator fails this one snapshot, loudly, and not the member.
        """

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Forget everything and take the state of these chunks."""


_LATER: Final = "returned an awaitable: its work must be done when it returns"
"""What is done later would count as done: in no snapshot, and its entry cleaned from the log."""

ENTRY: Final = b"Q"
BARRIER: Final = b"\x00"
"""First byte of each record: an entry (or a snapshot's chunk), or nothing but a place in the log.

A record of Kafka's metadata begins with the version of its frame, which is 1: neither is taken for
the other. Kafka's readers refuse records without a value; behind this byte an empty entry is as
good as any.
"""

STEP_S: Final = 0.01
"""For how long entries are applied in a row: little beside any fetch timeout."""
_FEW: Final = 8
"""After so many quick entries one looks at the clock again, after a slow one at once."""
_SLOW_S: Final = 0.001

_ROOM: Final = MAX_BATCH_SIZE - HEADER_SIZE
MAX_ENTRY_BYTES: Final = _ROOM - RECORD_OVERHEAD - len(ENTRY)
"""Most bytes of an entry. Of entries that are proposed together the same, less 25 for each more."""


def encode_entry(entry: bytes) -> bytes:
    """The record value of an entry. Raises TypeError when it is not bytes."""
    if not isinstance(entry, bytes):
        raise TypeError(f"an entry or chunk is bytes, not {type(entry).__name__}")
    return ENTRY + entry


def refuse_too_large(values: Sequence[bytes]) -> None:
    """Raise EntryTooLarge when the record values of entries do not fit one batch."""
    size, count = sum(map(len, values)), len(values)
    room = _ROOM - count * RECORD_OVERHEAD
    if size > room:
        raise EntryTooLarge(size - count * len(ENTRY), count, room - count * len(ENTRY))


def refuse_unfit(machine: object) -> None:
    """Raise TypeError where a method of a StateMachine is missing, or would not run when called."""
    if isinstance(machine, type):
        name = machine.__name__
        raise TypeError(f"a state machine is an object: {name}(), and not the class {name}")
    whose = type(machine).__name__
    for name in ("apply", "snapshot", "restore"):
        method = getattr(machine, name, None)
        if not callable(method):
            raise TypeError(f"the state machine {whose} has no method {name}")
        yields = name != "snapshot" and isgeneratorfunction(method)
        if yields or iscoroutinefunction(method) or isasyncgenfunction(method):
            raise TypeError(
                f"{whose}.{name} does nothing when it is called, as it is 'async' or yields: its "
                "work must be done when it returns"
            )


class _Foreign(QuorateError):
    """The log is not one of entries."""

    def __init__(self, where: str) -> None:
        super().__init__(
            f"{where} is no entry of a member's: the directory holds the log of a Kafka "
            "controller, or of something else that is not ours"
        )


class OpaqueMachine:
    """A `node.machine.Machine` around a StateMachine. Raises TypeError where that is none.

    `results` holds what apply returned, by offset, while this member leads: the member takes each
    out when it answers the proposal.
    """

    def __init__(self, machine: StateMachine, clock: Callable[[], float] = monotonic) -> None:
        """clock: in seconds."""
        refuse_unfit(machine)
        self._machine = machine
        self._clock = clock
        self._until: float | None = None
        """When the time of this step is up; None before its first entry."""
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
                raise _Foreign("a record of the snapshot")
        self._chunks.extend(value[1:] for value in values)

    def end_load(self) -> None:
        chunks, self._chunks = self._chunks, []
        try:
            result: object = self._machine.restore(chunks)  # type: ignore[func-returns-value]
            if hasattr(result, "__await__"):
                raise TypeError(f"restore {_LATER}")
        except BaseException as error:
            raise _failed("restore failed", error) from error
        self.snapshots_loaded += 1

    def begin_step(self) -> None:
        """Entries have STEP_S again."""
        self._until = None

    def apply(self, entry: Entry) -> int:
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
                    look += _FEW if now - looked_at < _SLOW_S else 1
                    looked_at = now
                result = None
                if value[:1] == ENTRY:
                    result = apply(offset, value[1:])
                    if hasattr(result, "__await__"):
                        raise TypeError(f"apply {_LATER}")
                elif value != BARRIER:
                    raise _Foreign(f"the record at offset {offset}")
                if results is not None:
                    results[offset] = result
                offset += 1
        except _Foreign:
            raise
        except BaseException as error:
            raise _failed(f"apply failed at offset {offset}, which is committed", error) from error
        return offset - entry.base_offset

    def freeze(self) -> Iterable[bytes]:
        try:
            return map(_encode_chunk, _taken(iter(self._machine.snapshot())))
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


def _taken(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """These; whatever they raise fails one snapshot, and no thread with it."""
    try:
        yield from chunks
    except (Exception, GeneratorExit):
        raise
    except BaseException as error:
        raise QuorateError(f"snapshot() was interrupted by {type(error).__name__}") from error


def _encode_chunk(chunk: bytes) -> bytes:
    """The record value of a snapshot's chunk. Raises TypeError, QuorateError when it is too large.

    It fits a batch as an entry does.
    """
    value = encode_entry(chunk)
    if len(chunk) > MAX_ENTRY_BYTES:
        raise QuorateError(
            f"snapshot() gave a chunk of {len(chunk)} bytes; one has at most MAX_ENTRY_BYTES, "
            f"which is {MAX_ENTRY_BYTES}"
        )
    return value


def _failed(what: str, error: BaseException) -> QuorateError:
    """Why the member ends; the program's own traceback goes to the log."""
    LOG.error("The state machine's %s", what, exc_info=error)
    return QuorateError(f"the state machine's {what}: {type(error).__name__}: {error}")
