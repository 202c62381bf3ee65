"""The image at 1 thousand, 100 thousand and 1 million partitions: load, memory, change, write, shell.

    python -m bench.image [--partitions N ...] [--snapshot FILE] [--json]

Every size is measured in a process of its own, on a snapshot that our own writer makes first
(10 partitions a topic, RF 3, 30 brokers in three racks), or on the snapshot given.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats import records as r
from quorate.formats.batch import iter_batches
from quorate.formats.files import snapshot_name
from quorate.formats.records import encode_record
from quorate.formats.snapshot import SnapshotReader, encode_snapshot
from quorate.formats.versions import LATEST_PRODUCTION, METADATA_VERSION, default_levels
from quorate.metadata.bulk import record_values
from quorate.metadata.image import Image
from quorate.metadata.loader import Published, SnapshotBuilder
from quorate.metadata.replay import replay
from quorate.raft.values import ControlState

SIZES = (1_000, 100_000, 1_000_000)
PARTITIONS_PER_TOPIC = 10
BROKERS = 30
CHANGES = 5_000
TITLES = {
    "partitions": "partitions",
    "load_s": "load, s",
    "load_gc_s": "load with gc on, s",
    "memory_mb": "image, MB",
    "bytes_per_partition": "bytes/partition",
    "change_us": "one change, us",
    "write_s": "write snapshot, s",
    "shell_s": "metadata-shell, s",
}
QUORATE = str(Path(sys.executable).with_name("quorate"))
"""As users start it; `python -m` takes longer."""
SHELL_ROUNDS = 3
SNAPSHOT_ID = OffsetAndEpoch(1_000_000, 1)


def uuid_of(rng: random.Random) -> Uuid:
    return Uuid(rng.randbytes(16))


def cluster_records(partitions: int, seed: int = 1) -> Iterator[bytes]:
    """Values of a snapshot of `partitions` partitions."""
    rng = random.Random(seed)
    version = LATEST_PRODUCTION
    levels = default_levels(version)
    for name in sorted(levels, key=lambda name: name != METADATA_VERSION):
        yield encode_record(r.FeatureLevelRecord(name=name, feature_level=levels[name]), 0)
    directories = {}
    for broker in range(1, BROKERS + 1):
        directories[broker] = uuid_of(rng)
        endpoint = r.RegisterBrokerRecord.BrokerEndpoint(
            name="PLAINTEXT", host=f"broker-{broker}", port=9092
        )
        record = r.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=uuid_of(rng),
            broker_epoch=broker,
            end_points=[endpoint],
            rack=f"rack-{broker % 3}",
            fenced=False,
            log_dirs=[directories[broker]],
        )
        yield encode_record(record, 4)
    racks = [[b for b in range(1, BROKERS + 1) if b % 3 == rack] for rack in range(3)]
    for number in range(partitions // PARTITIONS_PER_TOPIC):
        topic_id = uuid_of(rng)
        yield encode_record(r.TopicRecord(name=f"topic-{number:06}", topic_id=topic_id), 0)
        for index in range(PARTITIONS_PER_TOPIC):
            replicas = [rng.choice(rack) for rack in racks]
            rng.shuffle(replicas)
            partition = r.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas,
                leader=replicas[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[directories[broker] for broker in replicas],
            )
            yield encode_record(partition, 2)


def write_snapshot(path: Path, found: Iterator[bytes]) -> None:
    with path.open("wb") as out:
        for data in encode_snapshot(SNAPSHOT_ID, ControlState(0, None), 0, found, 0):
            out.write(data)


def load_snapshot(path: Path) -> Published:
    """Check every batch, decode every record, build the image."""
    reader = SnapshotReader()
    builder = SnapshotBuilder(SNAPSHOT_ID, 0)
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        for view in iter_batches(data):
            builder.feed(reader.add(view))
    reader.finish()
    return builder.finish()


def resident_bytes() -> int:
    """Of this process, now (Linux); elsewhere its peak."""
    status = Path("/proc/self/statm")
    if status.exists():
        import resource

        return int(status.read_text().split()[1]) * resource.getpagesize()
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed_changes(image: Image) -> float:
    """Microseconds of one change, the median of CHANGES changes of random partitions."""
    rng = random.Random(2)
    names = sorted(image.topics.ids)
    spans = []
    for _ in range(CHANGES):
        topic = image.topics.named(rng.choice(names))
        assert topic is not None
        index = rng.choice(list(topic.partitions))
        record = r.PartitionChangeRecord(partition_id=index, topic_id=topic.id, leader=1)
        start = time.perf_counter()
        image = replay(image, record)
        spans.append(time.perf_counter() - start)
    return statistics.median(spans) * 1e6


def measure(path: Path, collect: bool) -> dict[str, float]:
    """In a fresh process. `collect`: only the load, with the garbage collector at work."""
    load_snapshot_warmup()
    if collect:
        start = time.perf_counter()
        load_snapshot(path)
        return {"load_gc_s": time.perf_counter() - start}
    gc.collect()
    gc.disable()
    before = resident_bytes()
    start = time.perf_counter()
    image = load_snapshot(path).image
    load = time.perf_counter() - start
    gc.freeze()
    gc.enable()
    memory = resident_bytes() - before
    partitions = sum(len(topic.partitions) for topic in image.topics)
    change = timed_changes(image)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write_snapshot(Path(folder) / "out.checkpoint", record_values(image))
    return {
        "partitions": partitions,
        "load_s": load,
        "memory_mb": memory / 1e6,
        "bytes_per_partition": memory / max(partitions, 1),
        "change_us": change,
        "write_s": time.perf_counter() - start,
    }


def load_snapshot_warmup() -> None:
    """Compile the codecs, so that the smallest size does not pay for it alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "warm.checkpoint"
        write_snapshot(path, cluster_records(100))
        load_snapshot(path)


def in_own_process(path: Path) -> dict[str, float]:
    out: dict[str, float] = {}
    for mode in ("--measure", "--measure-gc"):
        run = subprocess.run(
            [sys.executable, "-m", "bench.image", mode, str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        out |= json.loads(run.stdout)
    return out | {"shell_s": shell_seconds(path)}


def shell_seconds(path: Path) -> float:
    """Seconds of the whole process of `metadata-shell` that opens the snapshot and lists a directory.

    The median of SHELL_ROUNDS processes.
    """
    times = []
    for _ in range(SHELL_ROUNDS):
        start = time.perf_counter()
        command = [QUORATE, "metadata-shell", "-s", str(path), "ls", "/image"]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - start)
        assert "topics" in run.stdout.split(), run
    return statistics.median(times)


def run(sizes: tuple[int, ...] = SIZES, snapshot: Path | None = None) -> list[dict[str, float]]:
    """One row of measures for each size, or for the snapshot given."""
    if snapshot is not None:
        return [in_own_process(snapshot)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / snapshot_name(SNAPSHOT_ID)
            write_snapshot(path, cluster_records(size))
            rows.append(in_own_process(path))
            path.unlink()
    return rows


def table(rows: list[dict[str, float]]) -> str:
    """The rows as a Markdown table."""
    lines = ["| " + " | ".join(TITLES.values()) + " |", "|---:" * len(TITLES) + "|"]
    for row in rows:
        cells = [f"{row[key]:,.0f}" if row[key] >= 1000 else f"{row[key]:.3g}" for key in TITLES]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--snapshot", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--measure-gc", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure or options.measure_gc:
        print(json.dumps(measure(options.measure or options.measure_gc, bool(options.measure_gc))))
        return
    rows = run(tuple(options.partitions), options.snapshot)
    print(json.dumps(rows, indent=2) if options.json else table(rows))


if __name__ == "__main__":
    main()
