"""Published bugs of other projects, planted into the real code for one test.

Each function takes pytest's MonkeyPatch and puts one bug in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.base.check import check
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import ZERO_UUID, LeaderAndEpoch, Listeners, OffsetAndEpoch, ReplicaKey
from quorate.controller import activation
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import Result
from quorate.formats import files
from quorate.node.metadata_machine import MetadataMachine
from quorate.raft import (
    core,
    election,
    epochs,
    following,
    leading,
    reconfig,
    roles,
    state,
    transitions,
)
from quorate.raft.durable import DurabilityTracker
from quorate.raft.inputs import Propose
from quorate.raft.log_index import Diverging, LogIndex
from quorate.raft.messages import EndQuorumEpochRequest
from quorate.raft.outbox import Outbox
from quorate.raft.progress import ProgressTracker
from quorate.raft.ready import Reply, SaveElection
from quorate.raft.roles import Ballot, Candidate, Follower, Leader, Resigned, Unattached
from quorate.raft.state import RaftState
from quorate.raft.values import ElectionState, Voter
from quorate.raft.voters import VoterSet
from quorate.replica import applier
from quorate.replica.applier import BOOTSTRAP, Applier
from quorate.replica.state_machine import CommittedBatch, Now

Plant = Callable[[pytest.MonkeyPatch], None]


# -- durable before sent ------------------------------------------------------------------------
def send_before_durable(patch: pytest.MonkeyPatch) -> None:
    def reply(self: Outbox, reply_to: int, response: object) -> None:
        self.replies.append(Reply(reply_to, response))  # type: ignore[arg-type]

    patch.setattr(Outbox, "reply", reply)


def ask_before_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DurabilityTracker, "election_is_durable", property(lambda self: True))


def fetch_before_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DurabilityTracker, "log_is_durable", property(lambda self: True))


def count_before_durable(patch: pytest.MonkeyPatch) -> None:
    def appended(self: DurabilityTracker, end_offset: int, now_ms: int) -> None:
        self.log_seq = self.next_seq
        self.end_offset = end_offset

    patch.setattr(DurabilityTracker, "appended", appended)


def count_the_leader_at_once(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 84: a leader counts its own records before its disk has them."""
    true_after = leading.after_append

    def after_append(s: RaftState, role: Leader) -> None:
        role.progress.own.end_offset = s.log.end_offset
        role.recount = True
        true_after(s, role)

    patch.setattr(leading, "after_append", after_append)


def remember_the_commit_index(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 197: the commit index survives a crash that the log does not survive."""
    stored: dict[int, int] = {}
    true_init, true_commit = RaftState.__init__, RaftState.commit

    def init(self: RaftState, *args: object) -> None:
        true_init(self, *args)  # type: ignore[arg-type]
        self.high_watermark = max(self.high_watermark, stored.get(self.me.id, -1))

    def commit(self: RaftState, offset: int) -> None:
        true_commit(self, offset)
        stored[self.me.id] = self.high_watermark

    patch.setattr(RaftState, "__init__", init)
    patch.setattr(RaftState, "commit", commit)


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
    """PySyncObj 84, 202: a restarted replica begins in epoch 0."""
    true_init = RaftState.__init__

    def init(self: RaftState, config: object, saved: object, log: object, random: object) -> None:
        true_init(self, config, None, log, random)  # type: ignore[arg-type]

    patch.setattr(RaftState, "__init__", init)


def lead_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10527: a restarted leader goes on to lead its epoch."""
    true_start = transitions.start

    def start(s: RaftState) -> None:
        true_start(s)
        if isinstance(s.role, Resigned):
            progress = ProgressTracker(s.me, s.voters)
            progress.own.end_offset = s.durable.end_offset
            s.role = Leader(s.log.end_offset, progress, s.now + 3000, s.now)

    patch.setattr(transitions, "start", start)


def forget_having_led(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10661: a restarted leader votes again in its own epoch."""
    true_start = transitions.start

    def start(s: RaftState) -> None:
        true_start(s)
        if isinstance(s.role, Resigned):
            s.election = ElectionState(s.epoch)
            s.role = Unattached(s.election_timeout())

    patch.setattr(transitions, "start", start)


def never_check_the_quorum(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-15489: a leader that no majority fetches from does not resign."""
    patch.setattr(transitions, "CHECK_QUORUM_FACTOR", 1e6)


def save_votes_without_directory(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16526: a vote is stored without the directory id."""

    def save(saved: ElectionState, *rest: object) -> SaveElection:
        voted = saved.voted and ReplicaKey(saved.voted.id)
        return SaveElection(replace(saved, voted=voted), *rest)  # type: ignore[arg-type]

    patch.setattr(state, "SaveElection", save)


def write_votes_without_directory(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16526, in the file: data_version 1 has no directory id."""
    true_uuid = files.uuid_to_text  # type: ignore[attr-defined]
    patch.setattr(files, "uuid_to_text", lambda value: true_uuid(ZERO_UUID))


def win_without_votes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ballot, "won", property(lambda self: True))


def observers_run(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19354, 19605: an observer has a voter's timers."""
    patch.setattr(RaftState, "electable", property(lambda self: len(self.voters) > 0))


def ask_the_others_for_ever(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19354: an observer whose fetch timer expired no longer fetches from its leader."""
    true_fetch = following._fetch_from_best

    def fetch(s: RaftState, role: Follower) -> None:
        if not s.electable and s.now >= role.fetch_deadline:
            following._fetch_from_any(s)
        else:
            true_fetch(s, role)

    patch.setattr(following, "_fetch_from_best", fetch)


def never_rest_after_the_fetch_timeout(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19605: an observer wakes again and again for an expired timer."""
    true_poll = following.poll_follower

    def poll(s: RaftState, role: Follower) -> int:
        return min(true_poll(s, role), role.fetch_deadline)

    patch.setattr(following, "poll_follower", poll)


def follow_no_wider_endpoints(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16927: more endpoints of the leader cause an illegal transition."""
    fewer = {
        move: why for move, why in roles.LEGAL_TRANSITIONS.items() if move != (Follower, Follower)
    }
    patch.setattr(state, "LEGAL_TRANSITIONS", fewer)
    true_learn = epochs.maybe_transition

    def learn(s: RaftState, leader: LeaderAndEpoch, given: Listeners) -> bool:
        if leader == s.leader_and_epoch and len(given) > len(s.leader_endpoints):
            transitions.become_follower(s, leader.epoch, leader.leader_id, given)
        return true_learn(s, leader, given)

    patch.setattr(epochs, "maybe_transition", learn)


def follow_itself(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18379: a resigned leader follows itself."""
    true_learn = epochs.maybe_transition

    def learn(s: RaftState, leader: object, given: object) -> bool:
        epoch, leader_id = leader.epoch, leader.leader_id  # type: ignore[attr-defined]
        if epoch == s.epoch and leader_id == s.me.id and isinstance(s.role, Resigned):
            transitions.become_follower(s, epoch, leader_id, s.config.listeners)
            return True
        return true_learn(s, leader, given)  # type: ignore[arg-type]

    patch.setattr(epochs, "maybe_transition", learn)


def resume_any_candidacy(patch: pytest.MonkeyPatch) -> None:
    """Kafka 4.3.1: a removed voter resumes the candidacy of its last vote."""
    true_start = transitions.start

    def start(s: RaftState) -> None:
        true_start(s)
        voted = s.election.voted
        if isinstance(s.role, Follower) and voted is not None and voted.id == s.me.id:
            s.role = Candidate(Ballot(s.voters), s.election_timeout())

    patch.setattr(transitions, "start", start)


def report_resigned_leaders_as_leaders(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17333: a resigned leader is reported as the leader."""
    patch.setattr(RaftState, "visible_leader", property(lambda self: self.leader_and_epoch))


def keep_leading_without_a_disk(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 164: a leader whose disk failed sends no EndQuorumEpoch."""
    patch.setattr(core, "_send_end_quorum_epoch", lambda s, role: None)


# -- replication -----------------------------------------------------------------------------------
def take_any_place_for_valid(patch: pytest.MonkeyPatch) -> None:
    """Krabka: the leader ignores the last fetched epoch."""
    true_validate = LogIndex.validate

    def validate(self: LogIndex, offset: int, epoch: int) -> object:
        found = self.end_offset_for_epoch(epoch)
        if found.epoch != epoch and offset <= self.end_offset:
            return None
        return true_validate(self, offset, epoch)

    patch.setattr(LogIndex, "validate", validate)


def take_any_length_for_valid(patch: pytest.MonkeyPatch) -> None:
    """The leader ignores where the last fetched epoch ends: a longer log is never truncated."""
    true_validate = LogIndex.validate

    def validate(self: LogIndex, offset: int, epoch: int) -> object:
        found = true_validate(self, offset, epoch)
        if isinstance(found, Diverging) and found.end.epoch == epoch and offset <= self.end_offset:
            return None
        return found

    patch.setattr(LogIndex, "validate", validate)


def commit_what_any_epoch_left(patch: pytest.MonkeyPatch) -> None:
    """Raft, figure 8: records of an older epoch are committed by counting replicas."""
    true_count = leading.maybe_update_high_watermark

    def count(s: RaftState, role: Leader) -> bool:
        start, role.epoch_start = role.epoch_start, -1
        try:
            return true_count(s, role)
        finally:
            role.epoch_start = start

    patch.setattr(leading, "maybe_update_high_watermark", count)


def take_batches_of_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18723: a follower appends batches of any epoch."""

    def append(s: RaftState, response: object) -> bool:
        for batch in response.batches:  # type: ignore[attr-defined]
            transitions.append_batch(s, batch)
        return True

    patch.setattr(following, "_append", append)


def let_the_high_watermark_fall(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 166: a follower takes a lower high watermark from its leader."""

    def follow(s: RaftState, leaders: int) -> None:
        offset = min(s.log.end_offset, leaders)
        if offset != s.high_watermark:
            s.high_watermark = s.out.high_watermark = offset

    patch.setattr(following, "_follow_high_watermark", follow)


def let_the_leaders_high_watermark_fall(patch: pytest.MonkeyPatch) -> None:
    """PySyncObj 167: a lower match index lowers the leader's high watermark."""

    def count(s: RaftState, role: Leader) -> bool:
        offset = role.progress.majority_end()
        if offset <= role.epoch_start or offset == role.high_watermark:
            return False
        role.high_watermark = s.high_watermark = s.out.high_watermark = offset
        return True

    patch.setattr(leading, "maybe_update_high_watermark", count)


def propose_without_limit(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14204: a leader appends batches of any size."""
    true_propose = leading.on_propose

    def on_propose(s: RaftState, event: Propose) -> None:
        true_propose(s, replace(event, size=min(event.size, 1)))

    patch.setattr(leading, "on_propose", on_propose)


# -- voter changes ---------------------------------------------------------------------------------
def count_the_leader_always(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16530: a leader that is no voter counts itself in the majority."""

    def majority_end(self: ProgressTracker) -> int:
        others = [row.end_offset for row in self.voters.values() if row is not self.own]
        ends = sorted([self.own.end_offset, *others], reverse=True)
        return ends[len(ends) // 2]

    patch.setattr(ProgressTracker, "majority_end", majority_end)


def change_before_a_commit(patch: pytest.MonkeyPatch) -> None:
    """Ongaro 2015: a leader changes voters before it has committed a record of its own epoch."""

    def busy(s: RaftState, role: Leader, verb: str) -> tuple[ErrorCode, str] | None:
        return (ErrorCode.REQUEST_TIMED_OUT, "busy") if role.change is not None else None

    patch.setattr(reconfig, "_change_blocked", busy)


def change_twice_at_once(patch: pytest.MonkeyPatch) -> None:
    """A leader starts a voter change while another one is pending."""
    patch.setattr(reconfig, "_change_blocked", lambda s, role, verb: None)


def remove_two_for_one(patch: pytest.MonkeyPatch) -> None:
    """RemoveRaftVoter also removes the voter with the highest id."""
    true_remove = VoterSet.remove

    def remove(self: VoterSet, key: ReplicaKey) -> VoterSet | None:
        left = true_remove(self, key)
        return left and VoterSet(left.voters[:-1])

    patch.setattr(VoterSet, "remove", remove)


def add_voters_without_address(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17604: an added voter has no endpoints."""
    true_add = VoterSet.add

    def add(self: VoterSet, voter: Voter) -> VoterSet | None:
        return true_add(self, replace(voter, listeners=()))

    patch.setattr(VoterSet, "add", add)


def crash_when_the_leader_is_removed(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17608, in the form that the core can have."""
    true_moved = reconfig.high_watermark_moved

    def moved(s: RaftState, role: Leader) -> None:
        true_moved(s, role)
        check(s.is_voter, "nothing to go back to")

    patch.setattr(leading, "high_watermark_moved", moved)


def go_back_to_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17608: after a resignation the state machine reverts to the last committed offset.

    It has kept no state of that offset where the last committed batch is a control batch.
    """
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

    def apply(self: MetadataMachine, entry: CommittedBatch) -> int:
        if id(self) in gave_up and not entry.values:
            raise QuorateError(f"no in-memory snapshot of offset {entry.last_offset}")
        gave_up.discard(id(self))
        return true_apply(self, entry)

    patch.setattr(MetadataMachine, "lead", lead)
    patch.setattr(MetadataMachine, "apply", apply)
    patch.setattr(MetadataMachine, "follow", follow)


def join_without_auto_join(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19850: an observer joins although auto join is not configured."""
    true_request = following.voter_request  # type: ignore[attr-defined]

    def request(s: RaftState, role: Follower) -> object:
        s.config = replace(s.config, auto_join=True)
        return true_request(s, role)

    patch.setattr(following, "voter_request", request)


def join_at_once(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19850: an observer joins at once, without waiting for the update period."""
    true_poll = following.poll_follower
    asked: list[Follower] = []

    def poll(s: RaftState, role: Follower) -> int:
        if not s.is_voter and not any(role is other for other in asked):
            asked.append(role)
            role.update_deadline = s.now
        return true_poll(s, role)

    patch.setattr(following, "poll_follower", poll)


def never_update_voters(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20427: a voter with new endpoints sends no UpdateRaftVoter."""
    patch.setattr(following, "voter_request", lambda s, role: None)


def refuse_successors(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20895: a follower still refuses pre-votes when its leader has ended the epoch."""
    true_end = epochs.on_end

    def on_end(s: RaftState, reply_to: int, request: EndQuorumEpochRequest) -> None:
        had_fetched = isinstance(s.role, Follower) and s.role.has_fetched
        true_end(s, reply_to, request)
        if isinstance(s.role, Follower):
            s.role.has_fetched = had_fetched

    patch.setattr(epochs, "on_end", on_end)


# -- state machine and snapshots -------------------------------------------------------------------
def go_on_after_a_record_that_cannot_be_applied(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14203: a record that cannot be applied is skipped."""
    true_apply = Applier._apply

    def apply(self: Applier, view: object) -> bool:
        try:
            return true_apply(self, view)  # type: ignore[arg-type]
        except QuorateError:
            return True

    patch.setattr(Applier, "_apply", apply)


def snapshot_inside_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14203: a snapshot is written inside a transaction."""

    def freeze(self: MetadataMachine) -> list[bytes]:
        return []

    patch.setattr(MetadataMachine, "freeze", freeze)


def snapshot_inside_a_batch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17713: a snapshot ends inside a batch."""
    patch.setattr(LogIndex, "is_border", lambda self, offset: True)


def write_the_bootstrap_records_once(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20839: proposed bootstrap records count as written."""
    true_operation = activation.ACTIVATION
    done: set[int] = set()

    def decide(head: HeadView, bootstrap: activation.Bootstrap, context: Context) -> Result[None]:
        if id(head) in done:
            return Result((), None)
        done.add(id(head))
        decided = true_operation.decide(head, bootstrap, context)
        assert isinstance(decided, Result)
        return decided

    patch.setattr(activation, "ACTIVATION", replace(true_operation, decide=decide))


def lose_the_applied_index(patch: pytest.MonkeyPatch) -> None:
    """etcd 13766: a restart keeps the applied state and loses the applied index."""
    true_end = Applier._end_load

    def end_load(self: Applier, snapshot_id: OffsetAndEpoch) -> None:
        true_end(self, snapshot_id)
        self.applied = BOOTSTRAP

    patch.setattr(applier.Applier, "_end_load", end_load)
