"""What a program brings to be replicated, and how a replica drives it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
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

    All three are called from one thread, in the order of the log, and have done their work when
    they return: no `async def`. An exception stops the member, and so does an awaitable: a machine
    that can refuse an entry returns the refusal as its result instead.
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


_LATER: Final = "returned an awaitable: its work must be done when it returns"
"""What is done later would count as done: in no snapshot, and its entry cleaned from the log."""

ENTRY: Final = b"Q"
BARRIER: Final = b"\x00"
"""First byte of each record: an entry (or a snapshot's chunk), or nothing but a place in the log.

A record of Kafka's metadata begins with the version of its frame, which is 1: neither is taken for
the other. Kafka's readers refuse records without a value; behind this byte an empty entry is as
good as any.
"""

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

    def __init__(self, machine: StateMachine) -> None:
        refuse_unfit(machine)
        self._machine = machine
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
        except Exception as error:
            raise _failed("restore failed", error) from error
        self.snapshots_loaded += 1

    def apply(self, entry: Entry) -> None:
        apply, offset = self._machine.apply, entry.base_offset
        results = self.results if self._leads else None
        try:
            for value in entry.values:
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
