"""What a change costs the history: with more of the past, with more partitions, scattered or not.

The job is the one that users run (`ingest` of the log's new end). Its seconds are a good part Spark
itself; so the rows that it writes to the largest table are reported too.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from bench.report import Goal, Report

from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats.batch import encode_batch
from quorate.formats.files import PARTITION_DIRECTORY, segment_name
from quorate.formats.json_text import to_json
from quorate.formats.meta_properties import MetaProperties, encode_meta_properties
from quorate.formats.records import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_PER_TOPIC = 10
CHANGES = 1000
BATCH = 1000
START_MS = 1_767_225_600_000
DIRECTORY = Uuid(bytes(15) + b"\x07")


def uuid_of(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def births(topics: int) -> Iterator[bytes]:
    """So many topics with their partitions."""
    for number in range(topics):
        yield encode_record(TopicRecord(name=f"topic-{number}", topic_id=uuid_of(number + 1)), 0)
        for partition in range(PARTITIONS_PER_TOPIC):
            record = PartitionRecord(
                partition_id=partition,
                topic_id=uuid_of(number + 1),
                replicas=[1, 2, 3],
                isr=[1, 2, 3],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=[DIRECTORY] * 3,
            )
            yield encode_record(record, 1)


def changes(topics: Sequence[int], count: int, seed: int) -> Iterator[bytes]:
    """So many changes of in-sync replicas and leaders, in these topics."""
    rng = Random(seed)
    for _ in range(count):
        record = PartitionChangeRecord(
            partition_id=rng.randrange(PARTITIONS_PER_TOPIC),
            topic_id=uuid_of(rng.choice(topics) + 1),
            isr=rng.choice([[1, 2], [1, 3], [2, 3], [1, 2, 3]]),
            leader=rng.choice([-2, 1, 2, 3]),
        )
        yield encode_record(record, 1)


class Log:
    """One cluster's log on disk, written as it grows."""

    def __init__(self, home: Path, topics: int) -> None:
        self.home, self.topics = home, topics
        self.offset = 0
        self._log = home / PARTITION_DIRECTORY / segment_name(0)
        self._log.parent.mkdir(parents=True)
        meta = MetaProperties(1, home.name, 1)
        (home / "meta.properties").write_bytes(encode_meta_properties(meta, START_MS))
        self.add(births(topics))

    def add(self, values: Iterator[bytes]) -> None:
        found = list(values)
        with self._log.open("ab") as out:
            for start in range(0, len(found), BATCH):
                part = found[start : start + BATCH]
                out.write(encode_batch(self.offset, 1, START_MS + self.offset, part))
                self.offset += len(part)

    def change(self, seed: int, scattered: bool = False) -> None:
        some = range(self.topics) if scattered else range(seed % 7, min(20, self.topics))
        self.add(changes(list(some), CHANGES, seed))


def spark_history(quick: bool) -> Report:
    """A change of 1000 records after more and more of everything else."""
    from quorate.spark import session

    small, large = (500, 5_000) if quick else (2_000, 20_000)
    past = 20 if quick else 100
    report = Report()
    _reach(report)
    _slices(report)
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        spark = session(
            "quorate-bench",
            "local[2]",
            **{
                "spark.driver.memory": "2g",
                "spark.local.dir": folder,
                "spark.ui.showConsoleProgress": "false",
            },
        )
        spark.sparkContext.setLogLevel("ERROR")
        try:
            _warm_up(spark, Path(folder))
            base = _measure(spark, report, Path(folder), "small", small, 0)
            long = _measure(spark, report, Path(folder), "small with a long past", small, past)
            wide = _measure(spark, report, Path(folder), "ten times as large", large, 0)
        finally:
            spark.stop()
    text = "a change of 1000 records, 10 times the state: job seconds, ratio"
    report.goals.append(Goal(text, wide / base, 2.0))
    text = f"a change of 1000 records, {past} times the past: job seconds, ratio"
    report.goals.append(Goal(text, long / base, 1.5))
    return report


def _reach(report: Report) -> None:
    """How much of what holds now a change in 20 topics, and in one, writes anew."""
    from quorate.spark.tables.state import slices_for
    from quorate.spark.tables.versions import slice_of

    for topics in (500, 5_000, 50_000, 100_000):
        count = slices_for(topics * (1 + PARTITIONS_PER_TOPIC), 0, 1)
        homes = [slice_of(uuid_to_text(uuid_of(n + 1)), count) for n in range(topics)]
        rows = Counter(homes)
        system = f"{topics * PARTITIONS_PER_TOPIC} partitions in {count} slices"
        for changed in (20, 1):
            found = sum(rows[home] for home in set(homes[:changed])) * PARTITIONS_PER_TOPIC
            report.add(f"topics changed: {changed}; partitions written anew", system, found, "rows")


def _slices(report: Report) -> None:
    """What one slice costs a task: to read it, change some of it, and write it."""
    for things in (512, 2_048, 8_192):
        with tempfile.TemporaryDirectory(prefix="quorate-bench-") as home:
            topics = range(things // PARTITIONS_PER_TOPIC)
            files = _slice(home, {}, births(len(topics)))[1]
            for count in (2, 50):
                costs = [_slice(home, files, changes(topics, count, seed))[0] for seed in range(5)]
                system = f"{things} things"
                report.add(f"a slice, {count} changes: processor", system, sorted(costs)[2], "ms")


def _slice(
    home: str, files: dict[str, str], values: Iterator[bytes]
) -> tuple[float, dict[str, str]]:
    """Processor ms of the records on a slice that has these files, and its files then."""
    from quorate.spark.tables.slices import SliceStep, StateSlice
    from quorate.spark.tables.versions import CURRENT, SliceTarget

    steps = []
    for offset, value in enumerate(values, len(files) << 20):
        record, version = decode_record(value)
        text, name = to_json(record, version), type(record).__name__
        steps.append(SliceStep(offset, offset, offset, 1, offset, name, text, None))
    began = time.process_time()
    task = StateSlice(SliceTarget(home, 1, False, "c", 0, 1, files))
    for step in steps:
        task.feed(step)
    written = list(task.finish())
    cost = (time.process_time() - began) * 1000
    return cost, {file.table: file.path for file in written if file.path.startswith(CURRENT)}


def _warm_up(spark: SparkSession, folder: Path) -> None:
    from quorate.spark.tables.ingest import ingest

    log = Log(folder / "warm", 10)
    for seed in range(2):
        ingest(spark, [str(log.home)], str(folder / "warm-tables"))
        log.change(seed)


def _measure(
    spark: SparkSession, report: Report, folder: Path, name: str, topics: int, past: int
) -> float:
    """Seconds of a job that applies a local change; the median of three."""
    from quorate.spark.tables.ingest import ingest

    system = f"{name}: {topics * PARTITIONS_PER_TOPIC} partitions, {past * CHANGES} past changes"
    log = Log(folder / f"cluster-{name.replace(' ', '-')}", topics)
    for seed in range(past):
        log.change(seed, scattered=True)
    home = str(folder / f"tables-{name.replace(' ', '-')}")
    ingest(spark, [str(log.home)], home)
    seconds = 0.0
    for scattered in (True, False):
        taken, rows = [], 0
        for seed in range(3):
            log.change(1000 + seed, scattered)
            began = time.monotonic()
            summary = ingest(spark, [str(log.home)], home)
            taken.append(time.monotonic() - began)
            rows = _rewritten(home)
            if summary.records != CHANGES:
                raise RuntimeError(f"{summary.records} records were taken in place of {CHANGES}")
        where = "scattered over all topics" if scattered else "in 20 topics"
        seconds = sorted(taken)[1]
        report.add(f"1000 changes {where}: job", system, seconds, "s")
        report.add(f"1000 changes {where}: rows written to partitions", system, rows, "rows")
    return seconds


def _rewritten(home: str) -> int:
    """The rows that the last run wrote to the partitions, those that ended among them."""
    last = max((Path(home) / "control/_plans").iterdir())
    plan = json.loads(last.read_text())
    return sum(file["rows"] for file in plan["adds"].get("partitions", []))
