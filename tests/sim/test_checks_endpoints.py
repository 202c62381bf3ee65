"""A node reports all its listeners, and others adopt what is reported; and what else came with plan
format 7."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch, Listener, Listeners, OffsetAndEpoch
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteResponse,
)
from quorate.raft.ready import Send
from quorate.raft.roles import NEVER, Follower, Leader, Resigned, Unattached
from quorate.raft.values import ControlState, KRaftVersion, Voter, Voters
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import AppendBatches, Installed, Written
from quorate.replica.replica import Effects
from quorate.sim.checks.elections import check_installed
from quorate.sim.world.observable import LISTENER
from sim.fake import Fake, Node, key, voters
from sim.test_checks_core import A_LEADER, broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted
CONTROLLER = Listener(LISTENER, "host", 9093)
OUTSIDE = Listener("EXTERNAL", "host", 9094)
MOVED = Listener(LISTENER, "host", 9193)
BOTH: Listeners = (CONTROLLER, OUTSIDE)
ADVERTISED = "all listeners are advertised"
ADOPTED = "follower adopts leader endpoints"
KNOWN = "voter reports are stored"
HERS = LeaderAndEpoch(1, 1)
INSTALLED = Installed(1, OffsetAndEpoch(3, 1), ControlState(1, ()))
SILENT = ["epoch 1: prospective (fetch timeout)"]


# -- what a node reports of itself ----------------------------------------------------------------------
@pytest.mark.parametrize("kind", [AddVoterRequest, UpdateVoterRequest])
def test_a_voter_reports_all_its_endpoints(kind: Any) -> None:
    fake, _ = leading()
    node = fake[4]
    node.state.config.listeners = BOTH
    more = (1,) if kind is UpdateVoterRequest else ()

    def ask(reported: Listeners) -> None:
        node.ask(kind(None, *more, key(4), reported, 0, 1))

    if kind is UpdateVoterRequest:
        node.save(1, 1)
        node.persist()
    ask(BOTH)
    with broken(ADVERTISED, "node 4"):
        ask((CONTROLLER,))


def test_a_leader_that_answers_with_one_of_its_listeners() -> None:
    _, leader = leading()
    leader.state.config.listeners = BOTH
    leader.answer(VoteResponse(ErrorCode.NONE, HERS, False, BOTH))
    leader.answer(VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, -1), False))
    with broken(ADVERTISED, "answers VoteResponse"):
        leader.answer(VoteResponse(ErrorCode.NONE, HERS, False, (CONTROLLER,)))


def test_a_former_leader_may_omit_its_endpoints() -> None:
    _, leader = leading()
    leader.state.config.listeners = BOTH
    leader.save(2)
    leader.persist()
    leader.state.role = Unattached(0)
    leader.answer(VoteResponse(ErrorCode.NONE, HERS, False))
    leader.state.role = Resigned(9_999, set(), ())
    with broken(ADVERTISED):
        leader.answer(VoteResponse(ErrorCode.NONE, HERS, False))


# -- what is taken --------------------------------------------------------------------------------
def following(known: Listeners) -> Node:
    """Node 2 follows node 1, and takes it to listen there."""
    fake, _ = leading()
    node = fake[2]
    node.state.config.listeners = (CONTROLLER,)
    node.state.role = Follower(known, 9_999, 0)
    return node


@pytest.mark.parametrize(
    ("known", "reported", "fine"),
    [
        (BOTH, BOTH, True),
        ((CONTROLLER,), BOTH, False),
        (BOTH, (CONTROLLER,), True),
        ((MOVED,), (CONTROLLER,), True),
        ((CONTROLLER,), (OUTSIDE, OUTSIDE), True),
    ],
)
def test_the_endpoints_of_begin_quorum_epoch(
    known: Listeners, reported: Listeners, fine: bool
) -> None:
    """It is taken when it is more, and has a listener by which the leader can be asked."""
    request = BeginQuorumEpochRequest(None, key(2), HERS, reported)
    node = following(known)
    if fine:
        node.step([Received(7, request)])
    else:
        with broken(ADOPTED, "its leader, node 1, listens at"):
            node.step([Received(7, request)])


@pytest.mark.parametrize(
    ("known", "reported", "fine"),
    [
        (BOTH, BOTH, True),
        (BOTH, (CONTROLLER,), True),
        ((CONTROLLER,), BOTH, False),
        ((MOVED, OUTSIDE), (CONTROLLER,), False),
        ((CONTROLLER,), (OUTSIDE,), True),
    ],
)
def test_what_the_leader_answers(known: Listeners, reported: Listeners, fine: bool) -> None:
    """All of it, when it names a listener by which it can be asked."""
    response = FetchResponse(ErrorCode.NONE, HERS, 3, 0, leader_endpoints=reported)
    node = following(known)
    node.state.config.retry_backoff_ms = 0
    fetches(node, 7)
    node.step([Answered(7, FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, HERS))])
    if fine:
        node.step([Answered(7, response)])
        fetches(node, 8)
        node.step([Answered(8, response)])
    else:
        with broken(ADOPTED):
            node.step([Answered(7, response)])


def fetches(node: Node, correlation: int) -> None:
    request = FetchRequest(None, key(2), 1, 3, 1, 0, 100, 3)
    node.step(sends=[Send(correlation, 1, Address("node1", 9001), request, 500)])


@pytest.mark.parametrize("gone", ["another", "time", "forgotten"])
def test_a_late_answer_need_not_be_processed(gone: str) -> None:
    """It came when its time was up: seed 9708215."""
    response = FetchResponse(ErrorCode.NONE, HERS, 3, 0, leader_endpoints=BOTH)
    node = following((CONTROLLER,))
    fetches(node, 8 if gone == "another" else 7)
    if gone == "time":
        node.state.now += 500
    elif gone == "forgotten":
        node.state.requests.resets += 1
    node.step([Answered(7, response)])


def test_what_another_leader_or_cluster_reports_does_not_count() -> None:
    node = following((CONTROLLER,))
    other = LeaderAndEpoch(3, 1)
    node.step([Answered(7, FetchResponse(ErrorCode.NONE, other, 3, 0, leader_endpoints=BOTH))])
    node.step([Received(7, BeginQuorumEpochRequest(None, key(2), other, BOTH))])
    node.state.durable.election_is_durable = False
    node.step([Received(8, BeginQuorumEpochRequest("another", key(2), HERS, BOTH))])


# -- what a leader knows, and writes --------------------------------------------------------------
def static(*reports: Listeners) -> Node:
    """A leader at kraft.version 0 to which voter 2 has reported itself."""
    fake = Fake(3)
    leader = fake[1]
    fake.elect(1, 1, 2, 3, bare=True)
    leader.state.role = A_LEADER
    for listeners in reports:
        leader.receive(UpdateVoterRequest(None, 1, key(2), listeners, 0, 1))
    return leader


def reported(leader: Node, known: Listeners) -> None:
    """It answers the first report, and takes the voter to listen there."""
    role = Leader(0, A_LEADER.progress, NEVER, NEVER)
    role.volatile_voters = VoterSet((Voter(key(2), known, 0, 1),))
    leader.state.role = role
    leader.answer(UpdateVoterResponse(ErrorCode.NONE, HERS), leader.replies)


def test_a_report_of_which_a_part_is_known() -> None:
    reported(static(BOTH), BOTH)
    with broken(KNOWN, "and stores"):
        reported(static(BOTH), (CONTROLLER,))


def upgrade(leader: Node, *voter: Voter) -> None:
    leader._be_asked_for = lambda new: None  # type: ignore[method-assign]
    leader.fake.rule(leader, *(v.key.id for v in voter))
    leader.state.controls.state = ControlState(1, voter)
    leader.append(leader.control(KRaftVersion(1), Voters(voter)))


@pytest.mark.parametrize("listeners", [BOTH, (CONTROLLER,)])
def test_an_upgrade_writes_what_voters_reported(listeners: Listeners) -> None:
    leader = static(BOTH)
    leader.receive(UpdateVoterRequest(None, 1, key(3), (), 0, 1))
    one, _, three = voters(1, 2, 3)
    if listeners == BOTH:
        upgrade(leader, one, Voter(key(2), listeners, 0, 1), three)
    else:
        with broken(KNOWN, "reported to it was"):
            upgrade(leader, one, Voter(key(2), listeners, 0, 1), three)


def test_a_leader_writes_itself_as_it_is() -> None:
    fake = Fake(3)
    fake.checks.voter_changes._able[key(1)] = (BOTH, (0, 1))
    with broken(KNOWN, "CONTROLLER=host:9093 and EXTERNAL=host:9094"):
        fake.elect(1, 1, 2, 3)


# -- an add that no node waits for -----------------------------------------------------------------
NEW = AddVoterRequest(None, key(4), BOTH, ack_when_committed=False)


def adds(leader: Node) -> None:
    """It writes the new voter, whose versions were reported to it."""
    leader._be_asked_for = lambda new: None  # type: ignore[method-assign]
    wider = (*voters(1, 2, 3), Voter(key(4), BOTH, 0, 1))
    leader.state.controls.state = ControlState(1, wider)
    batch = leader.control(Voters(wider))
    leader.batches.append(batch)
    leader.write(AppendBatches((batch,)))


@pytest.mark.parametrize("waits", [True, False])
def test_an_add_that_waits_for_nothing_is_answered_when_it_is_written(waits: bool) -> None:
    _, leader = leading()
    leader.receive(replace(NEW, ack_when_committed=waits))
    if waits:
        adds(leader)
    else:
        leader.state.durable.election_is_durable = True
        with broken("AddVoter without ackWhenCommitted is answered at append"):
            adds(leader)


def test_an_add_that_waits_for_nothing_is_not_answered_before() -> None:
    _, leader = leading()
    reply_to = leader.receive(NEW)
    with broken("acknowledged voter change is in the log", "has not appended it"):
        leader.answer(AddVoterResponse(ErrorCode.NONE), reply_to)


@pytest.mark.parametrize("asked_first", [True, False])
def test_software_that_changes_while_a_voter_is_added(asked_first: bool) -> None:
    """The written range may be of the incarnation that was asked, or of any later one."""
    fake, leader = leading()
    node, able = fake[4], fake.checks.voter_changes._able
    able[key(4)] = BOTH, (1, 1)
    if asked_first:
        leader.receive(replace(NEW, ack_when_committed=True))
    node.state.config.listeners = BOTH
    fake.checks.voter_changes.process_started(fake.checks.models[4], node.state.config)
    if asked_first:
        adds(leader)
        return
    able[key(4)] = BOTH, (1, 1)
    leader.receive(replace(NEW, ack_when_committed=True))
    with broken("voter range", "supports (1, 1)"):
        adds(leader)


# -- an install that takes long -------------------------------------------------------------------
@pytest.mark.parametrize("deadline", [1999, 2000])
def test_an_install_is_no_silence_of_the_leader(deadline: int) -> None:
    check = "fetch timeout restarts after a snapshot install"
    node = following(BOTH)
    node.state.role = Follower(BOTH, deadline, 0)
    if deadline == 2000:
        node.install(OffsetAndEpoch(3, 1))
        node.state.role = Unattached(0)
        with broken(check):
            check_installed(
                node.fake.checks.models[2], [INSTALLED], Effects(notes=SILENT), node.state
            )
    else:
        with broken(check, "node 2 (incarnation 1) has installed a snapshot of epoch 1"):
            node.install(OffsetAndEpoch(3, 1))


@pytest.mark.parametrize(
    ("more", "over", "fine"),
    [(Written(1), False, False), (Written(1), True, True), (Received(7, NEW), False, True)],
)
def test_an_install_is_checked_with_the_other_contents_of_the_disk(
    more: Any, over: bool, fine: bool
) -> None:
    """A message of the same step may have been an EndQuorumEpoch; a node that stops waits for no node."""
    node = following(BOTH)
    model, effects = node.fake.checks.models[2], Effects(notes=SILENT, stopped=over)
    if fine:
        check_installed(model, [INSTALLED, more], effects, node.state)
    else:
        with broken("fetch timeout restarts after a snapshot install"):
            check_installed(model, [INSTALLED, more], effects, node.state)
