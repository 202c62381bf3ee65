"""The files that Kafka 4.3.1 wrote, with what its own tools say about them."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "kafka-4.3.1"
VERSIONS = DATA.with_name("kafka-4.3.1-versions")
"""What it wrote at older metadata versions; by tools/record_versions.py."""

TOPICS = DATA.with_name("kafka-4.3.1-topics")
"""The partitions of a broker's internal topics; by tools/record_broker_logs.py."""


def named(*names: str) -> list[Path]:
    """Every sample file with one of these names or patterns."""
    return sorted(path for name in names for path in DATA.rglob(name))


def short(path: Path) -> str:
    """A test id: `a-first/node1/__cluster_metadata-0/quorum-state`."""
    return str(path.relative_to(DATA if path.is_relative_to(DATA) else VERSIONS))


BATCH_FILES = [
    *named("*.log", "*.checkpoint"),
    *sorted(path for path in VERSIONS.rglob("*") if path.suffix in (".log", ".checkpoint")),
]
"""Every log and snapshot, bootstrap.checkpoint among them."""


def dump_of(path: Path) -> Path:
    """The text that Kafka's DumpLogSegments printed for a log or checkpoint."""
    return path.parent.parent / f"{path.name}.dump.txt"


DUMPED_FILES = [path for path in BATCH_FILES if dump_of(path).exists()]
