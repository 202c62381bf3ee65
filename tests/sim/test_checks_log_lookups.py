"""What a log says of its own epochs, each broken once by hand."""

from __future__ import annotations

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.log_index import Diverging, LogIndex
from quorate.raft.ready import Truncate
from quorate.raft.roles import Ballot, Candidate, Unattached
from quorate.raft.values import RecoveredLog
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import AppendBatches, SnapshotWritten
from quorate.sim.checks.log_lookups import BORDERS, CHECK
from sim.fake import Fake, Node, voters
from sim.test_checks_core import a_quorum, broken

pytestmark = pytest.mark.interpreted


def two_epochs() -> tuple[Fake, Node]:
    """Epoch 1 has offsets 0 to 2, epoch 2 one more, which its leader, node 2, has committed."""
    fake, _ = a_quorum()
    leader = fake.elect(2, 2, 1, 3)
    fake.replicate(leader, 1, 3)
    leader.commit(leader.end)
    return fake, leader


def writes_a_snapshot(node: Node, snapshot_id: OffsetAndEpoch) -> None:
    node.state.log.snapshots.append(snapshot_id)
    node.state.log.snapshots.sort()
    node.step([SnapshotWritten(snapshot_id, 10)])


def test_a_snapshot_changes_nothing() -> None:
    _, leader = two_epochs()
    writes_a_snapshot(leader, OffsetAndEpoch(3, 1))
    leader.state.log.validate = lambda offset, epoch: None  # not asked again until the next one
    leader.step()


def test_a_log_in_which_every_epoch_continues() -> None:
    _, leader = two_epochs()
    leader.state.log.validate = lambda offset, epoch: None
    with broken(CHECK, "accepts a replica with a record of epoch 0 before 4"):
        writes_a_snapshot(leader, OffsetAndEpoch(3, 1))


def test_a_log_that_reports_every_fetch_as_diverging() -> None:
    _, leader = two_epochs()
    leader.state.log.validate = lambda offset, epoch: Diverging(OffsetAndEpoch(0, 0))
    with broken(CHECK, "reports a replica with the same end as diverging"):
        writes_a_snapshot(leader, OffsetAndEpoch(3, 1))


@pytest.mark.parametrize("is_taken", [False, True])
def test_an_older_snapshot_behind_the_installed_one(
    monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    """Seed 3007622 of plan format 5: it was taken for the beginning of the log."""
    fake, leader = two_epochs()
    follower = fake[3]
    follower.install(OffsetAndEpoch(4, 2))
    if is_taken:
        first = property(lambda log: log.snapshots[0])
        monkeypatch.setattr(LogIndex, "earliest_snapshot", first)
    writes_a_snapshot(follower, OffsetAndEpoch(3, 1))
    leader.append(leader.made())
    leader.persist()
    if not is_taken:
        fake.replicate(leader, 3)
        return
    with broken(CHECK, "a record of epoch 1 before 4"):
        fake.replicate(leader, 3)


def test_a_cleaned_log_is_asked_at_its_new_start() -> None:
    _, leader = two_epochs()
    leader.state.log.start_offset = 3
    leader.state.log.validate = lambda offset, epoch: None
    with broken(CHECK, "its log starts at 3"):
        leader.step()


def test_a_candidate_in_an_epoch_that_has_a_leader() -> None:
    """Seed 3005416 of plan format 5: it had lost the election, restarted as candidate, and won."""
    fake = Fake()
    node = fake[3]
    fake[1].grant(3, 0, pre_vote=True)
    node.save(1, voted=3)
    node.state.role = Candidate(Ballot(VoterSet(voters(1, 2, 3))), 0)
    node.step()
    node.persist()
    fake.elect(1, 1, 1, 2)
    node.state.role = Unattached(0)
    node.save(1, leader=1)
    node.state.role = Candidate(Ballot(VoterSet(voters(1, 2, 3))), 0)
    with broken(
        "no candidate in an epoch with a leader", "is candidate of epoch 1, which node 1 leads"
    ):
        node.step()


# -- boundaries -----------------------------------------------------------------------------------
def appends(node: Node, *forgotten: int, more: tuple[int, ...] = (), known_from: int = 0) -> None:
    """Batches of two records, after offset 3; its index lacks some boundaries and has others."""
    ends = [end for end in (0, 3, 5, 7) if end not in forgotten]
    log = RecoveredLog(0, 7, ((1, 0),), (), None, (), tuple(sorted({*ends, *more})))
    node.state.log.border_at_or_before = LogIndex(log).border_at_or_before
    node.state.log.known_from = known_from
    first = node.made(b"a", b"b")
    node.batches.append(first)
    second = node.made(b"c", b"d")
    node.batches.append(second)
    node.write(AppendBatches((first, second)))


def test_a_log_knows_its_batch_boundaries() -> None:
    _, leader = a_quorum()
    appends(leader)


@pytest.mark.parametrize("border", [3, 5])
def test_a_missing_batch_boundary(border: int) -> None:
    _, leader = a_quorum()
    with broken(BORDERS, f"[{border}, {border + 2}) of epoch 1, and no border at its begin"):
        appends(leader, border)


@pytest.mark.parametrize("border", [4, 6])
def test_a_boundary_inside_a_batch(border: int) -> None:
    _, leader = a_quorum()
    with broken(BORDERS, f"and a border inside at {border}"):
        appends(leader, more=(border,))


def test_a_boundary_may_be_dropped_outside_the_window_only() -> None:
    _, leader = a_quorum()
    appends(leader, 3, known_from=5)
    _, leader = a_quorum()
    with broken(BORDERS, "[5, 7) of epoch 1, and no border"):
        appends(leader, 3, 5, known_from=7)


def test_truncated_batches_have_no_boundaries() -> None:
    _, leader = a_quorum()
    batch = leader.made(b"a", b"b")
    leader.state.log.border_at_or_before = lambda offset: 0
    leader.write(AppendBatches((batch,)), Truncate(3))
    leader.step()
