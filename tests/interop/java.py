"""Real Kafka: its jars, its nodes, its tools. A missing Java or jar fails with what to do."""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import re
import shutil
import struct
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from interop.process import Node, wait_for

CompletedTool: TypeAlias = "subprocess.CompletedProcess[str]"
ROOT = Path(__file__).resolve().parents[2]
LOG4J = Path(__file__).with_name("log4j2.xml")
TOOL_LOG4J = Path(__file__).with_name("log4j2-tools.xml")

SERVER = "kafka.Kafka"
STORAGE = "kafka.tools.StorageTool"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
FEATURES = "org.apache.kafka.tools.FeatureCommand"

KAFKA_4_3 = "4.3.1"
KAFKA_4_4 = "4.4.0"
"""The releases that the Makefile downloads."""
KAFKA_3_9 = "3.9.1"
KAFKA_4_0 = "4.0.1"
KAFKA_4_1 = "4.1.1"
"""Releases that only older_servers.py uses."""

QUICK_JVM = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    # The JVM writes its own warnings to stdout, where the answers of a ToolServer are read.
    *("-Xlog:disable", "-Xlog:all=warning:stderr"),
)

# Lines at ERROR that a Java node writes about things the tests do on purpose; each with why.
ALLOWED_ERRORS: tuple[tuple[str, str], ...] = (
    (
        r"Unexpected error handling request .*\n.*NotControllerException",
        "asked for a controller's work just after it lost its epoch; all-Java quorums log it too",
    ),
    (
        r"Overriding internal\.metadata\.log\.segment\.bytes is only supported for testing",
        "segments of a few kilobytes, so that a test may see many of them",
    ),
    (
        r"Had an error during log cleaning .*\n.*larger than the high watermark",
        "a second after its start it may not know the high watermark; it tries again",
    ),
    (
        r"Unexpected error handling request .*\n.*Direct-to-controller communication is not supported",
        "a tool asks while the node has not yet applied metadata.version; all-Java quorums log it too",
    ),
    (
        r"Expected partition \S+ with topic id \S+ to exist, but it was missing\. Creating",
        "a reassignment brings the broker a partition of a topic that it knows; Kafka logs it always",
    ),
    (
        r"RegistrationResponseHandler: channel manager timed out before sending the request",
        "the leader that it registers with has left; it registers with the next one",
    ),
    (
        r"Exception when handling request .*\n.*RequestMetrics\$ErrorMeter",
        "it answers while it stops, after its metrics were cleared (`RequestMetrics.removeMetrics`)",
    ),
    (
        r"Exceptionally slow controller event \S+ took \d+ ms",
        "its clock went on while it was frozen, or while a majority was; so on a busy machine too",
    ),
)


@functools.cache
def libs(release: str = KAFKA_4_3) -> Path:
    """The folder of the jars of a release; AssertionError that says how to get them.

    The folder of another release than 4.3.1 is beside that of 4.3.1: `libs-4.4.0` beside `libs`.
    """
    folder = Path(os.environ.get("QUORATE_KAFKA_LIBS", ROOT / ".kafka" / "libs")).resolve()
    if release != KAFKA_4_3:
        folder = folder.with_name(f"{folder.name}-{release}")
    assert list(folder.glob(f"kafka_2.13-{release}.jar")), (
        f"The jars of Kafka {release} are not in {folder}: run 'make .kafka/libs-4.4.0.stamp', or "
        "point QUORATE_KAFKA_LIBS at a folder that has those of 4.3.1"
    )
    return folder


def java_command(
    main: str,
    *args: str,
    log4j: Path = TOOL_LOG4J,
    jvm: Sequence[str] | None = None,
    release: str = KAFKA_4_3,
) -> list[str]:
    """The command line that runs one of the main classes of a release of Kafka.

    `jvm`: options for the JVM in place of those that make it start quickly and stay small.
    """
    assert shutil.which("java"), "no java on the PATH: the interop tests need Java 17 or later"
    options = (
        [*QUICK_JVM, f"-XX:SharedArchiveFile={_class_archive(release)}"] if jvm is None else jvm
    )
    logging = f"-Dlog4j2.configurationFile={log4j}"
    return ["java", *options, logging, "-cp", f"{libs(release)}/*", main, *args]


@functools.cache
def _class_archive(release: str = KAFKA_4_3) -> Path:
    """Kafka's classes as the JVM wants them in memory: halves the start of nodes and tools.

    Made once beside the jars, by a tool's run (class data sharing, JEP 350).
    """
    folder = libs(release)
    archive = folder.parent / ("classes.jsa" if release == KAFKA_4_3 else f"classes-{release}.jsa")
    with (folder.parent / "classes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            making = archive.with_suffix(".part")
            subprocess.run(
                [
                    "java",
                    *QUICK_JVM,
                    f"-XX:ArchiveClassesAtExit={making}",
                    f"-Dlog4j2.configurationFile={TOOL_LOG4J}",
                    "-cp",
                    f"{folder}/*",
                    SERVER,
                    "/nonexistent",
                ],
                capture_output=True,
                timeout=120,
            )
            assert making.exists(), "the JVM wrote no class archive"
            making.rename(archive)
    return archive


class ToolServer:
    """A JVM that runs Kafka's tools of a release, one after the other (ToolServer.java)."""

    def __init__(self, release: str) -> None:
        source = str(Path(__file__).with_name("ToolServer.java"))
        self._process = subprocess.Popen(
            java_command(source, release=release), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        atexit.register(self.stop)

    def stop(self) -> None:
        """End the JVM; may be called again."""
        self._process.kill()
        self._process.communicate()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def run(self, main: str, args: Sequence[str], timeout: float) -> CompletedTool:
        """Run a tool to its end.

        Raises AssertionError after `timeout` seconds, and where the JVM ends; it is stopped then.
        """
        words = [word.encode() for word in (main, *args)]
        first, *others = (struct.pack(">i", len(word)) + word for word in words)
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe and answers
        pipe.write(first + struct.pack(">i", len(others)) + b"".join(others))
        pipe.flush()
        deadline = time.monotonic() + timeout
        watch = threading.Timer(timeout, self._process.kill)
        watch.start()
        try:
            code = self._number()
            out, err = (answers.read(self._number()).decode() for _ in range(2))
        except EOFError:
            self.stop()
            ended = time.monotonic() >= deadline
            why = f"within {timeout} s" if ended else "as its JVM ended (see stderr above)"
            raise AssertionError(f"{main} {' '.join(args)} did not end {why}") from None
        finally:
            watch.cancel()
        return subprocess.CompletedProcess([main, *args], code, out, err)

    def _number(self) -> int:
        assert self._process.stdout
        data = self._process.stdout.read(4)
        if len(data) < 4:
            raise EOFError
        number: int = struct.unpack(">i", data)[0]
        return number


_servers: dict[str, ToolServer] = {}
"""By release; of this process."""


def java_tool(
    main: str, *args: str, timeout: float = 60.0, release: str = KAFKA_4_3
) -> CompletedTool:
    """Run one of Kafka's tools to its end, in a JVM that later tools use again."""
    server = _servers.get(release)
    if server is None or not server.is_alive:
        server = _servers[release] = ToolServer(release)
    return server.run(main, args, timeout)


class JavaNode(Node):
    kind = "java"
    release = KAFKA_4_3
    jvm: Sequence[str] | None = None

    def server_command(self, *args: str) -> list[str]:
        words = (str(self.properties), *args)
        return java_command(SERVER, *words, log4j=LOG4J, jvm=self.jvm, release=self.release)

    def storage_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        return java_tool(STORAGE, *args, release=self.release)

    def quorum_tool(self, *args: str) -> subprocess.CompletedProcess[str]:
        return java_tool(METADATA_QUORUM, *args, release=self.release)

    @staticmethod
    def dump_log(*files: Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        names = ",".join(map(str, files))
        return java_tool(DUMP_LOG, "--cluster-metadata-decoder", *options, "--files", names)

    def wait_until_started(self, timeout: float = 90.0) -> None:
        """Wait until the broker says of its newest start that it is done."""

        def started() -> bool:
            assert self.is_alive, f"{self} died:\n{self.log[-3000:]}"
            return "Kafka Server started" in self.log[self.log_start :]

        wait_for(started, f"{self} to start", timeout, 0.2)

    def complaints(self) -> list[str]:
        """Its log entries at ERROR or FATAL with their exception, save those of ALLOWED_ERRORS."""
        entries = re.findall(r"^[\d:.]+ (?:ERROR|FATAL) .*(?:\n[^\d\n].*)?", self.log, re.M)
        return [
            entry
            for entry in entries
            if not any(re.search(known, entry) for known, _ in ALLOWED_ERRORS)
        ]
