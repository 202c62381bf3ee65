"""Damaged, torn and foreign directories: cut where a write was interrupted, refused elsewhere."""

from __future__ import annotations

from random import Random

import pytest

from conformance.marker import kafka_scenario
from quorate.base.ids import OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.formats.batch import with_base_offset_and_epoch
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.raft.values import ElectionState
from quorate.storage.api import CorruptLogError, StorageError
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, MemoryStorage
from storage.builders import (
    SMALL,
    data,
    download,
    joined,
    leader_change,
    log_of,
    read_all,
    snapshot_bytes,
    write_snapshot,
)

LOG_FILE = "00000000000000000000.log"
EPOCHS = "leader-epoch-checkpoint"
SNAPSHOT = OffsetAndEpoch(2, 1)
SNAPSHOT_FILE = "00000000000000000002-0000000001.checkpoint"
BATCHES = [*log_of(3), *log_of(3, 4, 3)]
WHOLE = joined(BATCHES)
STARTS = [len(joined(BATCHES[:count])) for count in range(len(BATCHES) + 1)]


def disk_with(batches=BATCHES) -> MemoryDisk:
    """A closed directory with these batches, a snapshot and a vote; one segment."""
    storage = MemoryStorage()
    storage.open()
    storage.append(batches)
    write_snapshot(storage, SNAPSHOT)
    storage.save_election(ElectionState(4, 1, None), 1, ())
    storage.sync()
    storage.close()
    return storage.disk


def crashed_disk_with(batches=BATCHES) -> MemoryDisk:
    """As `disk_with`, without what a node writes when it closes: no index knows an offset."""
    disk = disk_with(batches)
    for name in disk.names():
        if name.endswith("index"):
            disk.remove(name)
    return disk


def opened(disk: MemoryDisk) -> tuple[MemoryStorage, tuple[str, ...]]:
    storage = MemoryStorage(disk)
    return storage, storage.open().notes


def harmed(name: str, content: bytes) -> MemoryDisk:
    disk = disk_with()
    disk.put(name, content)
    return disk


def test_a_log_cut_at_any_byte_ends_with_its_last_whole_batch():
    for size in range(STARTS[3], len(WHOLE)):
        disk = crashed_disk_with()
        disk.put(LOG_FILE, WHOLE[:size])
        storage, notes = opened(disk)
        whole = max(start for start in STARTS if start <= size)
        if size < STARTS[4]:
            said = notes[-1]
            notes = notes[:-1]
            assert "knows epoch 4 from offset 3 on, but the log ends at offset 3" in said
        assert read_all(storage) == WHOLE[:whole]
        assert storage.disk.content(LOG_FILE) == WHOLE[:whole]
        torn = f"cut a torn tail of {size - whole} bytes at byte {whole}, offset"
        assert [torn in note for note in notes] == ([] if size == whole else [True])
        storage.append([leader_change(storage.end_offset, 5)])
        storage.close()
        assert opened(storage.disk)[1] == ()


def test_a_log_cut_below_an_epoch_that_began_is_refused():
    for size in range(STARTS[2], STARTS[3]):
        disk = crashed_disk_with()
        disk.put(LOG_FILE, WHOLE[:size])
        with pytest.raises(CorruptLogError, match=r"ends at offset 2, but .* from offset 3 on"):
            opened(disk)


def test_a_log_cut_below_the_snapshot_is_refused_for_its_epochs():
    """It was dropped, as one that the snapshot had superseded, with all that was behind it."""
    for size in range(STARTS[2]):
        with pytest.raises(
            CorruptLogError, match=r"the log ends at offset \d, but .* knows epoch 4"
        ):
            opened(harmed(LOG_FILE, WHOLE[:size]))


def test_an_empty_log_is_refused_where_an_epoch_is_known():
    """A log cut to nothing was begun anew without a word, and its epoch with other records."""
    disk = disk_with()
    disk.remove(SNAPSHOT_FILE)
    disk.put(LOG_FILE, b"")
    with pytest.raises(CorruptLogError, match=r"the log ends at offset 0, but .* knows epoch 4"):
        opened(disk)


def test_the_first_batch_of_an_epoch_is_durable_before_its_epoch_is_known():
    """So that the epoch of a log that is empty shows a loss, and not a power cut."""
    operations = []
    storage = MemoryStorage(
        MemoryDisk(lambda operation, name: operations.append((operation, name)))
    )
    storage.open()
    for offset, epoch in ((0, 1), (1, 5)):
        operations.clear()
        storage.append([leader_change(offset, epoch)])
        storage.sync()
        assert operations.index(("sync", LOG_FILE)) < operations.index(("sync", EPOCHS + ".tmp"))


@pytest.mark.parametrize("snapshot_offset", [None, 3])
def test_a_power_cut_in_any_moment_of_an_epochs_first_batch_leaves_a_log_that_opens(
    snapshot_offset,
):
    def cut_after(count, seed):
        left = 1000

        def watch(operation, name):
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(5, "the power is gone")

        storage = MemoryStorage(MemoryDisk(watch))
        storage.open()
        if snapshot_offset is not None:
            snapshot_id = OffsetAndEpoch(snapshot_offset, 1)
            download(storage, snapshot_id, snapshot_bytes(snapshot_id))
            storage.install_snapshot(snapshot_id)
        first = storage.end_offset
        left = count
        try:
            storage.append([leader_change(first, 2)])
            storage.sync()
            storage.truncate(first)
            storage.append([leader_change(first, 3)])
            storage.sync()
        except (OSError, StorageError):
            pass
        done = left >= 0
        left = 1000
        storage.crash(Random(seed).random if seed else None).open()
        return done

    count = 0
    while not all(cut_after(count, seed) for seed in range(5)):
        count += 1
    assert count > 8


@pytest.mark.parametrize("filler", [b"\0" * 5000, b"rubbish" * 700, BATCHES[-1].data[:-1]])
@pytest.mark.parametrize("kept", [0, 1, 30, 80])
def test_whatever_an_interrupted_write_left_is_cut(kept, filler):
    tail = data(6, 4).data[:kept] + filler
    storage, notes = opened(harmed(LOG_FILE, WHOLE + tail))
    assert read_all(storage) == WHOLE
    assert f"cut a torn tail of {len(tail)} bytes at byte {len(WHOLE)}, offset 6" in notes[0]
    assert isinstance(notes[0], Warn)


def test_a_missing_vote_is_warned_of_where_there_is_a_log():
    disk = disk_with()
    disk.remove("quorum-state")
    _, notes = opened(disk)
    (said,) = notes
    assert isinstance(said, Warn) and "quorum-state is missing, but the log reaches epoch 4" in said
    _, notes = opened(MemoryDisk())
    assert notes == ()


def test_a_missing_vote_is_refused_where_every_epoch_was_saved_before_its_records():
    disk = disk_with()
    disk.remove("quorum-state")
    says = "quorum-state is missing, but the log reaches epoch 4: it held this replica's vote"
    with pytest.raises(CorruptLogError, match=says):
        MemoryStorage(disk, LogOptions(needs_vote=True)).open()
    _, notes = opened(MemoryDisk())
    assert notes == ()


def test_a_missing_vote_is_missed_where_the_log_has_only_the_beginning_of_a_batch():
    """Seed 17138378: an epoch had been saved before that, too."""
    disk = MemoryDisk()
    disk.put(LOG_FILE, WHOLE[:75])
    says = "quorum-state is missing, but the log has the beginning of a batch"
    with pytest.raises(CorruptLogError, match=says):
        MemoryStorage(disk, LogOptions(needs_vote=True)).open()
    _, notes = opened(disk)
    assert says in notes[-1] and isinstance(notes[-1], Warn)


def test_a_large_torn_tail_is_searched_quickly_for_sound_batches():
    late = data(7, 4).data
    for gap in (4 * 1024 * 1024 - 30, 8 * 1024 * 1024, 9_000_001):
        with pytest.raises(
            CorruptLogError, match=f"a sound batch follows at byte {len(WHOLE) + gap}"
        ):
            opened(harmed(LOG_FILE, WHOLE + b"\0" * gap + late))


def test_a_hole_that_a_power_cut_may_have_left_is_refused_with_what_to_do():
    """Sectors of one group may reach the medium in any order; whether it was acknowledged cannot
    be seen (decision 8)."""
    long = [data(6, 4, size=3000), data(7, 4), data(8, 4)]
    whole = WHOLE + b"".join(batch.data for batch in long)
    holed = bytearray(whole)
    holed[1024:2048] = bytes(1024)
    assert len(WHOLE) < 1024
    with pytest.raises(CorruptLogError) as caught:
        opened(harmed(LOG_FILE, bytes(holed)))
    said = str(caught.value)
    assert f"damaged at byte {len(WHOLE)}, offset 6" in said
    assert "holds zeros, as writes that a power cut lost do" in said
    cut = bytes(holed[: len(WHOLE)])
    assert read_all(opened(harmed(LOG_FILE, cut))[0]) == WHOLE, "what an operator may do by hand"
    for step in ("remove-controller", "storage format --no-initial-controllers", "add-controller"):
        assert step in said
    holed[1024:2048] = b"x" * 1024
    with pytest.raises(CorruptLogError) as caught:
        opened(harmed(LOG_FILE, bytes(holed)))
    assert "power cut" not in str(caught.value)


@pytest.mark.parametrize("bit", [0, 3, 7])
def test_no_flipped_bit_of_the_log_is_ever_served(bit):
    """Each is cut as a torn tail (in the last batch) or refused by name, byte and offset."""
    cut = refused = 0
    for position in range(len(WHOLE)):
        flipped = bytearray(WHOLE)
        flipped[position] ^= 1 << bit
        disk = crashed_disk_with()
        disk.put(LOG_FILE, bytes(flipped))
        try:
            storage, notes = opened(disk)
        except CorruptLogError as error:
            refused += 1
            assert "__cluster_metadata-0" in str(error)
            assert "let the replica join anew" in str(error)
            continue
        cut += 1
        assert position >= STARTS[-2], "only the last batch may be taken for torn"
        assert read_all(storage) == WHOLE[: STARTS[-2]]
        assert "cut a torn tail" in notes[0]
    assert refused >= STARTS[-2]
    assert cut + refused == len(WHOLE)
    assert cut > 0


def test_damage_before_the_last_segment_is_refused_even_at_a_segments_end():
    storage = MemoryStorage(options=SMALL)
    storage.open()
    storage.append(log_of(40))
    storage.close()
    content = storage.disk.content(LOG_FILE)
    storage.disk.put(LOG_FILE, content[:-5])
    with pytest.raises(
        CorruptLogError, match=f"{LOG_FILE}: damaged at byte .*sound segments follow"
    ):
        opened(storage.disk)


def test_a_missing_segment_is_noticed():
    storage = MemoryStorage(options=SMALL)
    storage.open()
    storage.append(log_of(60))
    storage.close()
    segments = sorted(name for name in storage.disk.names() if name.endswith(".log"))
    assert len(segments) > 3
    storage.disk.remove(segments[1])
    with pytest.raises(CorruptLogError, match=f"{segments[2]}: .*records are missing between"):
        opened(storage.disk)


@kafka_scenario("KafkaRaftLogTest", "startupWithInvalidSnapshotState")
def test_a_log_that_begins_late_needs_a_snapshot_that_reaches_there():
    storage = MemoryStorage(options=SMALL)
    storage.open()
    storage.append(log_of(60))
    storage.close()
    segments = sorted(name for name in storage.disk.names() if name.endswith(".log"))
    storage.disk.remove(segments[0])
    with pytest.raises(
        CorruptLogError, match=r"begins at offset \d+, which needs a snapshot .* none;"
    ):
        opened(storage.disk)
    storage.disk.put(SNAPSHOT_FILE, snapshot_bytes(SNAPSHOT))
    with pytest.raises(CorruptLogError, match=f"the newest is {SNAPSHOT_FILE}"):
        opened(storage.disk)


@kafka_scenario(
    "KafkaRaftLogTest",
    "startupWithInvalidSnapshotState",
    "cleanupOlderSnapshots",
    "createRaftLogTruncatesFully",
)
def test_a_snapshot_newer_than_the_log_replaces_it():
    newer = OffsetAndEpoch(9, 7)
    disk = harmed("00000000000000000009-0000000007.checkpoint", snapshot_bytes(newer))
    storage = MemoryStorage(disk)
    found = storage.open()
    assert (found.log.start_offset, found.log.end_offset) == (9, 9)
    assert (found.log.snapshots, found.log.epochs) == ((newer,), ())
    assert "is newer than the log, which ended at offset 6" in found.notes[0]
    assert f"{SNAPSHOT_FILE}: removed" in found.notes[1]


def test_a_snapshot_beyond_the_log_but_of_an_older_epoch_is_refused():
    disk = harmed(
        "00000000000000000009-0000000003.checkpoint", snapshot_bytes(OffsetAndEpoch(9, 3))
    )
    with pytest.raises(CorruptLogError, match="reaches beyond the log's end 6"):
        opened(disk)


def test_snapshots_whose_epochs_go_back_are_refused():
    disk = harmed(
        "00000000000000000004-0000000000.checkpoint", snapshot_bytes(OffsetAndEpoch(4, 0))
    )
    with pytest.raises(CorruptLogError, match="is of an older epoch than"):
        opened(disk)


def test_no_segment_at_all_begins_behind_the_newest_snapshot():
    disk = disk_with()
    for name in disk.names():
        if name.startswith("00000000000000000000.") or name == EPOCHS:
            disk.remove(name)
    storage, _ = opened(disk)
    assert (storage.start_offset, storage.end_offset) == (2, 2)


def without_a_log() -> MemoryDisk:
    disk = crashed_disk_with()
    disk.remove(LOG_FILE)
    return disk


def test_a_log_that_is_gone_is_missed_for_its_epochs():
    with pytest.raises(CorruptLogError, match=r"no segment of the log .* knows epoch 4"):
        opened(without_a_log())


def test_a_log_that_is_gone_is_missed_for_the_vote():
    disk = without_a_log()
    disk.remove(SNAPSHOT_FILE)
    disk.remove(EPOCHS)
    with pytest.raises(
        CorruptLogError, match=r"no segment of the log .* quorum-state is of epoch 4"
    ):
        opened(disk)


def test_a_snapshot_whose_installation_was_interrupted_needs_no_log():
    disk = without_a_log()
    disk.put(EPOCHS, b"0\n1\n1 0\n")
    for name in disk.names():
        if name.endswith("index"):
            disk.remove(name)
    storage, notes = opened(disk)
    assert (storage.start_offset, storage.end_offset) == (2, 2)
    assert not any(isinstance(note, Warn) for note in notes)


def index_entry(relative: int) -> bytes:
    return relative.to_bytes(4, "big") + (1).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("index", "entries", "knows"),
    [("00000000000000000000", index_entry(2), 2), ("00000000000000000003", b"", 3)],
)
def test_a_log_that_is_gone_is_missed_for_what_an_index_knows(index, entries, knows):
    disk = without_a_log()
    disk.put(EPOCHS, b"0\n1\n1 0\n")
    disk.put(f"{index}.index", entries)
    before = {name: disk.open(name).read_at(0, 10_000) for name in disk.names()}
    with pytest.raises(
        CorruptLogError, match=rf"no segment of the log .* knows offset {knows}: rec"
    ):
        opened(disk)
    assert {name: disk.open(name).read_at(0, 10_000) for name in disk.names()} == before


@pytest.mark.parametrize(
    ("epochs", "entries"),
    [
        (b"0\n1\n1 0\n", index_entry(1)),  # the end was below the snapshot of the same epoch
        (b"0\n1\n0 0\n", index_entry(5)),  # an older epoch's tail diverged
    ],
)
def test_an_index_that_an_interrupted_installation_leaves_is_no_proof(epochs, entries):
    disk = without_a_log()
    disk.put(EPOCHS, epochs)
    disk.put(LOG_FILE.replace(".log", ".index"), entries)
    storage, notes = opened(disk)
    assert (storage.start_offset, storage.end_offset) == (2, 2)
    assert isinstance(notes[0], Warn)


def test_a_log_that_is_gone_from_beside_its_index_is_warned_of():
    disk = without_a_log()
    disk.put(EPOCHS, b"0\n1\n1 0\n")
    disk.put(LOG_FILE.replace(".log", ".index"), b"")
    _, notes = opened(disk)
    assert "00000000000000000000.index: its segment is missing, there is no log" in str(notes[0])
    assert isinstance(notes[0], Warn)


@pytest.mark.parametrize("base", [6, 7])
@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
def test_a_last_segment_that_is_gone_is_missed(base, suffix):
    disk = disk_with()
    disk.put(f"{base:020d}.{suffix}", b"")
    with pytest.raises(CorruptLogError, match=f"ends at offset 6, but .* knows offset {base}: rec"):
        opened(disk)
    disk.put(f"{base:020d}.log.deleted", b"")  # Kafka's node was deleting it
    opened(disk)


@pytest.mark.parametrize("preallocated", [0, 1, 4096])
def test_an_emptied_last_segment_is_missed(preallocated):
    index = LOG_FILE.replace(".log", ".index")
    storage = MemoryStorage(options=LogOptions(index_interval=1))
    storage.open()
    storage.append(BATCHES)
    storage.save_election(ElectionState(4, 1, None), 1, ())
    storage.close()
    disk = storage.disk
    entries = disk.content(index) + bytes(8 * preallocated)
    disk.put(index, entries)
    storage, notes = opened(disk)
    storage.close()
    assert notes == ()
    disk.put(index, entries)
    disk.put(LOG_FILE, b"")
    disk.remove(EPOCHS)
    with pytest.raises(CorruptLogError, match=f"ends at offset 0, but {index} knows offset 5: rec"):
        opened(disk)


def test_no_flipped_bit_or_cut_of_a_snapshot_is_ever_served():
    whole = snapshot_bytes(SNAPSHOT)
    broken = [whole[:size] for size in range(len(whole))]
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (position % 8)
        broken.append(bytes(flipped))
    for content in broken:
        with pytest.raises(
            CorruptLogError, match=f"{SNAPSHOT_FILE}: damaged at byte .*move this file"
        ):
            opened(harmed(SNAPSHOT_FILE, content))


@pytest.mark.parametrize("ran", [None, "quorum-state", LOG_FILE, EPOCHS, SNAPSHOT_FILE])
def test_a_damaged_bootstrap_snapshot_of_a_directory_that_never_ran_is_formatted_anew(ran):
    """There is no replica to remove, and nothing to fetch: nobody may have run yet."""
    whole = snapshot_bytes(BOOTSTRAP_SNAPSHOT_ID)
    disk = MemoryDisk()
    disk.put(snapshot_name(BOOTSTRAP_SNAPSHOT_ID), whole[: len(whole) // 2])
    if ran is not None:
        disk.put(ran, disk_with().content(ran))
    with pytest.raises(CorruptLogError) as refused:
        opened(disk)
    assert ("format it anew, with the same voters" in str(refused.value)) == (ran is None)


def test_a_damaged_vote_is_refused_or_is_still_a_vote():
    """JSON has no checksum: a flip may turn one vote into another, but never into a traceback."""
    disk = disk_with()
    content = disk.content("quorum-state")
    refused = 0
    for position in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[position] ^= 1 << bit
            disk.put("quorum-state", bytes(flipped))
            storage = MemoryStorage(disk)
            try:
                assert isinstance(storage.open().election, ElectionState)
                storage.close()
            except CorruptLogError as error:
                assert "quorum-state: " in str(error)
                assert "this replica's vote, which must not be forgotten" in str(error)
                refused += 1
    assert refused > 6 * len(content)


@kafka_scenario("QuorumStateTest", "initializeWithCorruptedStore")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not a line of JSON"),
        (b'{"leaderId":1,"leaderEpoch":', "not a line of JSON"),
        (b'{"leaderId":1,"leaderEpoch":1,"data_version":2}', "data_version 2 is not supported"),
    ],
)
def test_a_vote_that_cannot_be_read_is_refused(content, why):
    with pytest.raises(CorruptLogError, match=f"quorum-state: {why}"):
        opened(harmed("quorum-state", content))


def test_the_epoch_of_a_batch_is_held_against_what_else_is_known():
    """No checksum covers it. Every change of it is refused, up or down, in any batch."""
    for index, batch in enumerate(BATCHES):
        for epoch in set(range(8)) - {batch.epoch}:
            content = bytearray(WHOLE)
            content[STARTS[index] + 12 : STARTS[index] + 16] = epoch.to_bytes(4)
            with pytest.raises(CorruptLogError, match="epoch"):
                opened(harmed(LOG_FILE, bytes(content)))


def test_a_base_offset_that_does_not_follow_is_refused():
    last = with_base_offset_and_epoch(BATCHES[-1].data, 6, 4)
    with pytest.raises(
        CorruptLogError, match="says base offset 6, expected 5; its checksum is right"
    ):
        opened(harmed(LOG_FILE, WHOLE[: STARTS[-2]] + last))


@pytest.mark.parametrize("content", [b"", b"0\n1\n", b"1\n0\n", b"x", b"0\n1\n1 2 3\n", b"\xff"])
def test_leader_epochs_that_cannot_be_read_are_rebuilt_from_the_log(content):
    storage, notes = opened(harmed(EPOCHS, content))
    assert storage.disk.content(EPOCHS) == b"0\n2\n1 0\n4 3\n"
    assert all("written anew from the log" in note for note in notes)


@kafka_scenario("KafkaRaftLogTest", "topicId")
def test_missing_leader_epochs_and_partition_metadata_are_written():
    disk = disk_with()
    disk.remove(EPOCHS)
    disk.remove("partition.metadata")
    storage, notes = opened(disk)
    assert storage.disk.content(EPOCHS) == b"0\n2\n1 0\n4 3\n"
    assert storage.disk.content("partition.metadata").endswith(b"topic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    assert notes == ()


def test_leader_epochs_beyond_the_log_are_dropped():
    storage, _ = opened(harmed(EPOCHS, b"0\n3\n1 0\n4 3\n9 6\n"))
    assert storage.disk.content(EPOCHS) == b"0\n2\n1 0\n4 3\n"


@pytest.mark.parametrize("content", [b"0\n2\n1 2\n4 3\n", b"0\n1\n4 3\n", b"0\n1\n4 5\n"])
def test_leader_epochs_that_begin_inside_the_first_segment_are_what_kafkas_cleaning_leaves(content):
    storage, notes = opened(harmed(EPOCHS, content))
    assert storage.disk.content(EPOCHS) == b"0\n2\n1 0\n4 3\n"
    assert notes == ()


def test_leader_epochs_that_contradict_the_log_are_refused():
    with pytest.raises(CorruptLogError, match="says that offset 4 is of epoch 5, the log says 4"):
        opened(harmed(EPOCHS, b"0\n2\n1 0\n5 4\n"))


def test_a_directory_of_another_topic_is_refused():
    foreign = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg"
    with pytest.raises(CorruptLogError, match="belongs to topic id AAAAAAAAAAAAAAAAAAAAAg"):
        opened(harmed("partition.metadata", foreign))
    with pytest.raises(CorruptLogError, match=r"partition\.metadata.*remove this file"):
        opened(harmed("partition.metadata", b"rubbish"))


def test_a_refused_directory_is_not_changed():
    for name, content in (
        (LOG_FILE, WHOLE[:90] + b"x" * 8 + WHOLE[98:]),
        (SNAPSHOT_FILE, b""),
        ("quorum-state", b""),
        (EPOCHS, b"0\n2\n1 0\n5 4\n"),
    ):
        disk = harmed(name, content)
        disk.put("00000000000000000001-0000000001-7.checkpoint.part", b"stale")
        before = {each: disk.content(each) for each in disk.names()}
        with pytest.raises(StorageError):
            opened(disk)
        assert {each: disk.content(each) for each in disk.names()} == before


def test_stale_files_are_removed_and_foreign_ones_are_left():
    disk = disk_with()
    stale = (
        "00000000000000000005-0000000001-7.checkpoint.part",
        "00000000000000000005-0000000001.checkpoint.deleted",
        "00000000000000000005.log.deleted",
        "00000000000000000005.index",
        "00000000000000000005.timeindex",
        "00000000000000000005.snapshot",
        "quorum-state.tmp",
    )
    for name in (*stale, "notes.txt"):
        disk.put(name, b"x")
    storage, notes = opened(disk)
    assert len(notes) == 4, notes
    assert set(storage.disk.names()).isdisjoint(stale)
    assert "notes.txt" in storage.disk.names()
