"""Logs for slices: records as steps, and what replay makes of them at every offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorate.formats import records as r
from quorate.formats.json_text import to_json
from quorate.metadata.image import Image
from quorate.metadata.replay import ReplayError, replay
from quorate.spark.tables.files import DataFile, WriteTarget, read_file
from quorate.spark.tables.image_rows import IMAGE_KINDS, image_rows
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.rewind import cut_versions, slice_tasks
from quorate.spark.tables.secrets import shown_record
from quorate.spark.tables.slices import TOPIC_CONFIGS, SliceStep, StateSlice
from quorate.spark.tables.store import StoredFile
from quorate.spark.tables.versions import CLOSED, CURRENT, SliceTarget, in_slice, slice_of

CLUSTER = "cluster-a"


def fitting(records: Iterable[Any]) -> list[tuple[Any, Image]]:
    """The records that a real log could hold, and the image after each."""
    found, image = [], Image()
    for record in records:
        try:
            after = replay(image, record)
        except ReplayError:
            continue
        image = after
        found.append((record, image))
    return found


def steps(offset: int, record: Any, name: str | None) -> list[tuple[str | None, SliceStep]]:
    """A record as (group, step) for each slice that must hear it; group None means all."""
    version = type(record).schema.versions[1]
    kind = type(record).__name__
    text = shown_record(kind, to_json(record, version))
    step = SliceStep(offset, 1000 * offset, offset, 1, 1000 * offset, kind, text, None)
    out = [(group_of(record), step)]
    if isinstance(record, r.RemoveTopicRecord):
        out.append((f"topic/{name}", step._replace(type=TOPIC_CONFIGS, topic_name=name)))
    return out


def group_of(record: Any) -> str | None:
    from quorate.spark.tables.kinds import config_type, text_of

    match record:
        case r.TopicRecord() | r.PartitionRecord() | r.PartitionChangeRecord():
            return text_of(record.topic_id)
        case r.RemoveTopicRecord():
            return text_of(record.topic_id)
        case r.ConfigRecord():
            return f"{config_type(record.resource_type)}/{record.resource_name}"
        case r.AccessControlEntryRecord() | r.RemoveAccessControlEntryRecord():
            return text_of(record.id)
        case r.ClearElrRecord():
            return None
    return ""


class Slices:
    """All slices of one cluster, run after run, without Spark."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.run = 0
        self.live: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
        """Live files of each kind and their slice."""
        self.others: list[DataFile] = []
        self.slices = 1

    def feed(
        self, routed: Sequence[tuple[str | None, SliceStep]], slices: int | None = None
    ) -> None:
        """One run over these steps."""
        self.run += 1
        old, self.slices = self.slices, slices or self.slices
        for number in range(self.slices):
            mine = [s for g, s in routed if g is None or slice_of(g, self.slices) == number]
            self._run_slice(number, old, mine)
        if self.slices != old:
            for kind, files in self.live.items():
                self.live[kind] = {
                    path: n
                    for path, n in files.items()
                    if not path.startswith(CURRENT) or f"-{self.run:08d}-" in path
                }

    def _run_slice(self, number: int, old: int, mine: list[SliceStep]) -> None:
        files = {
            kind: path
            for kind, paths in self.live.items()
            for path, slice in paths.items()
            if path.startswith(CURRENT)
            and slice == number % old
            and f"-{self.run:08d}-" not in path
        }
        resliced = self.slices != old
        place = SliceTarget(
            self.root, self.run, False, CLUSTER, number, self.slices, files, resliced
        )
        work = StateSlice(place)
        if resliced:
            work.feed(SliceStep(-1, 0, -1, -1, 0, "!reslice", None, None))
        for step in mine:
            work.feed(step)
        for kind, path in list(work.replaced()):
            del self.live[kind][path]
        for file in work.finish():
            if file.table in KINDS:
                self.live[file.table][file.path] = number
            else:
                self.others.append(file)

    def rewind(self, end: int) -> None:
        """Let the state end at an offset."""
        self.run += 1
        place = WriteTarget(self.root, self.run, False)
        for kind, files in self.live.items():
            stored = [StoredFile(path, 0, {}, {}) for path in files]
            closed = [file for file in stored if file.path.startswith(CLOSED)]
            current = [file for file in stored if file.path.startswith(CURRENT)]
            self.live[kind] = {}
            for task in slice_tasks(kind, closed, current, self.slices):
                found = pa.concat_tables(read_file(self.root, kind, path) for path in task.paths)
                mine = in_slice(KINDS[kind], found, task.slice, self.slices)
                for file in cut_versions(task, mine, CLUSTER, end, place)["files"]:
                    self.live[kind][file["path"]] = task.slice

    def rows(self, table: str) -> list[dict[str, Any]]:
        files = self.live.get(table) or [f.path for f in self.others if f.table == table]
        return [row for path in files for row in read_file(self.root, table, path).to_pylist()]

    def at(self, offset: int) -> dict[str, dict[Any, Any]]:
        """The state at an offset, in the form of image_rows."""
        return {kind.name: dict(self._kind_at(kind, offset)) for kind in IMAGE_KINDS}

    def _kind_at(self, kind: Any, offset: int) -> Iterator[tuple[Any, Any]]:
        for row in self.rows(kind.name):
            end = row["valid_to_offset"]
            if row["valid_from_offset"] <= offset and (end is None or end > offset):
                yield thing(kind, row)


def thing(kind: Any, row: dict[str, Any]) -> tuple[Any, Any]:
    """(key, values) of a row of gold, as image_rows has them."""
    key = tuple(row[name] for name, _ in kind.keys)
    values = kind.from_values(key, tuple(row[name] for name, _ in kind.values))
    contents = kind.to_values(values)
    return key, contents[:1] if kind.name == "scram" else contents


def contents(image: Image) -> dict[str, dict[Any, Any]]:
    return image_rows(image)
