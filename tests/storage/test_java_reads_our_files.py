"""Kafka's own DumpLogSegments over the segments, indexes and snapshots that we write."""

from __future__ import annotations

import re

import pytest

from interop.java import DUMP_LOG, java_tool
from quorate.base.ids import OffsetAndEpoch
from quorate.storage.log import LogOptions
from storage.builders import bootstrap, data, file_place, leader_change, write_snapshot

BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) .* partitionLeaderEpoch: (\d+) .* isvalid: (\w+)$", re.M
)
SNAPSHOT = OffsetAndEpoch(33, 1)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A log of several segments and epochs that has been truncated and closed, and its batches."""
    home = tmp_path_factory.mktemp("ours")
    place = file_place(home, LogOptions(segment_bytes=40_000))
    place.open()
    log = [bootstrap(0, 1)]
    for count in range(150):
        log.append(data(log[-1].last_offset + 1, 1, count=1 + count % 3, size=100 + 7 * count))
    place.storage.append(log)
    write_snapshot(place.storage, SNAPSHOT)
    end = log[-9].last_offset + 1
    place.storage.truncate(end)
    log = [*log[:-8], leader_change(end, 4), data(end + 1, 4, size=9000), data(end + 2, 4)]
    place.storage.append(log[-3:])
    place.storage.close()
    return home / "__cluster_metadata-0", log


def dump(*args: str) -> str:
    run = java_tool(DUMP_LOG, *args)
    assert run.returncode == 0, run.stderr
    assert "Exception" not in run.stdout + run.stderr
    return run.stdout


@pytest.mark.interop
def test_the_log_is_what_we_meant(written):
    directory, log = written
    segments = sorted(directory.glob("*.log"))
    assert len(segments) >= 3
    text = dump("--skip-record-metadata", "--files", ",".join(map(str, segments)))
    expected = [
        (str(batch.base_offset), str(batch.last_offset), str(batch.epoch), "true") for batch in log
    ]
    assert BATCH.findall(text) == expected


@pytest.mark.interop
def test_the_indexes_are_sound_and_point_at_the_right_batches(written):
    directory, _ = written
    indexes = sorted(directory.glob("*.index"))
    times = sorted(directory.glob("*.timeindex"))
    assert all(path.stat().st_size >= 8 * 5 for path in indexes[:-1])
    assert all(path.stat().st_size >= 12 * 5 for path in times[:-1])
    names = ",".join(map(str, indexes + times))
    checked = dump("--index-sanity-check", "--files", names)
    assert checked.count("passed sanity check.") == len(indexes) + len(times)
    deep = dump("--verify-index-only", "--files", names)
    assert "ismatch" not in deep
    assert "non-monotonically" not in deep
    assert "not found" not in deep


@pytest.mark.interop
def test_the_snapshot_is_what_we_meant(written):
    directory, _ = written
    text = dump("--print-data-log", "--files", str(next(directory.glob("*.checkpoint"))))
    assert "Snapshot end offset: 33, epoch: 1" in text
    assert len(BATCH.findall(text)) == 3
    for record in ("SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"):
        assert record in text
