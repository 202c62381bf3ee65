"""A stream's reader driven as Spark drives it, without Spark; and what a stream should give."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from interop.kafka import Quorum
from interop.process import Node, wait_for
from interop.test_cleaning import segments
from quorate.spark.source.options import parse_options
from quorate.spark.source.plan import partitions
from quorate.spark.source.read import read_partition
from quorate.spark.stream.options import parse_stream_options
from quorate.spark.stream.reader import MetadataStreamReader, Offsets

FACTS = ("kind", "offset", "epoch", "type", "record", "problem")
ALL = ReadAllAvailable()


def reader(**options: Any) -> MetadataStreamReader:
    """A reader as Spark makes it; `bootstrap` stands for bootstrap.controllers."""
    words = {key: str(value) for key, value in options.items()}
    if "bootstrap" in words:
        words["bootstrap.controllers"] = words.pop("bootstrap")
    return MetadataStreamReader(parse_stream_options(words))


class Stream:
    """A query: its checkpoint and what it has given. `restart` is a new process on both."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.rows: list[dict[str, Any]] = []
        self.offsets: Offsets | None = None
        self.planned: tuple[Offsets, Offsets] | None = None
        """The batch that was written to the checkpoint and not finished."""
        self.reader = reader(**options)

    def restart(self, **options: Any) -> None:
        self.reader.stop()
        self.options |= options
        self.reader = reader(**self.options)

    def plan(self, limit: ReadLimit = ALL) -> bool:
        """Begin a batch; false when there is nothing new."""
        if self.planned is None:
            start = self.reader.initialOffset() if self.offsets is None else self.offsets
            end = _through_json(self.reader.latestOffset(start, limit))
            if start == end:
                return False
            self.planned = (start, end)
        return True

    def finish(self) -> list[dict[str, Any]]:
        """Read the batch that was begun, and note that it was."""
        assert self.planned is not None
        found: list[dict[str, Any]] = []
        for part in self.reader.partitions(*self.planned):
            elsewhere = pickle.loads(pickle.dumps((self.reader, part)))
            found += [row for batch in elsewhere[0].read(elsewhere[1]) for row in batch.to_pylist()]
        self.rows += found
        self.offsets, self.planned = self.planned[1], None
        return found

    def step(self, most: int | None = None) -> bool:
        """A whole micro-batch of at most so many records; false when there was nothing new."""
        if not self.plan(ALL if most is None else ReadMaxRows(most)):
            return False
        self.finish()
        return True

    def end(self, cluster_id: str) -> int:
        """How far it has come."""
        return 0 if self.offsets is None else self.offsets.get(cluster_id, {"offset": 0})["offset"]

    @property
    def offset_list(self) -> list[int]:
        return [row["offset"] for row in self.rows if row["kind"] == "log"]


def _through_json(offsets: Offsets) -> Offsets:
    """As from a checkpoint."""
    found: Offsets = json.loads(json.dumps(offsets))
    return found


def facts(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What a record says, wherever it was read."""
    return [tuple(row[name] for name in FACTS) for row in rows]


def batch_rows(path: Path, end: int, start: int = 0) -> list[dict[str, Any]]:
    """The log of a directory between two offsets, by the batch source."""
    options = parse_options({"path": str(path), "kinds": "log"})
    found = [
        row
        for partition in partitions(options)
        for batch in read_partition(partition, options)
        for row in batch.to_pylist()
    ]
    sound: Mapping[int, dict[str, Any]] = {
        row["offset"]: row for row in found if row["offset"] is not None
    }
    return [sound[offset] for offset in range(start, end)]


def alive(quorum: Quorum) -> Quorum:
    """The quorum with all its nodes running and a leader."""
    for node in quorum.controllers:
        if not node.is_alive:
            node.start()
    quorum.leader()
    return quorum


def caught_up(stream: Stream, quorum: Quorum, most: int | None = None) -> int:
    """Step until the stream has all that is committed at the time of the call; its end."""
    wanted = quorum.wait_until(lambda view: view.high_watermark > 0, "a leader").high_watermark

    def there() -> bool:
        stream.step(most)
        return stream.end(quorum.cluster_id) >= wanted

    wait_for(there, f"the stream to come to {wanted}")
    return stream.end(quorum.cluster_id)


def assert_lost_offsets_are_reported(rows: list[dict[str, Any]], start: int, end: int) -> None:
    """Every offset of [start, end) came once or is reported as lost, and a snapshot stands for it.

    A log that is cleaned again and again may be so between a plan and its reading: then it is reported
    twice, of two parts.
    """
    at, stood_for, lost = start, start, start
    for row in rows:
        if row["kind"] == "snapshot":
            stood_for = row["snapshot_offset"]
        elif row["problem"] is not None:
            deleted = re.search(r"the offsets (\d+) to (\d+) were deleted", row["problem"])
            assert deleted and int(deleted[1]) == at, f"at {at}: {row['problem']}"
            at = lost = int(deleted[2]) + 1
        else:
            assert row["offset"] == at and stood_for >= lost
            at += 1
    assert at == end


def whole_snapshots(rows: list[dict[str, Any]]) -> list[int]:
    """The end offsets of the snapshots among these rows; each must be whole."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "snapshot":
            found.setdefault(row["snapshot_offset"], []).append(row)
    for one in found.values():
        assert [row["offset"] for row in one] == list(range(len(one)))
        assert (one[0]["type"], one[-1]["type"]) == ("SnapshotHeader", "SnapshotFooter")
    return list(found)


def goes_on_after_cleaning(
    stream: Stream, quorum: Quorum, node: Node, end: int
) -> list[dict[str, Any]]:
    """`node` drops all that `stream` has read, up to `end` (exclusive); the stream is started anew,
    reports the lost offsets and goes on from a snapshot. Returns its new rows."""
    kept = len(stream.rows)

    def cleaned() -> bool:
        quorum.write(10)
        return segments(node)[0] > end

    wait_for(cleaned, "the log to be cleaned beyond what was read", 60)
    stream.restart()
    caught_up(stream, quorum)
    new = stream.rows[kept:]
    assert_lost_offsets_are_reported(new, end, stream.end(quorum.cluster_id))
    assert min(whole_snapshots(new)) > end
    return new
