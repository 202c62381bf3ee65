"""The measures of the command line: a whole process each, beside Kafka's."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.quorum import started
from bench.report import Report
from bench.systems import Controllers, java_command

from interop.java import FEATURES, STORAGE
from interop.kafka import Quorum
from quorate.cli.main import TOOLS
from quorate.client import Admin
from quorate.client.admin.topics import TopicCreation
from quorate.formats import records as r
from quorate.formats.batch import encode_batch
from quorate.formats.records import encode_record

METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
QUORATE = [str(Path(sys.executable).with_name("quorate"))]
"""As users start it; `python -m` takes longer."""
LIKE_THE_SCRIPTS = ("-Xmx256m",)
"""Options that Kafka's own scripts give the JVM of a tool."""
BROKER_ID = 11
OTHER_BROKER_ID = 12
MANY_TOPICS = 10_000
"""Over two brokers: each keeps three files of a partition open, and the usual limit is 20,000."""
BROKER_JVM = ("-Xmx1g", "-XX:+UseG1GC")
"""Options that Kafka's own scripts give the JVM of a broker."""
_TOOLS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "topics --list": ("org.apache.kafka.tools.TopicCommand", ("--list",)),
    "topics --describe": ("org.apache.kafka.tools.TopicCommand", ("--describe",)),
    "configs --describe": (
        "kafka.admin.ConfigCommand",
        ("--describe", "--entity-type", "brokers"),
    ),
    "acls --list": ("org.apache.kafka.tools.AclCommand", ("--list",)),
    "cluster list-endpoints": ("org.apache.kafka.tools.ClusterTool", ()),
    "leader-election": (
        "org.apache.kafka.tools.LeaderElectionCommand",
        ("--election-type", "preferred", "--all-topic-partitions"),
    ),
    "reassign-partitions --list": (
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        ("--list",),
    ),
    "log-dirs --describe": ("org.apache.kafka.tools.LogDirsCommand", ("--describe",)),
}
"""Measure -> Kafka's class and the options; the first words are the tool and its verb."""


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
        _compare(report, "describe --status", commands, rounds)
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


def admin_tools(quick: bool) -> Report:
    """Each tool against one broker on our controller, and `--help` of each."""
    report = Report()
    rounds = 3 if quick else 11
    with brokers_on_quorate(BROKER_ID) as address:
        for measure, (main, options) in _TOOLS.items():
            tool, *verb = measure.split()
            words = [*(verb if not options else ()), "--bootstrap-server", address, *options]
            _against_script(report, measure, [tool, *words], [main, *words], rounds)
    return report


def tools(quick: bool) -> Report:
    """Every measure of the operators' tools in one run."""
    report = Report()
    for part in (help_texts, describe, admin_tools, files, many_topics):
        report.extend(part(quick))
    return report


def help_texts(quick: bool) -> Report:
    """`--help` of every tool."""
    report = Report()
    for tool in TOOLS:
        time_ms = _seconds([*QUORATE, tool, "--help"], 5 if quick else 21) * 1000
        report.add(f"{tool} --help", "quorate", time_ms, "ms")
        report.hold(f"{tool} --help, of 80 ms", 80 / time_ms, 1.0)
    return report


def files(quick: bool) -> Report:
    """The tools that need no cluster, each on the files of one controller."""
    report = Report()
    rounds = 3 if quick else 11
    with started(Controllers) as system:
        assert isinstance(system, Controllers)
        node = system.leader()
        log = node.data / "__cluster_metadata-0"
        dumped = str(log / f"{0:020d}.log")
        for measure, tool, main, words in (
            ("storage info", "storage", STORAGE, ["info", "-c", str(node.properties)]),
            ("storage random-uuid", "storage", STORAGE, ["random-uuid"]),
            ("storage version-mapping", "storage", STORAGE, ["version-mapping"]),
            ("dump-log of a new cluster", "dump-log", DUMP_LOG,
             ["--cluster-metadata-decoder", "--files", dumped]),
            ("features version-mapping", "features", FEATURES, ["version-mapping"]),
        ):  # fmt: skip
            _against_script(report, measure, [tool, *words], [main, *words], rounds)
    return report


def _against_script(
    report: Report, measure: str, ours: list[str], scripts: list[str], rounds: int
) -> None:
    """One command beside that of Kafka's script, at most a tenth of its time; main class first."""
    main, *words = scripts
    commands = {
        "quorate": [*QUORATE, *ours],
        "kafka": java_command(main, *words, jvm=LIKE_THE_SCRIPTS),
    }
    _compare(report, measure, commands, rounds)
    report.hold_ratio(f"{measure} over Kafka's", measure, "kafka", 0.1)


def _compare(report: Report, measure: str, commands: Mapping[str, list[str]], rounds: int) -> None:
    """Run the commands in turns, so that a change of the machine's load meets each of them.

    The first round warms a broker's JVM up and is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            times[name].append(_seconds(command, 1))
    for name, found in times.items():
        report.add(measure, name, statistics.median(found[1:]) * 1000, "ms")


def many_topics(quick: bool) -> Report:
    """`topics --describe` and `reassign-partitions --verify` of topics with one partition (RF 1)."""
    report = Report()
    count = 1_000 if quick else MANY_TOPICS
    rounds = 1 if quick else 3
    with (
        brokers_on_quorate(BROKER_ID, OTHER_BROKER_ID) as address,
        tempfile.TemporaryDirectory() as folder,
    ):
        with Admin.open(bootstrap_servers=address) as admin:
            for start in range(0, count, 500):
                names = [f"t{number}" for number in range(start, start + 500)]
                admin.create_topics([TopicCreation(name, 1, 1) for name in names])
        partitions = [
            {"topic": f"t{number}", "partition": 0, "replicas": [BROKER_ID]}
            for number in range(count)
        ]
        plan = Path(folder) / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
        for tool, main, words in (
            ("topics", "org.apache.kafka.tools.TopicCommand", ["--describe"]),
            (
                "reassign-partitions",
                "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
                ["--verify", "--preserve-throttles", "--reassignment-json-file", str(plan)],
            ),
        ):
            measure = f"{tool} {words[0]}, {count} topics"
            line = ["--bootstrap-server", address, *words]
            commands = {
                "quorate": [*QUORATE, tool, *line],
                "kafka": java_command(main, *line, jvm=LIKE_THE_SCRIPTS),
            }
            _compare(report, measure, commands, rounds)
            report.hold_ratio(f"{measure} over Kafka's", measure, "kafka", 0.2)
    return report


@contextmanager
def brokers_on_quorate(*brokers: int) -> Iterator[str]:
    """The address of one of the Java brokers on our controller, with an authorizer for ACLs."""
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with tempfile.TemporaryDirectory(prefix="quorate-bench-") as folder:
        quorum = Quorum(Path(folder), {1: "quorate"}, config=config)
        try:
            quorum.format()
            quorum.start()
            quorum.leader()
            for broker in brokers:
                node = quorum.add_broker(broker, jvm=BROKER_JVM)
                node.wait_until_started()
            yield node.address
        finally:
            quorum.stop()
