"""What is read of a directory without opening it is what a node would recover; nothing changes."""

import shutil

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import PARTITION_DIRECTORY, snapshot_name
from quorate.storage.api import CorruptLogError
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import FileStorage
from quorate.storage.inspection import InspectedStorage, read_beside_writer
from quorate.storage.log import LogOptions
from storage.builders import ALL, SMALL, joined, log_of, snapshot_bytes
from storage.test_recover_samples import HOMES, name


def files(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def inspected(directory, options=SMALL):
    before = files(directory)
    found = InspectedStorage(OsDisk(directory), options)
    log = found.recovered.log
    data = found.read(log.start_offset, log.end_offset, ALL)
    assert files(directory) == before
    return found, log, data


@pytest.mark.parametrize("home", HOMES, ids=name)
def test_a_directory_of_kafka_is_read_as_a_node_recovers_it(tmp_path, home):
    directory = tmp_path / "copy"
    shutil.copytree(home, directory)
    found, log, data = inspected(directory, LogOptions())
    storage = FileStorage(directory)
    assert storage.open() == found.recovered
    assert storage.read(log.start_offset, log.end_offset, ALL) == data
    for info in storage.snapshots():
        assert found.snapshot_size(info.id) == info.size
        assert found.read_snapshot(info.id, 0, ALL) == storage.read_snapshot(info.id, 0, ALL)
    storage.close()


def test_a_running_node_is_no_hindrance_and_a_torn_tail_is_left_out(tmp_path):
    storage = FileStorage(tmp_path, SMALL)
    storage.open()
    batches = log_of(5)
    storage.append(batches)
    storage.sync()
    segment = max((tmp_path / PARTITION_DIRECTORY).glob("*.log"))
    with segment.open("ab") as file:
        file.write(b"torn")
    assert inspected(tmp_path)[2].endswith(joined(batches[-1:]))


def test_a_log_that_a_snapshot_has_overtaken_is_empty(tmp_path):
    storage = FileStorage(tmp_path, SMALL)
    storage.open()
    storage.append(log_of(5))
    storage.sync()
    storage.close()
    newer = OffsetAndEpoch(50, 2)
    (tmp_path / PARTITION_DIRECTORY / snapshot_name(newer)).write_bytes(snapshot_bytes(newer))
    found, log, data = inspected(tmp_path)
    assert (log.start_offset, log.end_offset, data) == (50, 50, b"")
    assert found.snapshot_size(newer) == len(snapshot_bytes(newer))
    again = FileStorage(tmp_path, SMALL)
    assert again.open().log == log
    again.close()


class Readings:
    """Readings of a directory that refuse with the given texts, while a file of it grows."""

    def __init__(self, directory, *texts, grows=True):
        self._file = directory / "0.log"
        self._file.write_bytes(b"")
        self._texts = list(texts)
        self._grows = grows

    def __call__(self):
        if self._grows:
            with self._file.open("ab") as file:
                file.write(b"more")
        if self._texts:
            raise CorruptLogError(self._texts.pop(0))
        return "read"

    def left(self):
        return len(self._texts)


def test_a_refusal_of_files_that_changed_meanwhile_is_checked_again(tmp_path):
    assert read_beside_writer(tmp_path, Readings(tmp_path, "one", "another")) == "read"


@pytest.mark.parametrize(
    ("texts", "grows", "readings"),
    [
        (["lost", "unread"], False, 1),
        (["lost", "lost", "unread"], True, 2),
        ([f"lost {number}" for number in range(12)], True, 10),
    ],
    ids=["still files", "the same words twice", "ten different refusals"],
)
def test_a_refusal_stands(tmp_path, texts, grows, readings):
    reading = Readings(tmp_path, *texts, grows=grows)
    with pytest.raises(CorruptLogError, match=texts[readings - 1]):
        read_beside_writer(tmp_path, reading)
    assert reading.left() == len(texts) - readings
