"""Going back with a cluster: in its log, or only in the state that was made of it.

A log goes back when its end was copied before a later leader truncated it: bronze keeps the records
in quarantine. The state goes back with it, or when a part of the log has come that it had to leave
out: silver forgets the events; in gold the versions that they made go, and those that they ended
hold again. One run, one task for each slice and kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from quorate.spark.tables.bronze import Place
from quorate.spark.tables.control import Progress, load_progress, plan_progress
from quorate.spark.tables.errands import Errand, run_errands, slice_number, write_rows
from quorate.spark.tables.files import DataFile, file_name, read_file, safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import QUARANTINE
from quorate.spark.tables.lineage import Span, after_holes, without
from quorate.spark.tables.read import at_least, read_table
from quorate.spark.tables.store import Plan, Store, Stored
from quorate.spark.tables.transactions import transactions
from quorate.spark.tables.versions import CLOSED, CURRENT, in_slice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rewind(
    spark: SparkSession, store: Store, cluster_id: str, offset: int, end: int, run: int
) -> None:
    """Take back a part of the log of a cluster (`end` is exclusive), and the state from there on.

    What the log has behind that part came of other replicas, and stays.
    """
    known = load_progress(store)
    state_end = _state_end(spark, store, cluster_id, offset, known[cluster_id].spans)
    _rewind(spark, store, known, cluster_id, (offset, end), state_end, run)


def rewind_state(spark: SparkSession, store: Store, cluster_id: str, end: int, run: int) -> None:
    """Let the state of a cluster end at an offset (exclusive); its log stays."""
    _rewind(spark, store, load_progress(store), cluster_id, None, end, run)


def _rewind(
    spark: SparkSession,
    store: Store,
    known: dict[str, Progress],
    cluster_id: str,
    wrong: tuple[int, int] | None,
    state_end: int,
    run: int,
) -> None:
    before = known[cluster_id]
    start, end = wrong or (before.log_end, before.log_end)
    errands = [*_log_errands(store, cluster_id, start, end)]
    if before.applied_end is not None and before.applied_end > state_end:
        errands += _state_errands(store, cluster_id, state_end, before.slices)
    plan = Plan(run, "rewind")
    place = Place(store.root, run, store.hidden)
    told = run_errands(
        spark, errands, _cutter(cluster_id, start, end, state_end, before.slices, place)
    )
    last_time = 0
    for one in told:
        last_time = max(last_time, one["last_time"])
        for file in one["files"]:
            plan.add(DataFile(**file))
    for table, path in sorted({(one.table, path) for one in errands for path in one.paths}):
        plan.remove(table, [path])
    known[cluster_id] = replace(
        before,
        spans=tuple(_cut_spans(before, start, end, last_time)),
        applied_end=None if before.applied_end is None else min(before.applied_end, state_end),
        unknown=tuple((low, high) for low, high in before.unknown if high < state_end),
        open_transaction=state_end if state_end < start < before.log_end else None,
        run=run,
        unproven=tuple(
            piece for low, high in before.unproven for piece in without([(start, end)], low, high)
        ),
    )
    plan_progress(store, plan, known)
    plan.summary = {"cluster_id": cluster_id, "taken_back": wrong, "state_end": state_end}
    store.commit(plan)


def _state_end(
    spark: SparkSession, store: Store, cluster_id: str, offset: int, spans: Iterable[Span]
) -> int:
    """Where the state must end: before a transaction that the log no longer ends."""
    mine = safe_name(cluster_id) + "/"
    log = read_table(spark, store, "log", lambda file: file.path.startswith(mine))
    holes = after_holes(spans)
    piece = max((at for at in holes if at < offset), default=0)
    open_ones = transactions(log, {cluster_id: holes}).where(
        f"start >= {piece} AND start < {offset} AND coalesce(finish, {offset}) >= {offset}"
    )
    # transactions do not overlap: one at most is open there
    starts = [int(row[0]) for row in open_ones.select("start").collect()]
    return min([offset, *starts])


def _cut_spans(known: Progress, start: int, end: int, last_time: int) -> Iterator[Span]:
    for span in known.spans:
        if span.end <= start or span.start >= end:
            yield span
            continue
        if span.start < start:
            yield span._replace(end=start, last_time=min(span.last_time, last_time))
        if span.end > end:
            yield span._replace(start=end)


def _log_errands(store: Store, cluster_id: str, start: int, end: int) -> Iterator[Errand]:
    for file in _files(store, "log", safe_name(cluster_id) + "/"):
        if start < end and at_least(file, "offset", start) and file.low.get("offset", 0) < end:
            yield Errand("log", (file.path,))


def _state_errands(store: Store, cluster_id: str, end: int, slices: int) -> Iterator[Errand]:
    cluster = safe_name(cluster_id)
    for file in _files(store, "changes", cluster + "/"):
        if at_least(file, "effective_offset", end):
            yield Errand("changes", (file.path,))
    for file in _files(store, "quarantine", cluster + "/"):
        if at_least(file, "offset", end):
            yield Errand("quarantine", (file.path,))
    for kind in KINDS:
        closed = _files(store, kind, f"{CLOSED}/{cluster}/")
        touched = [file for file in closed if at_least(file, "valid_to_offset", end)]
        yield from slice_errands(
            kind, touched, _files(store, kind, f"{CURRENT}/{cluster}/"), slices
        )


def slice_errands(
    kind: str, closed: Sequence[Stored], current: Sequence[Stored], slices: int
) -> Iterator[Errand]:
    """An errand for each of the slices that there are now, with every file that may have its rows.

    A closed file may be of a time with fewer slices, and then has rows of several of today's; the
    number of slices is a power of two and only grows.
    """
    for number in range(slices):
        of_it = [file.path for file in closed if _may_have(slice_number(file), number)]
        of_it += [file.path for file in current if slice_number(file) == number]
        if of_it:
            yield Errand(kind, tuple(of_it), number)


def _may_have(file: int, number: int) -> bool:
    """Whether rows of a slice may be in a file that had this number when it was written."""
    fewest = 1 << file.bit_length()
    return number % fewest == file


def _files(store: Store, table: str, prefix: str) -> list[Stored]:
    return [file for file in store.files(table) if file.path.startswith(prefix)]


def _cutter(
    cluster_id: str, start: int, end: int, state_end: int, slices: int, place: Place
) -> Callable[[Errand], dict[str, Any]]:
    def cut(errand: Errand) -> dict[str, Any]:
        tables = [read_file(place.root, errand.table, path) for path in errand.paths]
        table = pa.concat_tables(tables)
        cluster = safe_name(cluster_id)
        if errand.table == "log":
            return _cut_log(table, cluster, start, end, place)
        if errand.table == "changes":
            kept = table.filter(pc.less(table.column("effective_offset"), state_end))
            path = f"{cluster}/{file_name('cut', place.run)}"
            return {"files": write_rows(place, "changes", path, kept), "last_time": 0}
        if errand.table == "quarantine":
            return _cut_misfits(table, cluster, state_end, place)
        mine = in_slice(KINDS[errand.table], table, errand.slice, slices)
        return cut_versions(errand, mine, cluster, state_end, place)

    return cut


def _cut_log(table: pa.Table, cluster: str, start: int, end: int, place: Place) -> dict[str, Any]:
    offsets = table.column("offset")
    wrong = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
    kept, gone = table.filter(pc.invert(wrong)), table.filter(wrong)
    columns: dict[str, Any] = {name: gone.column(name) for name in gone.column_names}
    rows = gone.num_rows
    columns |= {
        "reason": pa.array(["superseded"] * rows, pa.string()),
        "problem": pa.array(["a log of a later epoch does not have it"] * rows, pa.string()),
        "batch_length": pa.nulls(rows, pa.int32()),
        "run": pa.array([place.run] * rows, pa.int64()),
    }
    moved = pa.Table.from_arrays([columns[name] for name in QUARANTINE.names], schema=QUARANTINE)
    files = write_rows(place, "log", f"{cluster}/{file_name('cut', place.run)}", kept)
    files += write_rows(
        place, "quarantine", f"{cluster}/{file_name('superseded', place.run)}", moved
    )
    before = kept.filter(pc.less(kept.column("offset"), start))
    latest = pc.max(before.column("time").cast(pa.int64())).as_py()
    return {"files": files, "last_time": latest or 0}


def _cut_misfits(table: pa.Table, cluster: str, end: int, place: Place) -> dict[str, Any]:
    """What did not fit the state may fit the one that is told anew, and is judged again."""
    misfit = pc.equal(table.column("reason"), "misfit")
    later = pc.fill_null(pc.greater_equal(table.column("offset"), end), False)
    kept = table.filter(pc.invert(pc.and_(misfit, later)))
    path = f"{cluster}/{file_name('cut', place.run)}"
    return {"files": write_rows(place, "quarantine", path, kept), "last_time": 0}


def cut_versions(
    errand: Errand, table: pa.Table, cluster: str, end: int, place: Place
) -> dict[str, Any]:
    """Versions that begin later go; those that ended later hold again."""
    table = table.filter(pc.less(table.column("valid_from_offset"), end))
    ended = pc.fill_null(pc.less(table.column("valid_to_offset"), end), False)
    closed, current = table.filter(ended), table.filter(pc.invert(ended))
    for name in ("valid_to_offset", "valid_to_time"):
        index = current.schema.get_field_index(name)
        nothing = pa.nulls(current.num_rows, current.schema.field(name).type)
        current = current.set_column(index, current.schema.field(name), nothing)
    holds = pa.array([True] * current.num_rows, pa.bool_())
    index = current.schema.get_field_index("is_current")
    current = current.set_column(index, current.schema.field("is_current"), holds)
    name = file_name(f"{errand.slice:05d}", place.run)
    files = write_rows(place, errand.table, f"{CLOSED}/{cluster}/{name}", closed)
    files += write_rows(place, errand.table, f"{CURRENT}/{cluster}/{name}", current)
    return {"files": files, "last_time": 0}
