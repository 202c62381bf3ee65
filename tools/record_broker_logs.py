"""Record the internal topics of a Kafka 4.3.1 broker, compressed batches, and Kafka's dumps of them.

    python tools/record_broker_logs.py

The broker serves groups of each kind, transactions and a tiered topic; BrokerLogs.java does what
clients do. Each folder of tests/data/kafka-4.3.1-topics gets the files of one partition and what
Kafka's own kafka-dump-log prints of them. Needs `make .kafka/libs.stamp` and a JDK.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "tests/data/kafka-4.3.1-topics"
sys.path.insert(0, str(ROOT / "tests"))

from interop.kafka import DUMP_LOG, Quorum, java_command, java_tool, libs  # noqa: E402 - found by the line above

INTEROP = ROOT / "tests/interop"
DECODERS = {
    "__consumer_offsets-0": "--offsets-decoder",
    "__transaction_state-0": "--transaction-log-decoder",
    "__share_group_state-0": "--share-group-state-decoder",
    "__remote_log_metadata-0": "--remote-log-metadata-decoder",
    "orders-0": "--print-data-log",
    "compressed-0": "--deep-iteration",
}
KEPT = (".log", ".snapshot", ".txnindex")
TIERED = {"remote.log.storage.system.enable": "true"}
BROKER = {
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "remote.log.storage.manager.class.name": "NoRemoteStorage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": 500,
    "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
    "rlmm.config.remote.log.metadata.topic.replication.factor": 1,
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 500,
}
WAIT_MS = 5000
"""Time in which the broker's tasks copy and delete segments."""


def record(home: Path) -> None:
    """Run a cluster and its clients, then keep and dump the broker's files."""
    classes = home / "classes"
    source = INTEROP / "NoRemoteStorage.java"
    subprocess.run(["javac", "-cp", f"{libs()}/*", "-d", classes, source], check=True)
    config = BROKER | {"remote.log.storage.manager.class.path": classes}
    with Quorum(home, {1: "java"}, config=TIERED) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        broker = quorum.add_broker(11, config)
        broker.wait_until_started()
        clients = java_command(str(INTEROP / "BrokerLogs.java"), broker.address, str(WAIT_MS))
        subprocess.run(clients, check=True, timeout=180)
        broker.kill(signal.SIGTERM)  # a clean stop writes the snapshots of producers
        compressed = broker.data / "compressed-0"
        compressed.mkdir()
        write_compressed(compressed / "00000000000000000000.log")
        _keep(broker.data)


def write_compressed(path: Path) -> None:
    """Let Kafka write a segment with batches of every codec."""
    subprocess.run(java_command(str(INTEROP / "CompressedLogs.java"), str(path)), check=True)


def _keep(data: Path) -> None:
    shutil.rmtree(SAMPLES, ignore_errors=True)
    for partition, decoder in DECODERS.items():
        folder = SAMPLES / partition
        folder.mkdir(parents=True)
        for path in sorted((data / partition).iterdir()):
            if path.suffix in KEPT:
                kept = Path(shutil.copyfile(path, folder / path.name))
                dump = java_tool(DUMP_LOG, decoder, "--files", str(kept)).stdout
                kept.with_name(f"{kept.name}.dump.txt").write_text(dump.replace(f"{folder}/", ""))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        record(Path(home))
    print(SAMPLES)
