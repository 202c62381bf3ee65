"""One object for equal tuples: a million partitions name the same few sets of brokers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.base.ids import Uuid

TABLE_LIMIT: Final = 1 << 16
"""Most entries of a table. A full table starts anew: that costs memory, never correctness."""


class Interner:
    """Hands out a shared tuple for every equal sequence. Not thread-safe; keep one per loader."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._uuids: dict[Uuid, Uuid] = {}
        self._uuid_tuples: dict[tuple[Uuid, ...], tuple[Uuid, ...]] = {}
        self._packed_ids: dict[bytes, tuple[int, ...]] = {}
        self._packed_uuids: dict[bytes, tuple[Uuid, ...]] = {}

    def ids(self, values: Sequence[int]) -> tuple[int, ...]:
        """The shared tuple of these broker ids."""
        wanted = tuple(values)
        found = self._ids.get(wanted)
        if found is None:
            if len(self._ids) >= TABLE_LIMIT:
                self._ids.clear()
            found = self._ids[wanted] = wanted
        return found

    def uuids(self, values: Sequence[Uuid]) -> tuple[Uuid, ...]:
        """The shared tuple of these directory ids; each id is shared too."""
        wanted = tuple(values)
        found = self._uuid_tuples.get(wanted)
        if found is None:
            if len(self._uuid_tuples) >= TABLE_LIMIT:
                self._uuid_tuples.clear()
            found = tuple(map(self._uuid, wanted))
            self._uuid_tuples[found] = found
        return found

    def packed_ids(self, data: bytes) -> tuple[int, ...]:
        """The shared tuple of broker ids that `data` packs as big-endian int32."""
        found = self._packed_ids.get(data)
        if found is None:
            if len(self._packed_ids) >= TABLE_LIMIT:
                self._packed_ids.clear()
            found = self.ids(
                [
                    int.from_bytes(data[at : at + 4], "big", signed=True)
                    for at in range(0, len(data), 4)
                ]
            )
            self._packed_ids[data] = found
        return found

    def packed_uuids(self, data: bytes) -> tuple[Uuid, ...]:
        """The shared tuple of directory ids that `data` packs, 16 bytes each."""
        found = self._packed_uuids.get(data)
        if found is None:
            if len(self._packed_uuids) >= TABLE_LIMIT:
                self._packed_uuids.clear()
            found = self.uuids([Uuid(data[at : at + 16]) for at in range(0, len(data), 16)])
            self._packed_uuids[data] = found
        return found

    def _uuid(self, value: Uuid) -> Uuid:
        if len(self._uuids) >= TABLE_LIMIT:
            self._uuids.clear()
        return self._uuids.setdefault(value, value)
