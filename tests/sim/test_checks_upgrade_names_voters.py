"""At kraft.version 0 a voter is an id. What its disks have asked for counts for the directory that the
upgrade names."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.raft.messages import FetchRequest, UpdateVoterRequest, UpdateVoterResponse
from quorate.raft.progress import ProgressTracker
from quorate.raft.values import ControlState, KRaftVersion, RaftLimits, Voters
from quorate.raft.voters import VoterSet
from quorate.sim.checks.check_quorum import COUNTS
from quorate.sim.checks.describe_quorum import TRUE
from quorate.sim.checks.epoch_notifications import NOTIFIES
from quorate.sim.checks.received_requests import ReceivedRequests
from sim.fake import DIRECTORIES, Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_voter_changes import known

pytestmark = pytest.mark.interpreted
NEW_DISK = ReplicaKey(3, DIRECTORIES[8])
NAMED = (*voters(1), *known(2, 3))
UNNAMED = tuple(replace(one, key=ReplicaKey(one.key.id, ZERO_UUID)) for one in NAMED)


def fetches(leader: Node, who: ReplicaKey, at_ms: int) -> None:
    leader.state.now = at_ms
    leader.receive(FetchRequest(None, who, 1, leader.end, 0, 0, 0, -1))


def static() -> Node:
    """Node 1 leads voters 1 to 3 at kraft.version 0 since 0 ms; all have reported their directories."""
    fake = Fake()
    for model in fake.checks.models.values():
        model.initial_voters = UNNAMED
    leader = fake.elect(1, 1, 2, 3, bare=True)
    fake.replicate(leader, 2, 3)
    leader.commit(leader.end)
    fake.checks.models[1].initial_kraft_version = 0
    leader.state.controls.state = ControlState(0, UNNAMED)
    leader.state.durable.election_is_durable = True
    leader.state.role = replace(A_LEADER)
    leader.step()
    for voter in NAMED[1:]:
        request = UpdateVoterRequest(None, 1, voter.key, voter.listeners, 0, 1)
        leader.answer(UpdateVoterResponse(ErrorCode.NONE), leader.receive(request))
    return leader


def upgrades(leader: Node, at_ms: int) -> None:
    """The voter set names the first directories."""
    leader.state.now = at_ms
    leader.state.controls.state = ControlState(1, NAMED)
    leader.append(leader.control(KRaftVersion(1), Voters(NAMED)))


def test_a_fetch_of_any_directory_postpones_the_next_notification() -> None:
    """The leader looks every 1,000 ms who has been silent for 1,000 ms."""
    leader = static()
    fetches(leader, NEW_DISK, 900)
    upgrades(leader, 1500)
    for now in (2501, 2899):
        fetches(leader, key(2), now)
    leader.state.now = 2900
    with broken(NOTIFIES, "has not notified 3-"):
        leader.step()


def test_a_fetch_of_a_replaced_disk_after_the_upgrade_is_not_the_voters() -> None:
    leader = static()
    upgrades(leader, 1500)
    fetches(leader, key(2), 2000)
    leader.state.now = 2499
    fetches(leader, NEW_DISK, 2499)
    leader.state.now = 2500
    with broken(NOTIFIES, "has not notified 3-"):
        leader.step()


@pytest.mark.parametrize("is_before", [True, False])
def test_a_fetch_of_any_directory_counts_for_check_quorum(is_before: bool) -> None:
    leader = static()
    role = leader.state.role
    fetches(leader, key(2), 100)
    for deadline in (1, 2):  # the first counts all that arrived before the epoch was durable
        role.check_deadline += deadline
        leader.step()
    if is_before:
        fetches(leader, NEW_DISK, 200)
    upgrades(leader, 300)
    if not is_before:
        fetches(leader, NEW_DISK, 310)
    leader.state.now = 320
    role.check_deadline += 1
    if is_before:
        leader.step()
    else:
        with broken(COUNTS, "since its last deadline only"):
            leader.step()


@pytest.mark.parametrize("offset", [1, 2])
def test_a_voter_is_described_by_what_its_directories_fetched_before(offset: int) -> None:
    leader = static()
    fetches(leader, NEW_DISK, 900)
    assert leader.end == 1
    upgrades(leader, 1000)
    leader.state.me, leader.state.epoch = key(1), 1
    leader.state.voters = VoterSet(NAMED)
    progress = ProgressTracker(key(1), leader.state.voters, RaftLimits())
    progress.voters[3].end_offset = offset
    leader.state.role = replace(A_LEADER, progress=progress, high_watermark=1)
    leader.state.log.end_offset = leader.end
    wrong = broken(TRUE, "with log end offset 2, not [-1, ")
    with nullcontext() if offset == 1 else wrong:
        for _ in range(64):  # a leader is asked once in so many steps
            leader.step()


def test_a_voter_that_keeps_its_directory_keeps_its_requests() -> None:
    received = ReceivedRequests()
    for at, who in enumerate((key(2), NEW_DISK)):
        received.add(at, FetchRequest(None, who, 1, at, 0, 0, 0, -1), at, epoch=1, log_end=3)
    before = list(received.recent_requesters), dict(received.last_request_ms)
    received.voters_named(NAMED, known(1, 2, 3, 4))
    assert (received.recent_requesters, received.last_request_ms) == before
    received.voters_named(UNNAMED, NAMED)
    assert received.recent_requesters == [key(2), key(3)]
    assert received.last_request_ms == {key(2): 0, NEW_DISK: 1, key(3): 1}
    assert received.fetch_positions[key(3)] == [(1, 1)]
