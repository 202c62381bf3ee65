"""Which cluster of the warehouse the logs of the input are of."""

from __future__ import annotations

from typing import Any

import pytest

from narrow import as_any
from quorate.base.ids import OffsetAndEpoch
from quorate.spark.files.histories import BatchMark, LogEvidence, histories, named
from quorate.spark.files.naming import ClusterName, NamedHistory
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.identity import Resolution, resolve
from quorate.spark.tables.lineage import EpochSpan
from spark.test_histories import LATE, OTHER, TAIL, WHOLE, line, log

ID = "id"


def spans(marks: list[BatchMark], *, crcs: bool = True) -> tuple[EpochSpan, ...]:
    """What the warehouse has after it took these batches."""
    found: list[EpochSpan] = []
    for mark in marks:
        if not found or found[-1].epoch != mark.epoch:
            time = mark.time_ms * 1000
            found.append(EpochSpan(mark.epoch, mark.offset, 0, time, time, mark.crc))
        end = {"end": mark.offset + 1, "last_time": mark.time_ms * 1000}
        found[-1] = found[-1]._replace(**end, last_crc=mark.crc)
    without = {"first_crc": None, "last_crc": None}
    return tuple(found if crcs else (span._replace(**as_any(without)) for span in found))


def known(name: str, marks: list[BatchMark], unproven: tuple[Any, ...] = (), **words: bool):
    return ClusterProgress(name, spans(marks, **words), unproven=unproven)


def resolved(logs: list[LogEvidence], *clusters: ClusterProgress) -> Resolution:
    """The input as the source names it, beside the clusters of a warehouse."""
    groups = histories(logs)
    names = [named(ID, group.origin) if len(groups) > 1 else ID for group in groups]
    found = [
        NamedHistory(ID, ClusterName(name, tuple(set(names) - {name}), group.undecided), group)
        for name, group in zip(names, groups, strict=True)
    ]
    return resolve(found, {one.cluster_id: one for one in clusters})


def of(marks: list[BatchMark]) -> str:
    return named(ID, histories([log("x", marks)])[0].origin)


A, B = known(ID, WHOLE), known(of(OTHER), OTHER)


@pytest.mark.parametrize(
    ("logs", "clusters", "expected"),
    [
        ({"a": WHOLE}, [], {"a": ID}),
        ({"a": WHOLE, "b": OTHER}, [], {"a": of(WHOLE), "b": of(OTHER)}),
        ({"a": WHOLE}, [A], {"a": ID}),
        ({"a": WHOLE, "b": OTHER}, [A], {"a": ID, "b": of(OTHER)}),
        ({"b": OTHER}, [A], {"b": of(OTHER)}),
        ({"b": OTHER, "a": WHOLE}, [A, B], {"a": ID, "b": of(OTHER)}),
        ({"b": OTHER[35:]}, [A, B], {"b": of(OTHER)}),
        ({"a": WHOLE[15:]}, [A, B], {"a": ID}),
        ({"a": TAIL}, [A, B], {"a": ID}),
        ({"a": LATE}, [A], {"a": ID}),
        ({"a": WHOLE[25:]}, [A], {"a": ID}),
        ({"b": line((9, 5))}, [A], {"b": of(line((9, 5)))}),
        ({"b": line((2, 9), start=90)}, [A], {"b": of(line((2, 9), start=90))}),
        ({"b": line((7, 9), start=5)}, [A], {"b": of(line((7, 9), start=5))}),
        ({"b": OTHER[9:], "a": WHOLE}, [B], {"b": of(OTHER), "a": of(WHOLE)}),
    ],
    ids=[
        *("a new one", "two new ones", "the same", "the same and a new one", "only a new one"),
        *("two known ones", "a cleaned head", "another cleaned head", "an uncommitted tail"),
        *("a gap", "within the last epoch", "nothing in common", "an older epoch behind"),
        *("a committed offset of a later epoch", "one whose head was cleaned before it was known"),
    ],
)
@pytest.mark.parametrize("crcs", [True, False], ids=["checksums", "times of an older release"])
def test_the_name_of_a_history(logs, clusters, expected, crcs):
    taken = {A.cluster_id: WHOLE, B.cluster_id: OTHER}
    clusters = [known(one.cluster_id, taken[one.cluster_id], crcs=crcs) for one in clusters]
    found = resolved([log(path, marks) for path, marks in logs.items()], *clusters)
    assert found.names == expected
    assert (found.undecided, found.mixed) == ({}, {})


def test_the_source_gets_names_that_it_does_not_find_out_itself():
    logs = [log("a", WHOLE), log("b", OTHER)]
    assert resolved(logs).given == {}
    assert resolved(logs, A).given == {ID: ["a"], of(OTHER): ["b"]}
    assert resolved(logs[:1], A).given == {}
    assert resolved(logs[1:], A).given == {of(OTHER): ["b"]}


def test_a_log_of_which_nothing_decides_is_reported():
    found = resolved([log("late", LATE)], A, B)
    late = named(ID, f"1970-01-10-{LATE[0].crc:08x}-from-90")
    assert found.names == {"late": late}
    assert f"nothing shows whether this log is one of {ID}, {of(OTHER)}" in found.undecided[late]
    again = resolved([log("late", LATE)], A, B, known(late, LATE))
    assert (again.names, again.undecided) == ({"late": late}, {})
    found = resolved([log("late", LATE), log("a", WHOLE), log("b", OTHER)])
    assert f"is one of {', '.join(sorted({of(WHOLE), of(OTHER)}))}" in found.undecided[late]


def test_a_replica_that_shows_what_an_undecided_log_is_joins_both():
    """Its records go to the cluster with the first common record."""
    late = known(named(ID, f"1970-01-10-{WHOLE[25].crc:08x}-from-25"), WHOLE[25:])
    found = resolved([log("a", WHOLE)], known(ID, WHOLE[:20]), B, late)
    assert found.names == {"a": ID}


def test_an_unproven_tail_of_another_epoch_is_superseded_and_makes_no_cluster():
    first = known(ID, [*WHOLE[:10], *line((2, 5), salt=7, start=10)], ((10, 15),))
    assert resolved([log("a", [*WHOLE[:10], *line((4, 9), start=10)])], first).names == {"a": ID}
    whole = known(ID, line((1, 3), salt=7), ((0, 3),))
    assert resolved([log("a", line((2, 9)))], whole).names == {"a": ID}, "nothing was committed"


def test_a_snapshot_refutes_a_committed_record_of_a_later_epoch():
    alone = log("s", [], snapshots=(OffsetAndEpoch(25, 2),))
    assert resolved([alone], A).names == {"s": named(ID, "snapshot-25-2")}
    alone = log("s", [], snapshots=(OffsetAndEpoch(25, 5),))
    assert resolved([alone], A).names == {"s": ID}


@pytest.mark.parametrize("crcs", [True, False])
def test_a_cluster_that_an_older_release_made_of_two_is_mixed(crcs):
    both = known(ID, [*WHOLE[:20], *OTHER[20:]], crcs=crcs)
    found = resolved([log("a", WHOLE), log("b", OTHER)], both)
    assert found.names == {"a": ID, "b": of(OTHER)}
    mixed = found.mixed[ID]
    assert (mixed.start, mixed.others) == (20, ("b",))
    assert resolved([log("a", WHOLE)], both).mixed == {}, "the other one is not given"


def test_parts_of_one_history_do_not_make_a_cluster_mixed():
    parts = [log("a", WHOLE[:8]), log("b", WHOLE[25:]), log("c", OTHER)]
    found = resolved(parts, A)
    assert found.names == {"a": ID, "b": ID, "c": of(OTHER)}
    assert found.mixed == {}


def test_names_are_outdated_when_another_job_adds_a_cluster_with_the_id():
    found = resolved([log("a", WHOLE)])
    assert found.outdated({"another": A}) is None
    assert found.outdated({ID: A}) == found.outdated({B.cluster_id: B}) == ID
