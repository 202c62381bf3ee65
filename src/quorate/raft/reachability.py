"""The leader tests whether a node answers at the endpoints of the voters (decision 14).

The voters reach each other at the endpoints of the voter set. A follower with a wrong endpoint goes
on fetching, so nothing fails until the leader does. Then no candidate can ask that voter for its vote.

1. A change of a voter's endpoint is written, and the leader sends BeginQuorumEpoch there until
   a node answers. A failure is a warning.
2. While no node answers at the endpoint of one voter, another voter's new endpoint is written only
   after a node has answered there. Until then its UpdateRaftVoter gets REQUEST_TIMED_OUT, which is
   retriable: the voter asks again in the next fetch timeout. A request to the new endpoint that
   fails is a warning.

A new leader sends BeginQuorumEpoch to every voter until a node answers there, so it knows it too.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, ReplicaKey
from quorate.raft.inputs import SendFailure
from quorate.raft.messages import BeginQuorumEpochRequest
from quorate.raft.reconfig_state import EndpointProbe
from quorate.raft.requests import InFlightRequest
from quorate.raft.roles import Leader
from quorate.raft.state import RaftState
from quorate.raft.values import Voter

HELD_FETCH_TIMEOUTS: Final = 3
"""How long a refused endpoint is tried; its voter asks again once in a fetch timeout."""


def move_is_refused(s: RaftState, role: Leader, before: Voter, after: Voter) -> bool:
    """Must this change of a voter's endpoints wait until a node answers at the new one?"""
    new = s.usable(after.listeners)
    if new is None or new == s.usable(before.listeners):
        return False
    key = after.key
    probe = role.probes.get(key.id)
    if probe is not None and probe.address == new and probe.is_answered:
        return False
    silent = [voter_id for voter_id in role.probes if _is_silent(s, role, voter_id, key.id)]
    if not silent:
        return False
    if probe is None or probe.address != new:
        role.probes[key.id] = probe = EndpointProbe(new, True)
    probe.until_ms = s.now + HELD_FETCH_TIMEOUTS * s.config.fetch_timeout_ms
    if probe.failed_ms is not None:
        s.warn_sparingly(f"refused endpoint of {key}", _refusal(s, role, key, new, silent))
    return True


def _refusal(s: RaftState, role: Leader, key: ReplicaKey, new: Address, silent: list[int]) -> str:
    """Why the endpoint is not written, after a request to it has failed."""
    wrong, reasons = [f"voter {key.id}"], [f"nobody answers at {new}"]
    for voter_id in silent:
        probe = role.probes[voter_id]
        place = f"at {probe.address} of voter {voter_id}"
        fetched_ms = role.progress.voters[voter_id].last_fetch_ms
        if probe.failed_ms is None:
            reasons.append(f"nobody has answered yet {place}")
        elif fetched_ms > probe.failed_ms:
            reasons.append(f"nor {place}, which is up")
            wrong.append(f"voter {voter_id}")
        elif s.now - max(fetched_ms, probe.failed_ms) >= s.config.fetch_timeout_ms:
            reasons.append(f"nor {place}, which does not fetch: it is down or cut off")
        else:
            reasons.append(f"nor {place}")
    return (
        f"the endpoint {new} of voter {key} is not written before somebody answers there: "
        f"{', '.join(reasons)}. A quorum without reachable voters cannot elect a leader. Correct "
        f"advertised.listeners of {' and '.join(wrong)}, and restart one node at a time"
    )


def _is_silent(s: RaftState, role: Leader, voter_id: int, moving_id: int) -> bool:
    """Does no node answer at the endpoint that the voter set has for this voter?"""
    probe = role.probes[voter_id]
    is_untried = not probe.is_moved and probe.failed_ms is None
    if voter_id == moving_id or probe.is_answered or is_untried:
        return False
    return probe.address == s.usable(s.voters.listeners(voter_id))


def unproven_endpoints(s: RaftState) -> dict[int, EndpointProbe]:
    """The endpoints of the other voters, at which no node has answered this new leader yet.

    A voter with a wrong endpoint may find the leader and fetch before the leader's first request.
    """
    found = {}
    for voter in s.voters.voters:
        address = s.usable(voter.listeners)
        if address is not None and voter.key != s.me:
            found[voter.key.id] = EndpointProbe(address, False)
    return found


def endpoint_written(s: RaftState, role: Leader, key: ReplicaKey, old: Address | None) -> None:
    """The voter set has listeners for this voter: watch the address if it is another than `old`."""
    new = s.usable(s.voters.listeners(key.id))
    if new is None or new == old or key == s.me:
        return
    probe = role.probes.pop(key.id, None)
    if probe is None or probe.address != new or not probe.is_answered:
        role.probes[key.id] = EndpointProbe(new, True)


def probed(s: RaftState, role: Leader) -> list[ReplicaKey]:
    """The voters that get BeginQuorumEpoch although they fetch; forgets what is out of date."""
    for voter_id, probe in list(role.probes.items()):
        expired = probe.until_ms is not None and s.now >= probe.until_ms
        if expired or s.voters.get(voter_id) is None:
            del role.probes[voter_id]
    return [
        key
        for key in s.voters.keys
        if key.id in role.probes and not role.probes[key.id].is_answered
    ]


def begin_address(s: RaftState, role: Leader, voter_id: int) -> Address | None:
    """The address to send BeginQuorumEpoch to: the address under test, else the voter's endpoint."""
    probe = role.probes.get(voter_id)
    if probe is not None and not probe.is_answered:
        return probe.address
    return s.usable(s.voters.listeners(voter_id))


def begin_sent(role: Leader, voter_id: int, correlation: int) -> None:
    probe = role.probes.get(voter_id)
    if probe is not None:
        probe.correlation = correlation
        last_ms = role.progress.voters[voter_id].last_fetch_ms
        probe.is_up = probe.failed_ms is not None and last_ms > probe.failed_ms


def begin_answered(s: RaftState, role: Leader, flight: InFlightRequest, error: ErrorCode) -> None:
    """A node answered BeginQuorumEpoch; INVALID_VOTER_KEY means that it is another node."""
    if error == ErrorCode.INVALID_VOTER_KEY:
        _failed(s, role, flight, "another node answers", is_other=True)
        return
    probe = role.probes.get(flight.to)
    if probe is None or probe.correlation != flight.correlation:
        return
    if probe.until_ms is None:
        del role.probes[flight.to]
    else:
        probe.is_answered = True


def begin_failed(s: RaftState, role: Leader, flight: InFlightRequest, failure: SendFailure) -> None:
    """No node answered BeginQuorumEpoch, or a node that knows no such version of it."""
    if failure == SendFailure.UNSUPPORTED_VERSION:
        begin_answered(s, role, flight, ErrorCode.UNSUPPORTED_VERSION)
    else:
        _failed(s, role, flight, f"nobody answers ({failure.value})")


def _failed(
    s: RaftState, role: Leader, flight: InFlightRequest, what: str, *, is_other: bool = False
) -> None:
    request, probe = flight.request, role.probes.get(flight.to)
    address = s.usable(s.voters.listeners(flight.to))
    if not isinstance(request, BeginQuorumEpochRequest) or address is None:
        return
    if probe is None:
        role.probes[flight.to] = probe = EndpointProbe(address, False)
    elif probe.correlation != flight.correlation:
        return  # it was sent to the voter's endpoint before this one
    if probe.failed_ms is None:
        probe.failed_ms = s.now
    # A voter that had not fetched between the first failure and this request was down: no endpoint is
    # wrong, and the request may fail after the voter is back.
    # Another node at an endpoint that has not changed is the voter with a new directory, of which the
    # response to it warns.
    if probe.until_ms is None and (probe.is_moved or (probe.is_up and not is_other)):
        s.warn_sparingly(
            f"silent endpoint {probe.address} of {flight.to}",
            f"{what} at {probe.address}, the endpoint of voter {request.voter} in the voter set: the "
            "other voters cannot ask it for its vote, nor can clients find it. Correct its "
            "advertised.listeners and restart it",
        )
