"""The state of a cluster at an offset or an instant, from the gold tables.

    state_at(spark, store, "partitions", cluster_id, offset=1234)
    state_at(spark, store, "brokers", cluster_id, instant=datetime(2026, 11, 17, 9, tzinfo=UTC))

The state at an offset is that after its record. The state at an instant is that after all records
before the first one with a later time. Both equal a replay of the log up to there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.tables.control import ClusterProgress, load_progress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import VALIDITY
from quorate.spark.tables.lineage import covered
from quorate.spark.tables.read import read_files, read_table
from quorate.spark.tables.store import StoredFile, TableFiles, TableStore
from quorate.spark.tables.versions import CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class UnknownStateError(QuorateError):
    """The warehouse does not have the requested state."""

    exit_code = 2


def state_at(
    spark: SparkSession,
    store: TableStore,
    kind: str,
    cluster_id: str,
    *,
    offset: int | None = None,
    instant: datetime | None = None,
) -> DataFrame:
    """The objects of a kind (the name of a gold table) at an offset or an instant; default: now.

    Raises UnknownStateError for an unknown kind or cluster, and outside the ingested range.
    """
    if kind not in KINDS:
        raise UnknownStateError(f"there is no kind '{kind}'; the kinds are {', '.join(KINDS)}")
    tables = store.version()  # jobs may commit meanwhile
    known = load_progress(tables).get(cluster_id)
    if known is None or known.applied_end is None:
        raise UnknownStateError(f"{store.root}: it has no state of cluster '{cluster_id}'")
    if instant is not None:
        if offset is not None:
            raise UnknownStateError("give an offset or an instant, not both")
        offset = _offset_at(spark, tables, known, instant)
    elif offset is None:
        offset = known.applied_end - 1
    _check(known, offset)
    cluster = safe_name(cluster_id)
    rows = read_table(spark, tables, kind, lambda file: file.path.split("/")[1] == cluster)
    rows = rows.where(rows.cluster_id == cluster_id).where(
        f"valid_from_offset <= {offset} AND coalesce(valid_to_offset > {offset}, true)"
    )
    return rows.drop(*(name for name, _ in VALIDITY if name != "valid_from_offset"))


def offset_at(spark: SparkSession, store: TableStore, cluster_id: str, instant: datetime) -> int:
    """The last offset before the first record with a time later than an instant.

    The state may continue from a snapshot after a hole of the log. In the hole it is the first missing
    offset, or the last one if the snapshot is not later than the instant.
    An instant without a zone is UTC, whatever the session's zone is.
    Raises UnknownStateError when the log in the warehouse begins later.
    """
    tables = store.version()
    return _offset_at(spark, tables, load_progress(tables)[cluster_id], instant)


def _offset_at(
    spark: SparkSession, tables: TableFiles, known: ClusterProgress, instant: datetime
) -> int:
    from pyspark.sql import functions as F

    cluster_id = known.cluster_id
    cluster = safe_name(cluster_id) + "/"
    log = read_table(spark, tables, "log", lambda file: file.path.startswith(cluster))
    since = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - _EPOCH
    until = F.timestamp_micros(F.lit(since // timedelta(microseconds=1)))
    later = log.where(F.col("time") > until).agg(F.min("offset")).first()
    if later is not None and later[0] is not None:
        log = log.where(F.col("offset") < later[0])
    found = log.agg(F.max("offset")).first()
    last = -1 if found is None or found[0] is None else int(found[0])
    for start, stop in known.unknown:
        if start - 1 <= last < stop:
            loaded = _snapshot_time(spark, tables, cluster_id, stop)
            # the snapshot after the hole is not later: its state holds at the instant
            if loaded is not None and loaded <= since:
                return stop
            last = max(last, start) if last >= 0 else last
    if last < 0:
        raise UnknownStateError(f"cluster '{cluster_id}': the ingested log begins after {instant}")
    return last


def _snapshot_time(
    spark: SparkSession, tables: TableFiles, cluster_id: str, offset: int
) -> timedelta | None:
    """The time (since 1970) of the snapshot loaded at this offset, the end of a hole; None without one."""
    from pyspark.sql import functions as F

    cluster = safe_name(cluster_id) + "/"
    loaded = read_table(spark, tables, "changes", lambda file: file.path.startswith(cluster)).where(
        f"event = 'snapshot loaded' AND effective_offset = {offset}"
    )
    found = loaded.agg(F.min(F.unix_micros("time"))).first()
    if found is None or found[0] is None:
        return None
    return timedelta(microseconds=found[0])


def log_ends(store: TableStore, cluster_id: str) -> datetime:
    """The time of the last record in the warehouse, UTC."""
    return _EPOCH + timedelta(microseconds=load_progress(store.version())[cluster_id].last_time)


def current(
    spark: SparkSession, tables: TableFiles, kind: str, files: Sequence[StoredFile]
) -> DataFrame:
    """The current objects of a kind, in every cluster; reads no files of the history.

    files: the current files of the table
    """
    now = [file for file in files if file.path.startswith(CURRENT + "/")]
    rows = read_files(spark, tables, kind, now)
    return rows.drop("is_current", "valid_to_offset", "valid_to_time")


def _state_end(known: ClusterProgress) -> int:
    """The end (exclusive) of the known state.

    Records of a transaction that has not ended do not change it (KIP-868), so it includes them.
    """
    end = known.applied_end or 0
    if known.open_transaction != end:
        return end
    return next((stop for start, stop in covered(known.spans) if start <= end < stop), end)


def _check(known: ClusterProgress, offset: int) -> None:
    end = _state_end(known)
    if offset >= end:
        raise UnknownStateError(
            f"cluster '{known.cluster_id}': offset {offset} is not applied yet; the state is that "
            f"of offset {end - 1}"
        )
    for start, stop in known.unknown:
        if start <= offset < stop:
            raise UnknownStateError(
                f"cluster '{known.cluster_id}': the state between offsets {start} and {stop - 1} "
                "is unknown: that part of the log is missing"
            )
