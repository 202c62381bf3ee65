"""Missing checksums of epochs are read again where the batches of the log still are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from quorate.cli.pipeline.repair import lost_files_line
from quorate.formats.batch import iter_batches
from quorate.spark.jobs.repair import without_ranges
from quorate.spark.tables.checksums import count_missing, with_checksums
from quorate.spark.tables.file_tasks import write_rows
from quorate.spark.tables.files import DataFile, WriteTarget, file_name
from quorate.spark.tables.layout import LOG
from quorate.spark.tables.lineage import EpochSpan
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.warehouse import open_store
from spark.logs import batches, log_directory
from spark.test_refusals import flipped

CLUSTER = "cluster-a"


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    home = log_directory(tmp_path / "node1", {0: b"".join(batches((3, 4)))})
    return home / f"__cluster_metadata-0/{0:020}.log"


@pytest.fixture
def tables(tmp_path: Path, segment: Path):
    """A warehouse with the log's rows, as far as checksums need them."""
    store = open_store(str(tmp_path / "home"), "delta")
    rows = [
        {"cluster_id": CLUSTER, "offset": offset, "epoch": view.epoch, "file": str(segment),
         "base_offset": view.base_offset, "position": view.position}
        for view in iter_batches(segment.read_bytes())
        for offset in range(view.base_offset, view.end_offset)
    ]  # fmt: skip
    plan = RunPlan(1, "bronze")
    place = WriteTarget(store.root, 1, store.hidden)
    path = f"{CLUSTER}/{file_name('a', 1)}"
    for file in write_rows(place, "log", path, pa.Table.from_pylist(rows, LOG)):
        plan.add(DataFile(**file))
    store.commit(plan)
    return store.version()


SPANS = (EpochSpan(1, 0, 3, 0, 0, 7, None), EpochSpan(1, 5, 8))


def test_checksums_are_those_of_the_batches_that_hold_the_records(tables, segment):
    one, two, three = (view.crc for view in iter_batches(segment.read_bytes()))
    assert count_missing(SPANS) == 3 and len({one, two, three}) == 3
    found = with_checksums(tables, CLUSTER, SPANS)
    assert [(span.first_crc, span.last_crc) for span in found] == [(7, two), (three, three)]
    assert with_checksums(tables, CLUSTER, found) == found
    assert with_checksums(tables, "other", SPANS) == SPANS
    later = [span._replace(epoch=2) for span in SPANS]
    assert with_checksums(tables, CLUSTER, later) == tuple(later)


@pytest.mark.parametrize("change", ["gone", "damaged", "another log", "cut"])
def test_a_checksum_is_not_known_where_the_batch_is_gone(tables, segment, change):
    data = segment.read_bytes()
    segment.unlink()
    if change == "damaged":
        for view in iter_batches(data):
            data = flipped(data, view.position + 70)
    elif change == "another log":
        data = b"".join(batches((3, 4), epoch=2))
    if change != "gone":
        segment.write_bytes(data[: 10 if change == "cut" else None])
    assert with_checksums(tables, CLUSTER, SPANS) == SPANS


def test_a_range_that_is_cut_loses_the_checksum_of_its_cut_end():
    whole = EpochSpan(1, 0, 10, 0, 0, 7, 8)
    assert list(without_ranges([whole], [(4, 6)])) == [
        whole._replace(end=4, last_crc=None),
        whole._replace(start=6, first_crc=None),
    ]
    assert list(without_ranges([whole], [(20, 30)])) == [whole]


def test_one_lost_file_is_not_several():
    assert lost_files_line("log", ["a"]) == "log: 1 data file is lost: a"
    assert lost_files_line("log", ["a", "b"]) == "log: 2 data files are lost, the first is a"
