"""The source inside Spark: rows, pushdown, errors."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PySparkException

from base.test_times import NEITHER, SAME
from formats.samples import DATA, DUMPED_FILES, dump_of
from quorate.base.times import parse_time
from quorate.spark import reason
from quorate.spark.data_source import FORMAT
from quorate.spark.decode.columns import COMMENTS
from quorate.spark.files.paths import SourceError
from quorate.spark.frame import read_metadata
from spark.logs import START_MS, batches, end_offset, log_directory, snapshot

KATHMANDU = ZoneInfo("Asia/Kathmandu")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clusters; the first with a log of two segments and a snapshot."""
    home = tmp_path_factory.mktemp("fleet")
    first = b"".join(batches())
    base = end_offset(first)
    second = b"".join(batches(base=base))
    log_directory(home / "a", {0: first, base: second}, {(10, 1): snapshot()})
    log_directory(home / "b", {0: b"".join(batches(epoch=2))}, cluster="cluster-b", node=2)
    return home


def partitions(frame) -> int:
    return frame.rdd.getNumPartitions()


def test_counts_of_the_samples_are_those_of_kafkas_dump(spark):
    frame = spark.read.format(FORMAT).load([str(path) for path in DUMPED_FILES])
    counts = {row["file"]: row["count"] for row in frame.groupBy("file").count().collect()}
    assert len(counts) == len(DUMPED_FILES)
    for path in DUMPED_FILES:
        dumped = dump_of(path).read_text().count("\n| offset: ")
        # the nodes ran on between copy and dump
        assert 0 <= abs(counts[str(path)] - dumped) <= 1


def test_every_sample_directory_is_read_with_its_ids(spark):
    frame = spark.read.format(FORMAT).load(str(DATA / "*"))
    found = frame.selectExpr("count(*)", "count(problem)", "count(distinct cluster_id)").first()
    assert found[0] > 10_000 and (found[1], found[2]) == (0, 2)


def test_filters_cut_partitions_and_keep_the_rows(spark, fleet: Path):
    options = {"maxPartitionBytes": "1200"}
    whole = partitions(spark.read.format(FORMAT).options(**options).load(str(fleet)))
    for condition, fewer, rows in [
        ("cluster_id = 'cluster-b'", True, 21),
        ("kind = 'log' and cluster_id = 'cluster-a' and offset >= 21", True, 21),
        ("kind = 'log' and offset between 3 and 4", True, 4),
        ("cluster_id = 'nobody'", True, 0),
        ("kind = 'log' and type = 'LeaderChange'", True, 3),
        ("type = 'SnapshotFooter'", False, 1),
    ]:
        found = read_metadata(spark, str(fleet), where=condition, **options)
        assert found.count() == rows, condition
        assert (partitions(found) < whole) == fewer, condition


@pytest.mark.parametrize("pushing", ["true", "false"])
def test_a_frame_is_good_for_many_questions(spark, fleet: Path, pushing: str):
    """Spark would keep what one pushes down for the next, and for the other side of a join."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", pushing)
    reader = spark.read.format(FORMAT).option("kinds", "log").option("pushdown", pushing)
    frame = reader.load(str(fleet))
    counts = [
        frame.where(condition).count()
        for condition in ("true", "cluster_id = 'cluster-b'", "true", "offset = 3", "true")
    ]
    assert counts == [63, 21, 63, 2, 63]
    one, other = (frame.where(f"cluster_id = 'cluster-{name}'") for name in "ab")
    assert one.unionByName(other).count() == 63
    assert one.alias("one").join(other.alias("other"), "offset").count() == 21


def test_an_instant_filters_as_spark_does(spark, fleet: Path):
    at = datetime.fromtimestamp(START_MS / 1000 + 4, UTC)
    frame = read_metadata(spark, str(fleet / "b"), kinds="log")
    for compared, rows in (">=", 14), ("<", 7), ("=", 8):
        condition = f"timestamp {compared} '{at.isoformat()}'"
        assert frame.filter(condition).count() == rows
        found = read_metadata(spark, str(fleet / "b"), kinds="log", where=condition)
        assert found.count() == rows


def test_a_schema_names_the_columns_that_are_read(spark, fleet: Path):
    frame = spark.read.format(FORMAT).schema("type string, offset bigint").load(str(fleet / "b"))
    assert frame.columns == ["type", "offset"]
    assert frame.first().asDict() == {"type": "LeaderChange", "offset": 0}
    other = spark.read.format(FORMAT).schema("TYPE string, Offset bigint").load(str(fleet / "b"))
    assert other.first().asDict() == {"TYPE": "LeaderChange", "Offset": 0}
    options = spark.read.format(FORMAT).option("columns", "offset,topic_name")
    found = options.load(str(fleet / "b")).filter("topic_name is not null").count()
    assert found == 12


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("offset int", "column offset is of type bigint, not int"),
        ("ofset bigint", "there is no column 'ofset'"),
        ("offset bigint NOT NULL", "column offset is null in some rows: it cannot be NOT NULL"),
        ("offset bigint, offset bigint", "column offset is named 2 times"),
    ],
)
def test_a_wrong_schema_is_refused(spark, fleet: Path, schema: str, says: str):
    with pytest.raises(PySparkException) as caught:
        spark.read.format(FORMAT).schema(schema).load(str(fleet)).count()
    assert reason(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("of", "named"), [("America/New_York", ""), ("Europe/Berlin", " Europe/Berlin")]
)
def test_a_time_is_of_its_zone_or_that_of_the_session(spark, fleet: Path, of: str, named: str):
    at = datetime.fromtimestamp(START_MS / 1000 + 4, ZoneInfo(of))
    condition = f"timestamp >= '{at.replace(tzinfo=None).isoformat(sep=' ')}{named}'"
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        rows = spark.read.format(FORMAT).option("kinds", "log")
        asked = rows.option("where", condition).load(str(fleet / "b")).count()
        filtered = rows.option("where", "").load(str(fleet / "b")).where(condition).count()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert asked == filtered == 14


def test_times_are_read_as_spark_reads_them(spark):
    """Those that Spark casts are the same times; what Spark refuses in `NEITHER`, so do we."""
    texts = [(text,) for text in (*SAME, *NEITHER)]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        frame = spark.createDataFrame(texts, "text string")
        rows = frame.selectExpr("unix_micros(try_cast(text AS timestamp))").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    ours = [parse_time(text) for text in SAME]
    aware = [time if time.tzinfo else time.replace(tzinfo=KATHMANDU) for time in ours]
    assert [row[0] for row in rows] == [
        *(round(time.timestamp() * 1_000_000) for time in aware),
        *(None for _ in NEITHER),
    ]


def test_a_table_of_the_rows_describes_its_columns(spark, fleet: Path):
    spark.read.format(FORMAT).load(str(fleet)).createOrReplaceTempView("described")
    found = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE described").collect()}
    assert found == COMMENTS


def test_errors_of_spark_are_reported_without_a_traceback(spark, tmp_path: Path):
    with pytest.raises(PySparkException) as caught:
        spark.read.format(FORMAT).load(str(tmp_path / "nowhere")).count()
    assert reason(caught.value) == f"{tmp_path}/nowhere: there is no such file or directory"
    with pytest.raises(SourceError, match="there is no such file"):
        read_metadata(spark, str(tmp_path / "nowhere"))


def test_the_error_of_a_task_is_reported(spark):
    def full(_batches):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(PySparkException) as caught:
        spark.range(1).mapInArrow(full, "id bigint").collect()
    assert reason(caught.value) == "OSError: [Errno 28] No space left on device"


def test_damage_is_a_row_or_with_fail_fast_an_error(spark, tmp_path: Path):
    data = bytearray(b"".join(batches()))
    data[-1] ^= 1
    log_directory(tmp_path / "a", {0: bytes(data)})
    frame = read_metadata(spark, str(tmp_path))
    [problem] = frame.filter("problem is not null").select("position").take(1)
    assert problem[0] > 0
    assert frame.filter("problem is null").count() == 16
    with pytest.raises(PySparkException) as caught:
        read_metadata(spark, str(tmp_path), failFast="true").count()
    assert "checksum does not match" in reason(caught.value)
    assert "00000000000000000000.log: at byte" in reason(caught.value)
