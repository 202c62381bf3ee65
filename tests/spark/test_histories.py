"""Logs under one cluster id are grouped into histories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.samples import DATA, OUTSIDE
from narrow import not_none
from quorate.base.ids import OffsetAndEpoch
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.evidence import evidence_of
from quorate.spark.files.histories import (
    BatchMark,
    History,
    LogEvidence,
    histories,
    named,
    split_name,
)
from quorate.spark.files.layout import log_directories
from quorate.spark.files.paths import list_files
from spark.logs import START_MS, batches, log_directory, snapshot
from spark.replica_dirs import flip, key

DAY = 86_400_000


def line(*epochs: tuple[int, int], salt: int = 0, start: int = 0) -> list[BatchMark]:
    """A batch for each offset; `epochs` are (epoch, number of its offsets)."""
    found: list[BatchMark] = []
    for epoch, count in epochs:
        for _ in range(count):
            offset = start + len(found)
            time_ms = DAY * 9 + 1000 * salt + offset
            found.append(BatchMark(offset, epoch, hash((salt, epoch, offset)) % 2**32, time_ms))
    return found


def log(path: str, marks: list[BatchMark], **fields: Any) -> LogEvidence:
    def marks_from(offset: int) -> list[BatchMark]:
        return [mark for mark in marks if mark.offset >= offset][:4]

    voters = fields.pop("voters", frozenset())
    start = marks[0].offset if marks else None
    return LogEvidence(path, start, marks_from, lambda: marks[:1], voters=lambda: voters, **fields)


def grouped(*logs: LogEvidence) -> list[str]:
    """The paths of each history; a '?' marks one that is not decided."""
    return sorted(
        "".join(sorted(one.path for one in found.logs)) + "?" * found.undecided
        for found in histories(logs)
    )


WHOLE = line((1, 10), (2, 10), (5, 10))
OTHER = line((1, 10), (3, 30), salt=1)
TAIL = [*WHOLE[:18], *line((3, 9), salt=2, start=18)]
CLEANED = WHOLE[15:]
LATE = line((5, 10), start=90)
"""A log whose beginning is cleaned, and which overlaps no other one."""


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ({"a": WHOLE, "b": WHOLE[:9]}, ["ab"]),
        ({"a": WHOLE, "b": OTHER}, ["a", "b"]),
        ({"a": WHOLE, "b": TAIL}, ["ab"]),
        ({"a": WHOLE, "b": CLEANED, "c": OTHER}, ["ab", "c"]),
        ({"a": CLEANED, "b": WHOLE[20:]}, ["ab"]),
        ({"a": WHOLE, "b": LATE}, ["ab"]),
        ({"a": WHOLE, "b": LATE, "c": OTHER}, ["a", "b?", "c"]),
        ({"a": WHOLE, "b": []}, ["ab"]),
        ({"a": WHOLE, "b": OTHER, "c": []}, ["a", "b", "c?"]),
        ({"a": line((1, 5)), "b": line((2, 5))}, ["a", "b"]),
        ({"a": line((9, 5)), "b": LATE}, ["a", "b"]),
        ({"a": TAIL, "b": line((5, 9), start=20)}, ["ab"]),
        ({}, []),
    ],
    ids=[
        *("a copy", "two clusters", "an uncommitted tail", "a cleaned head", "two cleaned heads"),
        *("a gap", "a gap, an id that is shared", "no batch", "no batch, an id that is shared"),
        *("nothing in common", "an older epoch behind", "only a tail overlaps", "nothing"),
    ],
)
def test_what_proves_a_common_history(logs, expected):
    assert grouped(*(log(path, marks) for path, marks in logs.items())) == expected


def test_a_violation_behind_a_common_beginning_does_not_make_two_clusters():
    """Two batches of one epoch at one offset: the audit reports it as broken safety."""
    broken = [*WHOLE[:12], *line((2, 8), salt=9, start=12)]
    assert grouped(log("a", WHOLE), log("b", broken)) == ["ab"]


def test_a_damaged_first_batch_does_not_make_two_clusters():
    assert grouped(log("a", WHOLE), replace(log("b", WHOLE[2:]), start=0)) == ["ab"]
    flipped = [WHOLE[0]._replace(epoch=77), *WHOLE[1:]]
    assert grouped(log("a", WHOLE), log("b", flipped)) == ["ab"]


ONE, TWO, THREE = (key(number).directory_id for number in (1, 2, 3))


def test_directory_ids_join_what_nothing_else_decides():
    copies = log("a", WHOLE, directory_id=ONE), log("b", LATE, directory_id=ONE)
    assert grouped(*copies, log("c", OTHER)) == ["ab", "c"]
    named_voter = log("b", LATE, voters=frozenset({TWO})), log("a", WHOLE, directory_id=TWO)
    assert grouped(*named_voter, log("c", OTHER)) == ["ab", "c"]
    one_quorum = (log(path, LATE[:1], voters=frozenset({ONE, TWO})) for path in "ab")
    assert grouped(*one_quorum) == ["ab"]


def test_clusters_of_an_image_with_a_formatted_directory_stay_apart():
    image = {"directory_id": ONE, "voters": frozenset({ONE})}
    assert grouped(log("a", WHOLE, **image), log("b", OTHER, **image)) == ["a", "b"]
    assert grouped(log("a", WHOLE, **image), log("b", line((2, 9)), **image)) == ["a", "b"]


def test_two_voters_of_a_quorum_that_has_committed_nothing_are_one():
    quorum = frozenset({ONE, TWO, THREE})
    first = log("a", line((1, 3)), directory_id=ONE, voters=quorum)
    assert grouped(first, log("b", line((2, 3)), directory_id=TWO, voters=quorum)) == ["ab"]


def test_a_snapshot_alone_is_decided_by_its_epoch_only():
    snapshot_of = {"snapshots": (OffsetAndEpoch(25, 4),)}
    assert grouped(log("a", WHOLE), log("s", [], **snapshot_of)) == ["a", "s"], "offset 20 is later"
    snapshot_of = {"snapshots": (OffsetAndEpoch(25, 5),)}
    both = log("a", WHOLE), log("s", [], **snapshot_of)
    assert grouped(*both) == ["as"]
    assert grouped(*both, log("c", OTHER)) == ["a", "c", "s?"]


def test_the_name_of_a_history_stays_when_replicas_are_added():
    first = [log("a", WHOLE), log("b", OTHER)]
    later = [log("z", CLEANED), *first, log("x", OTHER[3:])]
    names = [f"1970-01-10-{marks[0].crc:08x}" for marks in (WHOLE, OTHER)]
    for logs in (first, later):
        assert [one.origin for one in histories(logs)] == sorted(names)
    assert History([log("a", CLEANED)]).origin == f"1970-01-10-{CLEANED[0].crc:08x}-from-15"
    assert History([log("s", [], snapshots=(OffsetAndEpoch(7, 2),))]).origin == "snapshot-7-2"
    assert History([log("n", [])]).origin == "undecided"


@pytest.mark.parametrize(
    "origin",
    ["2023-04-05-a2462a35", "2023-04-05-a2462a35-from-15", "snapshot-7-2", "undecided"],
)
@pytest.mark.parametrize("cluster_id", ["MkU3OEVBNTcwNTJENDM2Qg", "me@home", "", "a@2023-04-05"])
def test_a_name_gives_back_its_id_and_origin(cluster_id, origin):
    assert split_name(named(cluster_id, origin)) == (cluster_id, origin)
    assert split_name(cluster_id) == (cluster_id, None)


@dataclass(frozen=True)
class Copy:
    """A copy of a made-up cluster's log, and which of its offsets are committed."""

    cluster: int
    marks: list[BatchMark]
    tail: int
    """The first offset that was never committed."""


@st.composite
def fleets(draw: st.DrawFn) -> list[Copy]:
    """Copies of the logs of up to three clusters with one id: cut, cleaned, with divergent tails."""
    found = []
    for cluster in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
        whole = line(*((2 * n + 1, size) for n, size in enumerate(sizes)), salt=cluster)
        for _ in range(draw(st.integers(1, 4))):
            end = draw(st.integers(1, len(whole)))
            marks = whole[draw(st.integers(0, end - 1)) * draw(st.integers(0, 1)) : end]
            epoch = marks[-1].epoch + 1
            tail = draw(st.integers(0, 3)) * (marks[0].offset == 0)
            salt = draw(st.integers(100, 10**6))
            found.append(Copy(cluster, [*marks, *line((epoch, tail), salt=salt, start=end)], end))
    return draw(st.permutations(found))


@given(fleets())
def test_histories_agree_with_the_reference_model(fleet):
    """The model sees which copies share a committed record; nothing else may be joined, once two
    copies that begin at offset 0 show that the id is shared.
    """
    shared = [{mark for mark in one.marks if mark.offset < one.tail} for one in fleet]
    model = {n: {n} for n in range(len(fleet))}
    for a in range(len(fleet)):
        for b in range(a):
            if shared[a] & shared[b] and model[a] is not model[b]:
                model[a] |= model[b]
                for n in model[b]:
                    model[n] = model[a]
    origins = {one.cluster for one in fleet if one.marks[0].offset == 0}
    found = histories([log(f"{n:02}", one.marks) for n, one in enumerate(fleet)])
    groups = [{int(one.path) for one in history.logs} for history in found]
    assert sorted(n for group in groups for n in group) == list(range(len(fleet)))
    for joined in model.values():
        assert any(joined <= group for group in groups), "what has a record in common is joined"
    if len(origins) > 1:
        for group in groups:
            assert len({fleet[n].cluster for n in group}) == 1
            assert group == model[min(group)]
    if len({one.cluster for one in fleet}) == 1:
        assert len(groups) == 1, "one cluster is not split"


def read(*paths: Path) -> list[LogEvidence]:
    with FileReaders() as readers:
        files: dict[str, Any] = {}
        for path in paths:
            files |= list_files(str(path))[1]
        found = evidence_of(log_directories(files, readers.read_small)[0], readers)
        for one in found:  # while the readers are open
            one.segments(), one.voters()
            for other in found:
                one.marks_from(other.start or 0)
    return found


def nodes(found: list[History]) -> list[list[str]]:
    return [[Path(one.path).parent.name for one in history.logs] for history in found]


def test_the_samples_of_two_clusters_with_one_id():
    found = histories(read(OUTSIDE / "compose-a", OUTSIDE / "compose-b"))
    assert nodes(found) == [["node1", "node2", "node3"], ["node1"]]
    assert [one.origin for one in found] == ["2023-04-05-a244fd75", "2023-08-21-9c8b44ef"]


@pytest.mark.parametrize("folder", ["c-reconfigured", "d-divergent", "e-truncated", "f-static-v0"])
def test_the_samples_of_one_cluster(folder):
    assert len(histories(read(DATA / folder))) == 1


def test_the_files_of_a_log_give_its_evidence(tmp_path, monkeypatch):
    made = b"".join(batches([1] * 60))
    log_directory(tmp_path / "a", {0: made, 61: b"".join(batches(base=61, epoch=2))}, node=1)
    log_directory(tmp_path / "b", {0: flip(made, 7, 0x40)}, node=2)
    log_directory(tmp_path / "c", {0: flip(made, 70)}, node=3)
    log_directory(tmp_path / "s", {}, {(10, 1): snapshot()}, node=4)
    monkeypatch.setattr("quorate.spark.files.evidence._NEAR", 256)
    a, b, c, s = read(tmp_path)
    assert [mark[:2] for mark in a.segments()] == [(0, 1), (61, 2)]
    for offset in range(50):
        found = a.marks_from(offset)
        assert (found[0].offset, len(found)) == (offset, 16)
    assert [mark.offset for mark in a.marks_from(82)] == []
    assert b.first == a.first, "a damaged offset in a header"
    assert (c.start, c.first) == (0, a.marks_from(1)[0]), "a damaged first batch"
    assert (s.start, s.first, s.snapshots) == (None, None, (OffsetAndEpoch(10, 1),))
    assert len(histories([a, b, c, s])) == 1
    assert not_none(a.first).time_ms == START_MS
