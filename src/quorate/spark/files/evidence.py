"""What the files of a log show about its history: batches at given offsets, voters of snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, Uuid
from quorate.formats.batch import BatchView, raw_records
from quorate.formats.control import VotersRecord, decode_message
from quorate.formats.errors import BatchError, RecordError
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.histories import BatchMark, LogEvidence
from quorate.spark.files.paths import SourceFile
from quorate.spark.files.scan import BatchRun, runs, scan

_ENOUGH: Final = 16
"""Batches that are compared: more than one, since the first ones may be damaged."""
_NEAR: Final = 4 << 20
"""Bytes that are scanned rather than searched."""


class LogFiles(Protocol):
    """The files of a log, or single ones of it."""

    @property
    def path(self) -> str: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def segments(self) -> tuple[tuple[int, SourceFile], ...]: ...
    @property
    def snapshots(self) -> tuple[tuple[OffsetAndEpoch, SourceFile], ...]: ...
    @property
    def directory_id(self) -> Uuid | None: ...


def evidence_of(logs: Iterable[LogFiles], readers: FileReaders) -> list[LogEvidence]:
    """The evidence of each directory; single files of one directory count as one log."""
    by_path: dict[str, list[LogFiles]] = {}
    for log in logs:
        by_path.setdefault(log.path, []).append(log)
    return [_LogReader(path, parts, readers).evidence() for path, parts in by_path.items()]


@dataclass(slots=True)
class _LogReader:
    """The files of one log; what was read of them is kept."""

    path: str
    parts: Sequence[LogFiles]
    readers: FileReaders
    segments: list[tuple[int, SourceFile]] = field(init=False)
    _marks: dict[int, tuple[BatchMark, ...]] = field(default_factory=dict)
    _voters: frozenset[Uuid] | None = None

    def __post_init__(self) -> None:
        self.segments = sorted({pair for log in self.parts for pair in log.segments}, key=_first)

    def evidence(self) -> LogEvidence:
        return LogEvidence(
            self.path,
            self.segments[0][0] if self.segments else None,
            self.marks_from,
            self.segment_starts,
            tuple(sorted({end for log in self.parts for end, _ in log.snapshots})),
            next((log.directory_id for log in self.parts if log.directory_id is not None), None),
            self.voters,
        )

    def marks_from(self, offset: int) -> Sequence[BatchMark]:
        if offset not in self._marks:
            found = islice(self._batches(offset), _ENOUGH)
            self._marks[offset] = tuple(found)
        return self._marks[offset]

    def segment_starts(self) -> Sequence[BatchMark]:
        firsts = (self.marks_from(base) for base, _ in self.segments)
        return [marks[0] for marks in firsts if marks]

    def voters(self) -> frozenset[Uuid]:
        if self._voters is None:
            snapshots = sorted({pair for log in self.parts for pair in log.snapshots}, key=_first)
            files = dict.fromkeys(file for _, file in (*snapshots[:1], *snapshots[-1:]))
            self._voters = frozenset().union(*map(self._voters_of, files))
        return self._voters

    def _batches(self, offset: int) -> Iterator[BatchMark]:
        """The batches from the one that holds the offset on."""
        bases = [base for base, _ in self.segments]
        place = max((n for n, base in enumerate(bases) if base <= offset), default=0)
        for number in range(place, len(bases)):
            base, file = self.segments[number]
            position = self._near(file, offset) if base < offset else 0
            expected = base if position == 0 else None
            for mark, count in self._chain(file, position, expected):
                if mark.offset + count > offset:
                    yield mark

    def _near(self, file: SourceFile, offset: int) -> int:
        """The position of a batch at or before an offset, found by halving the file."""
        low, high = 0, file.size
        while high - low > _NEAR and file.seekable:
            middle = (low + high) // 2
            found = next(self._chain(file, middle, None, middle + 1), None)
            if found is None or found[0].offset > offset:
                high = middle
            else:
                low = middle
        return low

    def _chain(
        self, file: SourceFile, position: int, expected: int | None, end: int | None = None
    ) -> Iterator[tuple[BatchMark, int]]:
        """(batch, number of its offsets) of the sound batches.

        A checksum does not cover the base offset: where the next batch shows that it is damaged, the
        batch counts with the offset that it should have.
        """
        for found in runs(self.readers.reader(file), file.size, position, end):
            if not isinstance(found, BatchRun):
                expected = None
                continue
            heads = found.heads
            bases, counts = heads["base_offset"].tolist(), heads["count"].tolist()
            for n, (base, count) in enumerate(zip(bases, counts, strict=True)):
                after = bases[n + 1] if n + 1 < len(bases) else None
                if expected is not None and base != expected and after in (None, expected + count):
                    base = expected
                epoch, crc = int(heads["epoch"][n]), int(heads["crc"][n])
                yield BatchMark(base, epoch, crc, int(heads["max_timestamp"][n])), count
                expected = base + count

    def _voters_of(self, file: SourceFile) -> frozenset[Uuid]:
        header = next(iter(scan(self.readers.reader(file), file.size, 0, 1)), None)
        if not isinstance(header, BatchView) or not header.is_control:
            return frozenset()
        try:
            records = [decode_message(key, value) for key, value in raw_records(header)]
        except (BatchError, RecordError):
            return frozenset()  # the audit and the source report it
        voters = (
            one for record in records if isinstance(record, VotersRecord) for one in record.voters
        )
        return frozenset(voter.voter_directory_id for voter in voters) - {ZERO_UUID}


def _first(pair: tuple[Any, SourceFile]) -> Any:
    return pair[0]
