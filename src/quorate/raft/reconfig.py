"""Voter changes as the leader makes them: Add, Remove, Update, and the upgrade to kraft.version 1.

One change at a time: Idle -> AskingVersions (Add only) -> AwaitingCommit -> Idle. The numbered
checks are those of the reference, 5.9, in its order; the messages are Kafka's (AddVoterHandler,
RemoveVoterHandler, UpdateVoterHandler, LeaderState).
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Listeners, ReplicaKey
from quorate.raft.answers import leader_error, refuse, wrong_cluster
from quorate.raft.doubts import copies
from quorate.raft.inputs import Failure, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.moves import answer_change, append_control, heard_from
from quorate.raft.ready import Accepted, Refused
from quorate.raft.reconfig_state import AskingVersions, AwaitingCommit
from quorate.raft.roles import Leader
from quorate.raft.state import State
from quorate.raft.values import ControlRecord, KRaftVersion, Voter, Voters
from quorate.raft.voters import VoterSet

FEATURE = "kraft.version"


def _keys(voters: VoterSet) -> str:
    return "[" + ", ".join(_key(key) for key in voters.keys) + "]"


def _key(key: ReplicaKey) -> str:
    directory = "<undefined>" if key.directory_id == ZERO_UUID else str(key).split("-", 1)[1]
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def _busy(s: State, role: Leader, verb: str) -> tuple[ErrorCode, str] | None:
    """Checks 5 to 8: no other change under way, epoch and last change committed, version 1."""
    if role.change is not None:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to handle previous voter change request"
        )
    if role.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT, (
            "Request timed out waiting for leader to establish HWM and fence previous voter changes"
        )
    if s.controls.version < 1:
        return ErrorCode.UNSUPPORTED_VERSION, (
            f"Cluster doesn't support {verb} voter because the {FEATURE} feature is "
            f"{s.controls.version}"
        )
    return _uncommitted(s, role)


def _uncommitted(s: State, role: Leader) -> tuple[ErrorCode, str] | None:
    offset = s.controls.voters_offset
    if offset is None or offset >= role.high_watermark:
        at = "Optional.empty" if offset is None else f"Optional[{offset}]"
        return ErrorCode.REQUEST_TIMED_OUT, (
            f"Request timed out waiting for voters to commit the latest voter change at {at} with "
            f"HWM {role.high_watermark}"
        )
    return None


# -- AddRaftVoter ------------------------------------------------------------------------------
def on_add_voter(s: State, reply_to: int, request: AddVoterRequest) -> None:
    """Checks 1 to 9, then ask the new voter for its versions."""
    problem = _add_problem(s, request)
    if problem is not None:
        refuse(s, reply_to, request, *problem)
        return
    role = s.role
    assert isinstance(role, Leader)
    address = s.usable(request.listeners)
    voter = request.voter
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


def _add_problem(s: State, request: AddVoterRequest) -> tuple[ErrorCode, str | None] | None:
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
    if what := _unreadable(request.listeners):
        return ErrorCode.INVALID_REQUEST, f"Add voter request included {what}"
    assert isinstance(s.role, Leader)
    if busy := _busy(s, s.role, "adding"):
        return busy
    if s.voters.get(voter.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, (
            f"The voter id for {_key(voter)} is already part of the set of voters "
            f"{_keys(s.voters)}."
        )
    return None


def _unreadable(listeners: Listeners) -> str | None:
    """What must not stand in a voter set, if anything.

    Kafka's nodes end when they read one with a listener that has no name, and at each start; of
    two listeners of one name they go by the last, where this one goes by the first.
    """
    names = {listener.name for listener in listeners}
    if "" in names:
        return "a listener without a name"
    return "two listeners of one name" if len(names) < len(listeners) else None


def _endpoints(request: AddVoterRequest) -> str:
    inner = ", ".join(f"ListenerName({e.name})={e.host}:{e.port}" for e in request.listeners)
    return f"Endpoints(endpoints={{{inner}}})"


def _wrong_cluster_text(s: State, cluster_id: str | None) -> str:
    return f'The given id "{cluster_id}" doesn\'t match the cluster id "{s.config.cluster_id}"'


def on_api_versions_response(s: State, correlation: int, response: ApiVersionsResponse) -> bool:
    """Checks 10 to 12, then the new voter set goes into the log and rules."""
    role = s.role
    if not isinstance(role, Leader) or not isinstance(role.change, AskingVersions):
        return True
    change = role.change
    if change.correlation != correlation:
        return True
    if response.error != ErrorCode.NONE:
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, _no_versions(response.error))
        return False
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
    if not role.progress.is_caught_up(change.voter, s.now):
        text = f"Aborted add voter operation for {_key(change.voter)} since it is lagging behind"
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, text)
        return True
    voters = s.voters.add(Voter(change.voter, change.listeners, least, most))
    if voters is None:
        _finish_change(s, role, ErrorCode.DUPLICATE_VOTER, None)
        return True
    batch = append_control(s, role, (Voters(voters.voters),))
    reply_to: int | None = change.reply_to
    if not change.ack_when_committed:
        s.out.reply(change.reply_to, AddVoterResponse(ErrorCode.NONE))
        reply_to = None
    role.change = AwaitingCommit(reply_to, False, batch.end_offset, change.deadline)
    return True


def on_api_versions_failed(s: State, correlation: int, failure: Failure) -> None:
    """The new voter could not be asked."""
    unsupported = failure == Failure.UNSUPPORTED_VERSION
    error = ErrorCode.UNSUPPORTED_VERSION if unsupported else ErrorCode.BROKER_NOT_AVAILABLE
    on_api_versions_response(s, correlation, ApiVersionsResponse(error))


def _no_versions(error: ErrorCode) -> str:
    return f"Aborted add voter operation for since API_VERSIONS returned an error {error.name}"


def _finish_change(s: State, role: Leader, error: ErrorCode, message: str | None) -> None:
    """The change under way is over, committed (NONE) or not: answer whoever waits for it."""
    assert role.change is not None
    answer_change(s, role.change, error, message)
    role.change = None


# -- RemoveRaftVoter ---------------------------------------------------------------------------
def on_remove_voter(s: State, reply_to: int, request: RemoveVoterRequest) -> None:
    problem = _remove_problem(s, request)
    if problem is not None:
        refuse(s, reply_to, request, *problem)
        return
    role = s.role
    assert isinstance(role, Leader)
    voters = s.voters.remove(request.voter)
    if voters is None:
        text = f"Cannot remove voter {_key(request.voter)} from the set of voters {_keys(s.voters)}"
        refuse(s, reply_to, request, ErrorCode.VOTER_NOT_FOUND, text)
        return
    batch = append_control(s, role, (Voters(voters.voters),))
    deadline = s.now + s.config.request_timeout_ms
    role.change = AwaitingCommit(reply_to, True, batch.end_offset, deadline)


def _remove_problem(s: State, request: RemoveVoterRequest) -> tuple[ErrorCode, str | None] | None:
    if wrong_cluster(s, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, _wrong_cluster_text(s, request.cluster_id)
    if error := leader_error(s, s.epoch):
        return error, None
    if request.voter.id < 0 or request.voter.directory_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    assert isinstance(s.role, Leader)
    return _busy(s, s.role, "removing")


# -- UpdateRaftVoter ---------------------------------------------------------------------------
def on_update_voter(s: State, reply_to: int, request: UpdateVoterRequest) -> None:
    """At kraft.version 1 a new record, at 0 the leader's memory; answered at once either way."""
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
        _look_for_copies(s, before, voter)
        append_control(s, role, (Voters(voters.voters),))
    else:
        assert role.volatile_voters is not None
        voters = role.volatile_voters.update_ignoring_directory(voter)
        if voters is None:
            refuse(s, reply_to, request, ErrorCode.VOTER_NOT_FOUND)
            return
        role.volatile_voters = voters
        s.note(f"voter {voter.key} reported itself, kraft.version {low} to {high}")
    heard_from(s, role, request.voter)
    s.out.reply(
        reply_to, UpdateVoterResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints)
    )


def _look_for_copies(s: State, before: Voter | None, voter: Voter) -> None:
    """Two nodes on copies of one directory report their addresses in turn, once a fetch timeout."""
    assert before is not None
    if s.doubts.moved(before, voter, s.config.fetch_timeout_ms, s.now):
        places = f"{s.usable(before.listeners)} and {s.usable(voter.listeners)}"
        sign = f"it is at {places} in turn"
        s.warn_sparingly(f"copies {voter.key}", copies(voter.key, sign))


def _update_problem(s: State, request: UpdateVoterRequest) -> ErrorCode | None:
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
    if role.change is not None or role.high_watermark < 0:
        return ErrorCode.REQUEST_TIMED_OUT
    if s.controls.version > 0 and _uncommitted(s, role) is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    if s.controls.version == 0 and role.volatile_voters is None:
        return ErrorCode.REQUEST_TIMED_OUT
    return None if low <= s.controls.version <= high else ErrorCode.INVALID_REQUEST


# -- kraft.version 0 -> 1 ----------------------------------------------------------------------
def on_upgrade(s: State, event: UpgradeKRaftVersion) -> None:
    """`LeaderState.maybeAppendUpgradedKRaftVersion`; no change is accepted where it stands."""
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
    if role.volatile_voters != s.voters or not s.controls.own:
        records.append(Voters(role.volatile_voters.voters))
    role.volatile_voters = None
    batch = append_control(s, role, tuple(records))
    s.note(f"kraft.version {event.version} at offset {batch.base_offset}")
    s.out.proposals.append(Accepted(event.token, batch.base_offset, batch.end_offset))


def _upgrade_problem(s: State, role: Leader, version: int) -> str | None:
    present = s.controls.version
    what = f"Invalid upgrade of {FEATURE} from version {present} to {version}"
    if version < present:
        return f"{what} because the new version is a downgrade"
    voters = role.volatile_voters
    if voters is None or version > s.config.max_kraft_version:
        return what
    if not voters.supports(version):
        return f"Invalid upgrade of {FEATURE} to {version} because not all of the voters support it"
    unknown = [str(key.id) for key in voters.keys if key.directory_id == ZERO_UUID]
    if unknown:
        return f"{what} because the directory id of voter {', '.join(unknown)} is not known yet"
    return None


# -- time, commit ------------------------------------------------------------------------------
def expire_change(s: State, role: Leader) -> None:
    if role.change is not None and s.now >= role.change.deadline:
        s.note("voter change timed out")
        _finish_change(s, role, ErrorCode.REQUEST_TIMED_OUT, None)


def high_watermark_moved(s: State, role: Leader) -> None:
    """A change that is committed is answered; a leader that is no voter any more resigns.

    Better than Kafka: it resigns too when the removal was committed after the request's timeout.
    """
    change = role.change
    if isinstance(change, AwaitingCommit) and role.high_watermark >= change.end_offset:
        _finish_change(s, role, ErrorCode.NONE, None)
    offset = s.controls.voters_offset
    if offset is not None and offset < role.high_watermark and not s.is_voter:
        role.resign = "removed from the voter set"
