"""The checks on histories and disks, each on what it must let pass and what it must catch."""

import pytest

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.embed.machine import ENTRY
from quorate.formats.batch import encode_batch
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import encode_snapshot
from quorate.nemesis.checks import linearizable, log_order, nothing_lost, same_prefix
from quorate.nemesis.harvest import harvest
from quorate.nemesis.history import History, longest_outage_us
from quorate.nemesis.store import Store, Write, decode_write, marked
from quorate.nemesis.stores import number_of, seen_in
from quorate.raft.values import ControlState
from quorate.sim.observe import ClientOp


def put(number, invoked, answered, outcome="ok", key=0):
    return ClientOp(0, number, "put", key, number, None, invoked, answered, outcome)


def get(result, invoked, answered, key=0):
    return ClientOp(1, 0, "get", key, None, None, invoked, answered, "ok", result)


def record(number):
    return ENTRY + Write(0, number).encode()


def disk_with(directory, *numbers, epoch=1, start=0):
    directory.mkdir(exist_ok=True)
    batches = [
        encode_batch(offset, epoch, 0, [record(n)]) for offset, n in enumerate(numbers, start)
    ]
    (directory / f"{start:020d}.log").write_bytes(b"".join(batches))
    return directory


def log_of(directory, *numbers, **where):
    return harvest(directory.name, disk_with(directory, *numbers, **where), number_of, seen_in)


def promises(broken):
    return {one.promise for one in broken}


OPS = [put(1, 0, 10), put(2, 15, 20), put(3, 30, -1, "unknown"), put(4, 40, 50, "refused")]


# -- the store ----------------------------------------------------------------------------------
def test_a_write_is_what_it_was():
    for write in (Write(3, 7), Write(3, 8, True, 7), Write(3, 9, True, None)):
        assert decode_write(write.encode()) == write


def test_a_store_restored_goes_on_as_the_one_it_came_from():
    one, other = Store(), Store()
    entries = [Write(0, 1), Write(0, 2, True, 1), Write(0, 3, True, 1), Write(1, 70)]
    for offset, write in enumerate(entries):
        done = one.apply(offset, write.encode())
        assert done == (write.value != 3)
    other.restore(one.snapshot())
    for store in (one, other):
        store.apply(9, Write(1, 71).encode())
    assert other.values == one.values == {0: 2, 1: 71}
    assert other.digest == one.digest
    assert marked(other.seen) == {1, 2, 3, 70, 71}


@pytest.mark.parametrize("chunks", [[], [b"{}"], [b"{}", b""], [b"no", b""]])
def test_what_is_no_snapshot_is_refused(chunks):
    with pytest.raises(QuorateError, match="no snapshot of the store"):
        Store().restore(chunks)


# -- histories ----------------------------------------------------------------------------------
def test_a_stale_read_is_caught():
    assert linearizable([*OPS, get(2, 25, 35)]) == []
    assert promises(linearizable([*OPS, get(1, 25, 35)])) == {"linearizability"}


def test_numbers_of_a_history_are_its_own():
    history = History()
    ops = [history.invoke(0, "put", 1), history.invoke(0, "get", 1), history.invoke(1, "cas", 1, 1)]
    assert [op.value for op in ops] == [1, None, 2]
    assert [op.sequence for op in ops] == [1, 2, 1]


def test_the_longest_time_without_a_write():
    ops = [put(1, 0, 10), put(2, 0, 50), put(3, 0, 60, "unknown"), get(2, 61, 62), put(4, 0, 70)]
    assert longest_outage_us(ops, 75) == 40
    assert longest_outage_us(ops, 200) == 130
    assert longest_outage_us([], 200) == 200


# -- disks --------------------------------------------------------------------------------------
def test_disks_that_keep_their_promises(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2, 3), log_of(tmp_path / "b", 1, 2, 3)]
    assert same_prefix(logs, 3) + nothing_lost(OPS, logs, 3) + log_order(OPS, logs[0], 3) == []


def test_a_lost_write_is_caught(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2), log_of(tmp_path / "b", 1)]
    assert promises(nothing_lost(OPS, logs, 2)) == {"no acknowledged write is lost"}
    assert promises(nothing_lost(OPS, logs[:1], 1)) == {"no acknowledged write is lost"}


def test_a_refused_write_that_was_done_is_caught(tmp_path):
    broken = nothing_lost(OPS, [log_of(tmp_path / "a", 1, 2, 4)], 3)
    assert promises(broken) == {"what was refused is never done"}


def test_logs_that_differ_are_caught_below_what_is_committed(tmp_path):
    logs = [log_of(tmp_path / "a", 1, 2, 3), log_of(tmp_path / "b", 1, 2, epoch=2)]
    assert promises(same_prefix(logs, 2)) == {"the committed log is the same everywhere"}
    logs = [log_of(tmp_path / "c", 1, 2), log_of(tmp_path / "d", 1, 3)]
    assert promises(same_prefix(logs, 2)) == {"the committed log is the same everywhere"}
    assert same_prefix(logs, 1) == []


def test_a_log_that_is_too_short_is_caught(tmp_path):
    broken = same_prefix([log_of(tmp_path / "a", 1)], 2)
    assert promises(broken) == {"what every voter acknowledged is durable"}


@pytest.mark.parametrize(
    ("numbers", "promise"),
    [
        ((1, 1), "a write is done once"),
        ((1, 9), "only what clients asked is done"),
        ((3, 1), "the log keeps the order of what clients saw"),
    ],
)
def test_a_log_in_a_wrong_order_is_caught(tmp_path, numbers, promise):
    assert promises(log_order(OPS, log_of(tmp_path / "a", *numbers), 2)) == {promise}


def test_a_torn_tail_ends_the_log(tmp_path):
    directory = disk_with(tmp_path / "a", 1, 2, 3)
    path = directory / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:-5])
    log = harvest("a", directory, number_of, seen_in)
    assert (log.end, log.numbers(9)) == (2, {1, 2})
    assert path.name in log.torn


def test_a_gap_between_segments_is_an_error(tmp_path):
    disk_with(tmp_path / "a", 1, 2)
    disk_with(tmp_path / "a", 3, start=5)
    with pytest.raises(QuorateError, match=r"00005\.log: a gap before it: .* ends at 2"):
        harvest("a", tmp_path / "a", number_of, seen_in)


def snapshot_of(directory, offset, *numbers):
    store = Store()
    for at, number in enumerate(numbers):
        store.apply(at, Write(0, number).encode())
    values = [ENTRY + chunk for chunk in store.snapshot()]
    snapshot_id = OffsetAndEpoch(offset, 1)
    path = directory / snapshot_name(snapshot_id)
    path.write_bytes(b"".join(encode_snapshot(snapshot_id, ControlState(0, None), 0, values, 0)))
    return path


def test_a_snapshot_tells_of_what_the_log_lacks(tmp_path):
    directory = disk_with(tmp_path / "a", 2, start=1)
    assert not harvest("a", directory, number_of, seen_in).is_complete
    snapshot_of(directory, 1, 1)
    log = harvest("a", directory, number_of, seen_in)
    assert log.is_complete
    assert nothing_lost(OPS[:2], [log], 2) == []
    snapshot_of(directory, 2, 2)
    broken = nothing_lost(OPS[:2], [harvest("a", directory, number_of, seen_in)], 2)
    assert promises(broken) == {"no acknowledged write is lost"}


def test_a_damaged_snapshot_is_an_error_that_names_it(tmp_path):
    path = snapshot_of(disk_with(tmp_path / "a", 1), 1, 1)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(QuorateError, match=path.name):
        harvest("a", tmp_path / "a", number_of, seen_in)


def test_without_one_whole_history_nothing_can_be_said(tmp_path):
    broken = nothing_lost([], [log_of(tmp_path / "a", 2, start=1)], 2)
    assert promises(broken) == {"no acknowledged write is lost"}
