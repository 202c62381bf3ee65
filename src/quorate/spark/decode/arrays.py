"""The values of one field of many records, as Arrow arrays and as the JSON that Kafka prints.

Each class gives the Arrow array of the field (`arrow`) and the JSON text of each value (`json`).
`spread` gives a longer column, in which only the rows of a mask have these values. Defaults are those of
the message schema: zero, empty, or null (None).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
ScalarType = TypeVar("ScalarType", bound=np.generic)

_BASE64: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)
_UUID_TEXT: Final = 22
_EPOCH: Final = datetime(1970, 1, 1)
_MS: Final = timedelta(milliseconds=1)
_FIRST_MS: Final = (datetime(1, 1, 3) - _EPOCH) // _MS
_LAST_MS: Final = (datetime(9999, 12, 30) - _EPOCH) // _MS - 1
"""The range of times, ms, that a datetime holds in every time zone: PySpark returns datetimes."""


class Column(Protocol):
    """The values of one field, one for each record."""

    def arrow(self) -> pa.Array: ...

    def json(self) -> pa.Array: ...

    def spread(self, rows: Mask) -> Self: ...

    def differs(self, default: object) -> Mask:
        """Return where the value differs from this default."""
        ...


@dataclass(slots=True)
class Numbers:
    """Integers or booleans; `spread` fills with `default`."""

    values: npt.NDArray[np.integer | np.bool_]
    default: int = 0

    def arrow(self) -> pa.Array:
        return pa.array(self.values)

    def json(self) -> pa.Array:
        return pc.cast(self.arrow(), pa.string())

    def spread(self, rows: Mask) -> Numbers:
        values = np.full(len(rows), self.default, self.values.dtype)
        values[rows] = self.values
        return Numbers(values, self.default)

    def differs(self, default: object) -> Mask:
        return np.asarray(self.values != default)


@dataclass(slots=True)
class Uuids:
    """Uuids as rows of 16 bytes; their text is Kafka's base64."""

    values: Bytes

    def arrow(self) -> pa.Array:
        """Text of 22 characters each."""
        return self._texts(uuid_text)

    def json(self) -> pa.Array:
        return self._texts(_quoted_uuid)

    def _texts(self, spell: Callable[[Bytes], Bytes]) -> pa.Array:
        """Encode each distinct uuid once: records repeat the same few topics and directories."""
        count = len(self.values)
        raw = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(self.values)])
        found = raw.dictionary_encode()
        known = np.frombuffer(found.dictionary.buffers()[1], np.uint8, 16 * len(found.dictionary))
        return fixed_text(spell(known.reshape(-1, 16))).take(found.indices)

    def spread(self, rows: Mask) -> Uuids:
        values = np.zeros((len(rows), 16), np.uint8)
        values[rows] = self.values
        return Uuids(values)

    def differs(self, default: object) -> Mask:
        return np.asarray((self.values != np.frombuffer(bytes(16), np.uint8)).any(axis=1))


@dataclass(slots=True)
class Texts:
    """Strings, one after the other in `data`; they hold nothing that JSON must escape."""

    lengths: Ints
    data: Bytes
    valid: Mask

    def arrow(self) -> pa.Array:
        return text_array(self.lengths, self.data, self.valid)

    def json(self) -> pa.Array:
        return _or_null(_quoted(self.arrow()), self.valid)

    def spread(self, rows: Mask) -> Texts:
        return Texts(_spread(self.lengths, rows), self.data, _spread(self.valid, rows))

    def differs(self, default: object) -> Mask:
        return self.valid if default is None else ~self.valid | (self.lengths > 0)


@dataclass(slots=True)
class Lists:
    """Lists of numbers or uuids, the elements of all of them in `elements`."""

    counts: Ints
    elements: Numbers | Uuids
    valid: Mask

    def arrow(self) -> pa.Array:
        return self._lists(self.elements.arrow())

    def json(self) -> pa.Array:
        between = pc.binary_join(self._lists(self.elements.json()), ",")
        return _or_null(joined("[", between, "]"), self.valid)

    def spread(self, rows: Mask) -> Lists:
        return Lists(_spread(self.counts, rows), self.elements, _spread(self.valid, rows))

    def differs(self, default: object) -> Mask:
        return self.valid if default is None else ~self.valid | (self.counts > 0)

    def _lists(self, elements: pa.Array) -> pa.Array:
        ends = pa.py_buffer(_offsets(self.counts))
        kind = pa.list_(elements.type)
        bitmap = _bitmap(self.valid)
        return pa.Array.from_buffers(kind, len(self.counts), [bitmap, ends], children=[elements])


def microseconds(milliseconds: Ints) -> Ints:
    """Milliseconds as microseconds, limited to what a datetime can hold."""
    return np.clip(milliseconds.astype(np.int64), _FIRST_MS, _LAST_MS) * 1000


def joined(*pieces: pa.Array | str) -> pa.Array:
    """The pieces of text of each row, concatenated; null where one is null."""
    return pc.binary_join_element_wise(*pieces, "")


def text_array(lengths: Ints, data: Bytes, valid: Mask) -> pa.Array:
    """Strings of these lengths, one after the other in `data`; null where not valid."""
    buffers = [_bitmap(valid), pa.py_buffer(_offsets(lengths)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(lengths), buffers)


def fixed_text(characters: Bytes) -> pa.Array:
    """Strings of one length: a row of bytes each."""
    count, size = characters.shape
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(size)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(characters))]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def uuid_text(values: Bytes) -> Bytes:
    """URL-safe base64 without padding of rows of 16 bytes: rows of 22 characters."""
    whole = values[:, :15].astype(np.uint32)
    triple = whole[:, 0::3] << 16 | whole[:, 1::3] << 8 | whole[:, 2::3]
    digits = np.empty((len(values), _UUID_TEXT), np.uint8)
    for place in range(4):
        digits[:, place:20:4] = triple >> (18 - 6 * place) & 63
    digits[:, 20] = values[:, 15] >> 2
    digits[:, 21] = (values[:, 15] & 3) << 4
    return _BASE64[digits]


def _quoted_uuid(values: Bytes) -> Bytes:
    quoted = np.full((len(values), _UUID_TEXT + 2), ord('"'), np.uint8)
    quoted[:, 1:-1] = uuid_text(values)
    return quoted


def _quoted(text: pa.Array) -> pa.Array:
    return joined('"', text, '"')


def _or_null(text: pa.Array, valid: Mask) -> pa.Array:
    return text if valid.all() else pc.fill_null(text, "null")


def _offsets(lengths: Ints) -> npt.NDArray[np.int32]:
    ends = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    return ends


def _bitmap(valid: Mask) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _spread(values: npt.NDArray[ScalarType], rows: Mask) -> npt.NDArray[ScalarType]:
    out = np.zeros(len(rows), values.dtype)
    out[rows] = values
    return out
