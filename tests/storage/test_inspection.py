"""What is read of a directory without opening it is what a node would recover; nothing changes."""

import shutil

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import PARTITION_DIRECTORY, snapshot_name
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import FileStorage
from quorate.storage.inspection import InspectedStorage
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
