"""Who is to join by itself asks for it once in a fetch timeout (KIP-853, auto join)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.raft.inputs import Answered
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveVoterRequest,
    RemoveVoterResponse,
)
from quorate.raft.roles import Follower
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, names
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.raft.state import State


class Joins:
    def __init__(self) -> None:
        self._since: dict[int, tuple[Follower, int]] = {}
        """By node: whom it follows, and when it began to or last asked or was told, ms."""

    def look(self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State) -> None:
        """At the end of a step. Who sends its leader a Fetch could have asked it, too."""
        role, now = state.role, state.now
        if not isinstance(role, Follower) or not _is_to_join(twin, state):
            self._since.pop(twin.id, None)
            return
        known, since = self._since.get(twin.id, (role, now))
        requests = [send.request for send in effects.sends if send.to == state.leader_id]
        asks = any(isinstance(one, AddVoterRequest | RemoveVoterRequest) for one in requests)
        if known is not role or asks or any(map(_tells, happened)):
            since = now
        self._since[twin.id] = role, since
        late = now - since > state.config.fetch_timeout_ms
        if late and any(isinstance(one, FetchRequest | FetchSnapshotRequest) for one in requests):
            raise Violation(
                "who is to join asks for it",
                f"{twin} is to join {names(twin.voters)} by itself; it has fetched for "
                f"{now - since} ms from node {state.leader_id}, and not asked it",
            )


def _is_to_join(twin: Twin, state: State) -> bool:
    config = state.config
    may = config.auto_join and config.can_be_voter and twin.tip.kraft_version > 0
    return may and not is_voter(twin.voters, twin.key)


def _tells(item: Input) -> bool:
    """Is it an answer to such a request?"""
    return isinstance(item, Answered) and isinstance(
        item.response, AddVoterResponse | RemoveVoterResponse
    )
