"""Record what Kafka 4.3.1 writes at older metadata versions: small logs and Kafka's dumps of them.

    python tools/record_versions.py 3.9 4.0 4.1

Each release gets a folder in tests/data/kafka-4.3.1-versions: the metadata log of a controller that
was formatted with `--release-version`, after a broker came and topics, configs, an ACL and a quota
were made, and what Kafka's own kafka-dump-log prints of it. Needs `make .kafka/libs.stamp`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "tests/data/kafka-4.3.1-versions"
sys.path.insert(0, str(ROOT / "tests"))

from interop.kafka import DUMP_LOG, Quorum, java_tool  # noqa: E402 - found by the line above
from interop.process import wait_for  # noqa: E402

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ACLS = "org.apache.kafka.tools.AclCommand"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CONFIG = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
KEPT = ("meta.properties", "quorum-state", "leader-epoch-checkpoint", "partition.metadata")


def record(release: str, folder: Path) -> None:
    """A short life of a cluster at a release, and its log."""
    with (
        tempfile.TemporaryDirectory() as home,
        Quorum(Path(home), {1: "java"}, config=CONFIG) as quorum,
    ):
        quorum.format("--release-version", release)
        quorum.start()
        quorum.leader()
        broker = quorum.add_broker(11)
        wait_for(lambda: broker.answers, "the broker", 60)
        _live(broker.address)
        quorum.wait_for_commit_by_all()
        quorum.stop()
        node = quorum.nodes[1]
        shutil.rmtree(folder, ignore_errors=True)
        for path in sorted(node.data.rglob("*")):
            if path.name in KEPT or path.suffix in (".log", ".checkpoint"):
                kept = folder / path.relative_to(node.data)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, kept)
    (log,) = (folder / "__cluster_metadata-0").glob("*.log")
    dump = java_tool(DUMP_LOG, "--cluster-metadata-decoder", "--files", str(log)).stdout
    dump = dump.replace(str(folder), "")
    (folder / f"{log.name}.dump.txt").write_text(dump)


def _live(bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    for name, partitions in (("orders", "3"), ("payments", "1"), ("gone", "1")):
        _tool(TOPICS, *server, "--create", "--topic", name, "--partitions", partitions)
    _tool(TOPICS, *server, "--delete", "--topic", "gone")
    entity = ("--alter", "--entity-type", "topics", "--entity-name", "orders")
    _tool(CONFIGS, *server, *entity, "--add-config", "retention.ms=3600000")
    user = ("--alter", "--entity-type", "users", "--entity-name", "alice")
    _tool(CONFIGS, *server, *user, "--add-config", "producer_byte_rate=1024")
    allow = ("--add", "--allow-principal", "User:alice", "--operation", "Read")
    _tool(ACLS, *server, *allow, "--topic", "orders")


def _tool(main: str, *words: str) -> None:
    done = java_tool(main, *words)
    if done.returncode:
        raise SystemExit(f"{main} {' '.join(words)}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    for release in sys.argv[1:]:
        record(release, SAMPLES / release)
        print(f"{SAMPLES / release}")
