"""The checks on histories and disks: each on sound data and on every violation."""

import pytest

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.embed.machine import ENTRY
from quorate.formats.batch import encode_batch
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import encode_snapshot
from quorate.nemesis.checks import linearizable, log_order, nothing_lost, same_prefix
from quorate.nemesis.disk_contents import read_disk
from quorate.nemesis.history import ClientHistory, longest_outage_us
from quorate.nemesis.store import NemesisStore, StoreWrite, bits_set, decode_write
from quorate.nemesis.store_workload import write_number, writes_in_snapshot
from quorate.raft.values import ControlState
from quorate.sim.world.client_op import ClientOp


def put(number, invoked, answered, outcome="ok", key=0):
    return ClientOp(0, number, "put", key, number, None, invoked, answered, outcome)


def get(result, invoked, answered, key=0):
    return ClientOp(1, 0, "get", key, None, None, invoked, answered, "ok", result)


def record(number):
    return ENTRY + StoreWrite(0, number).encode()


def disk_with(directory, *numbers, epoch=1, start=0):
    directory.mkdir(exist_ok=True)
    batches = [
        encode_batch(offset, epoch, 0, [record(n)]) for offset, n in enumerate(numbers, start)
    ]
    (directory / f"{start:020d}.log").write_bytes(b"".join(batches))
    return directory


def log_of(directory, *numbers, **where):
    return read_disk(
        directory.name, disk_with(directory, *numbers, **where), write_number, writes_in_snapshot
    )


def invariants(violations):
    return {one.invariant for one in violations}


OPS = [put(1, 0, 10), put(2, 15, 20), put(3, 30, -1, "unknown"), put(4, 40, 50, "refused")]


# -- the store ----------------------------------------------------------------------------------
def test_a_write_survives_encoding():
    for write in (StoreWrite(3, 7), StoreWrite(3, 8, True, 7), StoreWrite(3, 9, True, None)):
        assert decode_write(write.encode()) == write


def test_a_restored_store_equals_the_original():
    one, other = NemesisStore(), NemesisStore()
    entries = [
        StoreWrite(0, 1),
        StoreWrite(0, 2, True, 1),
        StoreWrite(0, 3, True, 1),
        StoreWrite(1, 70),
    ]
    for offset, write in enumerate(entries):
        done = one.apply(offset, write.encode())
        assert done == (write.value != 3)
    other.restore(one.snapshot())
    for store in (one, other):
        store.apply(9, StoreWrite(1, 71).encode())
    assert other.values == one.values == {0: 2, 1: 71}
    assert other.digest == one.digest
    assert bits_set(bytes(other.applied)) == {1, 2, 3, 70, 71}


@pytest.mark.parametrize("chunks", [[], [b"{}"], [b"{}", b""], [b"no", b""]])
def test_an_invalid_snapshot_is_refused(chunks):
    with pytest.raises(QuorateError, match="no snapshot of the store"):
        NemesisStore().restore(chunks)


# -- histories ----------------------------------------------------------------------------------
def test_a_stale_read_is_found():
    assert linearizable([*OPS, get(2, 25, 35)]) == []
    assert invariants(linearizable([*OPS, get(1, 25, 35)])) == {"linearizability"}


def test_each_write_of_a_history_has_its_own_number():
    history = ClientHistory()
    ops = [history.invoke(0, "put", 1), history.invoke(0, "get", 1), history.invoke(1, "cas", 1, 1)]
    assert [op.value for op in ops] == [1, None, 2]
    assert [op.sequence for op in ops] == [1, 2, 1]


def test_the_longest_time_without_a_write():
    ops = [put(1, 0, 10), put(2, 0, 50), put(3, 0, 60, "unknown"), get(2, 61, 62), put(4, 0, 70)]
    assert longest_outage_us(ops, 75) == 40
    assert longest_outage_us(ops, 200) == 130
    assert longest_outage_us([], 200) == 200


# -- disks --------------------------------------------------------------------------------------
def test_sound_disks_violate_nothing(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2, 3), log_of(tmp_path / "b", 1, 2, 3)]
    assert same_prefix(logs, 3) + nothing_lost(OPS, logs, 3) + log_order(OPS, logs[0], 3) == []


def test_a_lost_write_is_found(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2), log_of(tmp_path / "b", 1)]
    assert invariants(nothing_lost(OPS, logs, 2)) == {"no acknowledged write is lost"}
    assert invariants(nothing_lost(OPS, logs[:1], 1)) == {"no acknowledged write is lost"}


def test_a_refused_write_in_a_log_is_found(tmp_path):
    violations = nothing_lost(OPS, [log_of(tmp_path / "a", 1, 2, 4)], 3)
    assert invariants(violations) == {"no refused write is in a log"}


def test_different_logs_are_found_below_the_committed_offset(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2, 3), log_of(tmp_path / "b", 1, 2, epoch=2)]
    assert invariants(same_prefix(logs, 2)) == {"committed logs are equal"}
    logs = [log_of(tmp_path / "c", 1, 2), log_of(tmp_path / "d", 1, 3)]
    assert invariants(same_prefix(logs, 2)) == {"committed logs are equal"}
    assert same_prefix(logs, 1) == []


def test_a_log_that_is_too_short_is_found(tmp_path):
    violations = same_prefix([log_of(tmp_path / "a", 1)], 2)
    assert invariants(violations) == {"acknowledged records are durable"}


@pytest.mark.parametrize(
    ("numbers", "invariant"),
    [
        ((1, 1), "a write is in the log once"),
        ((1, 9), "a log has requested writes only"),
        ((3, 1), "the log is in real-time order"),
    ],
)
def test_a_log_in_a_wrong_order_is_found(tmp_path, numbers, invariant):
    assert invariants(log_order(OPS, log_of(tmp_path / "a", *numbers), 2)) == {invariant}


def test_a_torn_tail_ends_the_log(tmp_path):
    directory = disk_with(tmp_path / "a", 1, 2, 3)
    path = directory / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    log = read_disk("a", directory, write_number, writes_in_snapshot)
    assert (log.end, log.numbers(9)) == (2, {1, 2})
    assert path.name in log.torn


def test_a_gap_between_segments_is_an_error(tmp_path):
    disk_with(tmp_path / "a", 1, 2)
    disk_with(tmp_path / "a", 3, start=5)
    with pytest.raises(QuorateError, match=r"00005\.log: a gap before it: .* ends at 2"):
        read_disk("a", tmp_path / "a", write_number, writes_in_snapshot)


def snapshot_of(directory, offset, *numbers):
    store = NemesisStore()
    for at, number in enumerate(numbers):
        store.apply(at, StoreWrite(0, number).encode())
    values = [ENTRY + chunk for chunk in store.snapshot()]
    snapshot_id = OffsetAndEpoch(offset, 1)
    path = directory / snapshot_name(snapshot_id)
    path.write_bytes(b"".join(encode_snapshot(snapshot_id, ControlState(0, None), 0, values, 0)))
    return path


def test_a_snapshot_covers_what_the_log_lacks(tmp_path):
    directory = disk_with(tmp_path / "a", 2, start=1)
    assert not read_disk("a", directory, write_number, writes_in_snapshot).is_complete
    snapshot_of(directory, 1, 1)
    log = read_disk("a", directory, write_number, writes_in_snapshot)
    assert log.is_complete
    assert nothing_lost(OPS[:2], [log], 2) == []
    snapshot_of(directory, 2, 2)
    violations = nothing_lost(
        OPS[:2], [read_disk("a", directory, write_number, writes_in_snapshot)], 2
    )
    assert invariants(violations) == {"no acknowledged write is lost"}


def test_a_damaged_snapshot_is_an_error_that_names_the_file(tmp_path):
    path = snapshot_of(disk_with(tmp_path / "a", 1), 1, 1)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(QuorateError, match=path.name):
        read_disk("a", tmp_path / "a", write_number, writes_in_snapshot)


def test_at_least_one_disk_must_have_the_whole_history(tmp_path):
    violations = nothing_lost([], [log_of(tmp_path / "a", 2, start=1)], 2)
    assert invariants(violations) == {"no acknowledged write is lost"}
