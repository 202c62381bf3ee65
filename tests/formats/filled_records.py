"""Records with values of all kinds, and batches of the topics of brokers."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from typing import Any

from fastcrc.crc32 import iscsi as crc32c

from quorate.formats.topics.coordinator import RecordTypes
from quorate.formats.varint import encode_signed
from quorate.wire.codec import encode
from quorate.wire.schema import Field, Struct

Pair = tuple[bytes | None, bytes | None]

EXAMPLES: dict[str, tuple[Any, ...]] = {
    "bool": (True, False),
    "int8": (1, -128, 127),
    "int16": (30, -(2**15), 2**15 - 1),
    "uint16": (9093, 0xFFFF),
    "int32": (3, -(2**31), 2**31 - 1),
    "int64": (1795241624169, -(2**63), 2**63 - 1),
    "float64": (20.0, 1e7, 1.25e-5, -0.0, 1e300, float("inf"), float("nan"), 0.001, 123456.789),
    "uuid": (bytes(range(16)), bytes(16), b"\xff" * 16),
    "string": ("plain", "", 'q"b\\/\t\n\r\x08\x0c\x01\x1f\x7f', "{}", "x" * 300),
    "bytes": (b"salt", b"", bytes(range(256))),
}


def example(field: Field, version: int, turn: int) -> Any:
    """A value for the field; other turns give other values."""
    if field.nullable_in(version) and turn % 3 == 2:
        return None
    if field.type_name == "struct":
        return filled(field.struct, version, turn)
    if field.type_name != "array":
        choice = EXAMPLES[field.type_name]
        return choice[turn % len(choice)]
    if field.holds_structs:
        return [filled(field.struct, version, turn + n) for n in range(turn % 3)]
    choice = EXAMPLES[str(field.element)]
    return [choice[(turn + n) % len(choice)] for n in range(turn % 4)]


def filled(cls: type[Struct], version: int, turn: int) -> Any:
    fields = [field for field in cls.schema.fields if field.in_version(version)]
    return cls(**{field.name: example(field, version, turn) for field in fields})


def coordinator_pairs(types: RecordTypes) -> list[Pair]:
    """A key and a value of every type, in every version, with defaults and with other values."""
    pairs: list[Pair] = []
    for type_id, found in types.items():
        low, high = found.value.schema.versions
        for version in range(low, high + 1):
            prefix = version.to_bytes(2, "big")
            for turn in range(8):
                key = type_id.to_bytes(2, "big") + encode(filled(found.key, 0, turn), 0)
                value = filled(found.value, version, turn) if turn else found.value()
                pairs.append((key, prefix + encode(value, version)))
    return pairs


def data_batch(base_offset: int, pairs: Sequence[Pair], attributes: int = 0) -> bytes:
    """A batch of these (key, value) pairs; attribute 1 compresses them with gzip."""
    records = b"".join(_record(index, *pair) for index, pair in enumerate(pairs))
    if attributes & 1:
        records = gzip.compress(records)
    body = struct.pack(
        ">hiqqqhii", attributes, len(pairs) - 1, 5, 1795241624169, 9, 1, 0, len(pairs)
    )
    size, crc = 49 + len(records), crc32c(body + records)
    return struct.pack(">qiibI", base_offset, size, 3, 2, crc) + body + records


def _record(index: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0\0" + encode_signed(index)
    for data in (key, value):
        body += encode_signed(-1) if data is None else encode_signed(len(data)) + data
    body += b"\0"
    return encode_signed(len(body)) + body
