"""Voter changes on the leader: Add, Remove, Update, and the upgrade to kraft.version 1 (KIP-853).

At most one change is pending: Idle -> AskingVersions (Add only) -> AwaitingCommit -> Idle. One
change adds or removes one voter, so that every majority before it and every majority after it
share a voter. The order of the checks and all texts are Kafka's (AddVoterHandler,
RemoveVoterHandler, UpdateVoterHandler, LeaderState): clients see which check fails first.

AddRaftVoter:
 1. The cluster id matches.                             INCONSISTENT_CLUSTER_ID
 2. This node leads and does not shut down.             NOT_LEADER_OR_FOLLOWER, BROKER_NOT_AVAILABLE
 3. The voter has an id and a directory id.             INVALID_REQUEST
 4. Its listeners have the default controller listener. INVALID_REQUEST
 5. No other change is pending.                         REQUEST_TIMED_OUT
 6. The leader knows its high watermark.                REQUEST_TIMED_OUT
 7. kraft.version is 1 or higher.                       UNSUPPORTED_VERSION
 8. The last Voters record is committed.                REQUEST_TIMED_OUT
 9. The id is not in the voter set.                     DUPLICATE_VOTER
10. The new voter answers ApiVersions.                  REQUEST_TIMED_OUT
11. Its range of kraft.version has the finalized one.   INVALID_REQUEST
12. It has caught up with the log.                      REQUEST_TIMED_OUT
13. Append the Voters record; answer now, or at commit.
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Listeners, ReplicaKey
from quorate.raft.anomalies import duplicate_replica
from quorate.raft.answers import leader_error, refuse, wrong_cluster
from quorate.raft.inputs import SendFailure, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.reachability import endpoint_written, move_is_refused
from quorate.raft.ready import Accepted, Refused
from quorate.raft.reconfig_state import AskingVersions, AwaitingCommit
from quorate.raft.roles import Leader
from quorate.raft.state import RaftState
from quorate.raft.transitions import answer_change, append_control, update_check_quorum
from quorate.raft.values import ControlRecord, KRaftVersion, Voter, Voters
from quorate.raft.voters import VoterSet

FEATURE = "kraft.version"


def _keys(voters: VoterSet) -> str:
    return "[" + ", ".join(_key(key) for key in voters.keys) + "]"


def _key(key: ReplicaKey) -> str:
    directory = "<undefined>" if key.directory_id == ZERO_UUID else str(key).split("-", 1)[1]
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def _change_blocked(s: RaftState, role: Leader, verb: str) -> tuple[ErrorCode, str] | None:
    """Checks 5 to 8 of the module's list; they hold for RemoveRaftVoter too."""
    # 5. Two pending changes at once could differ from each other by two voters.
    if role.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to handle previous voter change request"
        )
    # 6. Before a record of its own epoch is committed, a leader does not know whether a voter
    # change of an earlier epoch in its log is committed. This is the fix of the bug in single-server
    # changes that the Raft author published in 2015; KIP-853 calls it fencing of previous changes.
    if role.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        )
    # 7. At kraft.version 0 the voters are static configuration; the log holds no voter set.
    if s.controls.version < 1:
        return ErrorCode.UNSUPPORTED_VERSION, (
            f"Cluster doesn't support {verb} voter because the {FEATURE} feature is "
            f"{s.controls.version}"
        )
    return _uncommitted(s, role)


def _uncommitted(s: RaftState, role: Leader) -> tuple[ErrorCode, str] | None:
    """Check 8: the last Voters record is committed.

    A new leader may lack an uncommitted change. A second change would then differ from its voter set
    by two voters.
    """
    offset = s.controls.voters_offset
    assert offset is not None  # at kraft.version 1 the log or a snapshot has a voter set
    if offset >= role.high_watermark:
        at = f"Optional[{offset}]"  # Kafka prints a java.util.Optional here
        return ErrorCode.REQUEST_TIMED_OUT, (
            f"Request timed out waiting for voters to commit the latest voter change at {at} with "
            f"HWM {role.high_watermark}"
        )
    return None


# -- AddRaftVoter ------------------------------------------------------------------------------
def on_add_voter(s: RaftState, reply_to: int, request: AddVoterRequest) -> None:
    """Checks 1 to 9, then ask the new voter for its versions (check 10).

    `reply_to` is answered now on a refusal, else when the change ends: see `_finish_change`.
    """
    problem = _add_problem(s, request)
    if problem is not None:
        refuse(s, reply_to, request, *problem)
        return
    role = s.role
    assert isinstance(role, Leader)
    address = s.usable(request.listeners)
    voter = request.voter
    # 10. One request per node may be in flight, and a node that just failed backs off. Kafka
    # answers such a voter at once too: the operator tries again.
    if address is None or not s.requests.ready(voter.id, s.now):
        text = f"New voter {_key(voter)} is not ready to receive requests"
        refuse(s, reply_to, request, ErrorCode.REQUEST_TIMED_OUT, text)
        return
    correlation = s.send(voter.id, address, ApiVersionsRequest())
    deadline = s.now + s.config.request_timeout_ms
    role.change = AskingVersions(
        reply_to, voter, request.listeners, request.ack_when_committed, deadline, correlation
    )
    s.note(f"add voter {voter}: asks for its versions")


def _add_problem(s: RaftState, request: AddVoterRequest) -> tuple[ErrorCode, str | None] | None:
    if wrong_cluster(s, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, _wrong_cluster_text(s, request.cluster_id)
    if error := leader_error(s, s.epoch):
        return error, None
    voter = request.voter
    if voter.id < 0 or voter.directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
    if not any(listener.name == s.listener for listener in request.listeners):
        return ErrorCode.INVALID_REQUEST, (
            f"Add voter request didn't include the endpoint ({_endpoints(request)}) for the "
            f"default listener ListenerName({s.listener})"
        )
    # 4a. Not in Kafka: see `_unreadable`.
    if what := _unreadable(request.listeners):
        return ErrorCode.INVALID_REQUEST, f"Add voter request included {what}"
    assert isinstance(s.role, Leader)
    if busy := _change_blocked(s, s.role, "adding"):
        return busy
    # 9. By id alone: the same id with another directory id is a replaced disk. Its old entry must
    # be removed first, else one node id would have two votes.
    if s.voters.get(voter.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, (
            f"The voter id for {_key(voter)} is already part of the set of voters "
            f"{_keys(s.voters)}."
        )
    return None


def _unreadable(listeners: Listeners) -> str | None:
    """What of these listeners a voter set must not contain; None: nothing.

    A Kafka node that reads a Voters record with an unnamed listener stops, and stops again at each
    start. Of two listeners with one name Kafka uses the last and this node the first.
    """
    names = {listener.name for listener in listeners}
    if "" in names:
        return "a listener without a name"
    return "two listeners of one name" if len(names) < len(listeners) else None


def _endpoints(request: AddVoterRequest) -> str:
    inner = ", ".join(f"ListenerName({e.name})={e.host}:{e.port}" for e in request.listeners)
    return f"Endpoints(endpoints={{{inner}}})"


def _wrong_cluster_text(s: RaftState, cluster_id: str | None) -> str:
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{s.config.cluster_id}"'


def on_api_versions_response(s: RaftState, correlation: int, response: ApiVersionsResponse) -> bool:
    """Checks 10 to 12, then append the new voter set, which is in force at once."""
    role = s.role
    # The change may have expired, or ended with an earlier leadership, while the request was in
    # flight; the correlation distinguishes a late response from the one for a newer change.
    if not isinstance(role, Leader) or not isinstance(role.change, AskingVersions):
        return True
    change = role.change
    if change.correlation != correlation:
        return True
    if response.error != ErrorCode.NONE:
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, _no_versions(response.error))
        return False
    # 11. A voter that cannot run the finalized version could not read the log's control records.
    least, most = response.features.get(FEATURE, (0, 0))
    version = s.controls.version
    if not 0 <= least <= version <= most:
        end = "" if FEATURE in response.features else ")"  # Kafka closes it only then
        text = (
            f"Aborted add voter operation for {_key(change.voter)} since the {FEATURE} range "
            f"(min: {least}, max: {most}{end} doesn't support the finalized version {version}"
        )
        _finish_change(s, role, ErrorCode.INVALID_REQUEST, text)
        return True
    # 12. A voter that lags behind raises the majority without adding to it: commits would stop
    # until it has caught up (Raft dissertation, section 4.2.1).
    if not role.progress.is_caught_up(change.voter, s.now):
        text = f"Aborted add voter operation for {_key(change.voter)} since it is lagging behind"
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, text)
        return True
    voters = s.voters.add(Voter(change.voter, change.listeners, least, most))
    if voters is None:  # unreached: it was no voter when the change began, and no other has ended
        _finish_change(s, role, ErrorCode.DUPLICATE_VOTER, None)
        return True
    # 13. Uncommitted voter sets are in force (KIP-853, as in Raft): the new voter counts from here.
    batch = append_control(s, role, (Voters(voters.voters),))
    reply_to: int | None = change.reply_to
    # KIP-1186: auto join asks with AckWhenCommitted=false. The joining node may itself be needed
    # for the commit, and it fetches only after this answer has arrived.
    if not change.ack_when_committed:
        s.out.reply(change.reply_to, AddVoterResponse(ErrorCode.NONE))
        reply_to = None
    role.change = AwaitingCommit(reply_to, False, batch.end_offset, change.deadline)
    return True


def on_api_versions_failed(s: RaftState, correlation: int, failure: SendFailure) -> None:
    """The new voter could not be asked: check 10 fails like any error that it answers."""
    unsupported = failure == SendFailure.UNSUPPORTED_VERSION
    error = ErrorCode.UNSUPPORTED_VERSION if unsupported else ErrorCode.BROKER_NOT_AVAILABLE
    on_api_versions_response(s, correlation, ApiVersionsResponse(error))


def _no_versions(error: ErrorCode) -> str:
    return f"Aborted add voter operation for since API_VERSIONS returned an error {error.name}"


def _finish_change(s: RaftState, role: Leader, error: ErrorCode, message: str | None) -> None:
    """The pending change ends, committed (NONE) or not: answer its request."""
    assert role.change is not None
    answer_change(s, role.change, error, message)
    role.change = None


# -- RemoveRaftVoter ---------------------------------------------------------------------------
def on_remove_voter(s: RaftState, reply_to: int, request: RemoveVoterRequest) -> None:
    """Checks 1 to 3 and 5 to 8, then append the reduced voter set and wait for its commit.

    A leader may remove itself. It goes on leading without counting itself until the record is
    committed, then resigns (`high_watermark_moved`): no other node could commit the record sooner.
    """
    problem = _remove_problem(s, request)
    if problem is not None:
        refuse(s, reply_to, request, *problem)
        return
    role = s.role
    assert isinstance(role, Leader)
    # The exact key: an operator who names a lost directory must not remove its replacement.
    voters = s.voters.remove(request.voter)
    if voters is None:
        text = f"Cannot remove voter {_key(request.voter)} from the set of voters {_keys(s.voters)}"
        refuse(s, reply_to, request, ErrorCode.VOTER_NOT_FOUND, text)
        return
    batch = append_control(s, role, (Voters(voters.voters),))
    deadline = s.now + s.config.request_timeout_ms
    role.change = AwaitingCommit(reply_to, True, batch.end_offset, deadline)


def _remove_problem(
    s: RaftState, request: RemoveVoterRequest
) -> tuple[ErrorCode, str | None] | None:
    if wrong_cluster(s, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, _wrong_cluster_text(s, request.cluster_id)
    if error := leader_error(s, s.epoch):
        return error, None
    if request.voter.id < 0 or request.voter.directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    assert isinstance(s.role, Leader)
    return _change_blocked(s, s.role, "removing")


# -- UpdateRaftVoter ---------------------------------------------------------------------------
def on_update_voter(s: RaftState, reply_to: int, request: UpdateVoterRequest) -> None:
    """A voter reports its listeners and versions (`UpdateVoterHandler`); answered at once.

    At kraft.version 1 the leader appends a Voters record. At 0 it keeps the report in memory: the
    upgrade to 1 needs the directory ids and version ranges of all voters.
    """
    error = _update_problem(s, request)
    if error is not None:
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
            s.warn_sparingly("update of others", _wrong_cluster_text(s, request.cluster_id))
        refuse(s, reply_to, request, error)
        return
    role = s.role
    assert isinstance(role, Leader)
    low, high = request.min_kraft_version, request.max_kraft_version
    voter = Voter(request.voter, request.listeners, low, high)
    if s.controls.version > 0:
        before, voters = s.voters.get(voter.key.id), s.voters.update(voter)
        if voters is None:
            refuse(s, reply_to, request, ErrorCode.VOTER_NOT_FOUND)
            return
        assert before is not None
        _detect_duplicate_replica(s, before, voter)
        if move_is_refused(s, role, before, voter):
            refuse(s, reply_to, request, ErrorCode.REQUEST_TIMED_OUT)
            return
        append_control(s, role, (Voters(voters.voters),))
        endpoint_written(s, role, voter.key, s.usable(before.listeners))
    else:
        assert role.volatile_voters is not None
        voters = role.volatile_voters.update_ignoring_directory(voter)
        if voters is None:
            refuse(s, reply_to, request, ErrorCode.VOTER_NOT_FOUND)
            return
        role.volatile_voters = voters
        s.note(f"voter {voter.key} reported itself, kraft.version {low} to {high}")
    # Q1 of `progress`: the voter sends this in place of a Fetch, so it counts like one.
    update_check_quorum(s, role, request.voter)
    s.out.reply(
        reply_to, UpdateVoterResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints)
    )


def _detect_duplicate_replica(s: RaftState, before: Voter, voter: Voter) -> None:
    """Two nodes on copies of one directory report their addresses in turn, each fetch timeout."""
    if s.anomalies.record_listener_change(before, voter, s.config.fetch_timeout_ms, s.now):
        places = f"{s.usable(before.listeners)} and {s.usable(voter.listeners)}"
        sign = f"it is at {places} in turn"
        s.warn_sparingly(f"copies {voter.key}", duplicate_replica(voter.key, sign))


def _update_problem(s: RaftState, request: UpdateVoterRequest) -> ErrorCode | None:
    if wrong_cluster(s, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if error := leader_error(s, request.epoch):
        return error
    low, high = request.min_kraft_version, request.max_kraft_version
    named = any(listener.name == s.listener for listener in request.listeners)
    known = request.voter.id >= 0 and request.voter.directory_id != ZERO_UUID
    if not known or not named or _unreadable(request.listeners) or low < 0 or high < low:
        return ErrorCode.INVALID_REQUEST
    role = s.role
    assert isinstance(role, Leader)
    # REQUEST_TIMED_OUT is retriable: the voter reports again in the next period.
    if role.change is not None or role.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT
    if s.controls.version > 0 and _uncommitted(s, role) is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    return None if low <= s.controls.version <= high else ErrorCode.INVALID_REQUEST


# -- kraft.version 0 -> 1 ----------------------------------------------------------------------
def on_upgrade(s: RaftState, event: UpgradeKRaftVersion) -> None:
    """Raise kraft.version (`LeaderState.maybeAppendUpgradedKRaftVersion`).

    1. Only the leader upgrades.
    2. The present version: accepted, with the offset of the record that set it.
    3. Refuse a downgrade, an unknown version, and voters that do not support it.
    4. `validate_only` ends here.
    5. Append KRaftVersion and Voters in one batch: both are in force, and truncated, together.
    """
    role = s.role
    present = s.controls.version
    if not isinstance(role, Leader) or role.resign is not None:
        text = "Upgrade kraft version failed because the replica is not the current leader"
        s.out.proposals.append(Refused(event.token, ErrorCode.NOT_LEADER_OR_FOLLOWER, text))
        return
    if event.version == present:
        offset = s.controls.version_offset
        end = 0 if offset is None else offset + 1
        s.out.proposals.append(Accepted(event.token, end, end))
        return
    problem = _upgrade_problem(s, role, event.version)
    if problem is not None:
        s.out.proposals.append(Refused(event.token, ErrorCode.INVALID_UPDATE_VERSION, problem))
        return
    if event.validate_only:
        end = max(role.high_watermark, 0)
        s.out.proposals.append(Accepted(event.token, end, end))
        return
    assert role.volatile_voters is not None
    records: list[ControlRecord] = [KRaftVersion(event.version)]
    # The bootstrap snapshot may hold this voter set already; then the version record is enough.
    if role.volatile_voters != s.voters or not s.controls.has_voters:
        records.append(Voters(role.volatile_voters.voters))
    role.volatile_voters = None
    places = [(key, s.usable(s.voters.listeners(key.id))) for key in s.voters.keys]
    batch = append_control(s, role, tuple(records))
    for key, place in places:
        endpoint_written(s, role, key, place)
    s.note(f"kraft.version {event.version} at offset {batch.base_offset}")
    s.out.proposals.append(Accepted(event.token, batch.base_offset, batch.end_offset))


def _upgrade_problem(s: RaftState, role: Leader, version: int) -> str | None:
    present = s.controls.version
    what = f"Invalid upgrade of {FEATURE} from version {present} to {version}"
    if version < present:
        return f"{what} because the new version is a downgrade"
    voters = role.volatile_voters
    if voters is None or version > s.config.max_kraft_version:
        return what
    if not voters.supports(version):
        return f"Invalid upgrade of {FEATURE} to {version} because not all of the voters support it"
    # A voter that has not reported since this leader's election: at version 1 a vote is for an id
    # and a directory id, and an unknown one would match any disk.
    unknown = [str(key.id) for key in voters.keys if key.directory_id == ZERO_UUID]
    if unknown:
        return f"{what} because the directory id of voter {', '.join(unknown)} is not known yet"
    return None


# -- time, commit ------------------------------------------------------------------------------
def expire_change(s: RaftState, role: Leader) -> None:
    """Answer a change that takes longer than the request timeout.

    Its record, if appended, stays in the log and may still be committed, as in Kafka.
    """
    if role.change is not None and s.now >= role.change.deadline:
        s.note("voter change timed out")
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, None)


def high_watermark_moved(s: RaftState, role: Leader) -> None:
    """Answer a committed change; a leader outside the committed voter set resigns.

    Kafka resigns where it answers the RemoveRaftVoter request, so a leader whose removal is
    committed after the request's timeout leads on. Here the committed record decides.
    """
    change = role.change
    if isinstance(change, AwaitingCommit) and role.high_watermark >= change.end_offset:
        _finish_change(s, role, ErrorCode.NONE, None)
    offset = s.controls.voters_offset
    if offset is not None and offset < role.high_watermark and not s.is_voter:
        role.resign = "removed from the voter set"
