"""What a leader owes: to go when no majority fetches, and when it was removed; and what those owe
who voted, and who heard a leader's goodbye."""

from __future__ import annotations

from quorate.raft.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    UpdateVoterRequest,
)
from quorate.raft.moves import CHECK_QUORUM_FACTOR
from quorate.raft.roles import Follower, Prospective, Unattached
from quorate.raft.state import State
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.observe import Violation

_LATEST = 2 * CHECK_QUORUM_FACTOR
"""In fetch timeouts: a majority counts from the first of its fetches to the last, and then for the
deadline that the last one sets."""


class Duties:
    """Watches every step of a leader; looks closer only when the time that it has is over."""

    def __init__(self) -> None:
        self._reigns: dict[int, tuple[int, int, int]] = {}
        """By node: its life, the epoch that it leads, and the end of the voter set in force."""
        self._until: dict[int, float] = {}
        self._stepped: dict[int, int] = {}
        """By node: when it led at the end of a step last, ms."""
        self._seen: dict[int, Entry] = {}
        """By node: the committed voter set that was looked at last."""

    def heard(self, twin: Twin, request: object, now_ms: int) -> None:
        """A replica asks what only a leader is asked; `now_ms` of the one that is asked."""
        if twin.heard_in != twin.election.epoch:
            twin.forget_heard()
            twin.heard_in = twin.election.epoch
        if isinstance(request, FetchRequest):
            twin.fetched(request.replica, request.offset)
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            twin.heard[request.replica] = now_ms
        elif isinstance(request, UpdateVoterRequest):
            twin.heard[request.voter] = now_ms

    def leads(self, twin: Twin, state: State) -> None:
        """It leads at the end of a step (KIP-595, check quorum; KAFKA-15489)."""
        newest = twin.tip.voters_entry
        reign = (twin.life, state.election.epoch, -1 if newest is None else newest.end)
        if newest is not None and newest is not self._seen.get(twin.id):
            self._stays(twin, newest)
        patience = _LATEST * state.config.fetch_timeout_ms
        still = state.now - self._stepped.get(twin.id, state.now)
        self._stepped[twin.id] = state.now
        if self._reigns.get(twin.id) != reign:
            self._reigns[twin.id] = reign
            self._until[twin.id] = state.now + patience
        elif still >= patience / 2:
            # It stood still for longer than it may lead alone: what had come meanwhile it takes
            # for news, as Kafka does, and that sets the last deadline.
            self._until[twin.id] = max(state.now + patience / 2, self._until[twin.id])
        elif state.now > self._until[twin.id]:
            heard = self._majority_heard(twin, state.now)
            self._until[twin.id] = max(heard + patience, self._until[twin.id])
            if state.now > self._until[twin.id]:
                raise Violation(
                    "check quorum",
                    f"{twin} leads epoch {reign[1]}, and since {state.now - heard} ms no majority "
                    f"of {names(twin.voters)} has fetched from it",
                )

    def voted(self, twin: Twin, state: State) -> None:
        """Who gives its vote away gives the candidate an election timeout, too (Raft, section
        3.4; `KafkaRaftClient.handleVoteRequest`)."""
        new, role = state.election, state.role
        if new.voted is None or new.voted.id == twin.id or new.voted == twin.election.voted:
            return
        if not isinstance(role, Unattached | Prospective) or not state.electable:
            return
        left = role.election_deadline - state.now
        if left < state.config.election_timeout_ms:
            raise Violation(
                "a vote gives time",
                f"{twin} has voted for {new.voted} in epoch {new.epoch} and would run itself in "
                f"{left} ms, before the election timeout",
            )

    def told_goodbye(self, twin: Twin, request: EndQuorumEpochRequest, state: State) -> None:
        """Who hears from its leader that it leads no more vouches for it no more."""
        role = state.role
        if isinstance(role, Follower) and role.has_fetched:
            present = (state.election.leader_id, state.election.epoch)
            if present == (request.leader.leader_id, request.leader.epoch):
                raise Violation(
                    "a goodbye is heard",
                    f"{twin} was told that node {present[0]} ends epoch {present[1]}, and vouches "
                    "for it",
                )

    def _majority_heard(self, twin: Twin, now_ms: int) -> int:
        """Since when enough of the voters in force have been heard; 0 when they never were."""
        others = [voter.key for voter in twin.voters if not matches(voter.key, twin.key)]
        needed = len(twin.voters) // 2 + 1 - is_voter(twin.voters, twin.key)
        if needed == 0:
            return now_ms
        times = sorted(
            (max((at for who, at in twin.heard.items() if matches(key, who)), default=0))
            for key in others
        )
        return times[-needed]

    def _stays(self, twin: Twin, newest: Entry) -> None:
        """Who is removed by a voter set that it knows to be committed leads no more."""
        if newest.end > twin.high.end:
            return
        self._seen[twin.id] = newest
        if not is_voter(twin.voters, twin.key):
            raise Violation(
                "a removed leader resigns",
                f"{twin} leads epoch {twin.election.epoch}; {newest} removed it and is committed",
            )
