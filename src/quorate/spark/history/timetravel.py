"""What a cluster looked like then: the state at an offset or an instant, out of gold.

    state_at(spark, store, "partitions", cluster_id, offset=1234)
    state_at(spark, store, "brokers", cluster_id, instant=datetime(2026, 11, 17, 9, tzinfo=UTC))

The state at an offset is that after its record; at an instant, that after all records up to the
first whose time is later. Both are what a replay of the log to there gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.tables.control import Progress, load_progress
from quorate.spark.tables.files import safe_name
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import VALIDITY
from quorate.spark.tables.lineage import covered
from quorate.spark.tables.read import read_files, read_table
from quorate.spark.tables.store import Store, Stored
from quorate.spark.tables.versions import CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class NoSuchState(QuorateError):
    """The warehouse does not know the state that was asked for."""

    exit_code = 2


def state_at(
    spark: SparkSession,
    store: Store,
    kind: str,
    cluster_id: str,
    *,
    offset: int | None = None,
    instant: datetime | None = None,
) -> DataFrame:
    """The things of a kind (a gold table's name) at an offset or an instant; by default now.

    Raises NoSuchState for an unknown kind or cluster, and outside what the warehouse holds.
    """
    if kind not in KINDS:
        raise NoSuchState(f"there is no kind '{kind}'; there are {', '.join(KINDS)}")
    known = load_progress(store).get(cluster_id)
    if known is None or known.applied_end is None:
        raise NoSuchState(f"{store.root}: nothing is known of the state of cluster '{cluster_id}'")
    if instant is not None:
        if offset is not None:
            raise NoSuchState("ask for an offset or for an instant, not for both")
        offset = _offset_at(spark, store, known, instant)
    elif offset is None:
        offset = known.applied_end - 1
    _check(known, offset)
    cluster = safe_name(cluster_id)
    rows = read_table(spark, store, kind, lambda file: file.path.split("/")[1] == cluster)
    rows = rows.where(rows.cluster_id == cluster_id).where(
        f"valid_from_offset <= {offset} AND coalesce(valid_to_offset > {offset}, true)"
    )
    return rows.drop(*(name for name, _ in VALIDITY if name != "valid_from_offset"))


def offset_at(spark: SparkSession, store: Store, cluster_id: str, instant: datetime) -> int:
    """The last offset whose record, and all before it, were written up to an instant.

    In a hole of the log, behind which the state goes on from a snapshot, it is the first offset
    that is missing, or the last one where the snapshot is not of later than the instant.
    An instant without a zone is one of UTC, whatever the session's zone is.
    Raises NoSuchState when the log at hand begins later.
    """
    return _offset_at(spark, store, load_progress(store)[cluster_id], instant)


def _offset_at(spark: SparkSession, store: Store, known: Progress, instant: datetime) -> int:
    from pyspark.sql import functions as F

    cluster_id = known.cluster_id
    cluster = safe_name(cluster_id) + "/"
    log = read_table(spark, store, "log", lambda file: file.path.startswith(cluster))
    since = (instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - _EPOCH
    until = F.timestamp_micros(F.lit(since // timedelta(microseconds=1)))
    later = log.where(F.col("time") > until).agg(F.min("offset")).first()
    if later is not None and later[0] is not None:
        log = log.where(F.col("offset") < later[0])
    found = log.agg(F.max("offset")).first()
    last = -1 if found is None or found[0] is None else int(found[0])
    for start, stop in known.unknown:
        if start - 1 <= last < stop:
            told = _since(spark, store, cluster_id, stop)
            if told is not None and told <= since:
                return stop
            last = max(last, start) if last >= 0 else last
    if last < 0:
        raise NoSuchState(f"cluster '{cluster_id}': the log at hand begins after {instant}")
    return last


def _since(spark: SparkSession, store: Store, cluster_id: str, offset: int) -> timedelta | None:
    """Since when (from 1970 on) the state at this offset, the end of a hole, is known to hold."""
    from pyspark.sql import functions as F

    cluster = safe_name(cluster_id) + "/"
    loaded = read_table(spark, store, "changes", lambda file: file.path.startswith(cluster)).where(
        f"event = 'snapshot loaded' AND effective_offset = {offset}"
    )
    found = loaded.agg(F.min(F.unix_micros("time"))).first()
    if found is None or found[0] is None:
        return None
    return timedelta(microseconds=found[0])


def log_ends(store: Store, cluster_id: str) -> datetime:
    """When the last record that is at hand was written."""
    return _EPOCH + timedelta(microseconds=load_progress(store)[cluster_id].last_time)


def current(spark: SparkSession, store: Store, kind: str, files: Sequence[Stored]) -> DataFrame:
    """The things of a kind as of now, in every cluster; reads nothing of the history.

    files: all that the table of the kind has now
    """
    now = [file for file in files if file.path.startswith(CURRENT + "/")]
    rows = read_files(spark, store, kind, now)
    return rows.drop("is_current", "valid_to_offset", "valid_to_time")


def _state_end(known: Progress) -> int:
    """Exclusive. What a transaction has that has not ended changes nothing yet (KIP-868)."""
    end = known.applied_end or 0
    if known.open_transaction != end:
        return end
    return next((stop for start, stop in covered(known.spans) if start <= end < stop), end)


def _check(known: Progress, offset: int) -> None:
    end = _state_end(known)
    if offset >= end:
        raise NoSuchState(
            f"cluster '{known.cluster_id}': offset {offset} is not applied yet, the state has come "
            f"to {end - 1}"
        )
    for start, stop in known.unknown:
        if start <= offset < stop:
            raise NoSuchState(
                f"cluster '{known.cluster_id}': the state between offsets {start} and {stop - 1} "
                "is not known: that part of the log was not there"
            )
