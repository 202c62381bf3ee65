"""Node ids and directory ids: a node is one directory, a voter that of the voter set."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from metadata.samples import OUTSIDE
from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.formats.files import QuorumState
from quorate.formats.meta_properties import decode_meta_properties, encode_meta_properties
from quorate.raft.values import ElectionState
from quorate.spark.audit import audit_here
from quorate.spark.audit.identity import check_identities
from quorate.spark.audit.model import ReplicaFiles
from quorate.spark.files.paths import SourceError
from spark.logs import START_MS
from spark.replica_dirs import copy_of, key
from spark.shared_ids import ID, LOG, A, B, undecided


def of(node, directory, path):
    return ReplicaFiles("c", node, path, None if directory is None else key(directory).directory_id)


def checks(*replicas, voters=(), states=None):
    found = check_identities(replicas, voters, states or {})
    return [(path, one.check, one.severity) for path, one in found]


def test_two_directories_of_one_node_are_reported_for_both():
    assert checks(of(2, 2, "a"), of(2, 3, "b"), of(3, 4, "c")) == [
        ("a", "node-id", "warning"),
        ("b", "node-id", "warning"),
    ]


@pytest.mark.parametrize("directories", [(2, 2), (2, None), (None, None)])
def test_copies_of_one_directory_are_no_contradiction(directories):
    one, other = directories
    assert checks(of(2, one, "a"), of(2, other, "b")) == []


def test_nodes_without_a_known_id_are_not_the_same_node():
    assert checks(of(-1, 2, "a"), of(-1, 3, "b")) == []


def test_a_node_with_another_directory_id_is_no_voter():
    assert checks(of(2, 3, "a"), of(5, 5, "b"), voters=(key(1), key(2))) == [
        ("a", "directory-id", "warning")
    ]


@pytest.mark.parametrize("voters", [(), (key(3),), (key(2),), (ReplicaKey(2, ZERO_UUID),)])
def test_an_unknown_directory_id_matches_any_voter(voters):
    assert checks(of(2, 2, "a"), of(2, None, "b"), voters=voters) == []


def voted(epoch, candidate):
    return QuorumState(ElectionState(epoch, -1, candidate), 1)


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        (voted(7, key(1)), voted(7, key(3)), 2),
        (voted(7, key(1)), voted(7, key(1)), 0),
        (voted(7, key(1)), voted(7, None), 0),
        (voted(7, key(1)), voted(8, key(3)), 0),
    ],
)
def test_a_node_votes_once_an_epoch(first, second, count):
    found = checks(of(2, 2, "a"), of(2, 2, "b"), states={"a": first, "b": second})
    assert found == [("a", "one-vote", "violation"), ("b", "one-vote", "violation")][:count]


def with_meta(cluster, node, **fields):
    file = cluster / f"node{node}" / "meta.properties"
    meta = replace(decode_meta_properties(file.read_bytes(), str(file)), **fields)
    file.write_bytes(encode_meta_properties(meta, START_MS))


def test_a_controller_that_was_started_with_the_node_id_of_another(tmp_path):
    cluster = copy_of("e-truncated", tmp_path)
    with_meta(cluster, 3, node_id=2)
    report = audit_here([str(cluster)])
    found = {
        (one.path.split("/")[-2], each.check) for one in report.replicas for each in one.findings
    }
    assert found == {("node2", "node-id"), ("node3", "node-id"), ("node3", "directory-id")}
    assert report.ok, "nothing shows that both ran at once"


def test_a_voter_whose_directory_was_made_anew(tmp_path):
    cluster = copy_of("e-truncated", tmp_path)
    with_meta(cluster, 3, directory_id=key(3).directory_id)
    (found,) = audit_here([str(cluster)]).findings
    assert found.check == "directory-id"
    assert "8izdYSi8TjC0iL_MrSdB2w" in found.what


def test_two_clusters_with_one_id_are_a_finding_of_its_own():
    report = audit_here([str(OUTSIDE / "compose-a"), str(OUTSIDE / "compose-b")])
    a, b = report.clusters
    assert [(one.cluster_id, one.committed_end) for one in (a, b)] == [(A, 14), (B, 20)]
    for one, other in ((a, B), (b, A)):
        (found,) = one.findings
        assert (found.check, found.severity) == ("cluster-id", "warning")
        assert f"two clusters with one id: {ID} is also the id of {other}" in found.what
        assert "Kafka checks nothing but the cluster id" in found.advice
    assert {one.state for one in report.replicas} == {"warning"}, "they have no quorum-state"
    assert report.ok


def test_an_id_that_one_cluster_has_is_no_finding():
    (alone,) = audit_here([str(OUTSIDE / "compose-a")]).clusters
    assert (alone.cluster_id, alone.findings) == (ID, ())


def test_the_names_that_are_given_count():
    given: tuple[tuple[str, tuple[str, ...]], ...]
    given = (("eu", (str(OUTSIDE / "compose-a"), str(OUTSIDE / "no-meta"))),)
    with pytest.raises(SourceError, match=r"cluster eu: .* have no common history"):
        audit_here([str(OUTSIDE)], clusters=given)
    given = (("eu", (str(OUTSIDE / "compose-a"),)), ("lost", (str(OUTSIDE / "no-meta"),)))
    found = audit_here([str(OUTSIDE)], clusters=given)
    assert [one.cluster_id for one in found.clusters] == [ID, "eu", "lost"]
    assert found.ok and not any(one.findings for one in found.clusters)


def test_a_log_that_may_be_of_either_cluster_is_named(tmp_path):
    shutil.copytree(OUTSIDE, tmp_path / "all")
    name = undecided(tmp_path / "all")
    report = audit_here([str(tmp_path / "all" / path) for path in ("compose-*", "late")])
    (late,) = [one for one in report.clusters if one.cluster_id == name]
    (found,) = late.findings
    assert f"nothing shows whether this log is one of {A}, {B}" in found.what


def test_a_log_that_is_undecided_is_not_counted_as_one_more_cluster(tmp_path):
    shutil.copytree(OUTSIDE, tmp_path / "all")
    (tmp_path / "all/compose-a/node2" / LOG).write_bytes(b"")
    report = audit_here([str(tmp_path / "all/compose-*")])
    a, b, empty = report.clusters
    assert [one.cluster_id for one in (a, b, empty)] == [A, B, f"{ID}@undecided"]
    for one, other in ((a, B), (b, A)):
        (found,) = one.findings
        assert f"two clusters with one id: {ID} is also the id of {other}, of which" in found.what
    assert f"nothing shows whether this log is one of {A}, {B}" in empty.findings[0].what
