"""The replicated state of a run: a map of numbers, and a record of every write applied.

No two writes of a run write the same number, so a number identifies its write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from quorate.base.errors import QuorateError


class StoreWrite(NamedTuple):
    """One log entry: a put, or where `is_cas` a compare-and-set against `expected`."""

    key: int
    value: int
    is_cas: bool = False
    expected: int | None = None

    def encode(self) -> bytes:
        fields = [self.key, self.value, *([self.expected] if self.is_cas else [])]
        return json.dumps(fields, separators=(",", ":")).encode()


def decode_write(entry: bytes) -> StoreWrite:
    """The write of a log entry. Raises QuorateError where it is none."""
    try:
        key, value, *rest = json.loads(entry)
    except ValueError:
        raise QuorateError(f"an entry that no client wrote: {entry[:40]!r}") from None
    return StoreWrite(key, value, bool(rest), rest[0] if rest else None)


class NemesisStore:
    """The state machine of a member.

    `applied` has the bit of each write's number, also of a cas that changed nothing. `digest` is
    chained over all (offset, entry) in order: equal digests mean equal histories.
    """

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.applied = bytearray()
        self.digest = bytes(16)

    def apply(self, offset: int, entry: bytes) -> bool:
        """Apply a write; False where a cas found another value."""
        write = decode_write(entry)
        self.digest = blake2b(b"%d %b" % (offset, entry), digest_size=16, key=self.digest).digest()
        set_bit(self.applied, write.value)
        if write.is_cas and self.values.get(write.key) != write.expected:
            return False
        self.values[write.key] = write.value
        return True

    def snapshot(self) -> Iterable[bytes]:
        facts = {"values": list(self.values.items()), "digest": self.digest.hex()}
        return [json.dumps(facts).encode(), bytes(self.applied)]

    def restore(self, chunks: Iterable[bytes]) -> None:
        found = decode_snapshot(chunks)
        self.values, self.digest = dict(found.values), found.digest
        self.applied = bytearray(found.applied)


class StoreSnapshot(NamedTuple):
    """The contents of a snapshot of a store."""

    values: tuple[tuple[int, int], ...]
    digest: bytes
    applied: bytes


def decode_snapshot(chunks: Iterable[bytes]) -> StoreSnapshot:
    """The store in a snapshot's chunks. Raises QuorateError where they hold none."""
    parts = list(chunks)
    try:
        facts, applied = parts
        found = json.loads(facts)
        values = tuple((key, value) for key, value in found["values"])
        return StoreSnapshot(values, bytes.fromhex(found["digest"]), applied)
    except (ValueError, KeyError, TypeError):
        raise QuorateError(f"{len(parts)} chunks that are no snapshot of the store") from None


def set_bit(bits: bytearray, number: int) -> None:
    """Set bit `number`."""
    at = number >> 3
    if at >= len(bits):
        bits.extend(bytes(at + 1 - len(bits)))
    bits[at] |= 1 << (number & 7)


def bits_set(bits: bytes) -> set[int]:
    """The numbers of the bits that are set."""
    whole = int.from_bytes(bits, "little")
    return {at for at, bit in enumerate(reversed(bin(whole)[2:])) if bit == "1"}
