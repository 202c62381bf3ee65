"""What every storage promises (`storage.api`), over real files and over memory."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.errors import InvariantError
from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.files import decode_leader_epochs, parse_segment_name
from quorate.raft.values import ControlState, ElectionState, KRaftVersion, Voters
from quorate.storage.api import AppendedBatch, CorruptLogError, StorageError
from quorate.storage.log import LogOptions
from storage.builders import (
    ALL,
    CONTROL,
    VOTER,
    bootstrap,
    claiming,
    data,
    download,
    file_place,
    joined,
    leader_change,
    log_of,
    read_all,
    snapshot_bytes,
    write_snapshot,
)

SNAPSHOT = OffsetAndEpoch(10, 1)


def test_a_new_directory_holds_an_empty_log(place):
    found = place.open()
    assert (found.log.start_offset, found.log.end_offset) == (0, 0)
    assert (found.log.epochs, found.log.snapshots, found.election) == ((), (), None)
    assert found.notes == ()
    assert (place.storage.size, read_all(place.storage)) == (0, b"")


def test_what_was_appended_is_read_back_and_recovered(place):
    place.open()
    log = [bootstrap(0, 1), data(3), data(4, count=3)]
    place.storage.append(log)
    assert read_all(place.storage) == joined(log)
    place.storage.sync()
    found = place.reopen().log
    assert (found.start_offset, found.end_offset, found.epochs) == (0, 7, ((1, 0),))
    assert found.control_records == ((1, KRaftVersion(1)), (2, Voters((VOTER,))))
    assert found.batch_ends == (3, 4, 7)
    assert read_all(place.storage) == joined(log)
    assert place.storage.size == len(joined(log))


@kafka_scenario(
    "KafkaRaftClientFetchTest",
    "fetchMaxBytesAlwaysReturnsAtLeastOneBatch",
    "fetchMaxBytesWithTwoBatches",
    "fetchMaxBytesBatchesInvariants",
)
@kafka_scenario(
    "KafkaRaftLogTest",
    "readRespectsMaxSizeInBytes",
    "logLimitsReturnsLessThanMaxBytes",
    "logLimitsReturnsAtLeastOne",
)
@kafka_guarantee("LeaderStateTest", "updateHighWatermarkMetadata")
@kafka_guarantee("KafkaRaftLogTest", "highWatermarkOffsetMetadata")
@pytest.mark.parametrize("again", [False, True], ids=["from memory", "from disk"])
def test_a_read_gives_whole_batches_within_its_bounds(place, again):
    place.open()
    log = [leader_change(0, 1), data(1, count=4), *[data(offset) for offset in range(5, 40)]]
    place.storage.append(log)
    if again:
        place.reopen()
    storage = place.storage
    one = len(log[2].data)
    assert storage.read(1, ALL, 1) == log[1].data, "at least one batch"
    assert storage.read(3, ALL, 1) == log[1].data, "the batch that holds the offset"
    assert storage.read(1, 4, ALL) == b"", "a batch that reaches beyond the end"
    assert storage.read(1, 5, ALL) == log[1].data
    assert storage.read(5, 8, ALL) == joined(log[2:5])
    assert storage.read(20, ALL, 3 * one) == joined(log[17:20])
    assert storage.read(20, ALL, 3 * one - 1) == joined(log[17:19])
    assert storage.read(6, ALL, 20 * one) == joined(log[3:23]), "across segments"
    assert storage.read(39, ALL, ALL) == log[-1].data
    assert storage.read(40, ALL, ALL) == b"", "the log's end"
    assert storage.read(41, ALL, ALL) == b"", "an offset that was truncated meanwhile"


@pytest.mark.parametrize("end", range(26))
def test_truncation_drops_every_batch_that_reaches_the_offset(place, end):
    place.open()
    log = [*log_of(10), data(10, count=5), *[data(offset) for offset in range(15, 25)]]
    place.storage.append(log)
    place.storage.truncate(end)
    kept = [batch for batch in log if batch.last_offset < end]
    expected_end = kept[-1].last_offset + 1 if kept else 0
    assert (place.storage.end_offset, read_all(place.storage)) == (expected_end, joined(kept))
    more = [leader_change(expected_end, 2), data(expected_end + 1, 2)]
    place.storage.append(more)
    assert read_all(place.storage) == joined(kept + more)
    found = place.reopen().log
    assert found.end_offset == expected_end + 2
    assert found.epochs == (((1, 0), (2, expected_end)) if kept else ((2, 0),))
    assert read_all(place.storage) == joined(kept + more)


@pytest.mark.parametrize("end", range(2, 48))
def test_the_indexes_of_a_truncated_log_are_those_of_a_log_never_longer(tmp_path, end):
    """Recovery rebuilds them from the log alone: the same bytes."""
    place = file_place(tmp_path, LogOptions(segment_bytes=3000, index_interval=150))
    place.open()
    place.storage.append([*log_of(20), data(20, count=9), *[data(at) for at in range(29, 50)]])
    place.storage.truncate(end)
    end = place.storage.end_offset
    place.storage.append([leader_change(end, 2), data(end + 1, 2), data(end + 2, 2)])
    place.storage.close()
    paths = sorted((tmp_path / "__cluster_metadata-0").glob("*index"))
    kept = {path: path.read_bytes() for path in paths}
    for path in paths:
        path.unlink()
    place.reopen()
    place.storage.close()
    assert {path: path.read_bytes() for path in paths} == kept


def test_a_segment_ends_where_an_index_can_name_no_more_offsets(tmp_path):
    """Kafka's index holds int32 offsets, from the segment's base on."""
    place = file_place(tmp_path, LogOptions(segment_ms=1 << 62, index_interval=1))
    place.open()
    log = [leader_change(0, 1), claiming(data(1), 2**31 - 2), data(2**31 - 1), data(2**31)]
    place.storage.append(log)
    segments = sorted((tmp_path / "__cluster_metadata-0").glob("*.log"))
    assert [path.stem for path in segments] == ["00000000000000000000", "00000000002147483648"]
    assert place.reopen().log.end_offset == 2**31 + 1
    assert read_all(place.storage) == joined(log)
    place.storage.close()


def test_truncation_at_every_place_of_a_long_segment(tmp_path, place):
    place.open()
    log = log_of(12, size=70)
    for end in range(12, 0, -1):
        place.storage.append(log[place.storage.end_offset :])
        place.storage.truncate(end)
        assert read_all(place.storage) == joined(log[:end])
    assert place.reopen().log.end_offset == 1


@kafka_scenario("FileQuorumStateStoreTest", "reload")
@pytest.mark.parametrize(
    ("state", "version", "voters", "read_back"),
    [
        (ElectionState(3, 2, None), 1, (), ElectionState(3, 2, None)),
        (
            ElectionState(4, -1, ReplicaKey(7, Uuid(bytes(range(16))))),
            1,
            (),
            ElectionState(4, -1, ReplicaKey(7, Uuid(bytes(range(16))))),
        ),
        (
            ElectionState(5, -1, ReplicaKey(7, Uuid(bytes(range(16))))),
            0,
            (1, 7),
            ElectionState(5, -1, ReplicaKey(7, ZERO_UUID)),
        ),
    ],
)
def test_the_vote_survives(place, state, version, voters, read_back):
    place.open()
    place.storage.save_election(ElectionState(1, 1, None), 1, ())
    place.storage.save_election(state, version, voters)
    assert place.reopen().election == read_back


@kafka_scenario("SnapshotWriterReaderTest", "writingSnapshot")
def test_a_snapshot_of_our_own_appears_when_it_is_frozen(place):
    place.open()
    place.storage.append(log_of(12))
    whole = snapshot_bytes(SNAPSHOT)
    writer = place.storage.create_snapshot(SNAPSHOT)
    writer.append(whole)
    assert place.storage.snapshots() == ()
    writer.freeze()
    writer.abort()
    (info,) = place.storage.snapshots()
    assert (info.id, info.size, info.last_contained_log_timestamp) == (SNAPSHOT, len(whole), 5010)
    assert place.storage.snapshot_size(SNAPSHOT) == len(whole)
    assert place.storage.read_snapshot(SNAPSHOT, 0, 50) == whole[:50]
    assert place.storage.read_snapshot(SNAPSHOT, 50, ALL) == whole[50:]
    assert place.storage.read_snapshot(SNAPSHOT, len(whole), 10) == b""
    found = place.reopen()
    assert (found.log.snapshots, found.log.snapshot_control) == ((SNAPSHOT,), CONTROL)
    assert place.storage.snapshots() == (info,)
    assert (found.log.start_offset, found.log.end_offset) == (0, 12)


@pytest.mark.parametrize(("at", "what"), [(7, "base offset"), (0, "base offset"), (15, "epoch")])
@pytest.mark.parametrize("number", [0, 1, 6, 9, 30])
def test_a_batch_whose_place_or_epoch_rots_is_never_served(tmp_path, number, at, what):
    """No checksum covers its base offset and its epoch."""
    place = file_place(tmp_path)
    place.open()
    log = [leader_change(0, 1), *[data(n) for n in range(1, 9)], leader_change(9, 2)]
    log += [data(n, 2) for n in range(10, 40)]
    place.storage.append(log)
    place.storage.sync()
    segments = sorted(tmp_path.rglob("*.log"))
    file = next(s for s in reversed(segments) if parse_segment_name(s.name) <= number)
    before = sum(len(batch.data) for batch in log[parse_segment_name(file.name) : number])
    with file.open("r+b") as raw:
        raw.seek(before + at)
        byte = raw.read(1)[0]
        raw.seek(before + at)
        raw.write(bytes([byte ^ 1 << 1]))
    with pytest.raises(StorageError, match=f"{file}: bytes that were sound .* says {what}"):
        read_all(place.storage)
    with pytest.raises(StorageError, match=f"says {what}"):
        place.storage.read(number, number + 1, ALL)
    with pytest.raises(StorageError, match=f"says {what}"):
        place.storage.truncate(number + 1)


def test_a_log_truncated_to_its_start_inside_a_segment_goes_on_in_a_later_epoch(place):
    """Seed 15000108: what the segment has before the start is of an epoch that is forgotten."""
    place.open()
    place.storage.append(log_of(6))
    write_snapshot(place.storage, OffsetAndEpoch(4, 1))
    place.storage.clean(OffsetAndEpoch(4, 1))
    place.storage.truncate(4)
    log = [leader_change(4, 2), data(5, 2)]
    place.storage.append(log)
    assert place.storage.start_offset == 4
    assert read_all(place.storage) == joined(log)
    place.storage.truncate(5)
    assert read_all(place.storage) == joined(log[:1])
    place.storage.sync()
    place.reopen()
    assert place.storage.read(4, ALL, ALL) == joined(log[:1])


@kafka_scenario("SnapshotWriterReaderTest", "abortedSnapshot")
def test_an_aborted_snapshot_leaves_nothing(place):
    place.open()
    writer = place.storage.create_snapshot(SNAPSHOT)
    writer.append(snapshot_bytes(SNAPSHOT))
    writer.abort()
    assert place.storage.snapshots() == ()
    assert place.storage.snapshot_size(SNAPSHOT) is None
    with pytest.raises(StorageError, match="not \\(any more\\) in"):
        place.storage.read_snapshot(SNAPSHOT, 0, 1)
    found = place.reopen()
    assert (found.log.snapshots, found.notes) == ((), ())


def test_half_a_snapshot_cannot_be_frozen(place):
    place.open()
    writer = place.storage.create_snapshot(SNAPSHOT)
    with pytest.raises(InvariantError, match="without header and footer"):
        writer.freeze()
    writer.abort()


@kafka_scenario("KafkaRaftLogTest", "cleanupPartialSnapshots")
def test_an_unfinished_snapshot_is_removed_at_the_next_start(place):
    place.open()
    place.storage.create_snapshot(SNAPSHOT).append(snapshot_bytes(SNAPSHOT))
    download(place.storage, OffsetAndEpoch(20, 2), snapshot_bytes(OffsetAndEpoch(20, 2)))
    found = place.reopen()
    assert found.log.snapshots == ()
    assert [note.split()[-5:] for note in found.notes] == [
        ["removed,", "no", "longer", "of", "use"]
    ] * 2


@kafka_scenario(
    "KafkaRaftLogTest", "truncateFullyToLatestSnapshot", "truncateWillRemoveOlderSnapshot"
)
def test_a_downloaded_snapshot_replaces_the_log(place):
    place.open()
    place.storage.append(log_of(30))
    write_snapshot(place.storage, SNAPSHOT)
    newer = OffsetAndEpoch(100, 3)
    download(place.storage, newer, snapshot_bytes(newer))
    place.storage.install_snapshot(newer)
    assert (place.storage.start_offset, place.storage.end_offset) == (100, 100)
    assert (place.storage.size, read_all(place.storage)) == (0, b"")
    assert [info.id for info in place.storage.snapshots()] == [newer]
    more = [leader_change(100, 4), data(101, 4)]
    place.storage.append(more)
    found = place.reopen()
    assert (found.log.start_offset, found.log.end_offset) == (100, 102)
    assert (found.log.epochs, found.log.snapshots) == (((4, 100),), (newer,))
    assert found.log.snapshot_control == ControlState(1, (VOTER,))
    assert read_all(place.storage) == joined(more)


def test_a_download_can_begin_anew_and_be_abandoned(place):
    place.open()
    whole = snapshot_bytes(SNAPSHOT)
    place.storage.write_chunk(SNAPSHOT, 0, b"something else")
    download(place.storage, SNAPSHOT, whole)
    place.storage.abandon_download(OffsetAndEpoch(99, 9))
    place.storage.install_snapshot(SNAPSHOT)
    assert place.storage.read_snapshot(SNAPSHOT, 0, ALL) == whole
    other = OffsetAndEpoch(20, 2)
    download(place.storage, other, snapshot_bytes(other))
    place.storage.abandon_download(other)
    with pytest.raises(CorruptLogError, match="nothing of snapshot"):
        place.storage.install_snapshot(other)
    assert place.reopen().log.snapshots == (SNAPSHOT,)


@pytest.mark.parametrize(
    "harm",
    [
        lambda whole: whole[:-1],
        lambda whole: whole[: whole.rindex(b"two")],
        lambda whole: whole + b"x",
        lambda whole: whole + whole,
        lambda whole: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        lambda whole: b"",
        lambda whole: joined(log_of(3)),
        lambda whole: snapshot_bytes(OffsetAndEpoch(10, 2)),
    ],
    ids=["cut", "half", "more", "twice", "flipped", "empty", "a log", "another epoch"],
)
def test_a_damaged_download_is_refused_and_the_log_stays(place, harm):
    place.open()
    log = log_of(5)
    place.storage.save_election(ElectionState(1), 1, ())
    place.storage.append(log)
    place.storage.write_chunk(SNAPSHOT, 0, harm(snapshot_bytes(SNAPSHOT)))
    with pytest.raises(CorruptLogError, match=r"00000000000000000010-0000000001\.checkpoint"):
        place.storage.install_snapshot(SNAPSHOT)
    place.storage.append([data(5)])
    place.storage.sync()
    assert read_all(place.storage) == joined([*log, data(5)])
    found = place.reopen()
    assert (found.log.snapshots, found.log.end_offset, found.notes) == ((), 6, ())


def test_a_download_older_than_our_own_snapshot_is_refused(place):
    place.open()
    place.storage.append(log_of(12))
    write_snapshot(place.storage, SNAPSHOT)
    older = OffsetAndEpoch(5, 2)
    download(place.storage, older, snapshot_bytes(older))
    with pytest.raises(CorruptLogError, match=r"older than 0+10-0+1\.checkpoint"):
        place.storage.install_snapshot(older)
    assert read_all(place.storage) == joined(log_of(12))
    assert place.reopen().log.snapshots == (SNAPSHOT,)


@kafka_scenario(
    "KafkaRaftLogTest", "advanceLogStartOffsetAfterCleaning", "segmentsLessThanLatestSnapshot"
)
def test_cleaning_drops_older_snapshots_and_whole_segments(place):
    place.open()
    log = log_of(60)
    place.storage.append(log)
    before = place.storage.size
    older, kept = OffsetAndEpoch(20, 1), OffsetAndEpoch(45, 1)
    write_snapshot(place.storage, older)
    write_snapshot(place.storage, kept)
    place.storage.clean(kept)
    assert (place.storage.start_offset, place.storage.end_offset) == (45, 60)
    assert [info.id for info in place.storage.snapshots()] == [kept]
    assert place.storage.size < before / 2
    assert place.storage.read(44, ALL, ALL) == b""
    assert read_all(place.storage) == joined(log[45:])
    found = place.reopen().log
    assert 30 < found.start_offset <= 45, "that of the first segment that is kept"
    assert (found.end_offset, found.snapshots) == (60, (kept,))
    assert found.epochs == ((1, found.start_offset),)
    assert read_all(place.storage) == joined(log[found.start_offset :])


def test_cleaning_to_the_logs_end_keeps_the_last_segment(place):
    place.open()
    log = log_of(60)
    place.storage.append(log)
    at_end = OffsetAndEpoch(60, 1)
    write_snapshot(place.storage, at_end)
    place.storage.clean(at_end)
    assert (place.storage.start_offset, read_all(place.storage)) == (60, b"")
    place.storage.append([data(60)])
    assert read_all(place.storage) == data(60).data
    assert place.reopen().log.end_offset == 61


def test_an_epoch_whose_records_are_all_cleaned_is_forgotten(place):
    place.open()
    place.storage.append(log_of(11))
    place.storage.append([data(11)])
    place.storage.sync()
    write_snapshot(place.storage, OffsetAndEpoch(11, 1))
    place.storage.truncate(11)
    place.storage.clean(OffsetAndEpoch(11, 1))
    assert place.storage.size == 0, "the first segment is gone, the second one is empty"
    place.storage.append([leader_change(11, 5)])
    assert place.reopen().log.epochs == ((5, 11),)


def test_the_file_of_epochs_begins_where_the_log_does(tmp_path):
    """A Java node that is started on this directory believes it."""
    directory = tmp_path / "__cluster_metadata-0"

    def said():
        return decode_leader_epochs((directory / "leader-epoch-checkpoint").read_bytes())

    place = file_place(tmp_path)
    place.open()
    place.storage.append([*log_of(20, 1), *log_of(20, 3, 20), *log_of(20, 4, 40)])
    assert said() == ((1, 0), (3, 20), (4, 40))
    kept = OffsetAndEpoch(45, 4)
    write_snapshot(place.storage, kept)
    place.storage.clean(kept)
    first = min(int(path.stem) for path in directory.glob("*.log"))
    assert said() == ((4, first),) and 40 < first <= 45
    place.storage.close()


def test_epochs_are_recovered_from_the_log(place):
    place.open()
    log = [*log_of(5, 1), *log_of(5, 3, 5), *log_of(20, 4, 10)]
    place.storage.append(log)
    assert place.reopen().log.epochs == ((1, 0), (3, 5), (4, 10))
    place.storage.truncate(12)
    assert place.reopen().log.epochs == ((1, 0), (3, 5), (4, 10))
    place.storage.truncate(10)
    assert place.reopen().log.epochs == ((1, 0), (3, 5))


@kafka_scenario("KafkaRaftLogTest", "unexpectedAppendOffset", "invalidLeaderEpoch")
@kafka_scenario("BatchAccumulatorTest", "invalidControlRecordOffset", "invalidControlRecordEpoch")
def test_bytes_that_are_not_what_they_should_be_are_not_appended(place):
    place.open()
    place.storage.append(log_of(3))
    good = data(3)
    for wrong in (
        AppendedBatch(3, 3, 1, good.data[:-1]),
        AppendedBatch(3, 3, 1, good.data[:-1] + b"x"),
        AppendedBatch(3, 4, 1, good.data),
        AppendedBatch(3, 3, 2, good.data),
        data(4),
        data(2),
        data(3, epoch=0),
    ):
        with pytest.raises(InvariantError, match="an appended batch"):
            place.storage.append([wrong])
        place.reopen()
        assert read_all(place.storage) == joined(log_of(3))


def test_nothing_works_before_open_and_after_close(place):
    for _ in range(2):
        for call in (
            lambda: place.storage.append([]),
            lambda: place.storage.sync(),
            lambda: place.storage.read(0, 1, 1),
            lambda: place.storage.snapshots(),
            lambda: place.storage.end_offset,
            lambda: place.storage.save_election(ElectionState(), 1, ()),
        ):
            with pytest.raises(StorageError, match=r"is not open|is closed"):
                call()
        place.open()
        place.storage.close()
        place.storage.close()


def test_a_directory_is_opened_by_one_only(place):
    place.open()
    with pytest.raises(StorageError, match=r"cannot lock .*another node uses this directory"):
        place._make().open()
    assert place.reopen().log.end_offset == 0
