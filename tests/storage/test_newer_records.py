"""Control records of a later release are called newer: no word of damage, no advice to empty anything."""

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_keyed_batch
from quorate.formats.files import segment_name, snapshot_name
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, ElectionState
from quorate.storage.api import CorruptLogError
from quorate.storage.memory import MemoryDisk, MemoryStorage
from storage.builders import data, log_of

NEWER = {
    "type": (b"\x00\x00\x00\x09", b"\x00\x00\x00"),
    "version": (b"\x00\x00\x00\x06", b"\x00\x05\x01\x00\x09extra"),
}
FIRST, LATER = OffsetAndEpoch(0, 0), OffsetAndEpoch(4, 1)


def newer_snapshot(snapshot_id, newer):
    """A snapshot whose last batch but one is from a later release."""
    *head, footer = encode_snapshot(snapshot_id, ControlState(1, None), 0, (b"one",), 1)
    at = int.from_bytes(footer[:8])
    batch = encode_keyed_batch(at, snapshot_id.epoch, 1, [newer])
    return b"".join((*head, batch, (at + 1).to_bytes(8), footer[8:]))


def files_with(place, newer):
    whole = b"".join(batch.data for batch in log_of(5))
    batch = encode_keyed_batch(5, 1, 1, [newer])
    match place:
        case "the last segment":
            return {segment_name(0): whole + batch}
        case "a segment before others":
            return {segment_name(0): whole + batch, segment_name(6): data(6).data}
        case "a snapshot":
            return {
                segment_name(0): whole,
                snapshot_name(LATER): newer_snapshot(LATER, newer),
            }
    return {snapshot_name(FIRST): newer_snapshot(FIRST, newer)}


def check_text(text, file):
    assert file in text
    assert "which 4.4.0 lacks" in text or "control record type 9" in text
    assert "run this node with a release that supports it" in text
    assert "damaged" not in text and "empty the directory" not in text and "Restore" not in text


@pytest.mark.parametrize("kind", NEWER)
@pytest.mark.parametrize(
    "place", ["the last segment", "a segment before others", "a snapshot", "0-0"]
)
def test_a_directory_of_a_later_release_is_refused_as_newer(place, kind):
    files = files_with(place, NEWER[kind])
    disk = MemoryDisk()
    disk.lock()
    disk.unlock()
    for name, content in files.items():
        disk.put(name, content)
    with pytest.raises(CorruptLogError) as refused:
        MemoryStorage(disk).open()
    check_text(str(refused.value), snapshot_name(FIRST) if place == "0-0" else "0000000000")
    assert {name: disk.content(name) for name in disk.names()} == files


@pytest.mark.parametrize("kind", NEWER)
def test_a_downloaded_snapshot_of_a_later_release_is_newer(kind):
    storage = MemoryStorage()
    storage.open()
    storage.save_election(ElectionState(1), 1, ())
    content = newer_snapshot(LATER, NEWER[kind])
    storage.write_chunk(LATER, 0, content)
    with pytest.raises(CorruptLogError) as refused:
        storage.install_snapshot(LATER)
    check_text(str(refused.value), snapshot_name(LATER))


@pytest.mark.parametrize("version", [2, 7])
def test_a_vote_of_a_later_release_is_newer(version):
    storage = MemoryStorage()
    storage.open()
    storage.close()
    storage.disk.put("quorum-state", b'{"leaderEpoch":1,"data_version":%d}' % version)
    with pytest.raises(CorruptLogError) as refused:
        MemoryStorage(storage.disk).open()
    assert "run this node with a release that supports it" in str(refused.value)
    assert "empty the directory" not in str(refused.value)
