"""What the shell reads of snapshots and logs, and what it refuses."""

import gc

import pytest

from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch, ReplicaKey, uuid_from_text
from quorate.formats.batch import encode_batch, encode_control_batch, encode_keyed_batch
from quorate.formats.files import segment_name, snapshot_name
from quorate.formats.metadata_records import FeatureLevelRecord, TopicRecord
from quorate.formats.records import encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.metadata.delta import ImageDelta
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voter, Voters
from quorate.shell.loading import LoadError, Until, load_directory, load_snapshot

UUIDS = [uuid_from_text(f"AAAAAAAAAAAAAAAAAAAA{letter}w") for letter in "ABCDEFGH"]
VOTERS = (Voter(ReplicaKey(1, UUIDS[0]), ()),)


def topic(number: int) -> bytes:
    return encode_record(TopicRecord(name=f"t{number}", topic_id=UUIDS[number]), 0)


def level(value: int) -> bytes:
    return encode_record(FeatureLevelRecord(name="metadata.version", feature_level=value), 0)


@pytest.fixture
def folder(tmp_path):
    """A log in two segments: offsets 0 to 9; a snapshot of 0 to 3."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    first = [
        encode_control_batch(
            0, 1, 100, [LeaderChange(1, (1,), (1,)), KRaftVersion(1), Voters(VOTERS)]
        ),
        encode_batch(3, 1, 200, [level(30)]),
        encode_batch(4, 1, 300, [topic(1), topic(2)]),
    ]
    second = [
        encode_control_batch(6, 2, 400, [LeaderChange(1, (1,), (1,))]),
        encode_batch(7, 2, 500, [topic(3)]),
        encode_batch(8, 2, 600, [topic(4), topic(5)]),
    ]
    (folder / segment_name(0)).write_bytes(b"".join(first))
    (folder / segment_name(6)).write_bytes(b"".join(second))
    snapshot = encode_snapshot(
        OffsetAndEpoch(4, 1), ControlState(1, VOTERS), 200, [level(30)], 1000
    )
    (folder / snapshot_name(OffsetAndEpoch(4, 1))).write_bytes(b"".join(snapshot))
    return folder


def names(view):
    return sorted(view.published.image.topics.ids)


@pytest.fixture
def collecting(monkeypatch):
    """For each record that is applied, whether a collection could visit the image then."""
    seen = []
    replay = ImageDelta.replay

    def recorded(delta, record):
        seen.append(gc.isenabled())
        return replay(delta, record)

    monkeypatch.setattr(ImageDelta, "replay", recorded)
    return seen


def test_no_collection_visits_the_image_while_it_grows(folder, collecting):
    """A log of a million partitions without a snapshot took twice the time of their snapshot."""
    load_directory(str(folder))
    assert len(collecting) == 6 and not any(collecting)
    assert gc.isenabled()


def test_a_log_leaves_no_garbage_for_the_collector(folder):
    load_directory(str(folder))  # what is imported and compiled on first use
    gc.disable()
    gc.freeze()  # garbage of others does not count
    try:
        load_directory(str(folder))
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()


def test_a_directory_is_read_to_the_end_of_its_log(folder):
    for path in (folder, folder.parent):
        view = load_directory(str(path))
        assert names(view) == ["t1", "t2", "t3", "t4", "t5"]
        assert view.published.provenance[:3] == (9, 2, 600)
        assert (view.control.state, view.control.leader_epoch) == (ControlState(1, VOTERS), 2)


@pytest.mark.parametrize(
    ("until", "found", "offset"),
    [
        (Until(offset=2), [], 2),
        (Until(offset=3), [], 3),
        (Until(offset=5), ["t1", "t2"], 5),
        (Until(offset=7), ["t1", "t2", "t3"], 7),
        (Until(timestamp_ms=99), [], -1),
        (Until(timestamp_ms=200), [], 3),
        (Until(timestamp_ms=599), ["t1", "t2", "t3"], 7),
        (Until(timestamp_ms=10_000), ["t1", "t2", "t3", "t4", "t5"], 9),
    ],
)
def test_the_state_at_an_offset_or_time_includes_its_record(folder, until, found, offset):
    view = load_directory(str(folder), until)
    assert (names(view), view.published.provenance.offset) == (found, offset)


def test_the_snapshot_stands_for_records_that_are_gone(folder):
    """The control state of records before the log comes from the snapshot."""
    whole = load_directory(str(folder))
    (folder / segment_name(0)).rename(folder / segment_name(4))
    data = (folder / segment_name(4)).read_bytes()
    cut = data.index(encode_batch(4, 1, 300, [topic(1), topic(2)]))
    (folder / segment_name(4)).write_bytes(data[cut:])
    assert load_directory(str(folder)) == whole


def test_a_snapshot_file_gives_its_image_and_voters(folder):
    view = load_snapshot(str(folder / snapshot_name(OffsetAndEpoch(4, 1))))
    assert view.published.provenance[:3] == (3, 1, 200)
    assert view.control.state == ControlState(1, VOTERS)
    assert view.published.image.features.metadata_version is not None


def test_a_batch_that_is_being_written_is_left_out(folder):
    segment = folder / segment_name(6)
    segment.write_bytes(segment.read_bytes()[:-5])
    assert names(load_directory(str(folder))) == ["t1", "t2", "t3"]


def damaged(folder):
    segment = folder / segment_name(6)
    data = bytearray(segment.read_bytes())
    data[-3] ^= 1
    segment.write_bytes(data)


def without_the_middle(folder):
    (folder / segment_name(0)).unlink()


def without_the_beginning(folder):
    """The log before offset 6 is gone: the state at an earlier time is not empty, but not known."""
    (folder / segment_name(0)).unlink()
    (folder / snapshot_name(OffsetAndEpoch(4, 1))).unlink()


def torn_before_the_last(folder):
    segment = folder / segment_name(0)
    segment.write_bytes(segment.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("damage", "until", "message"),
    [
        (damaged, Until(), "checksum"),
        (without_the_middle, Until(), "the records from 4 are in no snapshot"),
        (torn_before_the_last, Until(), "00000000000000000000.log"),
        (None, Until(offset=8), "inside the batch of the offsets 8 to 9"),
        (None, Until(offset=10), "ends at offset 9"),
        (
            without_the_beginning,
            Until(timestamp_ms=99),
            "the first record that is left, at offset 6",
        ),
    ],
)
def test_what_cannot_be_shown_is_an_error_that_says_where(folder, damage, until, message):
    if damage is not None:
        damage(folder)
    with pytest.raises(QuorateError, match=message):
        load_directory(str(folder), until)


def test_other_files_and_directories_are_refused(folder, tmp_path):
    with pytest.raises(LoadError, match="does not have the name of a snapshot"):
        load_snapshot(str(folder / segment_name(0)))
    with pytest.raises(LoadError, match="neither __cluster_metadata-0 nor a file"):
        (tmp_path / "empty").mkdir()
        load_directory(str(tmp_path / "empty"))
    with pytest.raises(LoadError, match="nowhere does not exist"):
        load_snapshot(str(tmp_path / "nowhere"))
    with pytest.raises(LoadError, match="nowhere does not exist"):
        load_directory(str(tmp_path / "nowhere"))
    with pytest.raises(LoadError, match="is not a directory"):
        load_directory(str(folder / segment_name(0)))
    whole = folder / snapshot_name(OffsetAndEpoch(4, 1))
    whole.write_bytes(whole.read_bytes()[:-1])
    with pytest.raises(LoadError, match=r"0000000004-0000000001\.checkpoint"):
        load_snapshot(str(whole))


def keyed(base, key, value):
    return encode_keyed_batch(base, 1, 1, [(key, value)])


NEWER = {
    "control type": lambda base: keyed(base, b"\x00\x00\x00\x09", b"\x00\x00\x00"),
    "control version": lambda base: keyed(base, b"\x00\x00\x00\x06", b"\x00\x05\x01\x00\x09extra"),
    "record type": lambda base: encode_batch(base, 1, 1, [b"\x01\xff\x01\x00"]),
    "record version": lambda base: encode_batch(base, 1, 1, [b"\x01\x02\x63\x00"]),
    "metadata.version": lambda base: encode_batch(base, 1, 1, [level(99)]),
}
READ_WITH = (
    "The bytes are sound: (a newer Kafka wrote a record that this release does not know; read it with "
    "a newer release|another release of Kafka wrote this metadata.version; read it with a release "
    "that has the level)"
)


def snapshot_with(newer):
    *head, footer = encode_snapshot(
        OffsetAndEpoch(10, 1), ControlState(1, None), 0, (level(30),), 1
    )
    at = int.from_bytes(footer[:8])
    return b"".join((*head, newer(at), (at + 1).to_bytes(8), footer[8:]))


@pytest.mark.parametrize("kind", NEWER)
def test_a_log_of_a_newer_release_says_what_to_do(folder, kind):
    (folder / segment_name(6)).write_bytes(NEWER[kind](6))
    with pytest.raises(LoadError, match=rf"{READ_WITH}\. --at-offset 5 shows the state before it"):
        load_directory(str(folder))
    assert names(load_directory(str(folder), Until(offset=5))) == ["t1", "t2"]


@pytest.mark.parametrize("kind", NEWER)
def test_a_snapshot_of_a_newer_release_says_what_to_do(folder, kind):
    file = folder / snapshot_name(OffsetAndEpoch(10, 1))
    file.write_bytes(snapshot_with(NEWER[kind]))
    for load in (lambda: load_snapshot(str(file)), lambda: load_directory(str(folder))):
        with pytest.raises(LoadError, match=READ_WITH) as refused:
            load()
        assert "--at-offset" not in str(refused.value)
        assert file.name in str(refused.value)
