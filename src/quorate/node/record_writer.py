"""From the records of a decision to parts that are applied to the head, in bounded steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from quorate.controller.head import Head
from quorate.metadata.errors import ReplayError
from quorate.node.record_parts import encode, part_ends
from quorate.wire.schema import Message

STEP_RECORDS: Final = 500
"""Records that are encoded, or applied to the head, in one step: some milliseconds of work."""


class UnwritableRecordError(ReplayError):
    """A decision made a record that no node could apply. Nothing of its part is written.

    is_head_unchanged: the head is as it was before the part.
    """

    def __init__(self, text: str, *, is_head_unchanged: bool) -> None:
        super().__init__(text)
        self.is_head_unchanged = is_head_unchanged


class RecordWriter:
    """Encodes records and applies them to the head."""

    def __init__(self, head: Head, room: int) -> None:
        """room: bytes of records that fit one batch, as `size_in_batch` counts."""
        self._head = head
        self._room = room

    def parts(
        self, name: str, records: Sequence[Message], atomic: bool
    ) -> Iterator[list[bytes] | None]:
        """The values of each part, to be submitted as it comes; None: a pause.

        1. Encode all: the parts follow from their sizes. A refusal leaves the head as it is.
        2. Apply a part to the head, then yield it. Until it is submitted the head has records that
           the replica does not know: no other write may be decided meanwhile.

        name: of the operation, for the texts of errors. Raises ApiError where the records fit no
        batch, ValueError where they are too many, UnwritableRecordError.
        """
        version = self._head.image.features.metadata_version
        values: list[bytes] = []
        for start, end in _pieces(0, len(records)):
            values += [encode(record, version) for record in records[start:end]]
            if end < len(records):
                yield None
        first = done = 0
        for last in part_ends(name, atomic, values, self._room):
            for start, end in _pieces(first, last):
                if done + end - start > STEP_RECORDS:
                    yield None
                    done = 0
                self._apply(name, records[start:end], values[start:end], is_first=start == first)
                done += end - start
            yield values[first:last]
            first = last

    def _apply(
        self, name: str, records: Sequence[Message], values: list[bytes], *, is_first: bool
    ) -> None:
        try:
            self._head.apply(records, values)
        except Exception as error:
            # Every node would fail to apply it: nothing may be written (a fatal fault of Kafka's).
            reason = str(error) if isinstance(error, ReplayError) else repr(error)
            text = f"{name} made records that no node can apply: {reason}"
            # A ReplayError leaves the head as it was; another exception may come in the middle of a change.
            unchanged = is_first and isinstance(error, ReplayError)
            raise UnwritableRecordError(text, is_head_unchanged=unchanged) from error


def _pieces(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The range [start, end) in pieces of STEP_RECORDS."""
    return ((at, min(at + STEP_RECORDS, end)) for at in range(start, end, STEP_RECORDS))
