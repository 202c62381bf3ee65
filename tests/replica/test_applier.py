"""How a state machine is fed: every record once and in order, and what is counted meanwhile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_guarantee
from narrow import as_any
from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState
from quorate.replica.applier import Applier
from quorate.replica.disk_jobs import Job, LogRead, ReadLog, ReadSnapshot, SnapshotRead
from quorate.replica.state_machine import CommittedBatch
from quorate.replica.tail import Tail
from quorate.storage.api import StorageError


class Nibbler:
    """Keeps all values, and of each call takes as many as `bites` says next; then all."""

    def __init__(self, bites: Sequence[int] = ()) -> None:
        self.bites: Iterator[int] = chain(bites, repeat(1 << 30))
        self.kept: list[bytes] = []

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self.kept = []

    def load(self, values: Sequence[bytes]) -> None:
        self.kept += values

    def end_load(self) -> None:
        """Nothing is owed."""

    def apply(self, entry: CommittedBatch) -> int:
        taken = entry.values[: next(self.bites)]
        self.kept += taken
        return len(taken)


@dataclass
class Log:
    """Batches of these values, one after the other; the time of each is 1000 x its end offset."""

    batches: list[list[bytes]]

    def __post_init__(self) -> None:
        self.values = list(chain(*self.batches))
        self.data: dict[int, bytes] = {}
        """The bytes of each batch, by its end offset."""
        for batch in self.batches:
            base = self.end
            end = base + len(batch)
            self.data[end] = encode_batch(base, 1, 1000 * end, batch)

    @property
    def end(self) -> int:
        return max(self.data, default=0)

    def read(self, job: Job, applier: Applier) -> None:
        """Perform a read job."""
        if isinstance(job, ReadLog):
            data = (data for end, data in self.data.items() if job.offset < end <= job.end)
            applier.took(LogRead(job.token, b"".join(data)))
        else:
            assert isinstance(job, ReadSnapshot)
            snapshot = self.snapshot(job.snapshot_id.offset)
            applier.took(SnapshotRead(job.token, len(snapshot), snapshot))

    def snapshot(self, end: int) -> bytes:
        id, values = OffsetAndEpoch(end, 1), self.values[:end]
        return b"".join(encode_snapshot(id, ControlState(0, None), 1000 * end, values, 0))


def applied_in_steps(applier: Applier, log: Log, until: int) -> Iterator[bool]:
    """Feed up to this end offset; after every step, whether it said that there is more to do."""
    token = 0
    while not applier.is_at(until):
        token += 1
        jobs: list[Job] = []
        yield applier.advance(until, Tail(log.end), token, jobs)
        for job in jobs:
            log.read(job, applier)


def test_a_loaded_snapshot_begins_a_new_count():
    applier, log = Applier(as_any(Nibbler())), Log([[b"a", b"b"], [b"c"]])
    assert list(applied_in_steps(applier, log, 2)) == [False, False]
    assert (applier.applied, applier.bytes_applied) == (OffsetAndEpoch(2, 1), len(log.data[2]))
    id = OffsetAndEpoch(3, 1)
    applier.load(id)
    assert list(applied_in_steps(applier, log, 3)) == [False]
    assert (applier.applied, applier.bytes_applied) == (id, 0)
    assert applier.snapshot_size == len(log.snapshot(3))


def test_a_batch_that_was_applied_in_part_ends_its_slice():
    """A snapshot becomes due, however many such batches there are."""
    applier, log = (
        Applier(as_any(Nibbler([1, 1, 2]))),
        Log([[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]]),
    )
    seen = []
    for more in applied_in_steps(applier, log, 6):
        seen.append((more, applier.applied.offset, applier.is_inside_a_batch))
    read, *steps = seen
    assert read == (False, 0, False)
    assert steps == [(True, 0, True), (True, 2, False), (False, 6, False)]


batches = st.lists(
    st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), min_size=1, max_size=12
)


@kafka_guarantee("OffsetControlManagerTest", "endLoadSnapshotFailsWhenNotInSnapshot")
@given(
    batches=batches,
    bites=st.lists(st.integers(0, 8), max_size=60),
    slice_bytes=st.integers(1, 400),
    loads=st.lists(st.none() | st.integers(0, 12), max_size=60),
)
def test_the_machine_gets_every_record_once_and_counts_end_at_batches(
    batches, bites, slice_bytes, loads
):
    """Compared with a list, while snapshots after some steps restart everything."""
    log, machine = Log(batches), Nibbler(bites)
    applier = Applier(as_any(machine), slice_bytes)
    counted_from = 0
    snapshots = iter(loads)
    for more in applied_in_steps(applier, log, log.end):
        at = applier.applied.offset
        if applier.is_inside_a_batch:
            assert more and not applier.is_at(at)
            assert machine.kept[:at] == log.values[:at] != machine.kept
        elif applier.loading is None:
            assert machine.kept == log.values[:at]
        if applier.loading is None:
            whole = {end: data for end, data in log.data.items() if counted_from < end <= at}
            assert at in (counted_from, *whole)
            assert applier.bytes_applied == sum(map(len, whole.values()))
            assert applier.timestamp_ms == 1000 * at
        if (ahead := next(snapshots, None)) is not None:
            ends = [end for end in log.data if end >= at]
            counted_from = ends[min(ahead, len(ends) - 1)]
            applier.load(OffsetAndEpoch(counted_from, 1))
            assert not applier.is_inside_a_batch
    assert machine.kept == log.values
    assert applier.applied == OffsetAndEpoch(log.end, 1)


SNAPSHOT = Log([[b"a value", b"another"], [b"c"]]).snapshot(3)


@given(
    bit=st.integers(0, 8 * len(SNAPSHOT) - 1),
    slice_bytes=st.integers(1, len(SNAPSHOT)) | st.just(1),
)
def test_a_bit_of_a_snapshot_that_rots_before_it_is_loaded_is_found(bit, slice_bytes):
    """It was sound when it was recovered; nothing of its batch comes to the machine."""
    damaged = bytearray(SNAPSHOT)
    damaged[bit // 8] ^= 1 << bit % 8
    machine = Nibbler()
    applier, id = Applier(as_any(machine)), OffsetAndEpoch(3, 1)
    applier.load(id)
    with pytest.raises(StorageError, match=r"00000000000000000003-0000000001\.checkpoint: .*byte"):
        for position in range(0, len(damaged), slice_bytes):
            applier.advance(3, Tail(3), 1, [])
            data = bytes(damaged[position : position + slice_bytes])
            applier.took(SnapshotRead(1, len(damaged), data))
    assert machine.kept in ([], [b"a value", b"another", b"c"])
    assert applier.loading == id


def test_nothing_is_read_while_nothing_is_committed():
    jobs: list[Job] = []
    assert not Applier(as_any(Nibbler())).advance(0, Tail(0, 100), 1, jobs) and not jobs


@pytest.mark.interpreted
def test_a_log_without_a_committed_batch_is_a_defect():
    with pytest.raises(InvariantError, match="no batch at offset 0 of the committed log"):
        Applier(as_any(Nibbler())).advance(5, as_any(SimpleNamespace(read=lambda *_: b"")), 1, [])


def test_a_snapshot_that_goes_while_it_is_loaded_is_a_defect():
    applier = Applier(as_any(Nibbler()))
    jobs: list[Job] = []
    applier.load(OffsetAndEpoch(3, 1))
    applier.advance(3, Tail(3, 100), 1, jobs)
    [read] = jobs
    assert isinstance(read, ReadSnapshot)
    with pytest.raises(InvariantError, match="was removed while it was loaded"):
        applier.took(SnapshotRead(read.token, None, b""))
