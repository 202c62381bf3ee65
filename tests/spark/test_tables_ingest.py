"""Logs that Kafka wrote, ingested in many ways: always the same log and the same history."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from metadata.samples import DATA
from narrow import not_none
from quorate.base.ids import OffsetAndEpoch
from quorate.formats import records as r
from quorate.formats.batch import (
    control_records,
    encode_batch,
    encode_control_batch,
    iter_batches,
    values,
)
from quorate.formats.records import decode_record, encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.formats.versions import KRAFT_VERSION
from quorate.metadata.loader import Loader, SnapshotBuilder, log_batch
from quorate.raft.values import ControlState, LeaderChange, Voters
from quorate.spark.generate import FleetSpec, generate
from quorate.spark.history.timetravel import UnknownStateError, log_ends, offset_at, state_at
from quorate.spark.tables import delta as delta_tables
from quorate.spark.tables import delta_texts, lineage, state
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.delta_repair import repair_commits
from quorate.spark.tables.image_rows import IMAGE_KINDS, image_rows
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.kinds import KINDS, text_of
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.summary import InvalidInputError
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, EVERYTHING, LOG, rows_of, warehouses
from spark.logs import START_MS, log_directory, topic
from spark.slice_logs import thing
from time_budget import one_day_in


def contents(store, table):
    """Every row without what depends on the way it came."""
    ways = {"log": {"node_id", "file", "position"}, "epochs": {"last_crc"}}.get(table, set())
    ways = {"run", *ways}  # the last checksum of an epoch is not known after a cut
    rows = [{k: v for k, v in row.items() if k not in ways} for row in rows_of(store, table)]
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def take(spark, home, parts, **words):
    return ingest(spark, [str(DATA / part) for part in parts], str(home), **words)


@pytest.fixture(scope="module")
def homes(spark, tmp_path_factory):
    return warehouses(spark, tmp_path_factory)


@pytest.fixture(scope="module")
def delta(homes):
    return homes["delta"][0]


def data_records(log):
    """(offset, record) of the log's data records."""
    for view in iter_batches(log.read_bytes()):
        if not view.is_control:
            for index, value in enumerate(values(view)):
                yield view.base_offset + index, decode_record(value)[0]


def state_of(store, cluster, offset):
    found: dict[str, Any] = {}
    for kind in IMAGE_KINDS:
        found[kind.name] = {}
        for row in rows_of(store, kind.name):
            end = row["valid_to_offset"]
            here = row["valid_from_offset"] <= offset and (end is None or end > offset)
            if row["cluster_id"] == cluster and here:
                key, columns = thing(kind, row)
                if key == (KRAFT_VERSION,):
                    continue  # the log's own: no image knows it
                assert key not in found[kind.name]
                found[kind.name][key] = columns
    return found


def test_the_history_is_what_replay_gives_at_every_offset(delta):
    loader = Loader()
    log = DATA / "e-truncated/node1" / LOG
    views = list(iter_batches(log.read_bytes()))
    for number, view in enumerate(views):
        loader.feed(log_batch(view))
        if number % 9 == 0 or view is views[-1]:
            wanted = image_rows(loader.published.image)
            assert state_of(delta, DYNAMIC, view.last_offset) == wanted, view.last_offset


def test_both_ways_give_the_same_tables(homes):
    one, other = (store for store, _ in homes.values())
    for table in ("log", "changes", *KINDS, "epochs"):
        assert contents(one, table) == contents(other, table), table
    slices = {row["cluster_id"]: row["slices"] for row in rows_of(one, "clusters")}
    assert len(slices) == 2 and slices[DYNAMIC] > 1


def test_any_reader_of_delta_can_read_the_tables(delta):
    for table in ("log", "changes", "partitions", "brokers"):
        read = DeltaTable(delta.place(table)).to_pyarrow_table()
        assert read.num_rows == len(rows_of(delta, table))


def test_bronze_has_each_offset_of_the_committed_log_once(delta):
    log = DATA / "e-truncated/node1" / LOG
    wanted = {}
    for view in iter_batches(log.read_bytes()):
        for offset in range(view.base_offset, view.end_offset):
            wanted[offset] = view.epoch
    got = [(r["offset"], r["epoch"]) for r in rows_of(delta, "log") if r["cluster_id"] == DYNAMIC]
    assert sorted(got) == sorted(set(got))
    assert dict(got) == wanted | {o: e for o, e in got if o not in wanted}
    assert {o for o, _ in got} == set(range(len(got)))


def test_an_uncommitted_tail_is_quarantined_with_the_evidence(homes):
    for store, _ in homes.values():
        aside = [row for row in rows_of(store, "quarantine") if row["reason"] == "divergent"]
        assert [row["offset"] for row in sorted(aside, key=lambda r: r["offset"])] == [
            *range(307, 317)
        ]
        ghosts = [row for row in aside if row["type"] == "ClientQuotaRecord"]
        assert all("ghost-" in row["record"] for row in ghosts) and ghosts
        assert {row["node_id"] for row in aside} == {4}
        assert {row["problem"] for row in aside if row["offset"] == 307} == {
            "the committed log has offset 307 from epoch 6, not 4"
        }
        assert not any("ghost-" in row["entity"] for row in rows_of(store, "quotas"))


def test_leaders_and_voters_follow_the_control_records(delta):
    leaders, voters = [], None
    for view in iter_batches((DATA / "e-truncated/node1" / LOG).read_bytes()):
        for index, record in enumerate(control_records(view) if view.is_control else ()):
            if isinstance(record, LeaderChange):
                leaders.append((view.base_offset + index, record.leader_id, view.epoch))
            elif isinstance(record, Voters):
                voters = {(v.key.id, text_of(v.key.directory_id)) for v in record.voters}
    mine = [row for row in rows_of(delta, "leaders") if row["cluster_id"] == DYNAMIC]
    got = sorted((r["valid_from_offset"], r["leader_id"], r["leader_epoch"]) for r in mine)
    assert got == leaders
    now = {
        (row["voter_id"], row["directory_id"])
        for row in rows_of(delta, "voters")
        if row["is_current"] and row["cluster_id"] == DYNAMIC
    }
    assert now == voters


def test_no_secret_is_kept(delta):
    secrets = []
    for _, record in data_records(DATA / "e-truncated/node1" / LOG):
        if type(record).__name__ == "UserScramCredentialRecord":
            secrets += [bytes(record.salt), bytes(record.stored_key), bytes(record.server_key)]
    assert secrets
    texts = [row["record"] for row in rows_of(delta, "log") if "Scram" in (row["type"] or "")]
    assert texts and all("salt" not in text and "Key" not in text for text in texts)


def test_bytes_that_may_hold_a_secret_are_not_kept(spark, tmp_path):
    """Of records that a later Kafka wrote, and of damaged ones; other types keep theirs in raw."""
    scram = r.UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"SECRET-1", stored_key=b"SECRET-2", server_key=b"SECRET-3"
    )
    config = r.ConfigRecord(resource_type=4, name="ssl.keystore.password", value="SECRET-4")
    whole = [encode_record(record, 0) for record in (scram, config, named("plain"))]
    token = encode_record(r.DelegationTokenRecord(owner="SECRET-5"), 0)
    later = [value[:2] + b"\x63" + value[3:] for value in (*whole, token)]
    no_type = b"\1\xff\xff\xff\x7f\0SECRET-6"
    odd = [*later, whole[0][:-2], whole[1][:-2], whole[1] + b"SECRET-7", no_type]
    log = log_directory(tmp_path / "log", {0: encode_batch(0, 1, START_MS, odd)})
    snapshot = encode_snapshot(OffsetAndEpoch(9, 1), ControlState(0, None), START_MS, odd, START_MS)
    alone = log_directory(tmp_path / "alone", {}, {(9, 1): b"".join(snapshot)}, "cluster-b", 2)
    home = tmp_path / "home"
    ingest(spark, [str(log), str(alone)], str(home))
    store = open_store(str(home))
    for table in ("log", "snapshots"):
        rows = [row for row in rows_of(store, table) if not row["is_control"]]
        assert [row["raw"] for row in rows if row["raw"]] == [later[2]]
        hidden = [row["problem"] for row in rows if row["raw"] is None]
        assert len(rows) == len(odd) == len(hidden) + 1
        for value, problem in zip([*later[:2], *odd[3:]], hidden, strict=True):
            assert problem.endswith(
                f"; its {len(value)} bytes are not kept: they may hold a secret"
            )
            assert "column raw" not in problem
    assert not any("SECRET" in str(row) for table in TABLES for row in rows_of(store, table))


def test_the_same_input_again_changes_nothing(spark, delta):
    before = {table: delta.files(table) for table in ("log", "changes", *KINDS)}
    summary = take(spark, delta.root, EVERYTHING)
    assert (summary.records, summary.events) == (0, 0)
    assert {table: delta.files(table) for table in before} == before


def test_a_job_killed_between_two_tables_is_finished_by_the_next(spark, tmp_path, monkeypatch):
    """Killed later and later in its commits; the runs that count are finished, the rest redone."""
    home, whole = tmp_path / "home", tmp_path / "whole"
    done, left = DeltaStore._apply_to, [0]

    def dying(self, *args):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt("killed")
        return done(self, *args)

    monkeypatch.setattr(DeltaStore, "_apply_to", dying)
    deaths = 0
    while True:
        left[0] = 2 + 8 * deaths
        try:
            take(spark, home, ["a-first/node1"])
            break
        except KeyboardInterrupt:
            deaths += 1
    monkeypatch.undo()
    assert deaths >= 2
    take(spark, whole, ["a-first/node1"])
    for table in ("log", "changes", *KINDS, "epochs"):
        one, other = open_store(str(home)), open_store(str(whole))
        assert contents(one, table) == contents(other, table), table


def test_what_another_job_overtakes_is_done_again(spark, tmp_path, monkeypatch):
    """Its records are in then, and counted: another job may apply them, or this one."""
    overtaken, commit = [], DeltaStore.commit

    def once_overtaken(store, plan):
        if plan.job not in overtaken:
            overtaken.append(plan.job)
            commit(store, RunPlan(plan.run, "other", clusters=plan.clusters))
        commit(store, plan)

    quiet = take(spark, tmp_path / "quiet", ["a-first"])
    monkeypatch.setattr(DeltaStore, "commit", once_overtaken)
    heard: list[str] = []
    summary = take(spark, tmp_path / "busy", ["a-first"], notify=heard.append)
    assert overtaken == ["bronze", "state"]
    assert len([line for line in heard if "looking again" in line]) == 2
    assert (summary.records, summary.events) == (quiet.records, quiet.events)
    busy, same = (open_store(str(tmp_path / name)) for name in ("busy", "quiet"))
    tables = TABLES.keys() - {"clusters"}  # it has the number of the run
    assert all(contents(busy, table) == contents(same, table) for table in tables)


def test_a_log_that_lost_its_beginning_waits_for_a_snapshot(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "SLICE_ROWS", 16)
    part = tmp_path / "node4"
    shutil.copytree(DATA / "c-reconfigured/node4", part)
    [snapshot] = part.glob("__cluster_metadata-0/*.checkpoint")
    aside = tmp_path / snapshot.name
    snapshot.rename(aside)
    home = str(tmp_path / "home")
    summary = ingest(spark, [str(part)], home)
    one = summary.clusters[DYNAMIC]
    assert summary.bad and one.records > 0 and one.applied_end_offset is None
    assert not_none(one.problem).startswith(
        "offsets 0 to 227 are missing: ingest the part of the log"
    )
    aside.rename(snapshot)
    summary = ingest(spark, [str(part)], home)
    one = summary.clusters[DYNAMIC]
    assert not summary.bad and one.records == 0
    assert one.applied_end_offset == one.log_end_offset
    store = open_store(home)
    offset, epoch = (int(word) for word in snapshot.stem.split("-"))
    builder = SnapshotBuilder(OffsetAndEpoch(offset, epoch), 0)
    for view in iter_batches(snapshot.read_bytes()):
        builder.feed(() if view.is_control else values(view))
    assert state_of(store, DYNAMIC, offset - 1) == image_rows(builder.finish().image)


def test_damage_is_reported_and_another_replica_is_read_instead(spark, tmp_path):
    paths = []
    for node in ("node1", "node2"):
        shutil.copytree(DATA / "a-first" / node, tmp_path / node)
        paths.append(str(tmp_path / node))
    log = Path(paths[0]) / LOG
    data = bytearray(log.read_bytes())
    view = list(iter_batches(bytes(data)))[9]
    data[view.position + 70] ^= 0xFF
    log.write_bytes(data)
    with pytest.raises(InvalidInputError, match=f"{DYNAMIC}: 1 damaged"):
        ingest(spark, paths, str(tmp_path / "never"), fail_fast=True)
    summary = ingest(spark, paths, str(tmp_path / "home"))
    assert summary.bad and summary.clusters[DYNAMIC].quarantined == {"damaged": 1}
    store = open_store(str(tmp_path / "home"))
    [row] = rows_of(store, "quarantine")
    assert (row["file"], row["position"], row["node_id"]) == (str(log), view.position, 1)
    offsets = sorted(row["offset"] for row in rows_of(store, "log"))
    assert offsets == list(range(offsets[-1] + 1))


@one_day_in(2, 1)
def test_behind_damage_the_state_continues_from_a_snapshot_of_the_same_replica(spark, tmp_path):
    shutil.copytree(DATA / "a-first/node2", tmp_path / "node2")
    log = tmp_path / "node2" / LOG
    data = bytearray(log.read_bytes())
    data[5000] ^= 4
    log.write_bytes(data)
    home = tmp_path / "home"
    one = ingest(spark, [str(tmp_path / "node2")], str(home)).clusters[DYNAMIC]
    assert (one.applied_end_offset, one.problem) == (147, None)
    assert one.quarantined == {"damaged": 1}
    store, loader = open_store(str(home)), Loader()
    for view in iter_batches((DATA / "a-first/node2" / LOG).read_bytes()):
        loader.feed(log_batch(view))
    assert state_of(store, DYNAMIC, 146) == image_rows(loader.published.image)
    [row] = rows_of(store, "clusters")
    assert json.loads(row["unknown"]) == [[48, 108]]
    take(spark, home, ["a-first/node3"])
    assert [row["unknown"] for row in rows_of(store, "clusters")] == ["[]"]


@one_day_in(2, 0)
def test_a_snapshot_alone_is_a_state(spark, tmp_path):
    """First a cluster of which nothing else is known; then its log, and a later snapshot."""
    part = tmp_path / "node2"
    shutil.copytree(DATA / "a-first/node2", part)
    for file in (*part.rglob("*.log"), *part.rglob("*-0000000000.checkpoint")):
        file.unlink()
    home = tmp_path / "home"
    one = ingest(spark, [str(part)], str(home)).clusters[DYNAMIC]
    assert (one.records, one.applied_end_offset, one.problem) == (0, 109, None)
    store = open_store(str(home))
    loader = Loader()
    for view in iter_batches((DATA / "a-first/node2" / LOG).read_bytes()):
        if view.base_offset < 109:
            loader.feed(log_batch(view))
    assert state_of(store, DYNAMIC, 108) == image_rows(loader.published.image)
    take(spark, home, ["a-first/node2"])
    whole = tmp_path / "whole"
    take(spark, whole, ["a-first/node2"])
    for table in ("log", "changes", *KINDS, "epochs"):
        assert contents(store, table) == contents(open_store(str(whole)), table), table


def uuid(name):
    return name.encode().ljust(16, b".")


def named(name):
    return r.TopicRecord(name=name, topic_id=uuid(name))


def batch(offset, records, time=0):
    encoded = [encode_record(record, 0) for record in records]
    return encode_batch(offset, 1, START_MS + time, encoded)


def names_at(store, offset):
    return {
        row["topic_name"]
        for row in rows_of(store, "topics")
        if row["valid_from_offset"] <= offset
        and (row["valid_to_offset"] is None or row["valid_to_offset"] > offset)
    }


def test_a_transaction_counts_when_it_ends_and_never_when_it_is_aborted(spark, tmp_path):
    parts = [
        encode_control_batch(0, 1, START_MS, [LeaderChange(1, (1,), (1,))]),
        batch(1, [named("before")]),
        batch(2, [r.BeginTransactionRecord(), named("undone")], 1000),
        batch(4, [r.AbortTransactionRecord()], 2000),
        batch(5, [r.BeginTransactionRecord(), named("slow")], 3000),
        batch(7, [r.RemoveTopicRecord(topic_id=uuid("before"))], 4000),
        batch(8, [r.EndTransactionRecord(), named("after")], 5000),
    ]
    home = str(tmp_path / "home")
    log = log_directory(tmp_path / "log", {0: b"".join(parts[:6])}) / "__cluster_metadata-0"
    one = ingest(spark, [str(log.parent)], home).clusters["cluster-a"]
    assert (one.log_end_offset, one.applied_end_offset, one.problem) == (8, 5, None)
    store = open_store(home)
    assert [row["open_transaction"] for row in rows_of(store, "clusters")] == [5]
    assert names_at(store, 5) == {"before"}
    for offset in (4, 5, 7):
        then = state_at(spark, store, "topics", "cluster-a", offset=offset).collect()
        assert [row["topic_name"] for row in then] == ["before"]
    with pytest.raises(
        UnknownStateError, match="offset 8 is not applied yet; the state is that of offset 7"
    ):
        state_at(spark, store, "topics", "cluster-a", offset=8)
    (log / f"{0:020}.log").write_bytes(b"".join(parts))
    one = ingest(spark, [str(log.parent)], home).clusters["cluster-a"]
    assert (one.log_end_offset, one.applied_end_offset) == (10, 10)
    assert names_at(store, 7) == {"before"}
    assert names_at(store, 8) == {"slow"}
    assert names_at(store, 9) == {"slow", "after"}
    [slow] = [e for e in rows_of(store, "changes") if e["topic_name"] == "slow"]
    assert (slow["offset"], slow["effective_offset"]) == (6, 8)


def test_a_transaction_whose_end_was_deleted_does_not_block_the_state(spark, tmp_path):
    """It was open when the log was copied; the next copy begins behind it, with a snapshot."""
    home = str(tmp_path / "home")
    first = batch(0, [named("before"), r.BeginTransactionRecord(), named("in it")])
    log_directory(tmp_path / "first", {0: first})
    assert ingest(spark, [str(tmp_path / "first")], home).clusters["cluster-a"].problem is None
    later = batch(50, [named("later")]) + batch(51, [r.BeginTransactionRecord(), named("open")])
    values = [encode_record(named(name), 0) for name in ("before", "in it")]
    at = OffsetAndEpoch(50, 1)
    snapshot = b"".join(encode_snapshot(at, ControlState(0, None), START_MS, values, START_MS))
    log_directory(tmp_path / "later", {50: later}, {(50, 1): snapshot})
    one = ingest(spark, [str(tmp_path / "later")], home).clusters["cluster-a"]
    assert (one.log_end_offset, one.applied_end_offset, one.problem) == (53, 51, None)
    store = open_store(home)
    assert names_at(store, 0) == {"before"}
    assert names_at(store, 50) == {"before", "in it", "later"}
    for offset in (50, 51, 52):
        then = state_at(spark, store, "topics", "cluster-a", offset=offset).collect()
        assert {row["topic_name"] for row in then} == {"before", "in it", "later"}
    assert [row["open_transaction"] for row in rows_of(store, "clusters")] == [51]


def test_a_topic_recreated_in_a_transaction_has_only_its_new_configs(spark, tmp_path):
    def config(name, value):
        return r.ConfigRecord(resource_type=2, resource_name="t", name=name, value=value)

    again = r.TopicRecord(name="t", topic_id=uuid("again"))
    records = [
        *(named("t"), config("retention.ms", "1"), config("segment.ms", "1")),
        *(r.BeginTransactionRecord(), config("segment.bytes", "2"), config("retention.ms", "2")),
        *(r.RemoveTopicRecord(topic_id=uuid("t")), again, config("retention.ms", "3")),
        *(config("max.message.bytes", "3"), r.EndTransactionRecord(), r.NoOpRecord()),
    ]
    data = batch(0, records[:7]) + batch(7, records[7:])
    home = str(tmp_path / "home")
    ingest(spark, [str(log_directory(tmp_path / "log", {0: data}))], home)
    store, loader = open_store(home), Loader()
    for view in iter_batches(data):
        loader.feed(log_batch(view))
    wanted = image_rows(loader.published.image)
    assert state_of(store, "cluster-a", len(records) - 1) == wanted
    kept = {name: value for (_, _, name), (value,) in wanted["configs"].items()}
    assert kept == {"retention.ms": "3", "max.message.bytes": "3"}
    events = [e["event"] for e in sorted(rows_of(store, "changes"), key=lambda e: e["offset"])]
    assert events.count("config deleted") == 3 and events[-2:] == ["config set", "config set"]


@one_day_in(2, 1)
def test_a_generated_log_ingested_in_parts_gives_the_state_of_a_replay(
    spark, tmp_path, monkeypatch
):
    """Thousands of records of a busy cluster in small chunks, as three jobs find them."""
    monkeypatch.setattr(lineage, "CHUNK", 512)
    monkeypatch.setattr(state, "SLICE_ROWS", 200)
    generate(tmp_path / "fleet", FleetSpec(clusters=1, records=3000, seed=7))
    [log] = sorted((tmp_path / "fleet").rglob("*.log"))[:1]
    data = log.read_bytes()
    views = list(iter_batches(data))
    home = str(tmp_path / "home")
    for cut in (len(views) // 3, len(views) // 2, len(views)):
        log.write_bytes(data[: views[cut].position if cut < len(views) else len(data)])
        summary = ingest(spark, [str(log.parent.parent)], home)
        assert not summary.bad
    [cluster] = summary.clusters
    store, loader = open_store(home), Loader()
    assert len(rows_of(store, "log")) == views[-1].end_offset
    times = [row["time"] for row in sorted(rows_of(store, "log"), key=lambda row: row["offset"])]
    assert times == sorted(times)
    for number, view in enumerate(views):
        loader.feed(log_batch(view))
        if number % (len(views) // 9) == 0 or view is views[-1]:
            wanted = image_rows(loader.published.image)
            assert state_of(store, cluster, view.last_offset) == wanted, view.last_offset


def test_a_tail_taken_too_early_and_a_beginning_taken_too_late_leave_no_trace(spark, tmp_path):
    """First only the node with the uncommitted tail, whose log begins late; then all the others.

    And each time it finds what nothing shows to be committed: the voters are 2, 3, 4, and nodes
    2 and 3 have epoch 6 up to 332 and 335, a broker up to 338.
    """
    home, whole = tmp_path / "home", tmp_path / "whole"
    alone = take(spark, home, ["d-divergent/node4"]).clusters[DYNAMIC]
    assert alone.applied_end_offset == 317 and not alone.quarantined
    assert (alone.committed_end_offset, alone.unproven) == (228, [(228, 317)])
    store = open_store(str(home))
    assert any("ghost-" in row["entity"] for row in rows_of(store, "quotas"))
    one = take(spark, home, ["d-divergent"]).clusters[DYNAMIC]
    assert (one.log_end_offset, one.committed_end_offset) == (338, 332)
    assert (one.unproven, one.left_out) == ([(332, 338)], [])
    take(spark, whole, ["d-divergent"])
    other = open_store(str(whole))
    for table in ("log", "changes", *KINDS, "epochs"):
        assert contents(store, table) == contents(other, table), table
    aside = [row for row in rows_of(store, "quarantine") if row["reason"] == "superseded"]
    assert sorted(row["offset"] for row in aside) == [*range(307, 317)]
    [row] = rows_of(store, "clusters")
    assert row["unknown"] == "[]"
    assert (row["committed_end_offset"], json.loads(row["unproven"])) == (332, [[332, 338]])
    later = take(spark, home, ["e-truncated"]).clusters[DYNAMIC]
    assert later.committed_end_offset >= 363 and later.unproven == [(363, 367)]


def test_what_nothing_shows_to_be_committed_is_left_out_when_asked(spark, tmp_path):
    home = tmp_path / "home"
    alone = take(spark, home, ["d-divergent/node4"], up_to="majority").clusters[DYNAMIC]
    assert (alone.records, alone.left_out) == (0, [(228, 317)])
    one = take(spark, home, ["d-divergent"], up_to="majority").clusters[DYNAMIC]
    assert (one.log_end_offset, one.applied_end_offset, one.unproven) == (332, 332, [])
    assert one.left_out == [(332, 338)] and one.quarantined == {"divergent": 10}
    again = take(spark, home, ["d-divergent"], up_to="majority").clusters[DYNAMIC]
    assert (again.records, again.quarantined) == (0, {})
    rest = take(spark, home, ["d-divergent"]).clusters[DYNAMIC]
    assert (rest.records, rest.log_end_offset, rest.unproven) == (6, 338, [(332, 338)])


def test_a_tail_before_a_gap_is_reported_as_unproven(spark, tmp_path):
    """Node 4's tail was never committed; the one log beside it begins behind it."""
    part = tmp_path / "node1"
    shutil.copytree(DATA / "e-truncated/node1", part, ignore=shutil.ignore_patterns("*.txt"))
    log = part / LOG
    keep = [view for view in iter_batches(log.read_bytes()) if view.base_offset >= 342]
    (log.parent / f"{keep[0].base_offset:020d}.log").write_bytes(
        log.read_bytes()[keep[0].position :]
    )
    log.unlink()
    paths = [str(part), str(DATA / "d-divergent/node4")]
    one = ingest(spark, paths, str(tmp_path / "home")).clusters[DYNAMIC]
    assert (228, 317) in one.unproven
    late = [str(DATA / "e-truncated/node3")]
    whole = ingest(spark, late, str(tmp_path / "home")).clusters[DYNAMIC]
    assert not whole.foreign_replicas and whole.log_end_offset == 363
    ingest(spark, late, str(tmp_path / "anew"))
    made, wanted = (open_store(str(tmp_path / name)) for name in ("home", "anew"))
    for table in ("log", "changes", *KINDS):
        assert contents(made, table) == contents(wanted, table), table
    aside = [row["offset"] for row in rows_of(made, "quarantine") if row["reason"] == "superseded"]
    assert sorted(aside) == [*range(307, 317)]
    sure = ingest(spark, paths, str(tmp_path / "sure"), up_to="majority").clusters[DYNAMIC]
    assert (228, 317) in sure.left_out
    assert not [
        row
        for row in rows_of(open_store(str(tmp_path / "sure")), "changes")
        if 307 <= row["offset"] < 317
    ]


@one_day_in(2, 0)
def test_the_order_of_ingested_parts_changes_no_time(spark, tmp_path):
    """The first leader's clock is a minute ahead of the second's; its part comes last."""
    early = [encode_control_batch(0, 1, START_MS + 60_000, [LeaderChange(1, (1,), (1,))])]
    early += [encode_batch(n, 1, START_MS + 60_000 + 1000 * n, [topic(n)]) for n in range(1, 10)]
    late = [encode_control_batch(10, 2, START_MS + 10_000, [LeaderChange(2, (1,), (1,))])]
    late += [encode_batch(n, 2, START_MS + 1000 * n, [topic(n)]) for n in range(11, 20)]
    pieces = (("a", 0, early, 1), ("b", 10, late[:5], 2), ("c", 15, late[5:], 2))
    parts = [
        log_directory(tmp_path / name, {base: b"".join(data)}, node=node)
        for name, base, data, node in pieces
    ]
    stores = {}
    orders = {
        "at once": [parts],
        "late first": [parts[1:], parts[:1]],
        "middle of a term last": [parts[2:], parts[:1], parts[1:2]],
    }
    for name, order in orders.items():
        home = str(tmp_path / name)
        for some in order:
            ingest(spark, [str(part) for part in some], home)
        stores[name] = open_store(home)
    for name, store in stores.items():
        for table in ("changes", *KINDS):
            assert contents(store, table) == contents(stores["at once"], table), (name, table)
        when = datetime.fromtimestamp(START_MS / 1000 + 15, UTC)
        with pytest.raises(UnknownStateError, match="begins after"):
            offset_at(spark, store, "cluster-a", when)
        assert offset_at(spark, store, "cluster-a", when + timedelta(seconds=50)) == 5


def test_over_a_gap_the_state_continues_from_a_snapshot(spark, tmp_path):
    """What the snapshot has alike goes on, what it lacks ends, what is new in it begins."""
    home = tmp_path / "home"
    take(spark, home, ["a-first/node1"])
    one = take(spark, home, ["c-reconfigured/node4"]).clusters[DYNAMIC]
    assert one.applied_end_offset == one.log_end_offset > 228 and one.problem is None
    store, loader = open_store(str(home)), Loader()
    [row] = rows_of(store, "clusters")
    assert json.loads(row["unknown"]) == [[144, 227]]
    for view in iter_batches((DATA / "c-reconfigured/node3" / LOG).read_bytes()):
        loader.feed(log_batch(view))
        offset = view.last_offset
        if offset in (143, 227) or 228 <= offset < one.applied_end_offset:
            assert state_of(store, DYNAMIC, offset) == image_rows(loader.published.image), offset
    times = {row["offset"]: row["time"] for row in rows_of(store, "log")}
    before, behind = times[143], times[228]
    assert offset_at(spark, store, DYNAMIC, before - timedelta(microseconds=1)) < 143
    assert offset_at(spark, store, DYNAMIC, behind - timedelta(microseconds=1)) == 227
    with pytest.raises(UnknownStateError, match="between offsets 144 and 226 is unknown"):
        state_at(spark, store, "topics", DYNAMIC, instant=before + timedelta(microseconds=1))
    known = names_at(store, 143)
    topics = [row for row in rows_of(store, "topics") if row["is_current"]]
    assert all(row["from_snapshot"] == (row["topic_name"] not in known) for row in topics)
    partitions = rows_of(store, "partitions")
    assert any(row["valid_to_offset"] == 227 for row in partitions)
    assert any(row["is_current"] and row["valid_from_offset"] < 144 for row in partitions)
    [loaded] = [row for row in rows_of(store, "changes") if row["event"] == "snapshot loaded"]
    assert json.loads(loaded["after"])["end_offset"] == 228


def test_times_that_no_calendar_has_are_shown_as_far_as_can_be(spark, tmp_path):
    """Kafka's quorum writes them as its clock says; a checksum does not reveal them as wrong."""
    far = 1 << 62
    control = ControlState(0, None)
    snapshot = b"".join(encode_snapshot(OffsetAndEpoch(5, 1), control, far, [topic(1)], START_MS))
    log = encode_batch(5, 1, far, [topic(2)])
    log_directory(tmp_path / "in/a", {5: log}, {(5, 1): snapshot})
    log_directory(tmp_path / "in/b", {}, {(5, 1): snapshot}, "cluster-b")
    ingest(spark, [str(tmp_path / "in/*")], str(tmp_path / "home"))
    store = open_store(str(tmp_path / "home"))
    end = log_ends(store, "cluster-a")
    assert end.year == 9999
    for table, column in (("log", "timestamp"), ("log", "time"), ("changes", "time")):
        assert {row[column] for row in rows_of(store, table)} == {end}, (table, column)
    assert state_at(spark, store, "topics", "cluster-a", instant=end).count() == 2


def test_a_warehouse_without_the_columns_of_proof_can_be_continued(spark, tmp_path):
    """Two columns came to the table of clusters after the first warehouses had been written."""
    home = tmp_path / "home"
    take(spark, home, ["a-first/node1"])
    [file] = open_store(str(home)).files("clusters")
    clusters = home / "control/clusters" / file.path
    without = pq.read_table(clusters).drop_columns(["committed_end_offset", "unproven"])
    pq.write_table(without, clusters)
    [known] = load_progress(open_store(str(home))).values()
    assert known.unproven == ((0, known.log_end),) and known.committed_end == 0
    assert [row["unproven"] for row in rows_of(open_store(str(home)), "clusters")] == [None]
    assert take(spark, home, ["b-failover/node1"]).clusters[DYNAMIC].records > 0


def test_a_delta_table_gets_the_columns_that_came_after_it(spark, tmp_path, monkeypatch):
    """Readers of Delta Lake go by the schema in the table's log."""
    home, new = tmp_path / "home", {"committed_end_offset", "unproven"}
    take(spark, home, ["a-first/node1"])
    created = home / "control/clusters/_delta_log/00000000000000000000.json"
    lines = [json.loads(line) for line in created.read_text().splitlines()]
    for line in lines:
        if metadata := line.get("metaData"):
            schema = json.loads(metadata["schemaString"])
            schema["fields"] = [one for one in schema["fields"] if one["name"] not in new]
            metadata["schemaString"] = json.dumps(schema)
    created.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    table = DeltaTable(home / "control/clusters")
    assert new.isdisjoint(table.to_pyarrow_table().column_names)
    real = delta_texts.describe

    def raced(table, path):
        """Another job gives the table its columns first."""
        real(DeltaTable(table.table_uri), path)
        real(table, path)

    monkeypatch.setattr(delta_tables, "describe", raced)
    take(spark, home, ["b-failover/node1"])
    [row] = DeltaTable(home / "control/clusters").to_pyarrow_table().to_pylist()
    assert row["committed_end_offset"] > 0 and json.loads(row["unproven"])
    assert rows_of(open_store(str(home)), "clusters") == [row]
    take(spark, home, ["c-reconfigured/node1"])
    altered = [
        one["version"]
        for one in DeltaTable(home / "control/clusters").history()
        if one["operation"] == "ADD COLUMN"
    ]
    assert len(altered) == 1, "once is enough"
    lost = home / f"control/clusters/_delta_log/{altered[0]:020}.json"
    lost.unlink()
    assert repair_commits(open_store(str(home)))
    take(spark, home, ["d-divergent/node1"])
    columns = DeltaTable(home / "control/clusters").to_pyarrow_table().column_names
    assert new.issubset(columns)
