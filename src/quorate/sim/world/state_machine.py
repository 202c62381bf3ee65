"""The replicated state of simulated worlds: a few keys, and the last response to each client.

An operation that is in the log twice is performed once (Raft dissertation, section 6.3: sessions).
Every batch adds a running hash of the history and a digest of the state to `trail`. The checks use
them to compare replicas at every offset, and a snapshot with a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final
from zlib import crc32

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import ControlState
from quorate.replica.state_machine import CommittedBatch, Now
from quorate.sim.world.client_op import ClientOp

_OP: Final = Struct(">BHIHqq")
"""kind, client, sequence, key, value, expected."""
_BESIDE: Final = Struct(">HIB")
_KEY: Final = Struct(">BHq")
_SESSION: Final = Struct(">BHIq")
_HISTORY: Final = Struct(">BI")
_PLACE: Final = Struct(">qi")
_NONE: Final = -1
PUT, GET, CAS = 1, 2, 3
KINDS: Final = {"put": PUT, "get": GET, "cas": CAS}
_KEY_TAG, _SESSION_TAG, _HISTORY_TAG = 11, 12, 13
NOTHING: Final = bytes(1)
"""The record of an idle leader, as Kafka's NoOpRecord."""


def encode_op(op: ClientOp, padding: int = 0) -> bytes:
    """The record value of an operation, with `padding` additional bytes."""
    value = _NONE if op.value is None else op.value
    expected = _NONE if op.expected is None else op.expected
    return _OP.pack(KINDS[op.kind], op.client, op.sequence, op.key, value, expected) + bytes(
        padding
    )


def encode_nothing(client: int, sequence: int, number: int) -> bytes:
    """A distinct record without effect."""
    return NOTHING + _BESIDE.pack(client, sequence, number)


class KeyValueMachine:
    """A `ReplicatedStateMachine`. Values are not negative; `sessions` has the results for clients."""

    def __init__(self, idle_ms: int = 0) -> None:
        """Begin empty. `idle_ms`: a leader writes NOTHING after this time without a write; 0: never."""
        self.idle_ms = idle_ms
        self._idle_at: int | None = None
        self._burst = 0
        self.notes: list[str] = []
        self.values: dict[int, int] = {}
        self.sessions: dict[int, tuple[int, int]] = {}
        """By client: its last sequence, and the result (a value, -1, or 0 and 1)."""
        self.history = 0
        self.digest = 0
        self.trail: list[tuple[int, int, int]] = []
        """(end offset, history, digest) of each batch since the last step."""
        self.newest: tuple[int, int] | None = None
        """(end offset, time in ms) of the newest batch that was applied."""
        self.led: int | None = None
        """The epoch in which this machine leads; None: it follows."""
        self._loading: OffsetAndEpoch | None = None
        self._put_off = _NONE
        """Base offset of the batch of which it took nothing at the first call."""

    # -- the log ------------------------------------------------------------------------------
    def apply(self, entry: CommittedBatch) -> int:
        taken = self._bite(entry)
        history = self.history
        for value in entry.values[:taken]:
            history = crc32(value, history)
            self._do(value)
        if taken == len(entry.values):
            end = entry.last_offset + 1
            history = crc32(_PLACE.pack(end, entry.epoch), history)
            self.trail.append((end, history, self.digest))
            self.newest = end, entry.timestamp_ms
        self.history = history
        return taken

    def _bite(self, entry: CommittedBatch) -> int:
        """How many of these values the machine takes in this call: all, half of them, or once none.

        The offset decides, in place of the time limit of a real program.
        """
        count, offset = len(entry.values), entry.base_offset
        if offset % 4 == 1 and offset != self._put_off:
            self._put_off = offset
            return 0
        return count if offset % 3 else (count + 1) // 2

    def _do(self, record: bytes) -> None:
        if record[0] == 0:
            return
        kind, client, sequence, key, value, expected = _OP.unpack_from(record)
        known = self.sessions.get(client)
        if known is not None:
            if known[0] >= sequence:
                return
            self.digest ^= crc32(_SESSION.pack(_SESSION_TAG, client, *known))
        present = self.values.get(key, _NONE)
        if kind == PUT:
            result = 1
        elif kind == GET:
            result = present
        else:
            result = int(present == expected)
        if kind != GET and result:
            if present != _NONE:
                self.digest ^= crc32(_KEY.pack(_KEY_TAG, key, present))
            self.digest ^= crc32(_KEY.pack(_KEY_TAG, key, value))
            self.values[key] = value
        self.digest ^= crc32(_SESSION.pack(_SESSION_TAG, client, sequence, result))
        self.sessions[client] = (sequence, result)

    def result(self, op: ClientOp) -> int | bool | None:
        """The result of the operation, which must be the last one of its client."""
        result = self.sessions[op.client][1]
        if op.kind == "cas":
            return bool(result)
        return None if op.kind == "put" or result == _NONE else result

    # -- snapshots ----------------------------------------------------------------------------
    def freeze(self) -> Iterable[bytes] | None:
        found = [_HISTORY.pack(_HISTORY_TAG, self.history)]
        found += (_KEY.pack(_KEY_TAG, key, self.values[key]) for key in sorted(self.values))
        found += (
            _SESSION.pack(_SESSION_TAG, client, *self.sessions[client])
            for client in sorted(self.sessions)
        )
        return found

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self.values, self.sessions = {}, {}
        self.history = self.digest = 0
        self._loading = snapshot_id

    def load(self, values: Sequence[bytes]) -> None:
        for value in values:
            tag = value[0]
            if tag == _HISTORY_TAG:
                _, self.history = _HISTORY.unpack(value)
                continue
            self.digest ^= crc32(value)
            if tag == _KEY_TAG:
                _, key, found = _KEY.unpack(value)
                self.values[key] = found
            else:
                _, client, sequence, result = _SESSION.unpack(value)
                self.sessions[client] = (sequence, result)

    def end_load(self) -> None:
        assert self._loading is not None
        self.trail.append((self._loading.offset, self.history, self.digest))
        self._loading = None

    # -- leading ------------------------------------------------------------------------------
    def lead(self, epoch: int, now: Now) -> None:
        self.led = epoch
        self._idle_at = now.monotonic_ms + self.idle_ms if self.idle_ms else None

    def follow(self, leader_id: int, epoch: int) -> None:
        self.led = self._idle_at = None
        self._burst = 0

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        if self._burst:
            burst, self._burst = self._burst, 0
            return ((NOTHING,),) * burst
        if self._idle_at is None or now.monotonic_ms < self._idle_at:
            return ()
        self._idle_at = now.monotonic_ms + self.idle_ms
        return ((NOTHING,),)

    def write_at_once(self, count: int) -> None:
        """Write this number of batches of NOTHING in the next step as the leader."""
        self._burst = count

    def rest(self) -> None:
        """Stop the writes of an idle leader."""
        self.idle_ms, self._idle_at, self._burst = 0, None, 0

    def wake_at_ms(self) -> int | None:
        return self._idle_at
