"""A replica requests to be woken before its next deadline.

A late step first does what was due, so nothing overdue is visible at its end. The check compares
the requested wake-up time with what the replica still has to do. `fetch_responses` and
`voter_changes` check the deadlines of responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quorate.raft.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorate.sim.checks.messages import message_words
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import FOREVER
from quorate.sim.checks.voters import is_voter
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects
    from quorate.sim.world.observable import SimulatedNode

WAKES: Final = "wake-up time"
PATIENCE: Final = "election timer bound"
DONE: Final = "step completes all due work"


def check_wake_time(model: ReplicaModel, effects: Effects, state: RaftState) -> None:
    """Check a whole step: no deadline passes before the next one."""
    wakes = FOREVER if effects.wake_at_ms is None else effects.wake_at_ms
    if wakes <= state.now + 1 or effects.is_over:
        return
    if state.shutdown_deadline is not None:
        _check_wakes_by(model, state, wakes, state.shutdown_deadline, "its shutdown times out")
        return
    role = state.role
    if isinstance(role, Leader):
        if not _is_alone(model):
            _check_wakes_by(model, state, wakes, role.check_deadline, "check quorum ends its epoch")
            _check_wakes_by(
                model, state, wakes, role.begin_deadline, "voters that do not fetch are notified"
            )
    elif isinstance(role, Follower):
        if role.update_deadline > state.now:
            _check_wakes_by(model, state, wakes, role.update_deadline, "it updates its voter")
        if wakes > role.fetch_deadline and state.electable and state.installing is None:
            _check_wakes_by(model, state, wakes, role.fetch_deadline, "its fetch timeout ends")
        _check_fetch(model, state, wakes)
    elif isinstance(role, Unattached):
        if state.installing is None:
            _check_wakes_by(
                model, state, wakes, role.election_deadline, "its election timeout ends"
            )
        _check_fetch(model, state, wakes)
    else:
        _check_wakes_by(model, state, wakes, role.election_deadline, "its election timeout ends")
        _check_requests(model, state, role, wakes)


def check_nothing_left(
    model: ReplicaModel, process: SimulatedNode, effects: Effects, state: RaftState
) -> None:
    """Check that a step that requests no other one soon leaves nothing to do.

    The check steps the replica again at the same time and without an input. A second step must have
    no effect.
    """
    replica, wakes = process.replica, effects.wake_at_ms
    if replica is None or effects.is_over or (wakes is not None and wakes <= state.now + 1):
        return
    # The extra step must not consume the replica's random numbers.
    rng, state.random = state.random, _constant_random
    more = replica.step((), process.now)
    state.random = rng
    undone = [
        *(message_words(send.request) for send in more.sends),
        *(message_words(answer.response) for answer in more.answers),
        *(f"{type(job).__name__} for its disk" for job in more.jobs),
        *(f"{type(one).__name__} for {one.token}" for one in more.outcomes),
        *([] if more.faulted is None else [more.faulted]),
        *([] if more.leader is None else ["to report the leader"]),
    ]
    if undone:
        sleeps = "until something happens" if wakes is None else f"for {wakes - state.now} ms"
        raise ViolationError(
            DONE,
            f"{model} would sleep {sleeps} as {type(state.role).__name__.lower()} and has left "
            f"undone: {'; '.join(undone)}",
        )


def check_election_timers(model: ReplicaModel, state: RaftState) -> None:
    """The election timers of a voter are bounded.

    1. A follower: the fetch timeout and an offset by rank.
    2. A successor after EndQuorumEpoch: its turn by rank.
    3. Others: at most twice the election timeout and a backoff.
    """
    role, config = state.role, state.config
    if not state.electable or isinstance(role, Leader):
        return
    if isinstance(role, Follower):
        # The rank is that of the voter set when the wait began; each rank adds a twentieth.
        due = role.fetch_deadline
        most = max(config.fetch_timeout_ms * 7 // 4, config.election_backoff_max_ms)
    else:
        due = role.election_deadline
        most = 2 * config.election_timeout_ms + config.election_backoff_max_ms
    if state.now + most < due < FOREVER:
        raise ViolationError(
            PATIENCE,
            f"{model} waits {due - state.now} ms as {type(role).__name__.lower()}; the limit of its "
            f"configuration is {most} ms",
        )


def _constant_random() -> float:
    return 0.0


def _is_alone(model: ReplicaModel) -> bool:
    return len(model.voters) == 1 and is_voter(model.voters, model.key)


def _check_wakes_by(model: ReplicaModel, state: RaftState, wakes: int, due: int, what: str) -> None:
    if wakes > due:
        until = "for ever" if wakes >= FOREVER else f"for {wakes - state.now} ms"
        raise ViolationError(
            WAKES,
            f"{model} sleeps {until} as {type(state.role).__name__.lower()}; in {due - state.now} "
            f"ms {what}",
        )


def _check_fetch(model: ReplicaModel, state: RaftState, wakes: int) -> None:
    """A replica that may fetch waits for one response, or for the end of one backoff."""
    durable, requests, now = state.durable, state.requests, state.now
    for flight in requests.by_node.values():
        if now < flight.expires_ms:
            _check_wakes_by(model, state, wakes, flight.expires_ms, "its request times out")
            return
    if (
        not durable.election_is_durable
        or not durable.log_is_durable
        or state.installing is not None
    ):
        return
    backoff = requests.backoff_until
    rest = backoff.get(state.leader_id, 0) if isinstance(state.role, Follower) else 0
    if rest <= now:
        rest = min((end for end in backoff.values() if end > now), default=now)
    if isinstance(state.role, Follower) or requests.bootstrap:
        _check_wakes_by(model, state, wakes, rest, "it may fetch")


def _check_requests(
    model: ReplicaModel, state: RaftState, role: Prospective | Candidate | Resigned, wakes: int
) -> None:
    """A peer that it has still to ask for a vote, or to notify, waits for the backoff at most."""
    whom: Iterable[int] = ()
    if isinstance(role, Resigned):
        if state.durable.election_is_durable:
            whom = role.unacknowledged
    elif (
        state.durable.election_is_durable and state.durable.log_is_durable and not role.ballot.lost
    ):
        whom = [key.id for key in role.ballot.open]
    requests = state.requests
    listeners = {voter.key.id: voter.listeners for voter in model.voters}
    for node_id in whom:
        if node_id == model.id or not listeners.get(node_id):
            continue
        flight = requests.by_node.get(node_id)
        rest = max(
            requests.backoff_until.get(node_id, 0), 0 if flight is None else flight.expires_ms
        )
        _check_wakes_by(model, state, wakes, rest, f"it sends to node {node_id} again")
