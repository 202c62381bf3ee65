"""The measures of the command line: a whole process each, beside Kafka's."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.quorum import started
from bench.report import Report
from bench.systems import Controllers, java_command

from quorate.formats import records as r
from quorate.formats.batch import encode_batch
from quorate.formats.records import encode_record

METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
QUORATE = [sys.executable, "-m", "quorate"]
LIKE_THE_SCRIPTS = ("-Xmx256m",)
"""Options that Kafka's own scripts give the JVM of a tool."""


def _seconds(command: list[str], rounds: int) -> float:
    """The median time of a whole process; it must succeed."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def describe(quick: bool) -> Report:
    """`describe --status` against the same quorum."""
    report = Report()
    rounds = 3 if quick else 11
    with started(Controllers) as system:
        assert isinstance(system, Controllers)
        words = [*system.quorum.tool_arguments(), "describe", "--status"]
        commands = {
            "quorate": [*QUORATE, "metadata-quorum", *words],
            "kafka": java_command(METADATA_QUORUM, *words, jvm=LIKE_THE_SCRIPTS),
        }
        for name, command in commands.items():
            report.add("describe --status", name, _seconds(command, rounds) * 1000, "ms")
    report.hold_ratio("describe --status over Kafka's", "describe --status", "kafka", 0.1)
    return report


def dump_log(quick: bool) -> Report:
    """dump-log of a log of partition changes, ten records a batch."""
    report = Report()
    batches = 3_000 if quick else 30_000
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        path = Path(folder) / "00000000000000000000.log"
        write_log(path, batches)
        size = path.stat().st_size / 1e6
        report.add("size of the dumped log", "quorate", size, "MB")
        for skip in (False, True):
            words = ["--cluster-metadata-decoder", *(["--skip-record-metadata"] if skip else [])]
            words += ["--files", str(path)]
            commands = {
                "quorate": [*QUORATE, "dump-log", *words],
                "kafka": java_command(DUMP_LOG, *words, jvm=LIKE_THE_SCRIPTS),
            }
            measure = "dump-log --skip-record-metadata" if skip else "dump-log"
            for name, command in commands.items():
                rate = batches * 10 / _seconds(command, 1 if quick else 3)
                report.add(measure, name, rate, "records/s")
            report.hold_ratio(
                f"{measure}, records/s over Kafka's", measure, "kafka", 3.0, at_most=False
            )
    return report


def write_log(path: Path, batches: int) -> None:
    """A log of `batches` batches of ten PartitionChangeRecords each."""
    with path.open("wb") as file:
        for number in range(batches):
            values = [
                encode_record(
                    r.PartitionChangeRecord(
                        partition_id=number % 100, isr=[1, 2, 3], leader=1 + i % 3
                    ),
                    0,
                )
                for i in range(10)
            ]
            file.write(encode_batch(number * 10, 1, 1_700_000_000_000 + number, values))
