"""The same input gets the same findings, however often it is ingested and whatever was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metadata.samples import DATA
from quorate.formats.batch import encode_batch
from quorate.spark.tables.findings import taken_back
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.lineage import EpochGroup, EpochSpan
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.summary import ClusterSummary, IngestSummary, InvalidInputError
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, places, rows_of
from spark.logs import START_MS, fence, log_directory
from spark.test_refusals import AT_TWO, LEADER, ONE, SOUND, THREE, TWO, UNKNOWN_TYPE, flipped
from time_budget import one_day_in, todays

TAIL = ["d-divergent/node4", "a-first/node1"]
"""Ten records of epoch 4, from offset 307 on, that were never committed."""


@one_day_in(2, 1)
def test_a_range_that_is_taken_back_is_reported_and_counted(spark, pipeline, tmp_path: Path):
    home = tmp_path / "home"
    assert not ingest(spark, places(*TAIL), str(home)).bad
    before = rows_of(open_store(str(home)), "log")
    node3 = DATA / "d-divergent/node3"
    code, out, err = pipeline("ingest", node3, "-w", home, "--fail-fast", "--quiet")
    assert code == 1 and not out and "nothing was taken, nor taken back" in err
    says = f"{node3}/__cluster_metadata-0 has offset 307 from epoch 6"
    assert "offsets 307 to 316 of epoch 4" in err and says in err
    assert rows_of(open_store(str(home)), "log") == before
    code, out, _ = pipeline("ingest", node3, "-w", home, "--json", "--quiet")
    summary = json.loads(out)
    one = summary["clusters"][DYNAMIC]
    assert (code, summary["bad"], one["quarantined"]) == (1, True, {"superseded": 10})
    [part] = one["taken_back"]
    assert (part["start"], part["end"], part["epochs"]) == (307, 317, [4])
    assert says in part["reason"] and part["log"] == f"{node3}/__cluster_metadata-0"
    code, out, _ = pipeline("ingest", node3, "-w", home, "--quiet")
    assert code == 1 and "in quarantine: 10 superseded (known before)" in out
    # what was taken back is done: node 3 has nothing bad, node 4 has
    assert pipeline("ingest", node3, "-w", home, "--fail-fast", "--quiet")[0] == 0
    node4 = DATA / "d-divergent/node4"
    code, _, err = pipeline("ingest", node4, "-w", home, "--fail-fast", "--quiet")
    assert code == 1 and "10 divergent (known before)" in err


def test_a_replica_that_takes_back_and_the_one_that_had_it_count_once(spark, tmp_path: Path):
    home = str(tmp_path)
    ingest(spark, places(*TAIL), home)
    summary = ingest(spark, places("d-divergent"), home)
    one = summary.clusters[DYNAMIC]
    assert summary.bad and (one.quarantined, one.known_before) == ({"superseded": 10}, {})
    again = ingest(spark, places("d-divergent"), home)
    one = again.clusters[DYNAMIC]
    assert again.bad and one.quarantined == {}
    assert one.known_before["divergent"] == 10


def bad_input(home: Path) -> dict[str, list[str]]:
    """By reason: an input that has it."""
    stray = encode_batch(3, 1, START_MS, [fence(7)])
    log_directory(home / "misfit", {0: LEADER + ONE + stray}, cluster="misfit")
    new = encode_batch(3, 1, START_MS, [UNKNOWN_TYPE])
    log_directory(home / "unknown", {0: LEADER + ONE + new}, cluster="unknown-type")
    log_directory(home / "damaged", {0: flipped(SOUND, AT_TWO + 70)}, cluster="damaged")
    other = flipped_record()
    log_directory(home / "disagrees/1", {0: SOUND}, cluster="disagrees", node=1)
    log_directory(home / "disagrees/2", {0: other}, cluster="disagrees", node=2)
    found = {name: [str(home / name)] for name in ("misfit", "unknown", "damaged", "disagrees")}
    return {**found, "divergent": places("d-divergent/node4", "d-divergent/node3")}


def flipped_record() -> bytes:
    """The same log with another batch in its midst."""
    return LEADER + ONE + encode_batch(3, 1, START_MS + 5, [fence(1), fence(2), fence(3)]) + THREE


@one_day_in(2, 0)
def test_bad_input_is_bad_each_time(spark, tmp_path: Path):
    every = bad_input(tmp_path / "input")
    paths = [path for found in every.values() for path in found]
    home = str(tmp_path / "home")
    first = ingest(spark, paths, home)
    found = {why for one in first.clusters.values() for why in one.quarantined}
    assert found == set(every)
    for reason, mine in todays(3, every.items()):
        again = ingest(spark, mine, home)
        [one] = again.clusters.values()
        assert again.bad and again.records == 0 and not one.quarantined, reason
        before = first.clusters[next(iter(again.clusters))].quarantined
        assert one.known_before == before, reason
        assert reason in one.examples
        with pytest.raises(
            InvalidInputError, match=rf"nothing was taken.*[0-9] {reason} \(known before\)"
        ):
            ingest(spark, mine, home, fail_fast=True)
    sound = str(log_directory(tmp_path / "sound", {0: LEADER + ONE + TWO}, cluster="damaged"))
    assert not ingest(spark, [sound], home).bad


@pytest.mark.parametrize("stage", todays(3, ["rewind", "bronze", "state"]))
def test_a_job_that_was_killed_ends_as_an_undisturbed_one(
    spark, tmp_path: Path, monkeypatch, stage: str
):
    home = str(tmp_path / "home")
    ingest(spark, places(*TAIL), home)
    paths = places("d-divergent/node3", "d-divergent/node4")
    commit = type(open_store(home)).commit

    def killed(store, plan):
        commit(store, plan)
        if plan.job == stage:
            raise KeyboardInterrupt

    with monkeypatch.context() as there:
        there.setattr(type(open_store(home)), "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest(spark, paths[:1], home)
    summary = ingest(spark, paths[:1], home)
    assert summary.bad
    assert summary.clusters[DYNAMIC].known_before == {"superseded": 10}


@one_day_in(2, 1)
def test_bad_input_of_a_job_that_was_killed_is_bad_for_the_next(spark, tmp_path: Path, monkeypatch):
    """Killed when bronze and quarantine are written, but not yet the state."""
    every = bad_input(tmp_path / "input")
    home = str(tmp_path / "home")
    form = type(open_store(home))
    commit = form.commit

    def killed(store, plan):
        commit(store, plan)
        raise KeyboardInterrupt

    with monkeypatch.context() as there:
        there.setattr(form, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            ingest(spark, [path for found in every.values() for path in found], home)
    for reason, mine in todays(3, every.items()):
        summary = ingest(spark, mine, home)
        # the first of them brings the state of every cluster up to its log
        counts_of = [{**one.quarantined, **one.known_before} for one in summary.clusters.values()]
        assert summary.bad and any(reason in counts for counts in counts_of), reason


@one_day_in(2, 0)
def test_a_range_that_was_taken_back_is_reported_after_a_lost_race(
    spark, tmp_path: Path, monkeypatch
):
    home = str(tmp_path / "home")
    ingest(spark, places(*TAIL), home)
    commit, quicker = type(open_store(home)).commit, [True]

    def once(store, plan):
        if plan.job == "rewind" and quicker:
            quicker.pop()
            commit(store, RunPlan(plan.run, "other", clusters=plan.clusters))
        commit(store, plan)

    monkeypatch.setattr(type(open_store(home)), "commit", once)
    summary = ingest(spark, places("d-divergent/node3"), home)
    one = summary.clusters[DYNAMIC]
    assert not quicker and one.quarantined == {"superseded": 10} and len(one.taken_back) == 1


def test_what_contradicts_is_named():
    known = [EpochSpan(1, 0, 300), EpochSpan(4, 300, 317)]
    groups = [EpochGroup("/a", 1, 0, 0, 299, 0), EpochGroup("/b", 6, 0, 307, 337, 0)]
    part = taken_back(known, groups, 307, 317)
    assert (part.records, part.epochs, part.log) == (10, (4,), "/b")
    assert part.reason.endswith("/b has offset 307 from epoch 6")
    far = taken_back(known, [EpochGroup("/c", 7, 0, 900, 950, 0)], 307, 317)
    assert far.reason.endswith("/c has offset 900 from epoch 7")


def test_counts_of_several_runs_are_added():
    one, two = IngestSummary("w"), IngestSummary("w")
    one.clusters["c"] = ClusterSummary(known_before={"unknown": 1})
    two.clusters["c"] = ClusterSummary(known_before={"unknown": 2, "misfit": 1})
    one.add(two)
    assert one.clusters["c"].known_before == {"unknown": 3, "misfit": 1} and one.bad
