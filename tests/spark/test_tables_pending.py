"""Records that bronze has and the state has not: applied by a later job, with whatever that brings.

The state must be what a replay gives, in whatever order the parts of a log come.
"""

from __future__ import annotations

from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats import records as r
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.formats.records import encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, LeaderChange
from quorate.spark.tables import ingest as job
from quorate.spark.tables.warehouse import open_store
from spark.fleet import rows_of
from spark.logs import NO_OP, START_MS, log_directory

DOOMED = Uuid(bytes([7]) * 16)
RETENTION: dict[str, Any] = {"resource_type": 2, "resource_name": "doomed", "name": "retention.ms"}


def batch(offset, *records):
    return encode_batch(offset, 1, START_MS + offset, [encode_record(one, 0) for one in records])


def quiet(start, end):
    """A batch for each offset, of a record that says nothing."""
    at = range(start, end)
    return b"".join(encode_batch(offset, 1, START_MS + offset, [NO_OP]) for offset in at)


ELECTED = encode_control_batch(0, 1, START_MS, [LeaderChange(1, (1, 2, 3), (1, 2))])
OLD = ELECTED + quiet(1, 20)
"""The offsets 0 to 19; what follows up to 39 never comes."""
CREATED = batch(
    40,
    r.TopicRecord(name="doomed", topic_id=DOOMED),
    r.PartitionRecord(topic_id=DOOMED, replicas=[1], isr=[1], leader=1),
    r.ConfigRecord(**RETENTION, value="1"),
) + quiet(43, 50)
REMOVED = batch(50, r.RemoveTopicRecord(topic_id=DOOMED)) + quiet(51, 60)
ABORTED = batch(
    50,
    r.BeginTransactionRecord(name="x"),
    r.ConfigRecord(**RETENTION, value="never"),
    r.AbortTransactionRecord(reason="no"),
) + quiet(53, 60)
SNAPSHOT = b"".join(
    encode_snapshot(OffsetAndEpoch(40, 1), ControlState(0, None), START_MS + 39, [], START_MS + 39)
)


class KilledError(Exception):
    """In place of a kill."""


def take(spark, home, *parts):
    return job.ingest(spark, [str(part) for part in parts], str(home / "warehouse"))


def versions(home, kind):
    store = open_store(str(home / "warehouse"))
    return {(row["valid_from_offset"], row["valid_to_offset"]) for row in rows_of(store, kind)}


@pytest.mark.parametrize(
    ("pending", "until", "configs"),
    [(REMOVED, 50, {(42, 50)}), (ABORTED, None, {(42, None)})],
    ids=["a topic goes", "a transaction is aborted"],
)
def test_a_job_that_was_killed_before_the_state_and_then_an_older_part(
    spark, tmp_path, monkeypatch, pending, until, configs
):
    snapshots = {(40, 1): SNAPSHOT}
    first = log_directory(tmp_path / "first", {40: CREATED}, snapshots)
    more = log_directory(tmp_path / "more", {40: CREATED, 50: pending}, snapshots)
    older = log_directory(tmp_path / "older", {0: OLD})

    def killed(*_):
        raise KilledError

    take(spark, tmp_path, first)
    with monkeypatch.context() as while_killed, pytest.raises(KilledError):
        while_killed.setattr(job, "apply_log", killed)
        take(spark, tmp_path, more)
    take(spark, tmp_path, older)

    assert versions(tmp_path, "topics") == {(40, until)}
    assert versions(tmp_path, "configs") == configs
