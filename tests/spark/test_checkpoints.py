"""The choice of the checkpoint that a stream continues."""

from __future__ import annotations

from typing import Any

import pytest

from metadata.samples import DATA
from quorate.spark.jobs.checkpoints import (
    CHECKPOINT,
    checkpoint_for,
    checkpoints,
    chosen,
    places_in,
    reached,
)
from quorate.spark.jobs.follow import follow_clusters
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.store import ConcurrentRunError
from quorate.spark.tables.summary import retry_while_overtaken
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, STATIC, rows_of
from time_budget import one_day_in

HEAD = 'v1\n{"batchWatermarkMs":0}\n'


@pytest.mark.parametrize(
    ("known", "clusters", "name"),
    [
        ({}, ["eu"], "of-eu"),
        ({}, ["us", "eu"], "of-eu+us"),
        ({"": ["eu"]}, ["eu"], ""),
        ({"": ["eu"]}, ["us"], "of-us"),
        ({"": ["eu"]}, ["eu", "us"], ""),
        ({"": ["eu", "us"]}, ["eu"], "of-eu"),
        ({"of-eu": ["eu"], "of-us": ["us"]}, ["us"], "of-us"),
        ({"of-eu": ["eu", "us"]}, ["eu"], "of-eu.2"),
        ({"of-eu": ["eu", "us"], "of-eu.2": ["eu"]}, ["eu"], "of-eu.2"),
        ({"of-eu": []}, ["eu"], "of-eu"),
        ({"of-eu": []}, ["us"], "of-us"),
    ],
)
def test_a_checkpoint_is_of_no_other_cluster(known, clusters, name):
    assert chosen(known, clusters) == name


@pytest.mark.parametrize(
    ("known", "clusters", "silent", "name"),
    [
        ({"of-eu+us": ["eu", "us"]}, ["eu"], 1, "of-eu+us"),
        ({"of-eu+us": ["eu", "us"]}, ["eu"], 0, "of-eu"),
        ({"of-eu+us": ["eu", "us"], "of-eu": ["eu"]}, ["eu"], 1, "of-eu+us"),
        ({"of-a+b+c": ["a", "b", "c"]}, ["a"], 1, "of-a"),
        ({"of-us": ["us"]}, ["eu"], 1, "of-eu"),
    ],
)
def test_a_silent_cluster_matches_any_of_a_checkpoint(known, clusters, silent, name):
    assert chosen(known, clusters, silent) == name


def test_any_cluster_id_gives_a_name():
    name = chosen({}, ["../../etc", "a b"])
    assert "/" not in name
    assert " " not in name
    assert name != chosen({}, ["../../etc", "a c"])


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (HEAD + '{"eu":{"offset":7,"epoch":1},"us":{"offset":1,"epoch":1}}', {"eu": 7, "us": 1}),
        (HEAD + "{}", {}),
        (HEAD + "-", {}),
        (HEAD + '{"eu":{"off', {}),
        ("", {}),
    ],
)
def test_the_clusters_of_a_checkpoint_are_read_from_its_offsets(text, places):
    assert places_in(text) == places


def test_checkpoints_of_earlier_releases_are_found(tmp_path):
    home = tmp_path / CHECKPOINT
    for folder, batch, clusters in (
        (home, 9, '{"eu":{"offset":1,"epoch":1}}'),
        (home, 10, '{"eu":{"offset":2,"epoch":1},"us":{"offset":2,"epoch":1}}'),
        (home, 11, '{"eu":'),
        (home / "of-asia", 0, '{"asia":{"offset":1,"epoch":1}}'),
    ):
        (folder / "offsets").mkdir(parents=True, exist_ok=True)
        (folder / "offsets" / str(batch)).write_text(HEAD + clusters)
    (home / "of-new").mkdir()
    (home / "of-new" / "metadata").write_text("{}")
    store = open_store(str(tmp_path))
    assert checkpoints(store) == {"": {"eu": 2, "us": 2}, "of-asia": {"asia": 1}}
    assert reached(store, f"{CHECKPOINT}/") == {"eu": 2, "us": 2}
    assert reached(store, f"{CHECKPOINT}/of-asia") == {"asia": 1}
    assert reached(store, f"{CHECKPOINT}/of-nobody") == {}
    assert checkpoint_for(store, ["us", "eu"]).rstrip("/") == CHECKPOINT
    assert checkpoint_for(store, ["asia"]) == f"{CHECKPOINT}/of-asia"


def test_a_run_is_repeated_when_another_job_commits_first():
    tries = []

    def run():
        tries.append(1)
        if len(tries) < 3:
            raise ConcurrentRunError("another run was quicker")

    summaries: list[Any] = []
    retry_while_overtaken(run, summaries.append)
    assert (len(tries), len(summaries)) == (3, 2)

    def never():
        tries.append(1)
        raise ConcurrentRunError("another run was quicker")

    tries.clear()
    with pytest.raises(ConcurrentRunError):
        retry_while_overtaken(never, summaries.append)
    assert 3 < len(tries) < 100


@one_day_in(2, 1)
def test_one_warehouse_follows_clusters_one_after_the_other(spark, tmp_path, monkeypatch):
    """Each goes on where it was; a run that another job overtook is done again, and what it had
    taken before that is counted.
    """
    warehouse = str(tmp_path / "warehouse")
    overtaken: list[str] = []
    commit = DeltaStore.commit

    def once_overtaken(store, plan):
        if plan.job == "state" and not overtaken:
            overtaken.append(plan.job)
            raise ConcurrentRunError("another run was quicker")
        commit(store, plan)

    monkeypatch.setattr(DeltaStore, "commit", once_overtaken)

    def taken(folder):
        summary = follow_clusters(spark, {"path": str(DATA / folder)}, warehouse)
        return summary.records, summary.events

    events = dict.fromkeys((DYNAMIC, STATIC), 0)
    counted = [taken("d-divergent"), taken("g-upgraded-v1")]
    assert overtaken
    store = open_store(warehouse)
    for row in rows_of(store, "changes"):
        events[row["cluster_id"]] += 1
    assert counted == [(332, events[DYNAMIC]), (60, events[STATIC])]
    known = {name: set(places) for name, places in checkpoints(store).items()}
    assert known == {f"of-{DYNAMIC}": {DYNAMIC}, f"of-{STATIC}": {STATIC}}
    assert taken("d-divergent") == (0, 0)
