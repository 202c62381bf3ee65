"""Tests of other people's clients on a cluster whose controllers are Quorate: run by hand, not in CI.

    python tests/interop/other_clients.py librdkafka DIRECTORY 0080 0081 0115
    python tests/interop/other_clients.py kafka-python DIRECTORY PYTHON [TEST ...]

librdkafka's directory is built (`./configure && make && make -C tests build`). PYTHON has the packages
that kafka-python's tests need. Three controllers and three brokers of Kafka 4.3.1 run meanwhile; `--kafka`
takes Kafka's controllers instead, as the control. The verdicts are in docs/clients.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from interop.kafka import Quorum  # noqa: E402 - found by the line above

CONTROLLERS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
}
BROKERS = {
    # Otherwise the clients were super users too: 0115 expects to be refused.
    "super.users": "User:nobody",
    "num.partitions": 4,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 5,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
}
BROKER_IDS = (11, 12, 13)
TIMEOUT_S = 300


def run(kind: str, suite: str, directory: Path, words: list[str]) -> int:
    """Run a suite on a new cluster, and print what its runner prints; the exit code."""
    with (
        tempfile.TemporaryDirectory() as home,
        Quorum(Path(home), dict.fromkeys((1, 2, 3), kind), config=CONTROLLERS) as quorum,
    ):
        quorum.format()
        quorum.start()
        quorum.leader()
        brokers = [quorum.add_broker(node_id, BROKERS) for node_id in BROKER_IDS]
        for broker in brokers:
            broker.wait_until_listening()
        addresses = [broker.address for broker in brokers]
        scripts = Path(home) / "kafka"
        _write_scripts(scripts / "bin")
        suites = {"librdkafka": _librdkafka, "kafka-python": _kafka_python}
        return suites[suite](directory, scripts, addresses, words)


def _write_scripts(folder: Path) -> None:
    """Kafka's scripts by their names, which run Quorate's tools."""
    folder.mkdir(parents=True)
    for tool in ("acls", "configs", "topics"):
        script = folder / f"kafka-{tool}.sh"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m quorate {tool} "$@"\n')
        script.chmod(0o755)


def _librdkafka(directory: Path, scripts: Path, addresses: list[str], tests: list[str]) -> int:
    config = scripts / "test.conf"
    config.write_text(f"bootstrap.servers={','.join(addresses)}\n")
    environment = os.environ | {
        "LD_LIBRARY_PATH": f"{directory / 'src'}:{directory / 'src-cpp'}",
        "RDKAFKA_TEST_CONF": str(config),
        "KAFKA_PATH": str(scripts),
        "TEST_KAFKA_VERSION": "4.0.0",
    }
    codes = [
        subprocess.run(
            ["./test-runner", "-p1", "-K"],
            cwd=directory / "tests",
            env=environment | {"TESTS": test},
            timeout=TIMEOUT_S,
        ).returncode
        for test in tests
    ]
    return max(codes)


def _kafka_python(directory: Path, scripts: Path, addresses: list[str], words: list[str]) -> int:
    environment = os.environ | {
        "KAFKA_ROOT": str(scripts),
        "KAFKA_URI": f"kafka://{addresses[0]}",
        "KAFKA_VERSION": "4.2.0",
        "PYTHONPATH": str(directory),
    }
    python, *tests = words
    command = [python, "-m", "pytest", "-v", "--tb=short", *(tests or ["test/integration"])]
    return subprocess.run(command, cwd=directory, env=environment).returncode


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--kafka"]
    kind = "java" if "--kafka" in sys.argv else "quorate"
    sys.exit(run(kind, arguments[0], Path(arguments[1]).resolve(), arguments[2:]))
