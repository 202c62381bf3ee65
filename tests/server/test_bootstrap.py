"""The records that a new cluster begins with, of both layouts of a formatted directory."""

import pytest

from quorate.formats.batch import encode_keyed_batch
from quorate.formats.errors import FormatError
from quorate.formats.records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
    encode_record,
)
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.formats.supported_levels import UnsupportedLevelError
from quorate.raft.values import ControlState
from quorate.server.bootstrap import read_bootstrap

SCRAM = UserScramCredentialRecord(name="al", mechanism=1, salt=b"s", iterations=4096)


def level(value, name="metadata.version"):
    return FeatureLevelRecord(name=name, feature_level=value)


def snapshot(*records, version=1):
    values = [encode_record(record, 0) for record in records]
    return b"".join(
        encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(version, None), 1, values, 1)
    )


class Directory:
    def __init__(self, path):
        self.path = path
        self.legacy = path / "bootstrap.checkpoint"
        self.first = path / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
        self.first.parent.mkdir()

    def read(self, is_new=True):
        return list(read_bootstrap(self.path, is_new).records())


@pytest.fixture
def directory(tmp_path):
    return Directory(tmp_path)


def test_without_records_it_is_the_default(directory):
    assert directory.read() == [level(30)]
    directory.first.write_bytes(snapshot())
    assert directory.read() == [level(30)]


def test_the_layout_of_4_3(directory):
    directory.first.write_bytes(snapshot())
    directory.legacy.write_bytes(snapshot(level(27), SCRAM, version=0))
    assert directory.read() == [level(27), SCRAM]


@pytest.mark.parametrize("version", [0, 1], ids=["static", "dynamic"])
def test_the_layout_of_4_4(directory, version):
    directory.first.write_bytes(snapshot(level(33), SCRAM, version=version))
    assert directory.read() == [level(33), SCRAM]


def test_records_of_the_snapshot_replace_the_other_file(directory):
    directory.first.write_bytes(snapshot(level(31), SCRAM))
    directory.legacy.write_bytes(snapshot(level(27), level(1, "group.version")))
    assert directory.read() == [level(31), SCRAM]


@pytest.mark.parametrize("place", ["legacy", "first"])
def test_a_control_record_of_a_later_release_is_newer(directory, place):
    newer = encode_keyed_batch(0, 0, 1, [(b"\x00\x00\x00\x09", b"\x00\x00\x00")])
    getattr(directory, place).write_bytes(newer)
    with pytest.raises(FormatError, match="A newer release of Kafka formatted this directory"):
        directory.read()


@pytest.mark.parametrize("place", ["legacy", "first"])
def test_what_cannot_be_read_is_refused_by_name(directory, place):
    path = getattr(directory, place)
    good = snapshot(level(30))
    path.write_bytes(good[:-9] + b"damage" + good[-3:])
    with pytest.raises(FormatError, match=f"{path.name}: .*Restore the file, or format anew"):
        directory.read()


@pytest.mark.parametrize(
    "value",
    [b"\x01\x7e\x00", b"\x01\x0c\x09", b"\x02\x0c\x00"],
    ids=["record", "version", "frame version"],
)
@pytest.mark.parametrize("place", ["legacy", "first"])
def test_records_of_a_newer_release_are_called_newer(directory, place, value):
    path = getattr(directory, place)
    data = encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, None), 1, [value], 1)
    path.write_bytes(b"".join(data))
    with pytest.raises(FormatError) as refused:
        directory.read()
    text = str(refused.value)
    assert path.name in text and "newer release of Kafka" in text
    assert "Restore" not in text


@pytest.mark.parametrize("place", ["legacy", "first"])
def test_the_reason_of_a_refusal_ends_once(directory, place):
    """Kafka's text about a level that is missing is a sentence."""
    getattr(directory, place).write_bytes(snapshot(SCRAM))
    with pytest.raises(FormatError) as refused:
        directory.read()
    assert ".. " not in str(refused.value) and ". Restore the file" in str(refused.value)


def test_a_level_that_is_not_known_is_refused_in_a_new_directory(directory):
    directory.first.write_bytes(snapshot(level(99)))
    with pytest.raises(UnsupportedLevelError, match="has level 99, and this node supports"):
        directory.read()
    assert directory.read(is_new=False) == [level(99)]
