"""What a leader tells of its quorum (DescribeQuorum), now and then: no world asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft.describe import describe
from quorate.sim.checks.duties import places_of
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, keys, names
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.raft.describe import QuorumDescription
    from quorate.raft.roles import Leader
    from quorate.raft.state import State

TRUE: Final = "a leader describes the quorum as it is"
_EVERY: Final = 64
_UNKNOWN: Final = -1


class Described:
    """Asks each leader once in so many of its steps."""

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        """By node: as leader."""

    def look(self, twin: Twin, role: Leader, state: State) -> None:
        steps = self._steps[twin.id] = self._steps.get(twin.id, 0) + 1
        if steps % _EVERY or not state.durable.election or _forgets(role, state):
            return
        found = describe(state, state.now)
        settled = twin.high.epoch == state.election.epoch
        committed = twin.high_watermark if settled else _UNKNOWN
        known = None if found is None else (found.leader_id, found.epoch, found.high_watermark)
        if found is None or known != (twin.id, state.election.epoch, committed):
            raise Violation(
                TRUE,
                f"{twin} leads epoch {state.election.epoch}, high watermark {committed}, and tells "
                f"of {known}",
            )
        _check_replicas(twin, found)


def _forgets(role: Leader, state: State) -> bool:
    """Would it drop observers that are gone? A question of the world would change it then."""
    least = state.now - state.config.limits.observer_session_ms
    rows = role.progress.observers.values()
    return any(row.last_fetch_ms <= least for row in rows)


def _check_replicas(twin: Twin, found: QuorumDescription) -> None:
    told = [row.key for row in found.voters]
    if set(told) != keys(twin.voters) or set(found.nodes) != set(twin.voters):
        told_of = ", ".join(map(str, told))
        raise Violation(
            TRUE, f"{twin} tells of the voters {{{told_of}}}; they are {names(twin.voters)}"
        )
    for row in (*found.voters, *found.observers):
        if row.key.id == twin.id:
            places = [twin.tip.end]
        elif twin.heard_in == found.epoch:
            places = [_UNKNOWN, *places_of(twin, row.key)]
        else:
            places = [_UNKNOWN]
        if row.log_end_offset not in places:
            raise Violation(
                TRUE, f"{twin} tells that {row.key} stands at {row.log_end_offset}, not at {places}"
            )
    for row in found.observers:
        if is_voter(twin.voters, row.key):
            raise Violation(TRUE, f"{twin} tells that {row.key}, a voter, is an observer")
