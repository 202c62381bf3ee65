"""A broker of Kafka beside the controllers of a quickstart, and Kafka's own clients."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

from quorate.base.errors import QuorateError
from quorate.cli.quickstart.supervisor import Supervisor
from quorate.server.ports import free_ports

BROKER_ID: Final = 101
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOOL_TIMEOUT_S: Final = 60
_END_S: Final = 15
_TAIL_LINES: Final = 5


class KafkaBrokerError(QuorateError):
    """The broker or one of Kafka's clients ended with an error, which the message has."""


def kafka_jars() -> Path | None:
    """The folder of Kafka's jars, where there is a Java too; None without.

    Looks at QUORATE_KAFKA_LIBS, at KAFKA_HOME/libs, and at what `make test` downloads.
    """
    if shutil.which("java") is None:
        return None
    given = os.environ.get("QUORATE_KAFKA_LIBS")
    home = os.environ.get("KAFKA_HOME")
    places = (given, f"{home}/libs" if home else None, ".kafka/libs")
    for place in filter(None, places):
        if any(Path(place).glob("kafka_2.13-*.jar")):
            return Path(place).absolute()
    return None


class KafkaBroker:
    """One broker process in the quickstart's directory. As a context manager it stops the process."""

    def __init__(self, quorum: Supervisor, jars: Path) -> None:
        self._quorum = quorum
        self._jars = jars
        self._home = quorum.data / f"broker-{BROKER_ID}"
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{free_ports(1)[0]}"

    def start(self) -> None:
        """Format the directory where it is new, and start. Raises KafkaBrokerError."""
        self._home.mkdir(exist_ok=True)
        properties = self._home / "server.properties"
        one = (
            *("offsets.topic.replication.factor", "offsets.topic.num.partitions"),
            *("transaction.state.log.replication.factor", "transaction.state.log.min.isr"),
        )
        lines = (
            "process.roles=broker",
            f"node.id={BROKER_ID}",
            f"listeners=PLAINTEXT://{self.address}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"controller.quorum.bootstrap.servers={self._quorum.bootstrap}",
            f"log.dirs={self._home / 'data'}",
            *(f"{key}=1" for key in one),
        )
        properties.write_text("\n".join(lines) + "\n")
        words = ("storage", "format", "--ignore-formatted", "-t", self._quorum.cluster_id, "-c")
        _run((sys.executable, "-m", "quorate", *words, str(properties)))
        with (self._home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                (
                    *(sys.executable, "-m", "quorate.cli.quickstart.broker_process"),
                    *self._java("kafka.Kafka", str(properties)),
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise KafkaBrokerError when the process has ended."""
        if self._process is not None and self._process.poll() is not None:
            log = self._home / "server.log"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise KafkaBrokerError(f"the broker ended; {log} ends with:\n{tail}")

    def produce(self, topic: str, record: str) -> None:
        """Write a record with Kafka's console producer. Raises KafkaBrokerError."""
        main = "org.apache.kafka.tools.ConsoleProducer"
        words = ("--bootstrap-server", self.address, "--topic", topic)
        _run(self._java(main, *words), f"{record}\n")

    def consume(self, topic: str) -> str:
        """The first record of partition 0, by Kafka's console consumer. Raises KafkaBrokerError."""
        main = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        words = ("--bootstrap-server", self.address, "--topic", topic, "--partition", "0")
        limits = ("--offset", "earliest", "--max-messages", "1", "--timeout-ms", "30000")
        return _run(self._java(main, *words, *limits)).strip()

    def _java(self, main: str, *words: str) -> tuple[str, ...]:
        return ("java", *_JVM, "-cp", f"{self._jars}/*", main, *words)

    def __enter__(self) -> KafkaBroker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _run(command: tuple[str, ...], text: str = "") -> str:
    """The output of a command. Raises KafkaBrokerError with what it says on stderr."""
    try:
        run = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise KafkaBrokerError(f"no end after {_TOOL_TIMEOUT_S} s: {' '.join(command)}") from None
    if run.returncode:
        said = (run.stderr or run.stdout).strip()
        raise KafkaBrokerError(f"exit code {run.returncode} of {' '.join(command)}: {said}")
    return run.stdout
