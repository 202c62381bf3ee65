"""A log that is missing, or has lost its end: the side files show it, and must be kept."""

from __future__ import annotations

import shutil

import pytest

from quorate.formats.batch import iter_batches
from quorate.spark.audit import audit_here
from spark.replica_dirs import (
    LOG,
    change,
    copy_of,
    data,
    elected,
    log_of,
    replica,
    set_quorum_state,
    verdicts,
)


@pytest.fixture
def cluster(tmp_path):
    """Node 3 leads epoch 6 from offset 307 on; node 4 led epoch 4, and began with a snapshot."""
    return copy_of("d-divergent", tmp_path)


def without(folder, *patterns):
    for pattern in patterns:
        for file in folder.glob(pattern):
            file.unlink()


def cut(cluster, node, offset):
    """End the log of a node before the batch at this offset."""
    file = log_of(cluster, node)
    batch = next(one for one in iter_batches(file.read_bytes()) if one.base_offset == offset)
    change(file, lambda old: old[: batch.position])
    return file


def found_of(cluster, node):
    (one,) = (one for one in audit_here([str(cluster)]).replicas if one.node_id == node)
    return one


def only(cluster, node):
    """The state and the only finding of a node; its advice must not delete the evidence."""
    one = found_of(cluster, node)
    (found,) = one.findings
    assert "elete" not in found.advice, "the evidence of the loss must stay"
    return one.state, found


@pytest.mark.parametrize("kept", ["quorum-state", "leader-epoch-checkpoint"])
def test_only_a_small_file_is_left(cluster, kept):
    folder = cluster / "node3" / LOG
    without(folder, "*.log", "*.checkpoint")
    without(folder, *({"quorum-state", "leader-epoch-checkpoint"} - {kept}))
    one = found_of(cluster, 3)
    found = one.findings[0]
    assert (one.state, found.check, found.severity) == ("damaged", "log-missing", "damage")
    assert kept in found.what
    assert "remove-controller" in found.advice


@pytest.mark.parametrize("node", [3, 4])
@pytest.mark.parametrize("gone", [["leader-epoch-checkpoint"], []])
def test_the_snapshots_are_left(cluster, node, gone):
    folder = cluster / f"node{node}" / LOG
    without(folder, "*.log", *gone)
    state, found = only(cluster, node)
    assert (state, found.check, found.severity) == ("damaged", "log-missing", "damage")
    assert "this node led epoch" in found.what


def test_a_follower_that_has_only_snapshots(cluster):
    without(cluster / "node2" / LOG, "*.log", "leader-epoch-checkpoint")
    state, found = only(cluster, 2)
    assert (state, found.check) == ("damaged", "log-missing")
    assert "installs a snapshot" in found.what


def test_snapshots_that_were_copied_alone_are_no_loss(cluster):
    without(cluster / "node2" / LOG, "*.log", "leader-epoch-checkpoint", "quorum-state")
    checks = [(one.check, one.severity) for one in found_of(cluster, 2).findings]
    assert ("log-missing", "warning") in checks
    assert {severity for _, severity in checks} == {"warning"}


def test_a_formatted_directory_that_was_never_used_is_sound(tmp_path):
    cluster = copy_of("d-divergent", tmp_path)
    folder = cluster / "node1" / LOG
    without(folder, "*.log", "*1.checkpoint", "*3.checkpoint", "quorum-state", "leader-epoch*")
    assert [file.name for file in folder.glob("*.checkpoint")] == [
        "00000000000000000000-0000000000.checkpoint"
    ]
    assert found_of(cluster, 1).state == "sound"


def test_an_emptied_log(cluster):
    log_of(cluster, 3).write_bytes(b"")
    state, found = only(cluster, 3)
    assert (state, found.check, found.severity) == ("damaged", "log-end", "damage")
    for witness in ("snapshot of 228", "leader-epoch-checkpoint", "this node led epoch 6"):
        assert witness in found.what


@pytest.mark.parametrize("gone", ["leader-epoch-checkpoint", "quorum-state"])
def test_an_end_that_is_cut_off_at_a_batch(cluster, gone):
    """Each of the two files is evidence enough."""
    file = cut(cluster, 3, 307)
    (cluster / "node3" / LOG / gone).unlink()
    one = found_of(cluster, 3)
    found = one.findings[-1]
    assert (one.state, found.check, found.severity) == ("damaged", "log-end", "damage")
    assert (found.spot.file, found.spot.offset) == (str(file), 307)
    assert found.spot.position == file.stat().st_size
    assert "elete" not in found.advice


def test_an_epoch_that_no_log_has(cluster):
    file = cluster / "node2" / LOG / "leader-epoch-checkpoint"
    file.write_bytes(b"0\n5\n1 0\n3 152\n4 284\n6 307\n7 400\n")
    state, found = only(cluster, 2)
    assert (state, found.check) == ("damaged", "log-end")
    assert "epoch 7 begins at offset 400" in found.what


@pytest.mark.parametrize("node", [2, 3])
def test_a_replica_that_is_behind_is_sound(cluster, node):
    """The leader too: it may have been copied before the others, while all of them ran."""
    cut(cluster, node, 320)
    assert found_of(cluster, node).findings == ()


def cut_to_330(cluster, *nodes):
    """As from an older disk image, which has no later snapshots either."""
    for node in nodes:
        cut(cluster, node, 330)
        without(cluster / f"node{node}" / LOG, "00000000000000000342-*")


def lost_by_voters(cluster):
    report = audit_here([str(cluster)])
    assert report.ok, "they may have been copied before the brokers were"
    return {
        one.node_id: [found.check for found in one.findings]
        for one in report.replicas
        if one.findings
    }


def test_voters_that_have_all_lost_what_a_snapshot_of_a_broker_proves(tmp_path):
    """Node 3 leads epoch 6, of which the snapshot is."""
    cluster = copy_of("e-truncated", tmp_path)
    cut_to_330(cluster, 2, 3, 4)
    expected = {2: ["majority"], 3: ["log-end", "majority"], 4: ["majority"]}
    assert lost_by_voters(cluster) == expected
    (found,) = found_of(cluster, 2).findings
    assert "the offsets 330 to 343 are known to be committed" in found.what
    assert "none of the voters 2, 3, 4 " in found.what
    assert found.spot.offset == 330
    shutil.rmtree(cluster / "node4")
    assert set(lost_by_voters(cluster)) == {2, 3}, "node 4 alone is no majority"


def test_a_minority_that_is_behind_a_snapshot_is_sound(tmp_path):
    cluster = copy_of("e-truncated", tmp_path)
    cut_to_330(cluster, 4)
    assert lost_by_voters(cluster) == {}
    shutil.rmtree(cluster / "node3")
    assert lost_by_voters(cluster) == {}, "node 3 may have them"


def test_a_follower_that_only_knows_of_a_later_epoch_is_sound(tmp_path):
    log = [elected(0, 1, 1), data(1, 1, 4)]
    replica(tmp_path, 1, {0: [*log, elected(5, 2, 1)]}, epoch=2, epochs=[(1, 0), (2, 5)])
    for node in (2, 3):
        replica(tmp_path, node, {0: log}, epoch=2, epochs=[(1, 0)])
    assert {state for state, _ in verdicts(tmp_path).values()} == {"sound"}


def test_epochs_of_a_truncated_tail_are_no_loss(tmp_path):
    """A follower that cut off its uncommitted tail just before it was stopped."""
    log = [elected(0, 1, 1), data(1, 1, 4)]
    for node in (1, 2):
        whole = [*log, elected(5, 3, 1), data(6, 3)]
        replica(tmp_path, node, {0: whole}, epoch=3, epochs=[(1, 0), (3, 5)])
    replica(tmp_path, 3, {0: log}, epoch=3, epochs=[(1, 0), (2, 5)])
    ((check, severity, *_),) = verdicts(tmp_path)[3][1]
    assert (check, severity) == ("epochs", "warning")


def test_an_election_without_any_record_is_a_warning(cluster):
    """A leader that died before it wrote anything, or whose whole epoch is lost."""
    set_quorum_state(cluster / "node2" / LOG / "quorum-state", leaderId=2, leaderEpoch=9)
    state, found = only(cluster, 2)
    assert (state, found.check) == ("warning", "log-end")


def test_an_index_whose_segment_is_gone(cluster):
    (cluster / "node2" / LOG / "00000000000000000400.index").write_bytes(b"")
    state, found = only(cluster, 2)
    assert (state, found.check, found.severity) == ("warning", "log-end", "warning")
    assert "00000000000000000400.index" in found.what


@pytest.mark.parametrize("noted", [True, False])
def test_a_tail_that_ends_before_the_only_other_log_begins(tmp_path, noted):
    """Node 4 had the offsets 307 to 316 from epoch 4; node 1 was cleaned up to 342."""
    for folder in ("d-divergent", "e-truncated"):
        copy_of(folder, tmp_path)
    tail, late = tmp_path / "d-divergent/node4", tmp_path / "e-truncated/node1"
    file = log_of(tmp_path / "e-truncated", 1)
    batch = next(one for one in iter_batches(file.read_bytes()) if one.base_offset >= 342)
    (file.parent / f"{batch.base_offset:020d}.log").write_bytes(file.read_bytes()[batch.position :])
    without(file.parent, file.name, "*228-*", "*109-*", "*0-0000000000.checkpoint")
    if not noted:
        (file.parent / "leader-epoch-checkpoint").write_bytes(b"0\n1\n6 342\n")
    found = verdicts(tail, late)
    assert found[1] == ("sound", [])
    state, ((check, severity, where, _),) = found[4]
    expected = ("uncommitted-tail", "divergent-tail") if noted else ("warning", "not-compared")
    assert (state, check) == expected
    assert (severity, where) == ("warning", str(log_of(tmp_path / "d-divergent", 4)))
