"""Each kind of damage is found in its file and at its byte, and no other replica is blamed."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.base.ids import ZERO_UUID, OffsetAndEpoch, Uuid, uuid_to_text
from quorate.formats.batch import (
    encode_batch,
    encode_control_batch,
    encode_keyed_batch,
    iter_batches,
    values,
)
from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    PARTITION_METADATA,
    encode_partition_metadata,
)
from quorate.formats.snapshot import encode_snapshot, read_snapshot
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange
from quorate.spark.audit import audit_here
from spark.logs import NO_OP, START_MS, batches, log_directory, topic
from spark.replica_dirs import (
    FIRST,
    LOG,
    change,
    control,
    copy_of,
    data,
    elected,
    flip,
    key,
    log_of,
    replaced,
    replica,
    set_quorum_state,
    verdicts,
    voters,
)


@pytest.fixture
def cluster(tmp_path):
    return copy_of("e-truncated", tmp_path)


def only(cluster, node, state):
    """The findings of this node; all others must be sound."""
    found = verdicts(cluster)
    was, findings = found.pop(node)
    assert was == state
    assert {one: other for one, other in found.items() if other != ("sound", [])} == {}
    return findings


def batch_at(file, position):
    """The batch that this byte belongs to."""
    views = iter_batches(file.read_bytes())
    return next(one for one in views if one.position <= position < one.position + one.size)


def test_a_flipped_byte(cluster):
    file = log_of(cluster, 2)
    batch = batch_at(file, 10_000)
    change(file, lambda old: flip(old, 10_000))
    assert only(cluster, 2, "damaged") == [("checksums", "damage", str(file), batch.position)]


def test_a_damaged_offset(cluster):
    file = log_of(cluster, 2)
    batch = batch_at(file, 10_000)
    change(file, lambda old: flip(old, batch.position + 7, 1))
    assert only(cluster, 2, "damaged") == [("batch-chain", "damage", str(file), batch.position)]


def test_a_cut_tail(cluster):
    file = log_of(cluster, 3)
    last = list(iter_batches(file.read_bytes()))[-1]
    change(file, lambda old: old[:-10])
    assert only(cluster, 3, "damaged") == [("torn-tail", "damage", str(file), last.position)]


@pytest.mark.parametrize("half", [0, 10, 16, 60])
@pytest.mark.parametrize("zeros", [512, 4096, 3 << 20])
def test_zeros_at_the_end_are_what_a_power_loss_leaves(cluster, half, zeros):
    """Files grow before their blocks are written."""
    file = log_of(cluster, 3)
    last = list(iter_batches(file.read_bytes()))[-1]
    change(file, lambda old: old[: last.position + half] + bytes(zeros))
    assert only(cluster, 3, "damaged") == [("torn-tail", "damage", str(file), last.position)]


def test_zeros_before_something_else_are_damage(cluster):
    file = log_of(cluster, 3)
    end = file.stat().st_size
    change(file, lambda old: old + bytes(4096) + b"x")
    assert only(cluster, 3, "damaged") == [("checksums", "damage", str(file), end)]


def test_another_batch_at_an_offset(cluster):
    file, position = log_of(cluster, 2), 0

    def other(old):
        return encode_batch(old.base_offset, old.epoch, old.base_timestamp + 1, values(old))

    changed, position = replaced(file.read_bytes(), 353, other)
    file.write_bytes(changed)
    assert only(cluster, 2, "unsafe") == [("log-matching", "violation", str(file), position)]


def test_of_two_replicas_neither_batch_is_trusted(cluster):
    file = log_of(cluster, 2)

    def other(old):
        return encode_batch(old.base_offset, old.epoch, old.base_timestamp + 1, values(old))

    changed, _ = replaced(file.read_bytes(), 353, other)
    file.write_bytes(changed)
    found = verdicts(cluster / "node2", cluster / "node3")
    assert {state for state, _ in found.values()} == {"unsafe"}
    assert {check for _, findings in found.values() for check, *_ in findings} == {"log-matching"}


def test_two_leaders_in_an_epoch(cluster):
    file = log_of(cluster, 2)

    def other(old):
        change = LeaderChange(2, (2, 3, 4), (2, 4))
        return encode_control_batch(old.base_offset, old.epoch, old.base_timestamp, [change])

    changed, position = replaced(file.read_bytes(), 307, other)
    file.write_bytes(changed)
    found = set(only(cluster, 2, "unsafe"))
    assert found == {
        ("one-leader", "violation", str(file), position),
        ("log-matching", "violation", str(file), position),
    }


def test_quorum_state_that_names_another_leader(cluster):
    file = cluster / "node12" / LOG / "quorum-state"
    set_quorum_state(file, leaderId=2)
    assert only(cluster, 12, "unsafe") == [("one-leader", "violation", str(file), None)]


def test_quorum_state_behind_the_log(cluster):
    file = cluster / "node2" / LOG / "quorum-state"
    set_quorum_state(file, leaderEpoch=4, leaderId=4)
    assert only(cluster, 2, "damaged") == [("quorum-state", "damage", str(file), None)]


@pytest.mark.parametrize("content", [b"", b"{}", b'{"leaderEpoch":'])
def test_quorum_state_that_cannot_be_read(cluster, content):
    file = cluster / "node2" / LOG / "quorum-state"
    file.write_bytes(content)
    assert only(cluster, 2, "damaged") == [("quorum-state", "damage", str(file), None)]


def test_quorum_state_that_is_missing_is_a_warning(cluster):
    file = cluster / "node2" / LOG / "quorum-state"
    file.unlink()
    assert only(cluster, 2, "warning") == [("quorum-state", "warning", str(file), None)]


UNKNOWN_DIRECTORY = uuid_to_text(key(9).directory_id)
FIRST_VOTER = "tuwZoPj8RKSvtSAiMxxe7w"
"""Of node 1, which was a voter and is none any more."""


@pytest.mark.parametrize("voted", [3, 9])
def test_a_vote_for_a_candidate_that_was_never_a_voter(cluster, voted):
    file = cluster / "node2" / LOG / "quorum-state"
    set_quorum_state(file, votedId=voted, votedDirectoryId=UNKNOWN_DIRECTORY)
    assert only(cluster, 2, "warning") == [("quorum-state", "warning", str(file), None)]
    (found,) = audit_here([str(cluster)]).findings
    assert f"a vote of epoch 6 for {voted}-{UNKNOWN_DIRECTORY}" in found.what


@pytest.mark.parametrize(
    "fields",
    [
        {"votedId": 1, "votedDirectoryId": FIRST_VOTER},
        {"votedId": 3, "votedDirectoryId": uuid_to_text(ZERO_UUID)},
        {"leaderId": -1, "leaderEpoch": 7, "votedId": 9, "votedDirectoryId": UNKNOWN_DIRECTORY},
    ],
    ids=["a voter of before", "no directory id", "an epoch that no log has"],
)
def test_a_vote_that_the_logs_cannot_check_is_no_finding(cluster, fields):
    set_quorum_state(cluster / "node2" / LOG / "quorum-state", **fields)
    assert audit_here([str(cluster)]).findings == ()


def test_a_vote_is_not_checked_where_the_voters_of_its_epoch_are_unknown(tmp_path):
    """The log begins later, and the snapshot has the voters of a later epoch only."""
    late = {5: [data(5, 2, 3)]}
    later = ControlState(1, voters(2, 3).voters)
    state = b"".join(encode_snapshot(OffsetAndEpoch(7, 2), later, START_MS, [], START_MS))
    home = replica(tmp_path, 2, late, epoch=2, leader=2, snapshots={(7, 2): state})
    vote = {"votedId": 1, "votedDirectoryId": uuid_to_text(key(1).directory_id)}
    set_quorum_state(home / "quorum-state", **vote)
    assert "quorum-state" not in [check for check, *_ in verdicts(tmp_path)[2][1]]


@pytest.mark.parametrize(
    "content",
    [
        b"0\n3\n1 0\n3 152\n4 284\n",
        b"0\n4\n1 0\n3 152\n4 285\n6 307\n",
        b"0\n4\n1 0\n3 152\n6 307\n4 284\n",
        b"0\nx\n",
    ],
)
def test_epochs_that_disagree_with_the_log(cluster, content):
    file = cluster / "node2" / LOG / "leader-epoch-checkpoint"
    file.write_bytes(content)
    assert only(cluster, 2, "damaged") == [("epochs", "damage", str(file), None)]


CLEANED = {5: [data(5, 1, 3), elected(8, 2, 2), data(9, 2, 2), elected(11, 3, 1), data(12, 3, 8)]}
"""A log whose first segment has three epochs: from 5, 8 and 11 on, to 19."""


def state_at(end, epoch):
    return b"".join(
        encode_snapshot(OffsetAndEpoch(end, epoch), ControlState(0, None), START_MS, [], START_MS)
    )


def cleaned(home, epochs, ends):
    """A log whose start has moved, with snapshots of these ends."""
    snapshots = {end: state_at(*end) for end in ends}
    return replica(home, 1, CLEANED, epoch=3, snapshots=snapshots, epochs=epochs)


@pytest.mark.parametrize(
    ("epochs", "ends"),
    [
        ([(1, 5), (2, 8), (3, 11)], [(7, 1)]),
        ([(1, 0), (2, 8), (3, 11)], [(7, 1)]),
        ([(1, 7), (2, 8), (3, 11)], [(7, 1)]),
        ([(1, 7), (2, 8), (3, 11)], [(7, 1), (10, 2)]),
        ([(2, 10), (3, 11)], [(7, 1), (10, 2)]),
        ([(1, 6), (2, 8), (3, 11)], [(7, 1)]),
        ([(2, 8), (3, 11)], [(8, 1)]),
        ([(3, 11)], [(11, 2)]),
        ([(3, 15)], [(15, 3)]),
        ([(3, 20)], [(20, 3)]),
    ],
    ids=[
        *("whole segments went", "the file is behind", "to the oldest snapshot"),
        *("with a later one", "an older one is still there", "copied before the snapshots"),
        *("where an epoch begins", "the third", "in the third", "at the end"),
    ],
)
def test_leader_epochs_begin_at_the_log_start(tmp_path, epochs, ends):
    """Kafka lets a log begin where its oldest snapshot ends, and deletes whole segments only."""
    cleaned(tmp_path, epochs, ends)
    assert verdicts(tmp_path) == {1: ("sound", [])}


@pytest.mark.parametrize(
    ("epochs", "ends"),
    [
        ([(1, 6), (2, 8), (3, 11)], []),
        ([(2, 8), (3, 11)], [(7, 1)]),
        ([(2, 10), (3, 11)], [(7, 1)]),
        ([(1, 10), (3, 11)], [(10, 2)]),
        ([(3, 10)], [(10, 2)]),
        ([(2, 10), (3, 12)], [(10, 2)]),
        ([(2, 10)], [(10, 2)]),
        ([(2, 10), (3, 11), (4, 15)], [(10, 2)]),
        ([(1, 0), (2, 3), (3, 11)], [(7, 1)]),
    ],
    ids=[
        *("no snapshot", "no snapshot that late", "nor in a later epoch", "another epoch"),
        *("a later epoch", "another beginning", "an epoch is lacking", "an epoch too many"),
        "the second epoch before the log",
    ],
)
def test_leader_epochs_that_moving_the_log_start_cannot_leave(tmp_path, epochs, ends):
    found = cleaned(tmp_path, epochs, ends) / "leader-epoch-checkpoint"
    checks = [one for one in verdicts(tmp_path)[1][1] if one[0] == "epochs"]
    assert checks == [("epochs", "damage", str(found), None)]


def test_a_snapshot_that_differs_from_its_log(cluster):
    file = cluster / "node3" / LOG / "00000000000000000228-0000000003.checkpoint"
    id_ = OffsetAndEpoch(228, 3)
    sound = read_snapshot(file.read_bytes(), id_)
    other = [*sound.values, topic(200)]
    file.write_bytes(b"".join(encode_snapshot(id_, sound.control, START_MS, other, START_MS)))
    assert only(cluster, 3, "damaged") == [("snapshot-replay", "damage", str(file), 0)]
    (found,) = audit_here([str(cluster)]).findings
    assert "topics: 1 more" in found.what


def test_a_snapshot_without_its_own_log_is_compared_with_the_others(cluster):
    """Node 4 began with this snapshot: it has no log before it."""
    file = cluster / "node4" / LOG / "00000000000000000228-0000000003.checkpoint"
    id_ = OffsetAndEpoch(228, 3)
    sound = read_snapshot(file.read_bytes(), id_)
    other = [*sound.values, topic(200)]
    file.write_bytes(b"".join(encode_snapshot(id_, sound.control, START_MS, other, START_MS)))
    assert only(cluster, 4, "damaged") == [("snapshot-agreement", "damage", str(file), 0)]


def test_a_torn_snapshot(cluster):
    file = cluster / "node3" / LOG / "00000000000000000228-0000000003.checkpoint"
    change(file, lambda old: old[:-100])
    ((check, severity, where, position),) = only(cluster, 3, "damaged")
    assert (check, severity, where) == ("snapshot", "damage", str(file))
    assert position > 0


def test_a_log_without_the_snapshot_that_it_began_with(cluster):
    (cluster / "node4" / LOG / "00000000000000000228-0000000003.checkpoint").unlink()
    file = log_of(cluster, 4)
    assert only(cluster, 4, "damaged") == [("log-start", "damage", str(file), 0)]


def test_a_log_that_ends_before_its_snapshot(cluster):
    file = log_of(cluster, 2)
    cut = next(one for one in iter_batches(file.read_bytes()) if one.base_offset == 284)
    change(file, lambda old: old[: cut.position])
    checks = [check for check, *_ in only(cluster, 2, "damaged")]
    assert checks == ["log-end"]


FIRST_SEGMENT = [elected(0, 1, 1), data(1, 1, 4)]
SECOND_SEGMENT = [data(5, 1, 3), elected(8, 2, 2), data(9, 2)]
THIRD_SEGMENT = [data(10, 2, 2)]
WHOLE = {0: FIRST_SEGMENT, 5: SECOND_SEGMENT, 10: THIRD_SEGMENT}


def three(home, **odd):
    """Three replicas of a log in three segments; the third is made with other words."""
    for node in (1, 2):
        replica(home, node, WHOLE, epoch=2, leader=2, epochs=[(1, 0), (2, 8)])
    words: dict[str, Any] = {"segments": WHOLE, "epoch": 2, "leader": 2} | odd
    return replica(home, 3, words.pop("segments"), **words)


def test_three_sound_segments(tmp_path):
    three(tmp_path)
    report = audit_here([str(tmp_path)])
    assert report.findings == ()
    assert [(one.start, one.end, one.last_epoch) for one in report.replicas] == [(0, 12, 2)] * 3
    assert report.clusters[0].committed_end == 12


def test_a_missing_segment(tmp_path):
    folder = three(tmp_path, segments={0: FIRST_SEGMENT, 10: THIRD_SEGMENT})
    first, third = folder / FIRST, folder / "00000000000000000010.log"
    size = first.stat().st_size
    assert only(tmp_path, 3, "damaged") == [("batch-chain", "damage", str(first), size)]
    (found,) = audit_here([str(tmp_path)]).findings
    assert "the offsets 5 to 9 are missing" in found.what
    assert third.exists()


def test_a_segment_of_another_epoch_without_a_leader_change(tmp_path):
    found = three(tmp_path, segments={**WHOLE, 10: [data(10, 7, 2)]}, epoch=7, leader=-1)
    third = found / "00000000000000000010.log"
    assert only(tmp_path, 3, "damaged")[0] == ("epochs", "damage", str(third), 0)


def test_epochs_that_go_back(tmp_path):
    wrong = [data(5, 1, 3), elected(8, 2, 2), data(9, 1)]
    found = three(tmp_path, segments={**WHOLE, 5: wrong})
    second = found / "00000000000000000005.log"
    position = len(wrong[0]) + len(wrong[1])
    checks = only(tmp_path, 3, "damaged")
    assert checks[0] == ("epochs", "damage", str(second), position)


def test_a_damaged_epoch_in_a_last_batch_that_nothing_follows(tmp_path):
    """A checksum does not cover the epoch: only the other replicas show that it is damaged."""
    log = [elected(0, 1, 1), data(1, 1, 4), elected(5, 2, 2)]
    for node in (1, 2):
        replica(tmp_path, node, {0: log}, epoch=2, leader=2, epochs=[(1, 0), (2, 5)])
    found = replica(tmp_path, 3, {0: log}, epoch=2, leader=2, epochs=[(1, 0), (2, 5)])
    position = len(log[0]) + len(log[1])
    change(found / FIRST, lambda old: flip(old, position + 15, 1))
    expected = ("epochs", "damage", str(found / FIRST), position)
    assert only(tmp_path, 3, "damaged") == [expected]


def with_voters(home, after):
    first = control(0, 1, LeaderChange(1, (1, 2, 3), (1, 2)), voters(1, 2, 3))
    log = [first, control(2, 1, voters(*after)), data(3, 1)]
    return replica(home, 1, {0: log}, epoch=1), len(first)


@pytest.mark.parametrize("after", [(1, 2), (1, 2, 3, 4), (1, 2, 3)])
def test_one_voter_more_or_less_is_legal(tmp_path, after):
    with_voters(tmp_path, after)
    assert verdicts(tmp_path) == {1: ("sound", [])}


@pytest.mark.parametrize("after", [(1, 2, 4), (1,), (1, 2, 3, 4, 5), (4, 5, 6)])
def test_an_illegal_change_of_voters(tmp_path, after):
    found, position = with_voters(tmp_path, after)
    expected = ("voters", "violation", str(found / FIRST), position)
    assert verdicts(tmp_path) == {1: ("unsafe", [expected])}


NEWER_VOTERS = {
    "version": (b"\x00\x00\x00\x06", b"\x00\x05\x01\x00\x09extra"),
    "type": (b"\x00\x00\x00\x09", b"\x00\x00\x00"),
}


@pytest.mark.parametrize("kind", NEWER_VOTERS)
@pytest.mark.parametrize("then", ["a voter set", "an election"])
def test_voters_that_a_later_release_wrote_make_no_violation(tmp_path, kind, then):
    """The voters behind such a record are unknown: what follows differs from those before by more."""
    log = [
        control(0, 1, LeaderChange(1, (1,), (1,)), KRaftVersion(1), voters(1, 2)),
        encode_keyed_batch(3, 1, START_MS, [NEWER_VOTERS[kind]]),
        control(4, 1, voters(1, 2, 3, 4)),
    ]
    if then == "an election":
        log[2] = control(4, 2, LeaderChange(3, (1, 2, 3), (2, 3)))
    log_directory(tmp_path / "node1", {0: b"".join(log)})
    (replica,) = audit_here([str(tmp_path)]).replicas
    assert {one.check: one.severity for one in replica.findings} == {
        "control-records": "warning",
        "quorum-state": "warning",
    }


@pytest.mark.parametrize(
    "change", [LeaderChange(1, (1, 2, 3), (1,)), LeaderChange(1, (1, 2, 3), (2, 3))]
)
def test_an_election_without_a_majority_or_the_leader_itself(tmp_path, change):
    log = [control(0, 1, change), data(1, 1)]
    found = replica(tmp_path, 1, {0: log}, epoch=1)
    expected = ("voters", "violation", str(found / FIRST), 0)
    assert verdicts(tmp_path) == {1: ("unsafe", [expected])}


def test_a_snapshot_of_what_the_majority_never_had(tmp_path):
    """A snapshot covers committed records only: here acknowledged records are lost."""
    common = [elected(0, 1, 1), data(1, 1, 4)]
    for node in (2, 3):
        log = [*common, elected(5, 2, 2), data(6, 2, 3)]
        replica(tmp_path, node, {0: log}, epoch=2, leader=2)
    odd = [*common, data(5, 1, 3)]
    values_ = [topic(offset) for offset in range(1, 8)]
    snapshot = b"".join(
        encode_snapshot(OffsetAndEpoch(8, 1), ControlState(0, None), START_MS, values_, START_MS)
    )
    found = replica(tmp_path, 1, {0: odd}, epoch=1, snapshots={(8, 1): snapshot})
    found_of = verdicts(tmp_path)
    lost = ("committed", "violation", str(found / FIRST), sum(map(len, common)))
    assert found_of[1][0] == "unsafe"
    assert lost in found_of[1][1]
    assert found_of[2] == found_of[3] == ("sound", [])


def test_a_tail_without_such_a_snapshot_is_harmless(tmp_path):
    common = [elected(0, 1, 1), data(1, 1, 4)]
    for node in (2, 3):
        log = [*common, elected(5, 2, 2), data(6, 2, 3)]
        replica(tmp_path, node, {0: log}, epoch=2, leader=2)
    found = replica(tmp_path, 1, {0: [*common, data(5, 1, 3)]}, epoch=1)
    tail = ("divergent-tail", "warning", str(found / FIRST), sum(map(len, common)))
    assert verdicts(tmp_path)[1] == ("uncommitted-tail", [tail])


@pytest.mark.parametrize(
    "content",
    [encode_partition_metadata(Uuid(bytes(15) + b"\x07")), b"version: 0", b""],
)
def test_partition_metadata_of_another_topic_is_damage(cluster, content):
    file = log_of(cluster, 2).parent / PARTITION_METADATA
    file.write_bytes(content)
    assert only(cluster, 2, "damaged") == [("topic-id", "damage", str(file), None)]


@pytest.mark.parametrize("left", [-10, 0])
def test_a_bootstrap_checkpoint_that_was_cut(cluster, left):
    file = log_of(cluster, 2).parent.parent / BOOTSTRAP_CHECKPOINT
    change(file, lambda old: old[:left])
    assert only(cluster, 2, "damaged") == [("bootstrap", "damage", str(file), None)]


NEWER_BATCH = encode_keyed_batch(0, 0, 1, [(b"\x00\x00\x00\x09", b"\x00\x00\x00")])


@pytest.mark.parametrize(
    ("name", "check", "content"),
    [
        ("quorum-state", "quorum-state", b'{"leaderEpoch":9,"data_version":2}'),
        ("leader-epoch-checkpoint", "epochs", b"1\n1\n1 0\n"),
        ("../bootstrap.checkpoint", "bootstrap", NEWER_BATCH),
        ("../meta.properties", "meta.properties", b"version=2\ncluster.id=x\nnode.id=2\n"),
    ],
)
def test_a_file_of_a_later_release_is_newer_and_no_damage(cluster, name, check, content):
    file = log_of(cluster, 2).parent / name
    file.write_bytes(content)
    replica = next(
        one for one in audit_here([str(cluster)], fail_fast=True).replicas if "node2" in one.path
    )
    found = [one for one in replica.findings if one.check == check]
    assert [one.severity for one in found] == ["warning"]
    assert replica.state == "warning"
    assert "newer" in found[0].advice
    assert "elete" not in found[0].advice and "empty" not in found[0].advice


@pytest.mark.parametrize(("theirs", "known"), [(1, (6, None)), (2, (1, 1))])
def test_replicas_that_contradict_each_other_behind_a_common_beginning(tmp_path, theirs, known):
    """Without a majority neither is trusted; in no case a tail is called harmless."""
    one = batches((1, 3, 2))
    other = [*batches((1, 4), epoch=1), *batches((2,), base=6, epoch=3)]
    other[1:2] = [encode_batch(1, 1, START_MS, [NO_OP])]
    paths = [log_directory(tmp_path / f"a{n}", {0: b"".join(one)}, node=n) for n in (1, 2)]
    paths += [
        log_directory(tmp_path / f"b{n}", {0: b"".join(other)}, node=n) for n in (3, 4)[:theirs]
    ]
    report = audit_here([str(path) for path in paths])
    (found,) = report.clusters
    assert (found.committed_end, found.contradicted_from) == known
    tails = [one for one in report.findings if one.check == "divergent-tail"]
    assert tails and not any("No action is needed" in one.advice for one in tails)
    assert not report.ok
