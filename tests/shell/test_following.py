"""What the shell follows of a running quorum, with a made-up leader."""

from __future__ import annotations

from types import SimpleNamespace
from typing import IO

import pytest

from quorate.base.ids import Address, OffsetAndEpoch
from quorate.client.leader import Controllers, LeaderDivergedError, LeaderUnreachableError
from quorate.client.log_fetcher import Fetched
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, LeaderChange
from quorate.shell import following
from quorate.shell.following import QuorumFollower
from shell.test_loading import VOTERS, collecting, level, names, topic  # noqa: F401 - a fixture

LOG = (
    encode_control_batch(0, 1, 100, [LeaderChange(1, (1,), (1,))]),
    encode_batch(1, 1, 200, [level(30)]),
    encode_batch(2, 1, 300, [topic(1), topic(2)]),
    encode_batch(4, 1, 400, [topic(3)]),
)


class Leader:
    """Answers as a leader with a log, a high watermark and maybe a snapshot."""

    def __init__(self) -> None:
        self.batches = list(LOG)
        self.bases = [0, 1, 2, 4]
        self.high_watermark = 4
        self.snapshots: list[OffsetAndEpoch] = []
        self.deleted: set[OffsetAndEpoch] = set()
        self.diverging: OffsetAndEpoch | None = None
        self.asked: list[tuple[int, int]] = []
        self.now = 0.0
        self.cluster_id = "cluster-a"
        self.another_log = "find the cause"

    def fetch(self, offset: int, epoch: int) -> Fetched:
        self.asked.append((offset, epoch))
        snapshot = next((one for one in self.snapshots if one.offset > offset), None)
        kept = [b for base, b in zip(self.bases, self.batches, strict=True) if base >= offset]
        records = b"" if snapshot or self.diverging else b"".join(kept)
        return Fetched(7, 1, self.high_watermark, 0, self.diverging, snapshot, records)

    def copy_snapshot(self, snapshot_id: OffsetAndEpoch, to: IO[bytes]) -> int | None:
        if snapshot_id in self.deleted:
            self.snapshots.remove(snapshot_id)
            return None
        parts = encode_snapshot(snapshot_id, ControlState(1, VOTERS), 200, [level(30)], 1000)
        return to.write(b"".join(parts))

    def close(self) -> None:
        pass


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> Leader:
    found = Leader()
    monkeypatch.setattr(following, "ShellLogFetcher", lambda *_, **__: found)
    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=lambda s: passed(found, s)))
    return found


def passed(leader: Leader, seconds: float) -> None:
    leader.now += seconds


@pytest.fixture
def follower(leader: Leader) -> QuorumFollower:
    controllers = Controllers((Address("c", 1),), timeout_ms=1000)
    return QuorumFollower(controllers, monotonic=lambda: leader.now)


def test_only_committed_records_are_shown_and_the_rest_once_it_is_committed(leader, follower):
    assert names(follower.catch_up()) == ["t1", "t2"]
    assert follower.position == "Cluster cluster-a, leader 7: offset 3 (inclusive), epoch 1"
    leader.high_watermark = 5
    assert names(follower.catch_up()) == ["t1", "t2", "t3"]
    assert leader.asked == [(0, 0), (4, 1)]


def test_no_collection_visits_the_image_while_it_grows(follower, collecting):  # noqa: F811
    follower.catch_up()
    assert len(collecting) == 3 and not any(collecting)


def test_a_snapshot_replaces_what_the_log_no_longer_has(leader, follower):
    leader.snapshots = [OffsetAndEpoch(2, 1)]
    view = follower.catch_up()
    assert names(view) == ["t1", "t2"] and view.control.state == ControlState(1, VOTERS)


def test_a_snapshot_that_the_leader_deletes_meanwhile_is_asked_for_again(leader, follower):
    leader.snapshots = [OffsetAndEpoch(1, 1), OffsetAndEpoch(2, 1)]
    leader.deleted = {OffsetAndEpoch(1, 1)}
    assert names(follower.catch_up()) == ["t1", "t2"]


def test_a_new_leader_without_a_high_watermark_is_waited_for(leader, follower):
    leader.high_watermark = -1
    with pytest.raises(LeaderUnreachableError, match="a majority of the voters must run"):
        follower.catch_up()
    assert leader.now >= 1
    leader.high_watermark = 4
    assert names(follower.catch_up()) == ["t1", "t2"]


def test_a_leader_that_commits_less_than_was_read_changes_nothing(leader, follower):
    follower.catch_up()
    leader.high_watermark = 2  # it may know of an older end of the committed log
    assert names(follower.catch_up()) == ["t1", "t2"]


@pytest.mark.parametrize("how", ["diverging", "snapshots"])
def test_a_log_that_lost_what_was_read_is_refused(leader, follower, how, monkeypatch):
    follower.catch_up()
    if how == "diverging":
        leader.diverging = OffsetAndEpoch(2, 0)
    else:
        older = Fetched(7, 2, 9, 0, None, OffsetAndEpoch(2, 1), b"")
        monkeypatch.setattr(leader, "fetch", lambda *_: older)
    with pytest.raises(LeaderDivergedError, match=r"offset 3 .*committed and read, but leader 7"):
        follower.catch_up()
