"""What the input of a job says about places that the quarantine names (`resolved` decides)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.files.layout import UNKNOWN_CLUSTER, UNKNOWN_START
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.log_starts import is_known_start
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import ReadVersion
from quorate.spark.tables.resolved import (
    BadPlace,
    FileReading,
    Findings,
    missing_offsets,
    open_places,
    plan_resolved,
)
from quorate.spark.tables.secrets import without_secrets
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.survey import (
    HEADER_COLUMNS,
    REPLICA,
    InputSurvey,
    SourceRows,
    replica_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SEGMENT: Final = re.compile(r"/(\d{20})\.log$")
_METADATA_FILE: Final = re.compile(r"\.(log|checkpoint)$")
_ODD: Final = re.compile(r"['\\]")
"""Characters that a text in SQL cannot have as they are."""
_CONTENT: Final = ("type", "version", "record", "timestamp")
_BODY: Final = ("cluster_id", "file", "offset", "epoch", *_CONTENT, "raw", "problem")


def resolve_places(
    spark: SparkSession,
    rows: SourceRows,
    read: ReadVersion,
    survey: InputSurvey,
    plan: RunPlan,
    progress: Mapping[str, ClusterProgress],
    *,
    whole: bool,
) -> list[BadPlace]:
    """Plan that the run marks the rows of the quarantine whose place is sound now.

    progress: of the job's clusters after the run
    whole: whether the input has whole files

    Returns the places.
    """
    clusters = {*survey.clusters, UNKNOWN_CLUSTER}
    places = open_places(read.tables, clusters)
    every = [place for some in places.values() for place in some]
    damaged = [place for place in every if place.reason == "damaged"]
    files = _readings(rows, {p.file for p in damaged if _may_be_read(p.file, survey.replicas)})
    grown = {
        id for id, now in progress.items() if now.spans != _spans(read.progress.get(id))
    } & survey.clusters
    elsewhere = [p for p in damaged if p.file not in files and p.cluster_id in grown]
    found = Findings(
        survey.groups,
        {**read.warehouse_progress, **progress},
        files,
        set(covered_damage(spark, read, elsewhere, progress, survey)) if elsewhere else (),
        whole=whole,
    )
    differing = [p for p in every if p.reason == "disagrees" and found.offers(p)]
    agreeing = _agreeing(spark, rows, read, differing) if differing else []
    found = Findings(found.groups, found.progress, files, found.covered, set(agreeing), whole=whole)
    return plan_resolved(read.tables, plan, places, found.resolves)


def _spans(known: ClusterProgress | None) -> tuple[Any, ...]:
    return () if known is None else known.spans


def _may_be_read(file: str, replicas: Collection[str]) -> bool:
    """Whether the input may have a file, or what lies in an archive or directory."""
    if file in replicas or replica_of(file) in replicas:
        return True
    return any(name.startswith((f"{file}/", f"{file}!")) for name in replicas)


def _readings(rows: SourceRows, files: Collection[str]) -> dict[str, FileReading]:
    """Return, by file of the quarantine, what the input has of it.

    Some damage shows only when records are decoded: that is done for these files alone. An archive
    or a directory that could not be read has the rows of what lies in it.
    """
    segments = {name for name in files if _METADATA_FILE.search(name)}
    others = set(files) - segments
    readings = _read_files(rows, segments) if segments else {}
    if others:
        found = _read_files(rows, ())
        for place in others:
            known = found.get(place)
            if any(name.startswith((f"{place}/", f"{place}!")) for name in found):
                known = (known or FileReading(0, 1))._replace(start=0)
            if known is not None:
                readings[place] = known
    return readings


def _read_files(rows: SourceRows, only: Collection[str]) -> dict[str, FileReading]:
    """What the input has of each file: of these, decoded; or of all, by batch headers."""
    from pyspark.sql import functions as F

    columns = (*HEADER_COLUMNS, "problem") if only else HEADER_COLUMNS
    plain = [f"'{name}'" for name in sorted(only) if not _ODD.search(name)]
    where = f"file IN ({', '.join(plain)})" if plain and len(plain) == len(only) else ""
    bad = F.col("offset").isNull() | ~F.coalesce("crc_ok", F.lit(False))
    length = F.coalesce("batch_length", F.lit(0))
    found = (
        rows(columns, where)
        .where("position IS NOT NULL")
        .groupBy("file")
        .agg(
            F.min("position").alias("start"),
            F.max(F.col("position") + length).alias("end"),
            F.collect_list(F.when(bad, F.struct("position", length))).alias("damage"),
        )
        .collect()
    )
    return {
        row.file: FileReading(row.start, row.end, tuple((at, size) for at, size in row.damage))
        for row in found
        if not only or row.file in only
    }


def covered_damage(
    spark: SparkSession,
    read: ReadVersion,
    damaged: Collection[BadPlace],
    progress: Mapping[str, ClusterProgress],
    survey: InputSurvey,
) -> list[BadPlace]:
    """The damage whose offsets the log has now, from another replica.

    The records that were taken from the same replica before and after it bound its offsets.
    """
    bounds = _neighbours(spark, read, damaged)
    found = []
    for place in damaged:
        known = progress.get(place.cluster_id)
        if known is None:
            continue
        if not place.length:
            if place.problem.startswith(UNKNOWN_START):
                found += [place] if is_known_start(place.file, known, survey.snapshots) else []
            continue
        low, high = bounds.get(place, (None, None))
        base = _SEGMENT.search(place.file)
        if low is None and base is not None:
            low = int(base[1])
        if base is not None and not missing_offsets(known, low, high):
            found.append(place)
    return found


def _neighbours(
    spark: SparkSession, read: ReadVersion, damaged: Collection[BadPlace]
) -> dict[BadPlace, tuple[int | None, int | None]]:
    """Return, by damage, the offset after the last record before it and that of the first after it.

    Both are of the records that the log has from the same replica.
    """
    from pyspark.sql import functions as F

    folders = {safe_name(place.cluster_id) for place in damaged}
    log = read_table(
        spark, read.tables, "log", lambda file: file.path.partition("/")[0] in folders
    ).select("cluster_id", "file", "position", "offset")
    ordered = list(damaged)
    asked = spark.createDataFrame(
        [(n, p.cluster_id, p.file, p.position) for n, p in enumerate(ordered)],
        "number int, cluster string, bad_file string, bad_position bigint",
    )
    replica = F.regexp_extract("file", REPLICA, 1)
    same = (F.col("cluster_id") == F.col("cluster")) & (
        replica == F.regexp_extract("bad_file", REPLICA, 1)
    )
    before = F.struct("file", "position") < F.struct(
        F.col("bad_file").alias("file"), F.col("bad_position").alias("position")
    )
    rows = (
        log.join(F.broadcast(asked), same)
        .groupBy("number")
        .agg(
            F.max(F.when(before, F.col("offset") + 1)).alias("low"),
            F.min(F.when(~before, F.col("offset"))).alias("high"),
        )
        .collect()
    )
    return {ordered[row.number]: (row.low, row.high) for row in rows}


def _agreeing(
    spark: SparkSession, rows: SourceRows, read: ReadVersion, differing: Iterable[BadPlace]
) -> list[BadPlace]:
    """The places whose replica now has the content of the log."""
    from pyspark.sql import functions as F

    ordered = list(differing)
    offsets = [place.offset or 0 for place in ordered]
    asked = spark.createDataFrame(
        [(n, p.cluster_id, p.file, p.offset, p.epoch) for n, p in enumerate(ordered)],
        "number int, cluster string, bad_file string, at bigint, written int",
    )
    where = f"offset >= {min(offsets)} AND offset <= {max(offsets)}"
    here = (F.col("cluster_id") == F.col("cluster")) & (F.col("offset") == F.col("at"))
    here &= F.col("epoch") == F.col("written")
    replica = F.regexp_extract("file", REPLICA, 1) == F.regexp_extract("bad_file", REPLICA, 1)
    given = rows(_BODY, where).where(where).join(F.broadcast(asked), here & replica)
    folders = {safe_name(place.cluster_id) for place in ordered}
    log = read_table(
        spark, read.tables, "log", lambda file: file.path.partition("/")[0] in folders
    ).select(*_BODY)
    taken = log.where(where).join(F.broadcast(asked), here)
    contents = _contents(taken)
    return [ordered[n] for n, text in _contents(given).items() if contents.get(n) == text]


def _contents(rows: DataFrame) -> dict[int, tuple[Any, ...]]:
    """Return, by number of the place, its record without secrets."""
    table: pa.Table = without_secrets(rows.select("number", *_BODY).toArrow())
    columns = [table.column(name).to_pylist() for name in ("number", *_CONTENT, "raw")]
    return {number: tuple(content) for number, *content in zip(*columns, strict=True)}
