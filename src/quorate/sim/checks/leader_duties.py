"""Duties of a leader: check quorum, resignation and successors; and of those that voted or received
EndQuorumEpoch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import ReplicaKey
from quorate.raft.inputs import Resign, Shutdown
from quorate.raft.messages import (
    EndQuorumEpochRequest,
    FetchResponse,
    Response,
)
from quorate.raft.roles import Follower, Leader, Prospective, Resigned, Unattached
from quorate.replica.replica import Effects, Input
from quorate.sim.checks.disk_stalls import DISK_STALLED
from quorate.sim.checks.epoch_notifications import REMOVED
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import check_quorum_ms
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState

_LATEST = 3
"""The longest time of a leader without a majority, in fetch timeouts.

A majority counts from the first of its fetches to the last, and then until the deadline that the
last one sets. Where one other voter makes the majority, its last Fetch sets the deadline.
"""
_SLOW_MS = 20
"""A leader checks its next deadline after at most this time."""
_ENDS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE)
"""Errors of a Fetch that waited when the leader resigned: it had counted when it arrived."""
NOBODY_FETCHES = "(no fetch from"
"""In the note of a leader that resigns by check quorum."""


_REASONS = (NOBODY_FETCHES, DISK_STALLED, REMOVED)


class LeaderDutyCheck:
    """Checks every step of a leader; the closer look happens only when its deadline has passed."""

    def __init__(self) -> None:
        self._leaderships: dict[int, tuple[int, int, int]] = {}
        """By node: (incarnation, epoch, end offset of the voter set) of its leadership."""
        self._since: dict[int, int] = {}
        """By node: when that began, ms."""
        self._deadlines: dict[int, float] = {}
        self._stepped: dict[int, int] = {}
        """By node: its last step as the leader, ms."""
        self._checked_voters: dict[int, LoggedBatch] = {}
        """By node: the committed voter set that was checked last."""
        self._not_durable: set[int] = set()
        """Nodes that led at the end of their last step in an epoch that was not durable: no Fetch
        counts before that."""
        self._epoch_ended: dict[int, tuple[int, int]] = {}
        """By node: (incarnation, epoch) of the EndQuorumEpoch that it received from its leader."""

    def answered(
        self, model: ReplicaModel, reply_to: int, response: Response, state: RaftState
    ) -> None:
        """A successful response proves that the leader was connected when the request arrived.

        A Fetch that waited and returns new data counts once more in Kafka
        (`tryCompleteFetchRequest`). One that timed out does not.
        """
        asked = model.received.open_requests.pop(reply_to, None)
        if asked is None:
            return
        who, at_ms, known_high_watermark, position = asked
        if not isinstance(response, FetchResponse):
            if response.error == ErrorCode.NONE:
                model.received.last_served_ms[who] = max(
                    at_ms, model.received.last_served_ms.get(who, 0)
                )
            return
        positions = model.received.fetch_positions.get(who, [])
        found = positions.index(position) if position in positions else -1
        if response.error != ErrorCode.NONE or response.diverging or response.snapshot_id:
            if found >= 0 and not (model.was_leader and response.error in _ENDS):
                del positions[found]
            return
        model.received.last_served_ms[who] = max(at_ms, model.received.last_served_ms.get(who, 0))
        if response.records is not None or response.high_watermark > known_high_watermark:
            model.received.last_request_ms[who] = state.now
        if found >= 0:
            known = positions[0][1]
            del positions[:found]
            if position is not None and position[1] < known:
                _check_stored_offset(model, who, state)
        elif position is not None:
            positions.insert(0, position)

    def after_leader_step(self, model: ReplicaModel, state: RaftState) -> None:
        """The replica leads at the end of a step (KIP-595, check quorum; KAFKA-15489).

        "The leader should resign if it has not received a fetch from a majority of the voters
        within the timeout": one and a half fetch timeouts (`check_quorum_ms`).

        1. A change of incarnation, epoch or voter set starts a new deadline.
        2. A leader that was paused counts what had arrived meanwhile as new, as Kafka's does: half
           the time is added.
        3. When the deadline has passed, the last request of each voter decides whether a majority
           was heard since.
        """
        newest = model.tip.voters_entry
        leadership = (model.incarnation, state.election.epoch, -1 if newest is None else newest.end)
        if newest is not None and newest is not self._checked_voters.get(model.id):
            self._check_not_removed(model, newest)
        patience = float(_LATEST * state.config.fetch_timeout_ms)
        still = state.now - self._stepped.get(model.id, state.now)
        self._stepped[model.id] = state.now
        if not state.durable.election_is_durable:
            self._not_durable.add(model.id)
        elif model.id in self._not_durable:
            # Requests that arrived before the epoch was durable count from now on.
            self._not_durable.discard(model.id)
            self._deadlines[model.id] = max(state.now + patience, self._deadlines.get(model.id, 0))
        if self._leaderships.get(model.id) != leadership:
            self._leaderships[model.id] = leadership
            self._since[model.id] = state.now
            self._deadlines[model.id] = state.now + patience
        elif still > state.config.fetch_timeout_ms // 2 + _SLOW_MS:
            # The process was paused: a leader wakes each half fetch timeout. It counts requests
            # that arrived meanwhile as new, as Kafka does, and they set its last deadline.
            self._deadlines[model.id] = max(state.now + patience / 2, self._deadlines[model.id])
        elif state.now > self._deadlines[model.id]:
            needed = len(model.voters) // 2 + 1 - is_voter(model.voters, model.key)
            heard = self._majority_since(model, needed, state.now)
            if needed == 1 and state.durable.election_is_durable:
                patience = float(_deadline_ms(state))  # mypyc does not convert int to float
            self._deadlines[model.id] = max(heard + patience, self._deadlines[model.id])
            if state.now > self._deadlines[model.id]:
                raise ViolationError(
                    "check quorum",
                    f"{model} leads epoch {leadership[1]}; for {state.now - heard} ms no majority "
                    f"of {names(model.voters)} has fetched from it",
                )

    def resigned(
        self, model: ReplicaModel, happened: Sequence[Input], effects: Effects, state: RaftState
    ) -> None:
        """The replica led until this step. By check quorum it resigns only without a majority."""
        notes = effects.notes
        if effects.faulted is None:
            _check_reason(model, happened, notes, state)
        if model.id not in self._not_durable:
            _check_successors(model, state)
        if not any(NOBODY_FETCHES in note for note in notes):
            return
        patience = _deadline_ms(state)
        newest = model.tip.voters_entry
        leadership = (model.incarnation, state.election.epoch, -1 if newest is None else newest.end)
        since = (
            self._since[model.id] if self._leaderships.get(model.id) == leadership else state.now
        )
        since = max(since, state.now - patience)
        others = [voter.key for voter in model.voters if not matches(voter.key, model.key)]
        fetched = [
            key
            for key in others
            if any(
                at > since and matches(key, who)
                for who, at in model.received.last_served_ms.items()
            )
        ]
        if len(fetched) >= len(model.voters) // 2 + 1 - is_voter(model.voters, model.key):
            raise ViolationError(
                "leader with a majority stays",
                f"{model} resigns epoch {leadership[1]} without a majority of {names(model.voters)}; "
                f"within {patience} ms it has answered {', '.join(map(str, fetched)) or 'itself'}",
            )

    def vote_given(self, model: ReplicaModel, state: RaftState) -> None:
        """A voter that grants its vote resets its election timeout (Raft, section 3.4;
        `KafkaRaftClient.handleVoteRequest`)."""
        new, role = state.election, state.role
        if new.voted is None or new.voted.id == model.id or new.voted == model.election.voted:
            return
        if not isinstance(role, Unattached | Prospective) or not state.electable:
            return
        left = role.election_deadline - state.now
        if left < state.config.election_timeout_ms:
            raise ViolationError(
                "vote resets the election timeout",
                f"{model} voted for {new.voted} in epoch {new.epoch} and would start an election in "
                f"{left} ms, before the election timeout",
            )

    def epoch_end_received(
        self, model: ReplicaModel, request: EndQuorumEpochRequest, state: RaftState
    ) -> None:
        """The leader has ended its epoch: the follower no longer refuses pre-votes for its sake."""
        role = state.role
        ended = request.leader
        if (state.election.leader_id, state.election.epoch) != (ended.leader_id, ended.epoch):
            return
        if isinstance(role, Follower) or (isinstance(role, Prospective) and role.ended):
            self._epoch_ended[model.id] = model.incarnation, ended.epoch

    def after_other_step(self, model: ReplicaModel, state: RaftState) -> None:
        """The replica does not lead at the end of a step.

        After EndQuorumEpoch no response of that leader makes it a live leader again. A replica that
        has become unattached may find it again.
        """
        ended = self._epoch_ended.get(model.id)
        if ended is None:
            return
        role, election = state.role, state.election
        if ended != (model.incarnation, election.epoch) or not isinstance(
            role, Follower | Prospective
        ):
            del self._epoch_ended[model.id]
        elif isinstance(role, Follower) and role.has_fetched:
            raise ViolationError(
                "EndQuorumEpoch ends leadership",
                f"{model} received that node {election.leader_id} ends epoch {election.epoch}, and "
                "still follows it",
            )

    def _majority_since(self, model: ReplicaModel, needed: int, now_ms: int) -> int:
        """The time since which a majority of the voters was heard; 0 where it never was."""
        others = [voter.key for voter in model.voters if not matches(voter.key, model.key)]
        if needed == 0:
            return now_ms
        times = sorted(
            (
                max(
                    (at for who, at in model.received.last_request_ms.items() if matches(key, who)),
                    default=0,
                )
            )
            for key in others
        )
        return times[-needed]

    def _check_not_removed(self, model: ReplicaModel, newest: LoggedBatch) -> None:
        """A leader that its committed voter set does not contain must have resigned (KIP-853)."""
        if newest.end > model.committed_tip.end:
            return
        self._checked_voters[model.id] = newest
        if not is_voter(model.voters, model.key):
            raise ViolationError(
                "a removed leader resigns",
                f"{model} leads epoch {model.election.epoch}; {newest} removed it and is committed",
            )


def _deadline_ms(state: RaftState) -> int:
    """How long a leader stays after its last majority."""
    return check_quorum_ms(state.config.fetch_timeout_ms)


def _check_reason(
    model: ReplicaModel, happened: Sequence[Input], notes: Sequence[str], state: RaftState
) -> None:
    """A leader resigns on request or with a reason in its notes. Other checks verify the reason:
    check quorum, disk stalls and removals."""
    if any(isinstance(item, Resign | Shutdown) for item in happened):
        return
    if not any(why in note for why in _REASONS for note in notes):
        said = "; ".join(note for note in notes if "resigned" in note)
        raise ViolationError(
            "leader resigns with a reason",
            f'{model} led epoch {state.election.epoch} and resigns without a request: "{said}"',
        )


def _check_successors(model: ReplicaModel, state: RaftState) -> None:
    """PreferredSuccessors are the other voters by descending fetch offset
    (`LeaderState.nonLeaderVotersByDescendingFetchOffset`).

    The last Fetch of each voter counts. A Fetch of this very step may have arrived after the
    resignation.
    """
    role = state.role
    if not isinstance(role, Resigned) or model.received.epoch != state.election.epoch:
        return
    for first, second in pairwise(role.successors):
        most = max(fetch_offsets_of(model, first), default=-1)
        heard = any(
            positions and matches(second, key)
            for key, positions in model.received.fetch_positions.items()
        )
        fresh = any(
            at == state.now and matches(second, key)
            for key, at in model.received.last_request_ms.items()
        )
        least = min(fetch_offsets_of(model, second)) if heard and not fresh else -1
        if most < least:
            raise ViolationError(
                "successors are ordered by log",
                f"{model} resigns epoch {model.received.epoch} and names {first} before {second}; their "
                f"last fetch offsets are {most} and {least}",
            )


def _check_stored_offset(model: ReplicaModel, who: ReplicaKey, state: RaftState) -> None:
    """The leader stores the offset of the last Fetch, also where it decreased
    (`ReplicaState.updateFollowerState`).

    The replica's disk is an older copy, or an earlier request was delayed.
    """
    role = state.role
    row = role.progress.find(who) if isinstance(role, Leader) else None
    if row is not None and row.end_offset not in fetch_offsets_of(model, who):
        raise ViolationError(
            "leader uses the last Fetch offset",
            f"{model} stores {who} with log end {row.end_offset}; its last fetch offsets are "
            f"{', '.join(map(str, fetch_offsets_of(model, who)))}",
        )


def fetch_offsets_of(model: ReplicaModel, who: ReplicaKey) -> list[int]:
    """Fetch offsets that the leader may store for this node, whatever its directory."""
    known = (
        positions for key, positions in model.received.fetch_positions.items() if key.id == who.id
    )
    return [offset for positions in known for _, offset in positions]
