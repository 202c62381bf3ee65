"""The rows of batches, the columns that batch headers fill, and the values of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quorate.base.ids import OffsetAndEpoch
from quorate.formats import bulk
from quorate.formats.batch import HEADER_SIZE, PREFIX_SIZE, BatchView, raw_records, values
from quorate.formats.batch_records import plain_values
from quorate.formats.control import (
    ControlType,
    LeaderChangeMessage,
    control_type,
    decode_message,
)
from quorate.formats.errors import BatchError, RecordError
from quorate.formats.json_text import to_json
from quorate.formats.records import RECORD_TYPES
from quorate.spark.decode.arrays import Bytes, Ints, Mask, microseconds
from quorate.spark.decode.columns import COLUMNS, problem_of
from quorate.spark.decode.walk import PADDING, can_walk
from quorate.spark.files.scan import CONTROL, HEADER, BatchRun, Damage
from quorate.wire.schema import Message

CHUNK_ROWS: Final = 32_768
CHUNK_BYTES: Final = 16 * 1024 * 1024
"""An Arrow record batch is made of this many rows, or bytes of batches."""

CONTROL_NAMES: Final = {
    ControlType.LEADER_CHANGE: "LeaderChange",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}
FRAME: Final = 3
"""Bytes of the frame of a record whose type and version are below 128: frame version, type and
version as varints of one byte each."""
_MANY: Final = 12
"""Fewer records of one type and version than this are decoded faster one by one."""
_WALKED: Final = {
    key << 8 | version: (cls, version)
    for key, cls in RECORD_TYPES.items()
    for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1)
    if can_walk(cls)
}
_NO_HEADER: Final = np.zeros(1, HEADER)

Item = BatchRun | Damage
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """The columns that are the same in all rows of a file."""

    cluster_id: str
    node_id: int
    file: str
    segment: int | None = None
    """The base offset in the name of a segment; None for a snapshot."""
    snapshot_id: OffsetAndEpoch | None = None

    @property
    def kind(self) -> str:
        return "log" if self.snapshot_id is None else "snapshot"

    def constants(self) -> dict[str, Any]:
        """The columns with one value in the whole file."""
        snapshot = self.snapshot_id
        return {
            "cluster_id": self.cluster_id,
            "node_id": self.node_id,
            "file": self.file,
            "kind": self.kind,
            "segment": self.segment,
            "snapshot_offset": None if snapshot is None else snapshot.offset,
            "snapshot_epoch": None if snapshot is None else snapshot.epoch,
        }


def chunked(found: Iterable[Item]) -> Iterator[list[Item]]:
    """The batches and damages in groups, each for one Arrow record batch."""
    waiting: list[Item] = []
    rows = size = 0
    for item in found:
        waiting.append(item)
        rows += item.records if isinstance(item, BatchRun) else 1
        size += item.size
        if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield waiting
            waiting, rows, size = [], 0, 0
    if waiting:
        yield waiting


class BatchRows:
    """One row for each record and each damage, in the order of the file.

    look_inside: locate the records in their batches; a batch whose records cannot be separated
        becomes a damage
    """

    def __init__(self, origin: Origin, items: Sequence[Item], *, look_inside: bool = True) -> None:
        self.special_rows: dict[int, Row] = {}
        """The rows of control records and damages, by row index."""
        self._origin = origin.constants()
        self._heads = np.concatenate([_heads(item) for item in items])
        self._positions = np.concatenate([_positions(item) for item in items])
        self._sizes = self._heads["length"].astype(np.int64) + PREFIX_SIZE
        self._sound = np.ones(len(self._heads), np.bool_)
        self._headed = np.ones(len(self._heads), np.bool_)
        self._damages: dict[int, Damage] = {}
        self._located: list[ValueBounds] = []
        self._counts = self._heads["count"].astype(np.int64)
        self._take_apart(items, look_inside)
        self.count = int(self._counts.sum())
        """The number of rows."""
        self._which = np.repeat(np.arange(len(self._counts)), self._counts)
        self.values = RecordValues(self._located)
        """The values of the data records."""

    @property
    def value_places(self) -> Ints:
        """The row index of each value."""
        plain = np.ones(self.count, np.bool_)
        plain[list(self.special_rows)] = False
        return np.flatnonzero(plain)

    def _take_apart(self, items: Sequence[Item], look_inside: bool) -> None:
        """Note damages; with `look_inside` locate values and fill `special_rows`."""
        place = rows = 0
        for item in items:
            if isinstance(item, Damage):
                self._damaged(place, item, rows)
                place, rows = place + 1, rows + 1
            elif look_inside:
                rows = self._look_inside(item, place, rows)
                place += len(item.starts)
            else:
                place, rows = place + len(item.starts), rows + item.records

    def _look_inside(self, run: BatchRun, place: int, rows: int) -> int:
        """Locate the values of a run whose first batch has index `place`; returns the next row."""
        found, plain = plain_records(run)
        counts = run.heads["count"].astype(np.int64)
        done = taken = 0
        for index in np.flatnonzero(~plain).tolist():
            between = int(counts[done:index].sum())
            self._located.append(found.part(slice(taken, taken + between)))
            taken += between
            rows += between
            rows += self._look_closer(run.view(index), place + index, rows)
            done = index + 1
        self._located.append(found.part(slice(taken, None)))
        return rows + int(counts[done:].sum())

    def _look_closer(self, view: BatchView, place: int, rows: int) -> int:
        """The same for one control batch, or one that is not as Kafka writes it; returns its rows."""
        try:
            if view.is_control:
                self.special_rows.update(enumerate(_control_rows(view), rows))
            else:
                self._located.append(concatenated(values(view)))
        except BatchError as error:
            self._damaged(place, Damage(view.position, view.size, str(error), view), rows)
            return 1
        return view.count

    def _damaged(self, place: int, damage: Damage, row: int) -> None:
        self._sound[place] = False
        self._headed[place] = damage.view is not None
        self._damages[place] = damage
        self._counts[place] = 1
        self._sizes[place] = damage.size
        self.special_rows[row] = {"problem": damage.what}

    def header_column(self, name: str, places: Ints | None = None) -> pa.Array:
        """A column that the origin or batch headers fill, of all rows or of those at `places`."""
        kind = COLUMNS[name]
        which = self._which if places is None else self._which[places]
        if name in self._origin:
            return pa.repeat(pa.scalar(self._origin[name], kind), len(which))
        if name == "problem":
            return self._problems(which)
        if name == "offset":
            rows = np.arange(self.count) if places is None else places
            shift = self._heads["base_offset"] - (np.cumsum(self._counts) - self._counts)
            return self._array(rows + shift[which], self._sound, which, kind)
        values, valid = self._header(name)
        return self._array(values[which], valid, which, kind)

    def _header(self, name: str) -> tuple[npt.NDArray[Any], Mask | None]:
        """A header column with a value for each batch, and in which batches it is known."""
        heads = self._heads
        match name:
            case "position":
                return self._positions, None
            case "batch_length":
                return self._sizes, None
            case "base_offset":
                return heads["base_offset"].astype(np.int64), self._headed
            case "last_offset":
                last = heads["base_offset"].astype(np.int64) + heads["last_delta"]
                return last, self._headed
            case "crc_ok":
                return self._crc_ok(), self._headed
            case "crc":
                return heads["crc"].astype(np.int64), self._headed
            case "is_control":
                return heads["attributes"] & CONTROL != 0, self._sound
            case "epoch":
                return heads["epoch"].astype(np.int32), self._sound
            case "timestamp":
                return microseconds(heads["max_timestamp"]), self._sound
        raise ValueError(f"{name} is not a column of batch headers")

    def _crc_ok(self) -> Mask:
        """Whether checksums match: the batches of a run have been verified, damages have a result."""
        right = np.ones(len(self._heads), np.bool_)
        for place, damage in self._damages.items():
            right[place] = damage.view is not None and damage.view.crc_matches
        return right

    def _problems(self, which: Ints) -> pa.Array:
        if not self._damages:
            return pa.nulls(len(which), pa.string())
        texts = np.full(len(self._heads), None, object)
        for place, damage in self._damages.items():
            texts[place] = damage.what
        return pa.array(texts[which], pa.string())

    def _array(
        self, values: npt.NDArray[Any], valid: Mask | None, which: Ints, kind: pa.DataType
    ) -> pa.Array:
        lacking = None if valid is None or valid.all() else ~valid[which]
        return pa.array(values, mask=lacking).cast(kind)


def _heads(item: Item) -> npt.NDArray[Any]:
    if isinstance(item, BatchRun):
        return item.heads
    if item.view is None:
        return _NO_HEADER
    return np.frombuffer(item.view.data[:HEADER_SIZE], HEADER)


def _positions(item: Item) -> Ints:
    if isinstance(item, BatchRun):
        return item.starts + item.origin
    return np.array([item.position], np.int64)


@dataclass(frozen=True, slots=True)
class ValueBounds:
    """The bounds of values in a buffer: starts inclusive, ends exclusive."""

    data: bytes
    starts: Ints
    ends: Ints

    def part(self, which: slice) -> ValueBounds:
        return ValueBounds(self.data, self.starts[which], self.ends[which])


def concatenated(values: Sequence[bytes]) -> ValueBounds:
    """Values one after the other in a new buffer."""
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    ends = np.cumsum(sizes)
    return ValueBounds(b"".join(values), ends - sizes, ends)


def plain_records(run: BatchRun) -> tuple[ValueBounds, Mask]:
    """The values of the plain data batches of a run, and which batches are plain.

    A plain batch has the form in which Kafka writes metadata records: no keys, no headers.
    """
    starts = run.starts + HEADER_SIZE
    ends = run.starts + PREFIX_SIZE + run.heads["length"]
    counts = run.heads["count"].astype(np.int64)
    data = run.heads["attributes"] & CONTROL == 0
    if bulk.available():
        here = bulk.value_bounds(run.data, starts, ends, np.where(data, counts, 0))
        first, last = (np.frombuffer(places, np.int64) for places in here[:2])
        return ValueBounds(run.data, first, last), np.frombuffer(here[2], np.bool_)
    found: list[bytes] = []
    batches = zip(*(each.tolist() for each in (starts, ends, counts)), strict=True)
    for place, batch in enumerate(batches):
        read = plain_values(run.data, *batch) if data[place] else None
        data[place] = read is not None
        found += read or ()
    return concatenated(found), data


class RecordValues:
    """The values of many data records in one buffer."""

    def __init__(self, located: Sequence[ValueBounds]) -> None:
        pieces: list[bytes] = []
        shifts, size = [], 0
        for one in located:
            if not pieces or one.data is not pieces[-1]:
                pieces.append(one.data)
                size += len(one.data)
            shifts.append(size - len(one.data))
        self.data: Bytes = np.frombuffer(b"".join([*pieces, bytes(PADDING)]), np.uint8)
        none: list[Ints] = [np.zeros(0, np.int64)]
        starts = np.concatenate(
            none + [one.starts + shift for one, shift in zip(located, shifts, strict=True)]
        )
        self.ends: Ints = np.concatenate(
            none + [one.ends + shift for one, shift in zip(located, shifts, strict=True)]
        )
        """Exclusive."""
        self.starts: Ints = starts + FRAME
        """Behind the frame."""
        sizes = self.ends - starts
        frame, type_id, version = (self.data[starts + place] for place in range(FRAME))
        plain = (sizes >= FRAME) & (frame == 1) & (type_id < 0x80) & (version < 0x80)
        self._codes = np.where(plain, type_id.astype(np.int64) << 8 | version, -1)

    def __getitem__(self, place: int) -> bytes:
        return self.data[self.starts[place] - FRAME : self.ends[place]].tobytes()

    def kinds(self) -> Iterator[tuple[type[Message], int, Ints]]:
        """(class, version, indices) of large groups of records that `walk` can decode."""
        for code, count in zip(*np.unique(self._codes, return_counts=True), strict=True):
            known = _WALKED.get(int(code))
            if known is not None and count >= _MANY:
                yield *known, np.flatnonzero(self._codes == code)

    def drop(self, passes: Callable[[str], bool]) -> Mask:
        """Leave out records of types whose name does not pass. Returns which were left out."""
        dropped = np.zeros(len(self._codes), np.bool_)
        for code in np.unique(self._codes).tolist():
            known = RECORD_TYPES.get(code >> 8)
            if known is not None and not passes(known.__name__):
                dropped |= self._codes == code
        self._codes[dropped] = -1
        return dropped

    def of_type(self, cls: type[Message]) -> Ints:
        """The indices of the records whose frame has this type."""
        return np.flatnonzero(self._codes >> 8 == cls.schema.key)


def _control_rows(view: BatchView) -> list[Row]:
    return [_control_row(key, value) for key, value in raw_records(view)]


def _control_row(key: bytes | None, value: bytes | None) -> Row:
    row: Row = {"raw": value, "problem": None}
    try:
        type_id = control_type(key)
        row |= {"type_id": type_id, "type": f"unknown-control-{type_id}"}
        if type_id in ControlType.__members__.values():
            row["type"] = CONTROL_NAMES.get(ControlType(type_id), ControlType(type_id).name)
        message = decode_message(key, value)
    except RecordError as error:
        return {**row, "problem": problem_of(error)}
    row |= {"version": message.version, "record": to_json(message, 0)}
    if isinstance(message, LeaderChangeMessage):
        row["leader"] = message.leader_id
    return row
