"""Bugs that others had, planted into the real code for the length of a test.

Each one is a function of pytest's MonkeyPatch and puts back a mistake that was once published.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.base.check import check
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import ZERO_UUID, LeaderAndEpoch, Listeners, OffsetAndEpoch, ReplicaKey
from quorate.formats import files
from quorate.node import applier
from quorate.node.applier import BOOTSTRAP, Applier
from quorate.node.machine import Entry, Now
from quorate.node.metadata_machine import MetadataMachine
from quorate.raft import (
    core,
    election,
    epochs,
    following,
    leading,
    moves,
    reconfig,
    roles,
    state,
)
from quorate.raft.durable import Durable
from quorate.raft.inputs import Propose
from quorate.raft.log_index import Diverging, LogIndex
from quorate.raft.outbox import Outbox
from quorate.raft.progress import Progress
from quorate.raft.ready import Reply, SaveElection
from quorate.raft.roles import Ballot, Follower, Leader, Resigned, Unattached
from quorate.raft.state import State
from quorate.raft.values import ElectionState, Voter
from quorate.raft.voters import VoterSet

Plant = Callable[[pytest.MonkeyPatch], None]


# -- durable before audible ------------------------------------------------------------------------
def speak_before_durable(patch: pytest.MonkeyPatch) -> None:
    def reply(self: Outbox, reply_to: int, response: object) -> None:
        self.replies.append(Reply(reply_to, response))  # type: ignore[arg-type]

    patch.setattr(Outbox, "reply", reply)


def ask_before_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Durable, "election", property(lambda self: True))


def fetch_before_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Durable, "log", property(lambda self: True))


def count_before_durable(patch: pytest.MonkeyPatch) -> None:
    def appended(self: Durable, end_offset: int, now_ms: int) -> None:
        self.log_seq = self.next_seq
        self.end_offset = end_offset

    patch.setattr(Durable, "appended", appended)


def count_the_leader_at_once(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 84: the leader holds what it has appended, whatever its disk says."""
    true_after = leading.after_append

    def after_append(s: State, role: Leader) -> None:
        role.progress.own.end_offset = s.log.end_offset
        role.recount = True
        true_after(s, role)

    patch.setattr(leading, "after_append", after_append)


def remember_the_commit_index(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 197: the commit index survives a crash, whatever became of the log."""
    stored: dict[int, int] = {}
    true_init, true_commit = State.__init__, State.commit

    def init(self: State, *args: object) -> None:
        true_init(self, *args)  # type: ignore[arg-type]
        self.high_watermark = max(self.high_watermark, stored.get(self.me.id, -1))

    def commit(self: State, offset: int) -> None:
        true_commit(self, offset)
        stored[self.me.id] = self.high_watermark

    patch.setattr(State, "__init__", init)
    patch.setattr(State, "commit", commit)


# -- elections -------------------------------------------------------------------------------------
def vote_for_shorter_logs(patch: pytest.MonkeyPatch) -> None:
    true_grants = election.grants
    patch.setattr(
        election, "grants", lambda role, e, key, up, pre: true_grants(role, e, key, True, pre)
    )


def vote_twice(patch: pytest.MonkeyPatch) -> None:
    def grants(role: object, e: object, key: object, up: bool, pre: bool) -> bool:
        return up

    patch.setattr(election, "grants", grants)


def forget_epoch_and_vote(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 84, 202: whoever restarts begins in epoch 0."""
    true_init = State.__init__

    def init(self: State, config: object, saved: object, log: object, random: object) -> None:
        true_init(self, config, None, log, random)  # type: ignore[arg-type]

    patch.setattr(State, "__init__", init)


def lead_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10527."""
    true_start = moves.start

    def start(s: State) -> None:
        true_start(s)
        if isinstance(s.role, Resigned):
            progress = Progress(s.me, s.voters)
            progress.own.end_offset = s.durable.end_offset
            s.role = Leader(s.log.end_offset, progress, s.now + 3000, s.now)

    patch.setattr(moves, "start", start)


def forget_having_led(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10661."""
    true_start = moves.start

    def start(s: State) -> None:
        true_start(s)
        if isinstance(s.role, Resigned):
            s.election = ElectionState(s.epoch)
            s.role = Unattached(s.election_timeout())

    patch.setattr(moves, "start", start)


def never_check_the_quorum(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-15489."""
    patch.setattr(moves, "CHECK_QUORUM_FACTOR", 1e6)


def save_votes_without_directory(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16526."""

    def save(saved: ElectionState, *rest: object) -> SaveElection:
        voted = saved.voted and ReplicaKey(saved.voted.id)
        return SaveElection(replace(saved, voted=voted), *rest)  # type: ignore[arg-type]

    patch.setattr(state, "SaveElection", save)


def write_votes_without_directory(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16526, in the file: data_version 1 as if it were 0."""
    true_uuid = files.uuid_to_text
    patch.setattr(files, "uuid_to_text", lambda value: true_uuid(ZERO_UUID))


def win_without_votes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ballot, "won", property(lambda self: True))


def observers_run(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19354, 19605: a voter's timer in an observer."""
    patch.setattr(State, "electable", property(lambda self: len(self.voters) > 0))


def ask_the_others_for_ever(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19354: an observer whose fetch timer once ran out asks its leader no more."""
    true_fetch = following._fetch_from_best

    def fetch(s: State, role: Follower) -> None:
        if not s.electable and s.now >= role.fetch_deadline:
            following._fetch_from_any(s)
        else:
            true_fetch(s, role)

    patch.setattr(following, "_fetch_from_best", fetch)


def never_rest_after_the_fetch_timeout(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19605: an observer wakes for a timer that ran out, and nothing starts it anew."""
    true_poll = following.poll_follower

    def poll(s: State, role: Follower) -> int:
        return min(true_poll(s, role), role.fetch_deadline)

    patch.setattr(following, "poll_follower", poll)


def follow_no_wider_endpoints(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16927: wider endpoints were a move, and no legal one."""
    fewer = {move: why for move, why in roles.LEGAL_MOVES.items() if move != (Follower, Follower)}
    patch.setattr(state, "LEGAL_MOVES", fewer)
    true_learn = epochs.learn

    def learn(s: State, leader: LeaderAndEpoch, given: Listeners) -> bool:
        if leader == s.leader_and_epoch and len(given) > len(s.leader_endpoints):
            moves.become_follower(s, leader.epoch, leader.leader_id, given)
        return true_learn(s, leader, given)

    patch.setattr(epochs, "learn", learn)


def follow_itself(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18379."""
    true_learn = epochs.learn

    def learn(s: State, leader: object, given: object) -> bool:
        epoch, leader_id = leader.epoch, leader.leader_id  # type: ignore[attr-defined]
        if epoch == s.epoch and leader_id == s.me.id and isinstance(s.role, Resigned):
            moves.become_follower(s, epoch, leader_id, s.config.listeners)
            return True
        return true_learn(s, leader, given)  # type: ignore[arg-type]

    patch.setattr(epochs, "learn", learn)


def tell_resigned_leaders_that_they_lead(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17333."""
    patch.setattr(State, "visible_leader", property(lambda self: self.leader_and_epoch))


def keep_leading_without_a_disk(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 164: nobody hears that the leader's disk failed."""
    patch.setattr(core, "_say_goodbye", lambda s, role: None)


# -- replication -----------------------------------------------------------------------------------
def take_any_place_for_valid(patch: pytest.MonkeyPatch) -> None:
    """Krabka, first of the lessons of others: no look at the last fetched epoch."""
    true_validate = LogIndex.validate

    def validate(self: LogIndex, offset: int, epoch: int) -> object:
        found = self.end_offset_for_epoch(epoch)
        if found.epoch != epoch and offset <= self.end_offset:
            return None
        return true_validate(self, offset, epoch)

    patch.setattr(LogIndex, "validate", validate)


def take_any_length_for_valid(patch: pytest.MonkeyPatch) -> None:
    """No look at where the last fetched epoch ends: what was cut off is never cut."""
    true_validate = LogIndex.validate

    def validate(self: LogIndex, offset: int, epoch: int) -> object:
        found = true_validate(self, offset, epoch)
        if isinstance(found, Diverging) and found.end.epoch == epoch and offset <= self.end_offset:
            return None
        return found

    patch.setattr(LogIndex, "validate", validate)


def commit_what_any_epoch_left(patch: pytest.MonkeyPatch) -> None:
    """Raft, figure 8: copies of an older epoch's record are counted."""
    true_count = leading.count

    def count(s: State, role: Leader) -> bool:
        start, role.epoch_start = role.epoch_start, -1
        try:
            return true_count(s, role)
        finally:
            role.epoch_start = start

    patch.setattr(leading, "count", count)


def take_batches_of_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18723."""

    def append(s: State, response: object) -> bool:
        for batch in response.batches:  # type: ignore[attr-defined]
            moves.append_batch(s, batch)
        return True

    patch.setattr(following, "_append", append)


def let_the_high_watermark_fall(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 166: the follower takes what its leader says."""

    def follow(s: State, leaders: int) -> None:
        offset = min(s.log.end_offset, leaders)
        if offset != s.high_watermark:
            s.high_watermark = s.out.high_watermark = offset

    patch.setattr(following, "_follow_high_watermark", follow)


def let_the_leaders_high_watermark_fall(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 167: a lower match index sets it back."""

    def count(s: State, role: Leader) -> bool:
        offset = role.progress.majority_end()
        if offset <= role.epoch_start or offset == role.high_watermark:
            return False
        role.high_watermark = s.high_watermark = s.out.high_watermark = offset
        return True

    patch.setattr(leading, "count", count)


def propose_without_limit(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14204."""
    true_propose = leading.on_propose

    def on_propose(s: State, event: Propose) -> None:
        true_propose(s, replace(event, size=min(event.size, 1)))

    patch.setattr(leading, "on_propose", on_propose)


# -- voter changes ---------------------------------------------------------------------------------
def count_the_leader_always(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16530."""

    def majority_end(self: Progress) -> int:
        others = [row.end_offset for row in self.voters.values() if row is not self.own]
        ends = sorted([self.own.end_offset, *others], reverse=True)
        return ends[len(ends) // 2]

    patch.setattr(Progress, "majority_end", majority_end)


def change_before_a_commit(patch: pytest.MonkeyPatch) -> None:
    """Ongaro 2015: no look at what is committed in the leader's own epoch."""

    def busy(s: State, role: Leader, verb: str) -> tuple[ErrorCode, str] | None:
        return (ErrorCode.REQUEST_TIMED_OUT, "busy") if role.change is not None else None

    patch.setattr(reconfig, "_busy", busy)


def change_twice_at_once(patch: pytest.MonkeyPatch) -> None:
    """No look at whether another change is under way."""
    patch.setattr(reconfig, "_busy", lambda s, role, verb: None)


def remove_two_for_one(patch: pytest.MonkeyPatch) -> None:
    """The voter with the highest id goes too."""
    true_remove = VoterSet.remove

    def remove(self: VoterSet, key: ReplicaKey) -> VoterSet | None:
        left = true_remove(self, key)
        return left and VoterSet(left.voters[:-1])

    patch.setattr(VoterSet, "remove", remove)


def add_voters_without_address(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17604."""
    true_add = VoterSet.add

    def add(self: VoterSet, voter: Voter) -> VoterSet | None:
        return true_add(self, replace(voter, listeners=()))

    patch.setattr(VoterSet, "add", add)


def crash_when_the_leader_is_removed(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17608, as far as the core could have it."""
    true_moved = reconfig.high_watermark_moved

    def moved(s: State, role: Leader) -> None:
        true_moved(s, role)
        check(s.is_voter, "nothing to go back to")

    patch.setattr(leading, "high_watermark_moved", moved)


def go_back_to_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17608: having given up leadership, the state machine goes back to the last committed
    offset, and has kept no state of it where that was a control batch."""
    led: set[int] = set()
    gave_up: set[int] = set()
    true_lead, true_follow = MetadataMachine.lead, MetadataMachine.follow
    true_apply = MetadataMachine.apply

    def lead(self: MetadataMachine, epoch: int, now: Now) -> None:
        led.add(id(self))
        true_lead(self, epoch, now)

    def follow(self: MetadataMachine, leader_id: int, epoch: int) -> None:
        if id(self) in led:
            led.discard(id(self))
            gave_up.add(id(self))
        true_follow(self, leader_id, epoch)

    def apply(self: MetadataMachine, entry: Entry) -> int:
        if id(self) in gave_up and not entry.values:
            raise QuorateError(f"no in-memory snapshot of offset {entry.last_offset}")
        gave_up.discard(id(self))
        return true_apply(self, entry)

    patch.setattr(MetadataMachine, "lead", lead)
    patch.setattr(MetadataMachine, "apply", apply)
    patch.setattr(MetadataMachine, "follow", follow)


def join_unasked(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19850: whether it is configured or not."""
    true_request = following.voter_request

    def request(s: State, role: Follower) -> object:
        s.config = replace(s.config, auto_join=True)
        return true_request(s, role)

    patch.setattr(following, "voter_request", request)


def join_at_once(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19850: without waiting for the end of a period."""
    true_poll = following.poll_follower
    asked: list[Follower] = []

    def poll(s: State, role: Follower) -> int:
        if not s.is_voter and not any(role is other for other in asked):
            asked.append(role)
            role.update_deadline = s.now
        return true_poll(s, role)

    patch.setattr(following, "poll_follower", poll)


def never_update_voters(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20427: who has moved tells nobody."""
    patch.setattr(following, "voter_request", lambda s, role: None)


# -- state machine and snapshots -------------------------------------------------------------------
def go_on_after_a_record_that_cannot_be_applied(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14203: best effort, log the error and go on."""
    true_apply = Applier._apply

    def apply(self: Applier, view: object) -> bool:
        try:
            return true_apply(self, view)  # type: ignore[arg-type]
        except QuorateError:
            return True

    patch.setattr(Applier, "_apply", apply)


def snapshot_inside_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14203, as this project first read it."""

    def freeze(self: MetadataMachine) -> list[bytes]:
        return []

    patch.setattr(MetadataMachine, "freeze", freeze)


def snapshot_inside_a_batch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17713."""
    patch.setattr(LogIndex, "is_border", lambda self, offset: True)


def write_the_bootstrap_records_once(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20839: what was proposed counts as written."""
    true_activation = MetadataMachine._activation
    done: set[int] = set()

    def activation(self: MetadataMachine) -> list[object]:
        found = [] if id(self) in done else true_activation(self)
        done.add(id(self))
        return list(found)

    patch.setattr(MetadataMachine, "_activation", activation)


def lose_the_applied_index(patch: pytest.MonkeyPatch) -> None:
    """etcd 13766: the state is kept, the index up to which it was applied is not."""
    true_end = Applier._end_load

    def end_load(self: Applier, snapshot_id: OffsetAndEpoch) -> None:
        true_end(self, snapshot_id)
        self.applied = BOOTSTRAP

    patch.setattr(applier.Applier, "_end_load", end_load)
