"""Coverage points of UpdateRaftVoter requests that change one property of a voter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.messages import UpdateVoterRequest

if TYPE_CHECKING:
    from quorate.raft.ready import Send
    from quorate.raft.state import RaftState

SOFTWARE: Final = "an update was due only because a voter's software knew more"
LISTENER: Final = "an update was due only because of a second listener"
COVERAGE_POINTS: Final = (SOFTWARE, LISTENER)


def count_voter_updates(coverage: Counter[str], sends: Sequence[Send], state: RaftState) -> None:
    for send in sends:
        if not isinstance(send.request, UpdateVoterRequest) or state.controls.version < 1:
            continue
        request = send.request
        known = state.controls.voters.get(request.voter.id)
        if known is None:
            continue
        low, high = request.min_kraft_version, request.max_kraft_version
        before = (known.min_kraft_version, known.max_kraft_version)
        at, was = request.listeners, known.listeners
        if at == was and low <= before[0] and high >= before[1] and (low, high) != before:
            coverage[SOFTWARE] += 1
        if (low, high) == before and at != was and at[:1] == was[:1]:
            coverage[LISTENER] += 1
