"""Decodes many metadata records of one type and version at once.

The walk visits each field of the message schema once, not once per record. At each step an array
holds the position of every record, and numpy reads the field at all of them. The walk leaves to the
codec: damaged records, unusual encodings (long varints, text that JSON escapes), and the few types
with lists of structs.

1. Read the untagged fields in the order of the schema, and advance the positions.
2. Find the tagged fields of each record, whose number and order differ (`_tags`), and read them.
3. Records that turned out unsound make columns of wrong lengths: repeat the walk without them,
   until all that remain are sound. Almost always the first walk is the last.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from quorate.spark.decode.arrays import Bytes, Column, Ints, Lists, Mask, Numbers, Texts, Uuids
from quorate.wire.schema import NEW, Field, Message

PADDING: Final = 64
"""Bytes behind the last record in the buffer, so that no read crosses its end."""

_DTYPES: Final = {
    "bool": ">u1",
    "int8": ">i1",
    "int16": ">i2",
    "uint16": ">u2",
    "int32": ">i4",
    "int64": ">i8",
}
_ELEMENTS: Final = ("int32", "uuid")
_ESCAPED: Final = np.zeros(256, np.bool_)
_ESCAPED[[*range(32), ord('"'), ord("\\")]] = True


Places = dict[int | None, Ints]
"""By tag: a position for each record."""


@cache
def can_walk(cls: type[Message]) -> bool:
    """Whether a type has no structs, floats, bytes or lists of strings."""
    fields = cls.schema.fields
    if fields and fields[0].tag is not None:
        return False
    return all(
        one.type_name in (*_DTYPES, "uuid", "string")
        or (one.type_name == "array" and one.element in _ELEMENTS)
        for one in fields
    )


@dataclass(slots=True)
class Walked:
    """The columns of the records that are `sound`, by field name.

    A field that the version lacks, or that is not needed, has no column. `sound` has a value for
    each record.
    """

    sound: Mask
    columns: dict[str, Column] = field(default_factory=dict)


def walk(
    cls: type[Message],
    version: int,
    data: Bytes,
    starts: Ints,
    ends: Ints,
    needed: Collection[str] | None = None,
) -> Walked:
    """The fields of the records whose messages are at [starts, ends) of `data`.

    data: PADDING bytes longer than the records need
    needed: the fields that get a column (None: all); of others the walk reads only the bounds
    """
    sound = np.ones(len(starts), np.bool_)
    while True:
        one = _Walk(data, ends[sound], needed)
        columns = one.message(cls, version, starts[sound])
        if one.ok.all():
            return Walked(sound, columns)
        sound[sound] = one.ok


class _Walk:
    """One pass over the records; `ok` says which of them are sound so far."""

    def __init__(self, data: Bytes, ends: Ints, needed: Collection[str] | None) -> None:
        self._bytes = data
        self._ends = ends
        self._highest = len(self._bytes) - PADDING
        self._needed = needed
        self.ok = np.ones(len(ends), np.bool_)

    def message(self, cls: type[Message], version: int, at: Ints) -> dict[str, Column]:
        columns: dict[str, Column] = {}
        for one in cls.schema.untagged(version):
            column, at = self._field(one, version, at)
            if column is not None:
                columns[one.name] = column
        return columns | self._tagged(cls.schema.tagged(version), version, at)

    def _tagged(self, fields: list[Field], version: int, at: Ints) -> dict[str, Column]:
        """The tagged fields; their defaults in records without them."""
        places, ends = self._tags({one.tag for one in fields}, at)
        columns = {
            one.name: self._one_tagged(one, version, places.get(one.tag), ends.get(one.tag))
            for one in fields
        }
        return {name: column for name, column in columns.items() if column is not None}

    def _tags(self, known: Collection[int | None], at: Ints) -> tuple[Places, Places]:
        """Find where the value of each tag begins and ends; -1 in records without it.

        Each round reads the next tag of every record that has one left. Tags must ascend.
        """
        places: Places = {}
        ends: Places = {}
        left, at = self._varint(at)
        self._check(left <= len(known))
        last = np.full(len(at), -1)
        rows = np.flatnonzero(self.ok & (left > 0))
        while len(rows):
            part = self._narrowed(rows)
            tag, after = part._varint(at[rows])
            size, after = part._varint(after)
            end = part._inside(after + size)
            part._check(tag > last[rows])
            for number in np.flatnonzero(np.bincount(tag)).tolist():
                here = tag == number
                if number not in known:
                    part._check(~here)
                    continue
                for held, values in ((places, after), (ends, end)):
                    held.setdefault(number, np.full(len(at), -1))[rows[here]] = values[here]
            last[rows] = tag
            at[rows] = end
            left[rows] -= 1
            self.ok[rows] &= part.ok
            rows = rows[part.ok & (left[rows] > 0)]
        self._check(at == self._ends)
        return places, ends

    def _narrowed(self, rows: Ints | Mask) -> _Walk:
        return _Walk(self._bytes, self._ends[rows], self._needed)

    def _one_tagged(
        self, one: Field, version: int, where: Ints | None, ends: Ints | None
    ) -> Column | None:
        if where is None or ends is None:  # no record has it
            if not self._wants(one):
                return None
            where = ends = np.full(len(self.ok), -1)
        rows = where >= 0
        narrowed = self._narrowed(rows)
        column, after = narrowed._field(one, version, where[rows])
        narrowed._check(after == ends[rows])
        self.ok[rows] &= narrowed.ok
        if column is None:
            return None
        if isinstance(column, Numbers):
            column.default = one.default
        column = column.spread(rows)
        if isinstance(column, Lists) and one.default is NEW:
            column.valid |= ~rows
        return column

    def _wants(self, one: Field) -> bool:
        return self._needed is None or one.name in self._needed

    def _field(self, one: Field, version: int, at: Ints) -> tuple[Column | None, Ints]:
        """The column of a field, if needed, and the position behind the field."""
        needed = self._wants(one)
        if one.type_name in _DTYPES:
            return self._number(one.type_name, at, needed)
        if one.type_name == "uuid":
            after = self._inside(at + 16)
            return Uuids(self._rows_of(at, 16)) if needed else None, after
        size, at = self._varint(at)
        valid = size > 0
        if not one.nullable_in(version):
            self._check(valid)
        counts = np.where(valid, size - 1, 0)
        if one.type_name == "string":
            return self._text(counts, valid, at)
        width = 16 if one.element == "uuid" else 4
        after = self._inside(at + counts * width)
        if not needed:
            return None, after
        counts = np.where(self.ok, counts, 0)
        places = _runs(at, counts, width)
        elements: Numbers | Uuids
        if one.element == "uuid":
            elements = Uuids(self._rows_of(places, 16))
        else:
            elements = Numbers(self._at(">i4", places))
        return Lists(counts, elements, valid), after

    def _number(self, name: str, at: Ints, needed: bool) -> tuple[Column | None, Ints]:
        dtype = _DTYPES[name]
        after = self._inside(at + np.dtype(dtype).itemsize)
        if name == "bool":
            values = self._at(dtype, at)
            self._check(values <= 1)
            return Numbers(values.astype(np.bool_)), after
        return Numbers(self._at(dtype, at)) if needed else None, after

    def _text(self, lengths: Ints, valid: Mask, at: Ints) -> tuple[Column, Ints]:
        after = self._inside(at + lengths)
        lengths = np.where(self.ok, lengths, 0)
        data = self._bytes[_runs(at, lengths, 1)]
        odd = _ESCAPED[data] | (data >= 0x80)
        if odd.any():
            # text that JSON escapes, or that may not be UTF-8, is left to the codec
            self.ok[np.repeat(np.arange(len(lengths)), lengths)[odd]] = False
        return Texts(lengths, data, valid), after

    def _varint(self, at: Ints) -> tuple[Ints, Ints]:
        """Unsigned varints of one or two bytes; records with longer ones are left to the codec."""
        first = self._bytes[at].astype(np.int64)
        long = first >= 0x80
        if not long.any():
            return first, self._inside(at + 1)
        second = self._bytes[at + 1].astype(np.int64)
        self._check(~long | ((second < 0x80) & (second > 0)))
        value = np.where(long, first & 0x7F | (second & 0x7F) << 7, first)
        return value, self._inside(at + 1 + long)

    def _inside(self, at: Ints) -> Ints:
        """The positions, limited to the buffer; a record whose end they cross is not sound."""
        self._check(at <= self._ends)
        return np.minimum(at, self._highest)

    def _check(self, holds: Mask) -> None:
        self.ok &= holds

    def _at(self, dtype: str, places: Ints) -> npt.NDArray[np.integer]:
        """The numbers that begin at these places."""
        wide = np.dtype(dtype)
        count = len(self._bytes) - wide.itemsize + 1
        every: npt.NDArray[np.integer] = np.ndarray((count,), wide, self._bytes, 0, (1,))
        return every[places].astype(wide.newbyteorder("="))

    def _rows_of(self, places: Ints, width: int) -> Bytes:
        """`width` bytes from each of these places on, a row each."""
        count = len(self._bytes) - width + 1
        every = np.ndarray((count,), f"V{width}", self._bytes, 0, (1,))
        return every[places].view(np.uint8).reshape(len(places), width)


def _runs(starts: Ints, counts: Ints, width: int) -> Ints:
    """The positions of `counts` elements of this width from each of the starts on."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    shift = np.repeat(starts - (ends - counts) * width, counts)
    return shift + np.arange(total) * width
