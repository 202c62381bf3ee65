"""Writes one chunk of bronze, in a task: chooses among the rows of replicas, quarantines the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.files.scan import located_problem
from quorate.spark.tables.files import TableWriter, WriteTarget, file_name, safe_name
from quorate.spark.tables.layout import LOG, SNAPSHOTS
from quorate.spark.tables.lineage import EpochSpan, Intake
from quorate.spark.tables.secrets import without_secrets


class ChunkWriter:
    """Writes one chunk of the log of a cluster, or of a snapshot, or of its damaged pieces."""

    def __init__(
        self, key: tuple[Any, ...], plan_intake: Intake | None, target: WriteTarget
    ) -> None:
        self.key = key
        self._cluster, self._kind, self._chunk, _ = key
        self._intake = plan_intake
        self._target = target
        self._time = 0 if plan_intake is None else plan_intake.chunks.get(self._chunk, 0)
        self._writer: TableWriter | None = None
        self._quarantine: TableWriter | None = None
        self._known_bad: set[tuple[str, int, int | None]] = set()
        self._spans: list[EpochSpan] = []
        self._types: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, table: pa.Table) -> None:
        """Add rows; all rows of an offset come in one call."""
        if table.column("seq")[0].as_py() == 0:
            count = pc.sum(pc.equal(table.column("seq"), 0)).as_py()
            self._load_known_bad(table.slice(0, count))
            table = table.slice(count)
        if not table.num_rows:
            return
        table = without_secrets(table)
        if self._chunk < 0:
            self._quarantine_rows(table, range(table.num_rows), "damaged")
        elif self._kind == "snapshot":
            self._write_snapshot(table)
        else:
            self._write_log(table)

    def finish(self) -> Iterator[dict[str, Any]]:
        """The files that were written and what is in them, each as a JSON object.

        The counts go with the first file only, so that the driver adds them up once.
        """
        result = {
            "cluster_id": self._cluster,
            "spans": self._spans,
            "types": self._types,
            "reasons": self._reasons,
            "known": self._known,
            "examples": self._examples,
        }
        nothing: dict[str, Any] = {"spans": [], "types": {}, "reasons": {}, "known": {}}
        nothing["examples"] = {}
        for writer in (self._writer, self._quarantine):
            file = None if writer is None else writer.close()
            if file is not None:
                yield {**result, "file": file.to_json()}
                result = {**result, **nothing}
        if result["examples"]:
            yield {**result, "file": None}

    def _load_known_bad(self, table: pa.Table) -> None:
        names = ("file", "position", "offset")
        columns = (table.column(name).to_pylist() for name in names)
        self._known_bad |= set(zip(*columns, strict=True))

    def _write_log(self, table: pa.Table) -> None:
        for start, end in self._intake.skip if self._intake is not None else ():
            offsets = table.column("offset")
            table = table.filter(pc.or_(pc.less(offsets, start), pc.greater_equal(offsets, end)))
        keep, divergent, differing = self._choose(table)
        self._quarantine_rows(table, divergent, "divergent")
        self._quarantine_rows(table, differing, "disagrees")
        if keep:
            table = table if len(keep) == table.num_rows else table.take(pa.array(keep))
            self._write(self._with_times(table))

    def _choose(self, table: pa.Table) -> tuple[list[int], list[int], list[int]]:
        """The rows to take, divergent ones, and ones that differ from a row that is taken."""
        assert self._intake is not None
        lineage, known = self._intake.lineage, _Ranges(self._intake.known)
        names = ("offset", "epoch", "content")
        columns = [table.column(name).to_pylist() for name in names]
        keep: list[int] = []
        divergent: list[int] = []
        differing: list[int] = []
        same: dict[int, list[int]] = {}
        at, right = -1, None
        for row, (offset, epoch, content) in enumerate(zip(*columns, strict=True)):
            if offset != at:
                self._pick_content(same, keep, differing)
                at, right, same = offset, lineage.epoch_at(offset), {}
            if epoch != right:
                divergent.append(row)
            elif not known.has(offset):
                same.setdefault(content, []).append(row)
        self._pick_content(same, keep, differing)
        return keep, divergent, differing

    def _pick_content(
        self, same: dict[int, list[int]], keep: list[int], differing: list[int]
    ) -> None:
        """Take, of the rows of one offset, the content that most replicas have."""
        if not same:
            return
        most = max(same.values(), key=len)
        keep.append(most[0])
        if len(same) > 1:
            differing += [row for rows in same.values() if rows is not most for row in rows]

    def _with_times(self, table: pa.Table) -> pa.Table:
        """The rows with the column `time`, which never decreases; also notes the spans."""
        stamps = table.column("timestamp").cast(pa.int64()).to_pylist()
        offsets, epochs = table.column("offset").to_pylist(), table.column("epoch").to_pylist()
        crcs = table.column("crc").to_pylist()
        times = []
        span = self._spans[-1] if self._spans else None
        for offset, epoch, stamp, crc in zip(offsets, epochs, stamps, crcs, strict=True):
            self._time = max(self._time, stamp or 0)
            times.append(self._time)
            if span is None or span.epoch != epoch or span.end != offset:
                if span is not None:
                    self._spans[-1] = span
                times_ = (self._time, self._time)
                self._spans.append(EpochSpan(epoch, offset, offset + 1, *times_, crc, crc))
                span = self._spans[-1]
            else:
                span = span._replace(end=offset + 1, last_time=self._time, last_crc=crc)
        if span is not None:
            self._spans[-1] = span
        return table.append_column("time", pa.array(times, pa.timestamp("us", "UTC")))

    def _write(self, table: pa.Table) -> None:
        if self._writer is None:
            path = safe_name(self._cluster) + "/"
            self._writer = self._writer_for(
                "log", path + file_name(f"{self._chunk:08d}", self._target.run)
            )
        types = pc.value_counts(table.column("type")).to_pylist()
        self._types.update({one["values"]: one["counts"] for one in types})
        problems = pc.indices_nonzero(pc.is_valid(table.column("problem"))).to_pylist()
        self._quarantine_rows(table, problems, "unknown")
        self._writer.add_table(table.select(LOG.names).cast(LOG))

    def _write_snapshot(self, table: pa.Table) -> None:
        if self._writer is None:
            id = f"{table.column('snapshot_offset')[0]}-{table.column('snapshot_epoch')[0]}"
            path = f"{safe_name(self._cluster)}/{id}/"
            name = file_name(f"{self._chunk:08d}", self._target.run)
            self._writer = self._writer_for("snapshots", path + name)
        timed = table.append_column("time", table.column("timestamp"))
        self._writer.add_table(timed.select(SNAPSHOTS.names).cast(SNAPSHOTS))

    def _quarantine_rows(self, table: pa.Table, rows: Sequence[int], reason: str) -> None:
        for row in rows:
            cells = table.slice(row, 1).to_pylist()[0]
            key = (cells["file"], cells["position"], cells["offset"])
            problem = cells["problem"] or self._explain(reason, cells)
            self._examples.setdefault(reason, located_problem(*key, problem))
            if key in self._known_bad:
                self._known[reason] += 1
                continue
            self._known_bad.add(key)
            if self._quarantine is None:
                path = f"{safe_name(self._cluster)}/{file_name(reason, self._target.run)}"
                self._quarantine = self._writer_for("quarantine", path)
            self._reasons[reason] += 1
            self._quarantine.add(
                (
                    self._cluster,
                    reason,
                    cells["offset"],
                    cells["epoch"],
                    cells["type"],
                    cells["record"],
                    problem,
                    cells["node_id"],
                    cells["file"],
                    cells["position"],
                    cells["batch_length"],
                    cells["timestamp"],
                    self._target.run,
                    None,
                )
            )

    def _explain(self, reason: str, cells: Mapping[str, Any]) -> str:
        offset, epoch = cells["offset"], cells["epoch"]
        if reason == "divergent" and self._intake is not None:
            lineage = self._intake.lineage.epoch_at(offset)
            if lineage is None:
                return f"epoch {epoch} ends before offset {offset} in the committed log"
            return f"the committed log has offset {offset} from epoch {lineage}, not {epoch}"
        return (
            f"the content at offset {offset}, epoch {epoch} differs from what was taken, which is "
            "that of most replicas where most agree"
        )

    def _writer_for(self, table: str, path: str) -> TableWriter:
        return TableWriter(self._target.root, table, path, self._target.hidden)


class _Ranges:
    """Whether offsets, asked for in ascending order, lie in ranges."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = ranges
        self._at = 0

    def has(self, offset: int) -> bool:
        while self._at < len(self._ranges) and self._ranges[self._at][1] <= offset:
            self._at += 1
        return self._at < len(self._ranges) and self._ranges[self._at][0] <= offset
