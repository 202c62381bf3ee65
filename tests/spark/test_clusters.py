"""Whose the logs of a read are: several clusters with one id, logs without meta.properties."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from metadata.samples import OUTSIDE
from quorate.spark.files.paths import SourceError
from quorate.spark.source.options import parse_options
from quorate.spark.stream.options import parse_stream_options
from quorate.spark.stream.tail_feed import TailedDirectories
from spark.shared_ids import ID, LOG, A, B, cleaned, undecided
from spark.test_plan import problems, read

EVERY = ["compose-a", "compose-b", "no-meta"]


def records(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["cluster_id"] for row in rows if row["problem"] is None)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OUTSIDE, tmp_path / "outside"))


def test_two_clusters_with_one_id_are_read_apart():
    rows = read(*(OUTSIDE / name for name in EVERY))
    assert records(rows) == {A: 3 * 14, B: 20}
    (problem,) = problems(rows)
    assert problem.startswith(f"{OUTSIDE}/no-meta/node1/__cluster_metadata-0: no meta.properties")
    assert records(read(OUTSIDE / "compose-b")) == {ID: 20}, "an id that is not shared stays"


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
def test_so_are_clusters_in_archives(tmp_path, kind):
    for name in EVERY:
        with tarfile.open(tmp_path / f"{name}.{kind}", "w:gz" if kind == "tar.gz" else "w") as out:
            out.add(OUTSIDE / name, name)
    rows = read(tmp_path)
    assert records(rows) == {A: 3 * 14, B: 20}
    assert len(problems(rows)) == 1
    assert records(read(tmp_path / f"no-meta.{kind}")) == {"unknown": 8}


def test_a_replica_whose_head_is_cleaned_joins_by_overlap(outside):
    cleaned(outside / "compose-a/node2", 8)
    rows = read(outside / "compose-a", outside / "compose-b")
    assert records(rows) == {A: 14 + 6 + 14, B: 20}
    (problem,) = problems(rows)
    assert "the log starts at offset 8" in problem, "its snapshot is missing, nothing else"


def test_a_log_of_which_nothing_decides_is_named_and_stays_apart(outside):
    late = undecided(outside)
    rows = read(outside)
    assert records(rows) == {A: 3 * 14, B: 14, late: 6}
    (why,) = [problem for problem in problems(rows) if "several clusters have the id" in problem]
    assert f"nothing shows whether this log is one of {A}, {B}: name it (--cluster" in why


def test_a_name_that_is_given_counts(outside):
    undecided(outside)
    given = {B: [str(outside / "late")], "staging": [str(outside / "compose-a")]}
    rows = read(outside, clusters=json.dumps(given))
    assert records(rows) == {"staging": 3 * 14, B: 14 + 6}
    assert not any("several clusters" in problem for problem in problems(rows))
    rows = read(outside, clusters=json.dumps({"lost": [str(outside / "no-meta/*")]}))
    assert records(rows)["lost"] == 8, "a log without meta.properties"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ('{"both": ["{}/compose-*"]}', r"cluster both: the logs of .* have no common history"),
        ('{"x": ["{}/compose-a", "{}/none*"]}', "none.*: no path matches this pattern"),
        ('{"x": ["{}/README.md"]}', "cluster x: no metadata log is at .*README.md"),
        ('{"x": "path"}', "must be JSON like"),
        ('["x"]', "must be JSON like"),
        ('{"": ["path"]}', "must be JSON like"),
    ],
)
def test_a_wrong_name_is_refused(given, why):
    with pytest.raises(SourceError, match=why):
        read(OUTSIDE, clusters=given.replace("{}", str(OUTSIDE)))


def test_the_longest_path_names_a_log(outside):
    given = {"all": [str(outside)], "b": [str(outside / "compose-b/node1" / LOG)]}
    given |= {"lost": [str(outside / "no-meta")]}
    rows = read(outside, clusters=json.dumps(given))
    assert records(rows) == {"all": 3 * 14, "b": 20, "lost": 8}


def test_options_keep_the_order_of_names():
    assert parse_options({"path": "x", "clusters": '{"b": ["p", "q"], "a": []}'}).clusters == (
        ("b", ("p", "q")),
        ("a", ()),
    )


def directories(*paths: Path, **words: str) -> TailedDirectories:
    options = {"paths": json.dumps(list(map(str, paths))), "pollMs": "0", **words}
    return TailedDirectories(parse_stream_options(options))


def test_a_stream_follows_two_clusters_with_one_id(outside):
    found = directories(*(outside / name for name in EVERY))
    assert {name: len(logs) for name, logs in found.clusters().items()} == {A: 3, B: 1}
    (why,) = found.passed_over.values()
    assert "no-meta/node1/__cluster_metadata-0: no meta.properties" in why
    with pytest.raises(SourceError, match=r"no meta\.properties"):
        directories(outside / "no-meta").clusters()
    with pytest.raises(SourceError, match=r"no meta\.properties"):
        directories(outside, failFast="true").clusters()


def test_a_cluster_keeps_its_name_while_a_stream_runs(outside):
    """A directory of another cluster with the same id appears."""
    other = (outside / "compose-b").rename(outside.parent / "elsewhere")
    found = directories(outside)
    assert list(found.clusters()) == [ID]
    other.rename(outside / "compose-b")
    assert set(found.clusters()) == {ID, B}
