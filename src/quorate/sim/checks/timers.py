"""A replica asks to be woken in time.

What is overdue at the end of a step is never seen: a step that comes late does first what was due.
So what a replica still has to do is held against the time for which it asks to be woken; what a
leader owes to who fetches, and to operators, is in `fetches` and `changes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from quorate.raft.roles import NEVER, Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter
from quorate.sim.checks.words import message_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects
    from quorate.raft.state import State
    from quorate.sim.process import Process

WAKES: Final = "a replica wakes in time"
PATIENCE: Final = "a voter waits for a leader only so long"
DONE: Final = "a step leaves nothing undone"


def check_wakes(twin: Twin, effects: Effects, state: State) -> None:
    """At the end of a step: nothing is due before the next one."""
    wakes = NEVER if effects.wake_at_ms is None else effects.wake_at_ms
    if wakes <= state.now + 1 or effects.is_over:
        return
    if state.shutdown_deadline is not None:
        _hold(twin, state, wakes, state.shutdown_deadline, "it must have stopped")
        return
    role = state.role
    if isinstance(role, Leader):
        if not _is_alone(twin):
            _hold(twin, state, wakes, role.check_deadline, "check quorum ends its epoch")
            _hold(twin, state, wakes, role.begin_deadline, "silent voters are told of its epoch")
    elif isinstance(role, Follower):
        if role.update_deadline > state.now:
            _hold(twin, state, wakes, role.update_deadline, "it sees to its place in the voter set")
        if wakes > role.fetch_deadline and state.electable and state.installing is None:
            _hold(twin, state, wakes, role.fetch_deadline, "it runs, for its leader is silent")
        _check_fetches(twin, state, wakes)
    elif isinstance(role, Unattached):
        if state.installing is None:
            _hold(twin, state, wakes, role.election_deadline, "it runs, for it knows no leader")
        _check_fetches(twin, state, wakes)
    else:
        _hold(twin, state, wakes, role.election_deadline, "its election timeout is over")
        _check_asks(twin, state, role, wakes)


def check_done(twin: Twin, process: Process, effects: Effects, state: State) -> None:
    """At the end of a step that asks for no other one soon: nothing is left to do. Were it asked
    again, at the same time and with nothing new, it would do nothing."""
    replica, wakes = process.replica, effects.wake_at_ms
    if replica is None or effects.is_over or (wakes is not None and wakes <= state.now + 1):
        return
    luck, state.random = state.random, _no_luck  # of its own it has as much as before
    more = replica.step((), process.now)
    state.random = luck
    undone = [
        *(message_words(send.request) for send in more.sends),
        *(message_words(answer.response) for answer in more.answers),
        *(f"{type(job).__name__} for its disk" for job in more.jobs),
        *(f"{type(told).__name__} for {told.token}" for told in more.outcomes),
        *([] if more.faulted is None else [more.faulted]),
        *([] if more.leader is None else ["to say who leads"]),
    ]
    if undone:
        sleeps = "until something happens" if wakes is None else f"for {wakes - state.now} ms"
        raise Violation(
            DONE,
            f"{twin} would sleep {sleeps} as {type(state.role).__name__.lower()}, and has left "
            f"undone: {'; '.join(undone)}",
        )


def check_patience(twin: Twin, state: State) -> None:
    """A voter waits for a leader no longer than its configuration says: the fetch timeout and a
    little by rank, its turn among the successors of one that has ended, or at most twice the
    election timeout and a backoff."""
    role, config = state.role, state.config
    if not state.electable or isinstance(role, Leader):
        return
    if isinstance(role, Follower):
        # The rank is that among the voters of when it began to wait, a twentieth each.
        due = role.fetch_deadline
        most = max(config.fetch_timeout_ms * 7 // 4, config.election_backoff_max_ms)
    else:
        due = role.election_deadline
        most = 2 * config.election_timeout_ms + config.election_backoff_max_ms
    if state.now + most < due < NEVER:
        raise Violation(
            PATIENCE,
            f"{twin} waits {due - state.now} ms as {type(role).__name__.lower()}; by its "
            f"configuration it does so for {most} ms at the most",
        )


def _no_luck() -> float:
    return 0.0


def _is_alone(twin: Twin) -> bool:
    return len(twin.voters) == 1 and is_voter(twin.voters, twin.key)


def _hold(twin: Twin, state: State, wakes: int, due: int, what: str) -> None:
    if wakes > due:
        until = "for ever" if wakes >= NEVER else f"for {wakes - state.now} ms"
        raise Violation(
            WAKES,
            f"{twin} sleeps {until} as {type(state.role).__name__.lower()}; in {due - state.now} "
            f"ms {what}",
        )


def _check_fetches(twin: Twin, state: State, wakes: int) -> None:
    """Whoever may fetch waits for one answer, or for one to whom it gives a rest."""
    durable, requests, now = state.durable, state.requests, state.now
    for flight in requests._by_node.values():
        if now < flight.expires_ms:
            _hold(twin, state, wakes, flight.expires_ms, "its request is in vain")
            return
    if not durable.election or not durable.log or state.installing is not None:
        return
    backoff = requests._backoff
    rest = backoff.get(state.leader_id, 0) if isinstance(state.role, Follower) else 0
    if rest <= now:
        rest = min((end for end in backoff.values() if end > now), default=now)
    if isinstance(state.role, Follower) or requests.bootstrap:
        _hold(twin, state, wakes, rest, "it may fetch")


def _check_asks(
    twin: Twin, state: State, role: Prospective | Candidate | Resigned, wakes: int
) -> None:
    """Whom it still has to ask for a vote, or to tell of its end, waits for no more than a rest."""
    whom: Iterable[int] = ()
    if isinstance(role, Resigned):
        if state.durable.election:
            whom = role.unacknowledged
    elif state.durable.election and state.durable.log and not role.ballot.lost:
        whom = [key.id for key in role.ballot.open]
    requests = state.requests
    listeners = {voter.key.id: voter.listeners for voter in twin.voters}
    for node_id in whom:
        if node_id == twin.id or not listeners.get(node_id):
            continue
        flight = requests._by_node.get(node_id)
        rest = max(requests._backoff.get(node_id, 0), 0 if flight is None else flight.expires_ms)
        _hold(twin, state, wakes, rest, f"it asks node {node_id} again")
