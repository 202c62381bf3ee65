"""Bad input, whichever way it comes in: a clear message, the good part kept, the bad put aside.

Each line of the table is a kind of bad input; the columns say what each way in makes of it. Inputs
that are refused as a whole never reach Spark. All the others are clusters of one fleet, which each
command takes once: so one job shows them all, and that none is in the way of another.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate.cli.pipeline.summary import cluster_lines
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.raft.values import LeaderChange
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.follow import FollowSummary
from quorate.spark.source.options import parse_options
from quorate.spark.source.plan import partitions
from quorate.spark.source.read import read_partition
from quorate.spark.tables.read import read_table
from quorate.spark.tables.summary import ClusterSummary, IngestSummary
from quorate.spark.tables.warehouse import open_store
from spark.logs import NO_OP, START_MS, end_offset, fence, log_directory, snapshot, topic

LEADER = encode_control_batch(0, 1, START_MS, [LeaderChange(1, (1,), (1,))])


def topics(first: int, last: int) -> bytes:
    """A batch of topics, at these offsets (both inclusive)."""
    values = [topic(number) for number in range(first, last + 1)]
    return encode_batch(first, 1, START_MS + first, values)


ONE, TWO, THREE = topics(1, 2), topics(3, 5), topics(6, 9)
SOUND = LEADER + ONE + TWO + THREE
AT_TWO, AT_THREE = len(LEADER + ONE), len(LEADER + ONE + TWO)
UNKNOWN_TYPE = bytes((1, 122, 0)) + b"what it says"
UNKNOWN_VERSION = topic(3)[:2] + bytes((9,)) + topic(3)[3:]


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 0x55,)) + data[at + 1 :]


# -- refused as a whole ---------------------------------------------------------------------------
def missing(home: Path) -> Path:
    return home / "nowhere"


def empty(home: Path) -> Path:
    home.mkdir()
    return home


def another_topic(home: Path) -> Path:
    (home / "orders-0").mkdir(parents=True)
    (home / "orders-0/00000000000000000000.log").write_bytes(SOUND)
    return home


def no_cluster_id(home: Path) -> Path:
    for node in (1, 2):
        log_directory(home / f"node{node}", {0: SOUND}, cluster=None, node=node)
    return home


def one_without_a_cluster_id(home: Path) -> Path:
    return log_directory(home / "node1", {0: SOUND}, cluster=None)


REFUSED: list[tuple[Callable[[Path], Path], str]] = [
    (missing, "nowhere: there is no such file or directory"),
    (empty, "empty: "),
    (another_topic, "orders-0: a directory of the topic orders, not a metadata log"),
    (no_cluster_id, "no meta.properties beside"),
]
WAYS: list[tuple[str, ...]] = [
    ("ingest", "-w", "tables"),
    ("stream", "-w", "tables", "--once", "--up-to", "end"),
    ("audit",),
]


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    """Paths of the commands are relative to it."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[0])
@pytest.mark.parametrize(("make", "says"), REFUSED, ids=lambda case: getattr(case, "__name__", ""))
def test_what_is_no_metadata_log_is_refused(pipeline, tmp_path, make, says, way):
    path = make(tmp_path / make.__name__)
    code, out, err = pipeline(way[0], path, *way[1:])
    assert code == 2 and not out
    assert (
        says in err and str(tmp_path) in err and "Traceback" not in err and "Exception" not in err
    )
    assert not Path("tables/bronze").exists()


@pytest.mark.parametrize(("make", "says"), REFUSED, ids=lambda case: getattr(case, "__name__", ""))
def test_the_source_refuses_it_too(tmp_path, make, says):
    with pytest.raises(SourceError, match=says):
        partitions(parse_options({"path": str(make(tmp_path / make.__name__))}))


@pytest.mark.parametrize("command", [("history", "brokers"), ("report", "--out", "page.html")])
def test_a_warehouse_that_is_not_there_is_named(pipeline, command):
    code, out, err = pipeline(*command, "-w", "tables")
    assert code == 2 and not out and "tables: there is no warehouse here" in err


# -- taken but for the bad part ------------------------------------------------------------------
@dataclass(frozen=True)
class Bad:
    """A kind of bad input, and what is to come of it."""

    name: str
    segments: dict[int, bytes]
    reason: str
    """In quarantine."""
    position: int | None
    """Byte of the bad piece in its file."""
    says: str
    good: int
    """Records of the log that are taken."""
    applied: int | None
    """The state comes up to here."""
    snapshots: dict[tuple[int, int], bytes] | None = None
    meta: bytes | None = None
    """Its meta.properties."""
    stream: bool = True
    """Whether a stream goes on past it: it waits where a log may still be written."""
    audit: str = "damaged"


FLEET = [
    Bad("torn", {0: SOUND[:-9]}, "damaged", AT_THREE, "torn tail", 6, 6, stream=False),
    Bad("half-a-segment", {0: SOUND[:-9], 10: topics(10, 11)}, "damaged", AT_THREE, "torn", 8, 6),
    Bad("flipped", {0: flipped(SOUND, AT_TWO + 70)}, "damaged", AT_TWO, "checksum", 7, 3),
    Bad("length", {0: flipped(SOUND, AT_TWO + 9)}, "damaged", AT_TWO, "damaged length", 7, 3),
    Bad("magic", {0: flipped(SOUND, AT_TWO + 16)}, "damaged", AT_TWO, "batch format", 7, 3),
    Bad("zeros", {0: bytes(999)}, "damaged", 0, "length 0", 0, None, stream=False),
    Bad(
        "headless", {6: THREE}, "damaged", 0, "starts at offset 6 and there is no snapshot", 4, None
    ),
    Bad("snapshot", {6: THREE}, "damaged", 83, "checksum", 4, None, {(6, 1): b""}),
    Bad(
        "future-type",
        {0: LEADER + ONE + encode_batch(3, 1, START_MS, [UNKNOWN_TYPE, NO_OP])},
        "unknown",
        AT_TWO,
        "Unknown metadata id 122: a newer Kafka may have written it",
        5,
        5,
        audit="warning",
    ),
    Bad(
        "future-version",
        {0: LEADER + ONE + encode_batch(3, 1, START_MS, [UNKNOWN_VERSION])},
        "unknown",
        AT_TWO,
        "TopicRecord version 9 is not supported, only 0 to 0",
        4,
        4,
        audit="warning",
    ),
]
JOBS = [bad for bad in FLEET if bad.name not in ("length", "magic", "zeros")]
"""What differs to a job; the others differ only to the source."""
ALONE = [
    Bad(
        *("future-meta", {0: SOUND}, "damaged", 0, "version 7 is not supported", 0, None),
        meta=b"version=7\ncluster.id=x\nnode.id=1\n",
        audit="warning",
    ),
]


def write(bad: Bad, home: Path) -> Path:
    snapshots = {id: flipped(snapshot(*id), 120) for id in bad.snapshots or {}}
    place = home / bad.name
    log_directory(place / "node1", bad.segments, snapshots, bad.name, 1)
    if bad.meta is not None:
        (place / "node1/meta.properties").write_bytes(bad.meta)
    (place / "node1/__cluster_metadata-0/quorum-state").write_text(
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"currentVoters":[{"voterId":1}],'
        '"data_version":0}'
    )
    return place


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    home = tmp_path / "fleet"
    for bad in JOBS:
        write(bad, home)
    return home


def quarantine(spark, home: str) -> dict[str, list[Any]]:
    """By cluster: (reason, position, problem, file)."""
    found: dict[str, list[Any]] = {}
    for row in read_table(spark, open_store(str(Path(home).absolute())), "quarantine").collect():
        found.setdefault(row.cluster_id, []).append(row)
    return found


def assert_in_quarantine(bad: Bad, rows: list[Any]) -> None:
    (row,) = [row for row in rows if bad.says in row.problem]
    assert (row.reason, row.position) == (bad.reason, bad.position)
    assert row.file.startswith("/") and f"/{bad.name}/" in row.file


@pytest.mark.parametrize("bad", [*FLEET, *ALONE], ids=lambda bad: bad.name)
def test_the_source_gives_the_good_rows_and_one_for_each_bad_piece(tmp_path, bad: Bad):
    options = parse_options({"path": str(write(bad, tmp_path)), "kinds": "both"})
    rows = [
        row
        for part in partitions(options)
        for batch in read_partition(part, options)
        for row in batch.to_pylist()
    ]
    (reported,) = [row for row in rows if row["problem"] and bad.says in row["problem"]]
    assert reported["position"] == bad.position and f"/{bad.name}/" in reported["file"]
    offsets = {row["offset"] for row in rows if row["kind"] == "log" and row["offset"] is not None}
    assert len(offsets) == bad.good
    if bad.reason == "unknown":
        assert reported["raw"] in (UNKNOWN_TYPE, UNKNOWN_VERSION) and reported["offset"] == 3
    failing = parse_options({"path": str(tmp_path), "failFast": "true"})
    with pytest.raises(SourceError, match=rf"/{bad.name}/.*{bad.says}"):
        for part in partitions(failing):
            list(read_partition(part, failing))


def test_ingest_takes_the_good_part_and_puts_the_bad_aside(spark, pipeline, fleet):
    archive = fleet / "cut.tar.gz"
    archive.write_bytes(b"\x1f\x8b\x08\0")
    code, out, err = pipeline("ingest", fleet, "-w", "tables", "--json", "--quiet")
    reported = json.loads(out)["clusters"]
    assert code == 1 and not err
    aside = quarantine(spark, "tables")
    for bad in JOBS:
        one = reported[bad.name]
        assert (one["records"], one["applied_end_offset"]) == (bad.good, bad.applied), bad.name
        assert f"byte {bad.position}" in one["examples"][bad.reason]
        assert_in_quarantine(bad, aside[bad.name])
    (cut,) = aside["unknown"]
    assert (cut.reason, cut.file, cut.position) == ("damaged", str(archive), 0)
    assert f"{archive}, byte 0: {archive} is not a" in reported["unknown"]["examples"]["damaged"]
    # reported again, but not put aside again
    code, out, err = pipeline("ingest", fleet, "-w", "tables", "--fail-fast")
    assert code == 1 and not out and "nothing was taken" in err
    assert f"/torn/node1/__cluster_metadata-0/{0:020}.log, byte {AT_THREE}: damaged" in err
    assert quarantine(spark, "tables") == aside


def test_a_stream_does_so_too_and_waits_only_where_a_log_may_still_be_written(
    spark, pipeline, fleet
):
    code, out, _ = pipeline("stream", fleet, "-w", "tables", "--once", "--up-to", "end")
    assert code == 1
    aside = quarantine(spark, "tables")
    for bad in JOBS:
        if not bad.stream:
            assert bad.name not in aside
            assert f"/{bad.name}/node1/__cluster_metadata-0/{0:020}.log, byte {bad.position}" in out
        elif bad.name == "headless":
            assert "no snapshot replaces them" in aside[bad.name][0].problem
        else:
            assert_in_quarantine(bad, aside[bad.name])
            assert f"{bad.name}: {bad.good} records" in out


def test_the_audit_names_each_place(pipeline, fleet):
    code, out, _ = pipeline("audit", fleet, "--json")
    assert code == 1
    states = {
        one["cluster_id"]: (one["replicas"][0]["state"], one["replicas"][0]["findings"])
        for one in json.loads(out)["clusters"]
    }
    for bad in JOBS:
        state, findings = states[bad.name]
        assert state == bad.audit, (bad.name, findings)
        assert any(
            f"/{bad.name}/" in (one["spot"]["file"] or "")
            and one["spot"]["position"] == bad.position
            for one in findings
        ), findings


@pytest.mark.parametrize("bad", ALONE, ids=lambda bad: bad.name)
def test_logs_of_doubtful_clusters_are_not_streamed(pipeline, tmp_path, bad: Bad):
    code, out, err = pipeline("stream", write(bad, tmp_path), "-w", "t", "--once", "--up-to", "end")
    assert code == 2 and not out and bad.says in err


def test_of_two_replicas_a_stream_reads_the_one_that_is_whole(spark, pipeline, tmp_path):
    log_directory(tmp_path / "a/node1", {0: flipped(SOUND, AT_TWO + 70)}, node=1)
    log_directory(tmp_path / "a/node2", {0: SOUND}, node=2)
    code, out, err = pipeline("stream", "a", "-w", "tables", "--once", "--up-to", "end")
    assert code == 0, err
    assert f"{end_offset(SOUND)} records" in out


def test_a_record_that_does_not_fit_the_state_is_named(spark, pipeline, tmp_path):
    stray = encode_batch(3, 1, START_MS, [fence(7)])
    log_directory(tmp_path / "a", {0: LEADER + ONE + stray})
    words = ("--once", "--up-to", "end", "--fail-fast")
    code, _, err = pipeline("stream", "a", "-w", "tables", *words)
    assert code == 1 and "the state left as it was" in err
    assert f"byte {AT_TWO}, offset 3: FenceBrokerRecord: broker 7 is not registered" in err
    code, out, _ = pipeline("ingest", "a", "-w", "tables")
    assert code == 1 and "the state includes offset 3" in out and "in quarantine: 1 misfit" in out


@pytest.mark.parametrize("way", WAYS[:2], ids=lambda way: way[0])
@pytest.mark.parametrize("packed", [False, True], ids=["directory", "archive"])
def test_a_job_takes_a_log_of_no_cluster_only_under_a_name(pipeline, tmp_path, way, packed):
    """A warehouse would put the next such log into the same cluster."""
    path = one_without_a_cluster_id(tmp_path / "nameless")
    if packed and way[0] == "ingest":
        path = tmp_path / "nameless.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(tmp_path / "nameless", "nameless")
    code, out, err = pipeline(way[0], path, *way[1:])
    assert code == 2 and not out
    assert "no meta.properties beside it" in err and "--cluster NAME=PATH" in err
    assert not Path("tables/bronze").exists()
    code, out, err = pipeline(way[0], path, *way[1:], "--cluster", f"mine={path}")
    assert code == 0, err
    assert f"mine: {end_offset(SOUND)} records" in out


def test_directories_without_a_log_are_named_and_the_others_taken(spark, pipeline, tmp_path):
    log_directory(tmp_path / "good", {0: SOUND})
    for name in ("empty", "bare"):
        (tmp_path / name).mkdir()
    log_directory(tmp_path / "nameless", {0: SOUND}, cluster=None)
    code, out, err = pipeline("ingest", "bare", "good", "empty", "nameless", "-w", "tables")
    assert code == 1, err
    assert f"cluster-a: {end_offset(SOUND)} records" in out
    assert f"  not read: {tmp_path}/bare: the directory is empty\n" in out
    assert f"  not read: {tmp_path}/empty: the directory is empty\n" in out
    assert f"  not read: {tmp_path}/nameless/__cluster_metadata-0: no meta.properties" in out
    assert out.count("the directory is empty") == 2


def test_input_without_a_log_gives_only_its_problem():
    damaged = ClusterSummary(quarantined={"damaged": 1}, examples={"damaged": "a.tar, byte 0: cut"})
    assert cluster_lines(IngestSummary("w", {"unknown": damaged})) == [
        "  unknown: nothing could be ingested",
        "    in quarantine: 1 damaged",
        "      damaged: a.tar, byte 0: cut",
    ]
    healed = ClusterSummary(resolved={"damaged": 1})
    assert cluster_lines(IngestSummary("w", {"unknown": healed})) == [
        "  unknown: nothing to ingest",
        "    sound again, resolved in quarantine: 1 damaged",
    ]
    snapshot_alone = ClusterSummary(applied_end_offset=10)
    (line,) = cluster_lines(IngestSummary("w", {"a": snapshot_alone}))
    assert line.endswith("the log is empty, the state includes offset 9")


def test_the_end_that_a_stream_waits_at_is_no_directory_that_it_cannot_read():
    waits = FollowSummary("w", unread=["a.log: byte 7: cut"])
    assert cluster_lines(waits) == [], "the command has a line of its own for it"
    assert cluster_lines(IngestSummary("w", unreadable=["b: empty"])) == ["  not read: b: empty"]
