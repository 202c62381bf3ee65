"""What the members replicate: a few keys with numbers, and proof of everything that was done.

No two writes of a run write the same number, so a number names its write.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from quorate.base.errors import QuorateError


class Write(NamedTuple):
    """An entry of the log: a put, or a cas where `is_cas`."""

    key: int
    value: int
    is_cas: bool = False
    expected: int | None = None

    def encode(self) -> bytes:
        fields = [self.key, self.value, *([self.expected] if self.is_cas else [])]
        return json.dumps(fields, separators=(",", ":")).encode()


def decode_write(entry: bytes) -> Write:
    """Raises QuorateError when it is none."""
    try:
        key, value, *rest = json.loads(entry)
    except ValueError:
        raise QuorateError(f"an entry that no client wrote: {entry[:40]!r}") from None
    return Write(key, value, bool(rest), rest[0] if rest else None)


class Store:
    """The state machine. `seen` has bit `number` of each write that was applied, whatever its end.

    `digest` is of all (offset, entry) in order, so equal digests mean equal histories.
    """

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.seen = bytearray()
        self.digest = bytes(16)

    def apply(self, offset: int, entry: bytes) -> bool:
        """True when the value was written."""
        write = decode_write(entry)
        self.digest = blake2b(b"%d %b" % (offset, entry), digest_size=16, key=self.digest).digest()
        mark(self.seen, write.value)
        if write.is_cas and self.values.get(write.key) != write.expected:
            return False
        self.values[write.key] = write.value
        return True

    def snapshot(self) -> Iterable[bytes]:
        facts = {"values": list(self.values.items()), "digest": self.digest.hex()}
        return [json.dumps(facts).encode(), bytes(self.seen)]

    def restore(self, chunks: Iterable[bytes]) -> None:
        found = decode_snapshot(chunks)
        self.values, self.digest = dict(found.values), found.digest
        self.seen = bytearray(found.seen)


class Kept(NamedTuple):
    """What a snapshot keeps of a store."""

    values: tuple[tuple[int, int], ...]
    digest: bytes
    seen: bytes


def decode_snapshot(chunks: Iterable[bytes]) -> Kept:
    """Raises QuorateError."""
    parts = list(chunks)
    try:
        facts, seen = parts
        found = json.loads(facts)
        values = tuple((key, value) for key, value in found["values"])
        return Kept(values, bytes.fromhex(found["digest"]), seen)
    except (ValueError, KeyError, TypeError):
        raise QuorateError(f"{len(parts)} chunks that are no snapshot of the store") from None


def mark(bits: bytearray, number: int) -> None:
    """Set bit `number`."""
    at = number >> 3
    if at >= len(bits):
        bits.extend(bytes(at + 1 - len(bits)))
    bits[at] |= 1 << (number & 7)


def marked(bits: bytes) -> set[int]:
    """The numbers of the bits that are set."""
    whole = int.from_bytes(bits, "little")
    return {at for at, bit in enumerate(reversed(bin(whole)[2:])) if bit == "1"}
