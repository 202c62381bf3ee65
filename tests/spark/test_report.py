"""The HTML report: single pictures, and the page of the sample clusters."""

from __future__ import annotations

import errno
import os
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.samples import DATA
from quorate.base.atomic_write import write_atomically
from quorate.spark.audit import audit_here
from quorate.spark.history.views import register_views
from quorate.spark.report import ReportError, report
from quorate.spark.report import gather as gathering
from quorate.spark.report.gather import COLUMNS, ClusterFigures
from quorate.spark.report.page import page
from quorate.spark.report.svg import LABELS, WIDTH, Bar, bands, colour, heat, lines
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.store import WarehouseError
from spark.fleet import DYNAMIC, STATIC, rows_of, warehouses
from time_budget import one_day_in

SPAN = (1_000_000, 2_000_000)


def rects(svg):
    return [
        {name: float(one.attrib[name]) for name in ("x", "y", "width")}
        for one in ElementTree.fromstring(svg).iter("rect")
    ]


def test_bars_are_placed_by_their_times():
    bars = [Bar("a", 1_000_000, 1_500_000, "first", "red"), Bar("b", 1_500_000, 2_000_000, "", "")]
    half = (WIDTH - LABELS) / 2
    first, second = rects(bands(bars, SPAN))
    assert (first["x"], first["width"]) == (LABELS, half)
    assert (second["x"], second["width"]) == (LABELS + half, half)
    assert first["y"] < second["y"], "each row has its own line"


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_bars_never_leave_the_picture(start, end):
    (found,) = rects(bands([Bar("a", min(start, end), max(start, end), "", "red")], SPAN))
    assert LABELS <= found["x"] <= WIDTH
    assert found["x"] + found["width"] <= WIDTH + 1


def test_a_larger_count_is_darker():
    svg = heat({("topics", 0): 1, ("topics", 5): 100}, COLUMNS, SPAN)
    few, many = (
        int(one.attrib["fill"].split()[-1].rstrip("%)"))
        for one in ElementTree.fromstring(svg).iter("rect")
    )
    assert many < few


def test_lines_step_up_to_the_largest_value():
    svg = lines({"topics": [(1_000_000, 1), (1_500_000, 4)]}, SPAN)
    (path,) = ElementTree.fromstring(svg).iter("path")
    assert path.attrib["d"].count("V") == 1
    assert ">4<" in svg


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=40))
def test_names_are_escaped(name):
    svg = bands([Bar(name, *SPAN, name, "red")], SPAN)
    titles = [one.text or "" for one in ElementTree.fromstring(svg).iter("title")]
    assert titles == [name, name]


def test_a_name_with_markup_is_escaped_on_the_page():
    one = ClusterFigures("<script>alert(1)</script>", SPAN, churn={("<b>", 1): 2})
    assert "<script" not in page([one])
    assert "<b>" not in page([one])


def test_a_page_is_written_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    page, pipe = tmp_path / "page.html", tmp_path / "pipe"
    write_atomically(page, "first")
    (tmp_path / "link").symlink_to(page)
    write_atomically(tmp_path / "link", "second")
    assert (page.read_text(), (tmp_path / "link").is_symlink()) == ("second", True)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, "page")
    assert os.read(reader, 9) == b"page" and pipe.is_fifo()
    os.close(reader)

    def full(path, *_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(page, "third")
    assert page.read_text() == "second"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "link", "pipe"}


def test_audit_findings_are_shown_for_clusters_without_pictures_too():
    spot = {"file": "/x/0.log", "position": 5, "offset": 7, "epoch": 1}
    found = {"what": "split brain at offset 7", "spot": spot, "advice": "Stop node 4."}

    def verdict(name, state, *findings):
        replica = {"node_id": 4, "state": state, "findings": list(findings)}
        return {"cluster_id": name, "committed_end": 3, "replicas": [replica]}

    clusters = [
        ClusterFigures(f"cluster-{n}", SPAN, problem="it waits", quarantined=n) for n in range(3)
    ]
    clusters[0].churn = {("topics", 1): 3}
    audit = [verdict("cluster-1", "sound"), verdict("cluster-2", "unsafe", found)]
    text = page(clusters, {"clusters": audit})
    assert text.count("split brain at offset 7 [/x/0.log, byte 5, offset 7") == 1
    heads = [part.partition("</h2>")[0] for part in text.split("<h2>")[1:]]
    assert heads == ["cluster-0", "cluster-2"]
    assert "Committed: up to offset 2 (inclusive)." in text
    assert "from offset 2 on the replicas contradict" in page(
        clusters, {"clusters": [{**audit[1], "contradicted_from": 2}]}
    )
    assert "it waits; 2 in quarantine" in text


def test_missing_pictures_are_noted_and_leaders_have_a_legend():
    busy, quiet = ClusterFigures("busy", SPAN, records=9), ClusterFigures("quiet", SPAN, records=5)
    turn = {"start": 1_000_000, "end": None, "leader_epoch": 1, "cause": None, "turns": 22}
    busy.churn = {("topics", 1): 3}
    busy.leaders = [
        {"topic_name": "a", "partition": 0, "leader": leader, **turn} for leader in (11, -1, 11)
    ]
    text = page([busy, quiet])
    assert "1 of the 2 clusters have pictures" in text
    assert "clusters have pictures" not in page([busy])
    legend = text.partition('<p class="legend">')[2].partition("</p>")[0]
    assert legend.count("broker 11") == legend.count("no leader") == legend.count(colour(11)) == 1
    assert "22 × a-0" in text


def test_an_unreadable_cluster_is_on_the_page():
    first = {"file": "/x/<0>.log", "position": 4, "problem": "no batch"}
    bad = ClusterFigures("bad", None, quarantined=3)
    bad.quarantine = [{"reason": "damaged", "rows": 3, "resolved": 0, "first": first}]
    text = page([bad])
    assert "3 in quarantine: 3 damaged" in text
    assert "<h2>bad</h2>" in text and "/x/&lt;0&gt;.log, byte 4: no batch" in text
    assert "bytes that cannot be read" in text


class Links(HTMLParser):
    """Collects what a page would load, and checks that its tags are balanced."""

    def __init__(self):
        super().__init__()
        self.loaded, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href")]


@pytest.mark.slow
def test_quarantine_is_counted_for_clusters_without_pictures_too(
    spark, tmp_path_factory, monkeypatch
):
    store, _ = warehouses(spark, tmp_path_factory)["delta"]
    register_views(spark, store)
    monkeypatch.setattr(gathering, "MOST_CLUSTERS", 0)
    rows = rows_of(store, "quarantine")
    assert rows
    for one in gathering.gather(spark):
        mine = [row for row in rows if row["cluster_id"] == one.cluster_id]
        assert (one.quarantined, one.churn) == (len(mine), {})


@pytest.mark.slow
@one_day_in(2, 1)
def test_the_page_of_the_samples(spark, tmp_path_factory, tmp_path):
    store, _ = warehouses(spark, tmp_path_factory)["delta"]
    audit_here([str(DATA / "d-divergent"), str(DATA / "g-upgraded-v1")], out=str(tmp_path))
    out = tmp_path / "page.html"
    shown = report(spark, store.root, str(out), audit=str(tmp_path / "report.json"))
    assert {one.cluster_id for one in shown} == {DYNAMIC, STATIC}
    found = {one.cluster_id: one for one in shown}[DYNAMIC]
    assert [row["leader_id"] for row in found.controllers] == [2, 1, 4, 3]
    assert {row["voter_id"] for row in found.voters} == {1, 2, 3, 4}
    assert (
        found.growth["topics"][-1][1]
        == spark.table("topics_now").where(f"cluster_id = '{DYNAMIC}'").count()
    )
    assert (
        sum(found.churn.values())
        == spark.table("changes").where(f"cluster_id = '{DYNAMIC}'").count()
    )
    text = out.read_text()
    links = Links()
    links.feed(text)
    assert (links.loaded, links.open) == ([], []), "nothing is loaded from elsewhere"
    assert text.count("<svg") >= 8
    assert "divergent uncommitted tail: the offsets 307 to 316" in text
    (only,) = report(spark, store.root, str(out), clusters=[STATIC])
    assert only.cluster_id == STATIC
    audited = report(
        spark, store.root, str(out), audit=str(tmp_path / "report.json"), clusters=[STATIC]
    )
    assert [one.cluster_id for one in audited] == [STATIC]
    assert "not in the warehouse" not in out.read_text() and DYNAMIC not in out.read_text()
    with pytest.raises(ReportError, match="there is no cluster nowhere"):
        report(spark, store.root, str(out), clusters=["nowhere"])


def test_a_cluster_with_a_snapshot_alone_is_in_the_fleet(spark):
    """It has no epochs: its time is that of the snapshot."""
    alone = spark.newSession()
    for name, sql in {
        "clusters": "SELECT 'c' AS cluster_id, 0L AS records, 0L AS log_end_offset, "
        "CAST(NULL AS STRING) AS problem",
        "epochs": "SELECT 'other' AS cluster_id, now() AS first_time, now() AS last_time",
        "changes": "SELECT 'c' AS cluster_id, 'snapshot loaded' AS event, "
        "timestamp_millis(7) AS time",
        "quarantine": "SELECT 'other' AS cluster_id",
    }.items():
        alone.sql(sql).createOrReplaceTempView(name)
    row, other = gathering._ask(alone, gathering._FLEET)
    assert (row["cluster_id"], row["first"], row["last"]) == ("c", 7, 7)
    assert (other["cluster_id"], other["records"], other["problem"]) == ("other", 0, None)


def test_the_partitions_with_the_most_leader_changes_are_drawn(spark):
    """Not those with the most epochs: a shrinking ISR begins one, too."""
    alone = spark.newSession()
    alone.sql("""
        SELECT 'c' AS cluster_id, concat('t', number) AS topic_id, 'orders' AS topic_name,
               number AS partition, CASE number WHEN 0 THEN place % 2
                                    WHEN 1 THEN 7 ELSE place DIV 10 END AS leader,
               place AS leader_epoch, CAST(NULL AS STRING) AS cause, place AS from_offset,
               timestamp_millis(place) AS from_time, timestamp_millis(place + 1) AS to_time
        FROM (SELECT explode(sequence(0, 20)) AS number)
        CROSS JOIN (SELECT explode(sequence(0, 60)) AS place)
        WHERE number <> 0 OR place <= 22
    """).createOrReplaceTempView("leader_timeline")
    rows = gathering._ask(alone, gathering._LEADERS, {"c": ClusterFigures("c", SPAN)})
    turns = {row["partition"]: row["turns"] for row in rows}
    assert turns == {0: 22, **dict.fromkeys(range(2, 13), 6)}
    assert rows[0]["partition"] == 0, "the busiest is the first"


def test_a_cluster_whose_only_log_is_garbage_is_in_the_report(spark, tmp_path):
    place = tmp_path / "bad"
    shutil.copytree(DATA / "g-upgraded-v1" / "node1", place)
    for path in (place / "__cluster_metadata-0").iterdir():
        if path.suffix in (".log", ".checkpoint"):
            path.write_bytes(b"garbage " * 512)
    home, out = str(tmp_path / "warehouse"), tmp_path / "page.html"
    assert ingest(spark, [str(place)], home).bad
    for only in ([], [STATIC]):
        [one] = report(spark, home, str(out), clusters=only)
        assert (one.cluster_id, one.records, one.span) == (STATIC, 0, None)
        assert [row["reason"] for row in one.quarantine] == ["damaged"]
        text = out.read_text()
        assert f"{one.quarantined} in quarantine: {one.quarantined} damaged" in text
        assert "__cluster_metadata-0/00000000000000000000.log, byte 0: " in text


def test_unreadable_input_is_refused(spark, tmp_path):
    with pytest.raises(WarehouseError, match="no warehouse here"):
        report(spark, str(tmp_path / "nothing"), str(tmp_path / "page.html"))
    (tmp_path / "wrong.json").write_text("[]")
    for path in ("wrong.json", "missing.json"):
        with pytest.raises(ReportError, match=path):
            report(spark, str(tmp_path), str(tmp_path / "o.html"), audit=str(tmp_path / path))


@pytest.mark.parametrize("name", ["plain", "it's", "back\\", "\\'", "a\\nb", "{0}"])
def test_a_cluster_id_may_be_any_text(spark, name):
    sql = "SELECT c FROM VALUES ('other') AS t(c) UNION ALL SELECT explode(array({clusters}))"
    rows = gathering._ask(spark, sql, {name: ClusterFigures(name, SPAN)})
    assert [row["c"] for row in rows] == ["other", name]
