"""Configs of topics that are gone, which Kafka 4.3.1 may leave in the snapshots of some nodes.

A node that applies a topic's creation, its configs and its removal at once keeps the configs; one
that applies them in two steps does not. Both are as sound as the other.
"""

from __future__ import annotations

import json

import pytest

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats import records as r
from quorate.formats.batch import encode_batch
from quorate.formats.records import encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.formats.versions import METADATA_VERSION
from quorate.raft.values import ControlState
from quorate.spark.audit import audit_here
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store
from spark.fleet import rows_of
from spark.logs import NO_OP, START_MS, log_directory
from spark.replica_dirs import elected, replica, verdicts

GONE, KEPT = (Uuid(bytes([number]) * 16) for number in (7, 8))


def topic(name, id):
    return r.TopicRecord(name=name, topic_id=id)


def config(name, value="1", key="retention.ms"):
    return r.ConfigRecord(resource_type=2, resource_name=name, name=key, value=value)


def encoded(*records):
    return [encode_record(record, 0) for record in records]


def batch(offset, *records):
    return encode_batch(offset, 1, START_MS + offset, encoded(*records))


LEVEL = r.FeatureLevelRecord(name=METADATA_VERSION, feature_level=25)
TRUE = [LEVEL, topic("kept", KEPT), config("kept")]
"""What a snapshot of 8 should hold."""
HEAD = [
    elected(0, 1, 1),
    batch(1, LEVEL, topic("kept", KEPT), config("kept")),
    batch(4, topic("gone", GONE), config("gone"), config("gone", key="segment.ms")),
    batch(7, r.RemoveTopicRecord(topic_id=GONE)),
]
LATER = bytes([9]) * 16
TAIL = [batch(8, topic("gone", LATER)), encode_batch(9, 1, START_MS + 9, [NO_OP] * 3)]
OF_BROKERS = r.ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="1")
ORPHANS = [config("gone"), config("gone", key="segment.ms")]


def snapshot(*more):
    control = ControlState(0, None)
    values = encoded(*TRUE, *more)
    made = encode_snapshot(OffsetAndEpoch(8, 1), control, START_MS, values, START_MS + 7)
    return {(8, 1): b"".join(made)}


WHOLE = {0: [*HEAD, *TAIL]}
CLEANED = {8: TAIL}
"""Nothing of it shows what the snapshot should hold."""


def three(home, segments, *more):
    """A replica with the log in these segments and more than it should in its snapshot, and two
    whole ones; the file of that snapshot."""
    for node in (2, 3):
        replica(home, node, WHOLE, epoch=1, snapshots=snapshot())
    found = replica(home, 1, segments, epoch=1, snapshots=snapshot(*more))
    return str(found / "00000000000000000008-0000000001.checkpoint")


@pytest.mark.parametrize("segments", [WHOLE, CLEANED], ids=["beside its log", "alone"])
def test_the_audit_names_them_and_reports_no_damage(tmp_path, segments):
    file = three(tmp_path, segments, *ORPHANS)
    report = audit_here([str(tmp_path)])
    assert report.ok
    (found,) = report.findings
    assert (found.check, found.severity, found.spot.file) == ("orphaned-configs", "warning", file)
    assert "1 topic that does not exist (gone)" in found.what
    assert "docs/known-bugs.md" in found.advice


def test_a_majority_that_has_them_is_not_damaged_either(tmp_path):
    for node in (1, 2):
        replica(tmp_path, node, CLEANED, epoch=1, snapshots=snapshot(*ORPHANS))
    replica(tmp_path, 3, CLEANED, epoch=1, snapshots=snapshot())
    found = verdicts(tmp_path)
    assert [found[node][0] for node in (1, 2, 3)] == ["warning", "warning", "sound"]


@pytest.mark.parametrize("segments", [WHOLE, CLEANED], ids=["beside its log", "alone"])
def test_configs_that_a_topic_has_of_one_before_it_are_no_damage_either(tmp_path, segments):
    file = three(tmp_path, segments, config("kept", key="segment.ms"))
    report = audit_here([str(tmp_path)])
    assert report.ok
    (found,) = report.findings
    assert (found.check, found.severity, found.spot.file) == ("inherited-configs", "warning", file)
    assert "docs/known-bugs.md" in found.advice


@pytest.mark.parametrize(
    ("segments", "check"), [(WHOLE, "snapshot-replay"), (CLEANED, "snapshot-agreement")]
)
@pytest.mark.parametrize(
    "wrong",
    [topic("never", bytes(16)), OF_BROKERS],
    ids=["a topic", "a config of all brokers"],
)
def test_what_else_differs_is_damage_beside_them(tmp_path, segments, check, wrong):
    three(tmp_path, segments, *ORPHANS, config("kept", key="segment.ms"), wrong)
    state, found = verdicts(tmp_path)[1]
    assert state == "damaged"
    assert [one[:2] for one in found] == [("orphaned-configs", "warning"), (check, "damage")]


def test_another_value_than_the_log_has_is_damage(tmp_path):
    three(tmp_path, WHOLE, config("kept", value="2"))
    state, found = verdicts(tmp_path)[1]
    assert state == "damaged"
    assert [one[:2] for one in found] == [("snapshot-replay", "damage")]


def test_gold_is_the_same_with_them_and_silver_has_them(spark, tmp_path):
    """A topic of that name that is created later has none of them."""
    stores = {}
    for name, more in {"with": ORPHANS, "without": []}.items():
        home = log_directory(tmp_path / name, {8: b"".join(TAIL)}, snapshot(*more))
        ingest(spark, [str(home)], str(tmp_path / f"{name}.warehouse"))
        stores[name] = open_store(str(tmp_path / f"{name}.warehouse"))
    gold = [rows_of(store, "configs") for store in stores.values()]
    assert [(row["resource_name"], row["valid_from_offset"]) for row in gold[0]] == [("kept", 7)]
    assert gold[0] == gold[1]
    reported = [
        (row["offset"], row["topic_name"], row["name"], row["cause"], json.loads(row["after"]))
        for row in rows_of(stores["with"], "changes")
        if row["event"] == "config left out"
    ]
    why = "the snapshot has no topic of this name"
    assert sorted(reported) == [
        (7, "gone", key, why, {"value": "1"}) for key in ("retention.ms", "segment.ms")
    ]
    assert rows_of(stores["with"], "quarantine") == []
