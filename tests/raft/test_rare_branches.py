"""Facts and refusals of the core that `make guards` found neither tested nor reached by a world."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import SendFailed, SendFailure, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    RemoveVoterRequest,
)
from quorate.raft.ready import Accepted
from quorate.raft.values import ControlState
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners
from raft.single import EPOCH, VOTERS, Single, fetch, follower, leader, recovered

ADD = AddVoterRequest(CLUSTER_ID, key(4), listeners(4))


def committed(single: Single) -> Single:
    """The leader's first record is on a majority, and node 4 has caught up."""
    end = single.core.log_end.offset
    single.ask(fetch(end, EPOCH + 1, replica=key(2)))
    return single


def test_a_voter_change_is_named_while_it_is_under_way() -> None:
    single = leader()
    assert single.core.voter_change is None and follower().core.voter_change is None
    committed(single)
    single.ask(ADD)
    assert single.core.voter_change == "add"
    single = committed(leader())
    single.ask(RemoveVoterRequest(CLUSTER_ID, key(3)))
    assert single.core.voter_change == "remove"


def test_a_newcomer_that_knows_no_api_versions_is_refused() -> None:
    single = committed(leader())
    assert single.ask(ADD) is None
    send = single.sent(ApiVersionsRequest, to=4)
    assert send is not None
    ready = single.step(SendFailed(send.correlation, SendFailure.UNSUPPORTED_VERSION))
    (reply,) = ready.replies
    assert isinstance(reply.response, AddVoterResponse)
    assert reply.response.error == ErrorCode.REQUEST_TIMED_OUT
    assert (reply.response.message or "").endswith("an error UNSUPPORTED_VERSION")


def test_an_upgrade_to_the_present_version_is_accepted_where_no_record_has_set_it() -> None:
    """At kraft.version 0 nothing stands in the log: the end is 0."""
    log = recovered(snapshots=(), snapshot_control=ControlState(0, None))
    single = leader(log=log, static_voters=VOTERS)
    ready = single.step(UpgradeKRaftVersion(7, 0))
    assert ready.proposals == (Accepted(7, 0, 0),)
