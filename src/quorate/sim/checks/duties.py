"""What a leader owes: to go when no majority fetches, and when it was removed, and else to stay.
And what those owe who voted, and who heard a leader's goodbye."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from quorate.base.errors import ErrorCode
from quorate.base.ids import ReplicaKey
from quorate.node.replica import Effects, Input
from quorate.raft.inputs import Resign, Shutdown
from quorate.raft.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    Response,
    UpdateVoterRequest,
)
from quorate.raft.moves import CHECK_QUORUM_FACTOR
from quorate.raft.roles import Follower, Leader, Prospective, Resigned, Unattached
from quorate.raft.state import State
from quorate.sim.checks.goodbyes import REMOVED
from quorate.sim.checks.history import Entry
from quorate.sim.checks.stalls import DISK_HANGS
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import is_voter, matches, names
from quorate.sim.observe import Violation

_LATEST = 2 * CHECK_QUORUM_FACTOR
"""In fetch timeouts: a majority counts from the first of its fetches to the last, and then for the
deadline that the last one sets. Where one voter beside the leader is enough, its last Fetch sets
it."""
_SLOW_MS = 20
"""A step may take so long before the next deadline is looked at."""
_ANY = -1
"""A high watermark that every good answer is news to."""
_ENDS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE)
"""What is said to a Fetch that waits, when the leader ends: it had counted when it came."""
NOBODY_FETCHES = "(no fetch from"
"""In the note of a leader that resigns by check quorum."""


_REASONS = (NOBODY_FETCHES, DISK_HANGS, REMOVED)


class Duties:
    """Watches every step of a leader; looks closer only when the time that it has is over."""

    def __init__(self) -> None:
        self._reigns: dict[int, tuple[int, int, int]] = {}
        """By node: its life, the epoch that it leads, and the end of the voter set in force."""
        self._since: dict[int, int] = {}
        """By node: when that began, ms."""
        self._until: dict[int, float] = {}
        self._stepped: dict[int, int] = {}
        """By node: when it led at the end of a step last, ms."""
        self._seen: dict[int, Entry] = {}
        """By node: the committed voter set that was looked at last."""
        self._silent: set[int] = set()
        """Nodes that led at the end of their last step in an epoch that was not durable: no Fetch
        counts before that."""
        self._ended: dict[int, tuple[int, int]] = {}
        """By node: its life, and the epoch whose leader has told it that it ends."""

    def heard(self, twin: Twin, reply_to: int, request: object, now_ms: int) -> None:
        """A replica asks what only a leader is asked; `now_ms` of the one that is asked."""
        if twin.heard_in != twin.election.epoch:
            twin.forget_heard()
            twin.heard_in = twin.election.epoch
        place = None
        if isinstance(request, FetchRequest):
            twin.fetched(request.replica, request.offset, now_ms)
            place = (reply_to, request.offset)
            twin.places.setdefault(request.replica, []).append(place)
            told = request.high_watermark
        else:
            told = _ANY
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            who = request.replica
        elif isinstance(request, UpdateVoterRequest):
            who = request.voter
        else:
            return
        twin.heard[who] = now_ms
        twin.askers.append(who)
        twin.waiting[reply_to] = who, now_ms, told, place

    def answered(self, twin: Twin, reply_to: int, response: Response, state: State) -> None:
        """Whoever is answered well has proved, when it asked, that the leader is connected.

        A Fetch that waited and hears of something new proves it once more in Kafka
        (`tryCompleteFetchRequest`); one whose time is up does not.
        """
        asked = twin.waiting.pop(reply_to, None)
        if asked is None:
            return
        who, at_ms, told, place = asked
        if not isinstance(response, FetchResponse):
            if response.error == ErrorCode.NONE:
                twin.served[who] = max(at_ms, twin.served.get(who, 0))
            return
        places = twin.places.get(who, [])
        found = places.index(place) if place in places else -1
        if response.error != ErrorCode.NONE or response.diverging or response.snapshot_id:
            if found >= 0 and not (twin.led and response.error in _ENDS):
                del places[found]
            return
        twin.served[who] = max(at_ms, twin.served.get(who, 0))
        if response.records is not None or response.high_watermark > told:
            twin.heard[who] = state.now
        if found >= 0:
            known = places[0][1]
            del places[:found]
            if place is not None and place[1] < known:
                _check_place(twin, who, state)
        elif place is not None:
            places.insert(0, place)

    def leads(self, twin: Twin, state: State) -> None:
        """It leads at the end of a step (KIP-595, check quorum; KAFKA-15489)."""
        newest = twin.tip.voters_entry
        reign = (twin.life, state.election.epoch, -1 if newest is None else newest.end)
        if newest is not None and newest is not self._seen.get(twin.id):
            self._stays(twin, newest)
        patience = _LATEST * state.config.fetch_timeout_ms
        still = state.now - self._stepped.get(twin.id, state.now)
        self._stepped[twin.id] = state.now
        if not state.durable.election:
            self._silent.add(twin.id)
        elif twin.id in self._silent:
            # What had come before that counts now.
            self._silent.discard(twin.id)
            self._until[twin.id] = max(state.now + patience, self._until.get(twin.id, 0))
        if self._reigns.get(twin.id) != reign:
            self._reigns[twin.id] = reign
            self._since[twin.id] = state.now
            self._until[twin.id] = state.now + patience
        elif still > state.config.fetch_timeout_ms // 2 + _SLOW_MS:
            # It stood still: a leader wakes each half fetch timeout. What had come meanwhile it
            # takes for news, as Kafka does, and that sets the last deadline.
            self._until[twin.id] = max(state.now + patience / 2, self._until[twin.id])
        elif state.now > self._until[twin.id]:
            needed = len(twin.voters) // 2 + 1 - is_voter(twin.voters, twin.key)
            heard = self._majority_heard(twin, needed, state.now)
            if needed == 1 and state.durable.election:
                patience = float(_deadline_ms(state))  # mypyc keeps a float a float
            self._until[twin.id] = max(heard + patience, self._until[twin.id])
            if state.now > self._until[twin.id]:
                raise Violation(
                    "check quorum",
                    f"{twin} leads epoch {reign[1]}, and since {state.now - heard} ms no majority "
                    f"of {names(twin.voters)} has fetched from it",
                )

    def resigned(
        self, twin: Twin, happened: Sequence[Input], effects: Effects, state: State
    ) -> None:
        """It led until this step; check quorum lets it go only when too few have fetched."""
        notes = effects.notes
        if effects.faulted is None:
            _check_reason(twin, happened, notes, state)
        if twin.id not in self._silent:
            _check_successors(twin, state)
        if not any(NOBODY_FETCHES in note for note in notes):
            return
        patience = _deadline_ms(state)
        newest = twin.tip.voters_entry
        reign = (twin.life, state.election.epoch, -1 if newest is None else newest.end)
        since = self._since[twin.id] if self._reigns.get(twin.id) == reign else state.now
        since = max(since, state.now - patience)
        others = [voter.key for voter in twin.voters if not matches(voter.key, twin.key)]
        fetched = [
            key
            for key in others
            if any(at > since and matches(key, who) for who, at in twin.served.items())
        ]
        if len(fetched) >= len(twin.voters) // 2 + 1 - is_voter(twin.voters, twin.key):
            raise Violation(
                "a leader that is heard stays",
                f"{twin} resigns epoch {reign[1]} for want of a majority of {names(twin.voters)}; "
                f"within {patience} ms it has answered {', '.join(map(str, fetched)) or 'itself'}",
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
        told = request.leader
        if (state.election.leader_id, state.election.epoch) != (told.leader_id, told.epoch):
            return
        if isinstance(role, Follower) or (isinstance(role, Prospective) and role.ended):
            self._ended[twin.id] = twin.life, told.epoch

    def follows(self, twin: Twin, state: State) -> None:
        """It does not lead at the end of a step: whose goodbye it has heard is no leader for it,
        whatever Fetch is still answered. Who has lost sight of all may find even that one."""
        ended = self._ended.get(twin.id)
        if ended is None:
            return
        role, election = state.role, state.election
        if ended != (twin.life, election.epoch) or not isinstance(role, Follower | Prospective):
            del self._ended[twin.id]
        elif isinstance(role, Follower) and role.has_fetched:
            raise Violation(
                "a goodbye is heard",
                f"{twin} was told that node {election.leader_id} ends epoch {election.epoch}, and "
                "vouches for it",
            )

    def _majority_heard(self, twin: Twin, needed: int, now_ms: int) -> int:
        """Since when enough of the voters in force have been heard; 0 when they never were."""
        others = [voter.key for voter in twin.voters if not matches(voter.key, twin.key)]
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


def _deadline_ms(state: State) -> int:
    """How long a leader stays after a majority has fetched."""
    return int(CHECK_QUORUM_FACTOR * state.config.fetch_timeout_ms)


def _check_reason(
    twin: Twin, happened: Sequence[Input], notes: Sequence[str], state: State
) -> None:
    """Nobody leads no more unless he is told to, or says why; whether that is so, the checks of
    check quorum, of disks that hang and of removals look at."""
    if any(isinstance(item, Resign | Shutdown) for item in happened):
        return
    if not any(why in note for why in _REASONS for note in notes):
        said = "; ".join(note for note in notes if "resigned" in note)
        raise Violation(
            "a leader resigns for a reason",
            f'{twin} led epoch {state.election.epoch}, resigns, and nobody asked it to: "{said}"',
        )


def _check_successors(twin: Twin, state: State) -> None:
    """Who resigns names the other voters, those that hold most of its log first: what the last
    Fetch of each said (`LeaderState.nonLeaderVotersByDescendingFetchOffset`). A Fetch that it took
    in the same step may have come after the end."""
    role = state.role
    if not isinstance(role, Resigned) or twin.heard_in != state.election.epoch:
        return
    for first, second in pairwise(role.successors):
        most = max(places_of(twin, first), default=-1)
        heard = any(places and matches(second, key) for key, places in twin.places.items())
        fresh = any(at == state.now and matches(second, key) for key, at in twin.heard.items())
        least = min(places_of(twin, second)) if heard and not fresh else -1
        if most < least:
            raise Violation(
                "the most advanced voters come first",
                f"{twin} resigns epoch {twin.heard_in} and names {first} before {second}; they "
                f"have fetched at {most} and at {least} last",
            )


def _check_place(twin: Twin, who: ReplicaKey, state: State) -> None:
    """A replica has less than it had: its disk is an old copy, or its question took long. What it
    said last counts all the same (`ReplicaState.updateFollowerState`)."""
    role = state.role
    row = role.progress.find(who) if isinstance(role, Leader) else None
    if row is not None and row.end_offset not in places_of(twin, who):
        raise Violation(
            "a leader believes the last Fetch",
            f"{twin} takes {who} to hold {row.end_offset}; it has fetched at "
            f"{', '.join(map(str, places_of(twin, who)))} last",
        )


def places_of(twin: Twin, who: ReplicaKey) -> list[int]:
    """Where the replica may stand by what it said last, whatever disk it had."""
    known = (places for key, places in twin.places.items() if key.id == who.id)
    return [offset for places in known for _, offset in places]
