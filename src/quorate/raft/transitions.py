"""Transitions between roles (`QuorumState`): what each requires, stores and sends.

Each function saves the ElectionState, enters the new role, then ends what the old one had pending
(`_leave_role`). It also appends to the log, for control records are in force from the append on.
"""

from __future__ import annotations

from quorate.base.check import check
from quorate.base.errors import ErrorCode
from quorate.base.ids import Listeners, ReplicaKey, uuid_to_text
from quorate.raft.answers import refuse
from quorate.raft.messages import AddVoterResponse, RemoveVoterResponse
from quorate.raft.progress import ProgressTracker
from quorate.raft.reachability import unproven_endpoints
from quorate.raft.ready import AbandonSnapshot
from quorate.raft.reconfig_state import AskingVersions, VoterChange
from quorate.raft.roles import (
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.raft.state import RaftState, remaining_or_new
from quorate.raft.values import Batch, ControlRecord, ElectionState, KRaftVersion, LeaderChange
from quorate.raft.values import Voters as VotersRecord
from quorate.raft.voters import VoterSet

CHECK_QUORUM_FACTOR = 1.5
SUSPICION_STEP_MS = 50
RANK_STEP_MS = 30
MAX_EPOCH = (1 << 31) - 1
"""int32, in quorum-state, in batches and in the protocol."""


def start(s: RaftState) -> None:
    """The first role, from quorum-state and log (`QuorumState.initialize`).

    1. The log is of a later epoch than quorum-state: the epoch of the log, Unattached.
    2. It led the epoch: Resigned. Others may follow it, but it lost its state as leader.
    3. It voted for itself: Candidate, for the vote may have been counted.
    4. A leader with an address: Follower.  5. Else Unattached.
    6. The only voter elects itself at once.
    """
    election = s.election
    if s.log.last_epoch > election.epoch:
        s.warn(f"quorum-state has epoch {election.epoch}, the log {s.log.last_epoch}: log's taken")
        s.save(ElectionState(s.log.last_epoch))
        s.role = Unattached(remaining_or_new(s))
    # 2. In the same epoch it must not append again: another incarnation's records may exist at
    # offsets that this log, cut by a crash, no longer has.
    elif election.leader_id == s.me.id:
        others = {voter_id for voter_id in s.voters.ids if voter_id != s.me.id}
        s.role = Resigned(s.election_timeout(), others)
    elif (
        election.leader_id < 0
        and election.voted is not None
        and _resumes_candidacy(s, election.voted)
    ):
        s.role = Candidate(Ballot(s.voters), s.election_timeout())
    else:
        endpoints = s.endpoints_of(election.leader_id, ())
        if election.leader_id >= 0 and s.usable(endpoints) is not None:
            s.role = _new_follower(s, endpoints)
        else:
            s.role = Unattached(remaining_or_new(s))
    s.note(f"epoch {s.epoch}: starts as {type(s.role).__name__.lower()}, voters {s.voters}")
    warn_of_directory_mismatch(s)
    if s.controls.has_voters and len(s.controls.static_voters) > 0:
        s.warn("the configured static voters are ignored: the log has its own voter set")
    if s.voters.is_only_voter(s.me) and isinstance(s.role, Unattached | Resigned):
        become_prospective(s, "only voter")


def warn_of_directory_mismatch(s: RaftState) -> None:
    """Warn when the voter set has this node's id with another directory id: it is an observer."""
    voter = s.voters.get(s.me.id)
    if voter is not None and not s.is_voter:
        theirs, ours = uuid_to_text(voter.key.directory_id), uuid_to_text(s.me.directory_id)
        what = (
            f"the voter set holds node {s.me.id} with directory {theirs}, but this node has {ours}"
        )
        if s.config.auto_join:
            s.warn(f"{what}: it is an observer until it has joined in the place of that one")
        else:
            s.warn(
                f"{what}: it is an observer and cannot vote. Put back the disk, or the "
                f"directory.id in meta.properties; or remove controller {s.me.id} with directory "
                f"{theirs} and add it anew"
            )


def _resumes_candidacy(s: RaftState, voted: ReplicaKey) -> bool:
    """Did this node vote for itself, and may it still be elected?

    A version 0 quorum-state has no directory id; then the node id decides. Kafka also resumes where
    the epoch has a leader. That leader's log may hold another voter set, in which this candidate
    could win an epoch that already has a leader.
    """
    mine = voted.id == s.me.id and voted.directory_id in (bytes(16), s.me.directory_id)
    return mine and s.electable


# -- taking a role -----------------------------------------------------------------------------
def become_unattached(s: RaftState, epoch: int, leader_id: int = -1, why: str = "") -> None:
    """Enter Unattached in a higher epoch, or in the same one after a lost pre-vote.

    The vote of the epoch is kept. The remaining election timeout carries over, so that a stream of
    higher epochs from others cannot keep this voter from its own election.
    """
    old = s.role
    lost = isinstance(old, Prospective) and epoch == s.epoch
    check(lost or epoch > s.epoch, "unattached without a new epoch", s.epoch, epoch)
    check(epoch <= MAX_EPOCH, "an epoch after the last one", s.epoch)
    deadline = remaining_or_new(s)
    voted = s.election.voted if epoch == s.epoch else None
    s.save(ElectionState(epoch, leader_id, voted))
    s.enter(Unattached(deadline), why)
    _leave_role(s, old)


def become_follower(s: RaftState, epoch: int, leader_id: int, endpoints: Listeners) -> None:
    """Follow a leader that has an address and is not this node.

    The vote is kept for the whole epoch. Back from a lost pre-vote in the same epoch, the follower
    still suspects the leader: its fetch timer is short, doubles each round, and grants pre-votes.
    """
    check(leader_id not in (-1, s.me.id), "follower of itself or without a leader", leader_id)
    check(s.usable(endpoints) is not None, "follower of a leader without address", leader_id)
    old, old_epoch = s.role, s.epoch
    voted = s.election.voted if epoch == s.epoch else None
    s.save(ElectionState(epoch, leader_id, voted))
    role = _new_follower(s, endpoints)
    if isinstance(old, Prospective) and old.suspicion and epoch == old_epoch:
        role.suspicion, role.ended = old.suspicion + 1, old.ended
        pause = suspicion_backoff_ms(s, old.suspicion) + RANK_STEP_MS * election_rank(s, leader_id)
        role.fetch_deadline = s.now + min(pause, s.config.fetch_timeout_ms)
    s.enter(role)
    _leave_role(s, old)


def _new_follower(s: RaftState, endpoints: Listeners) -> Follower:
    deadline = s.now + follower_fetch_timeout_ms(s)
    return Follower(endpoints, deadline, s.now + s.config.fetch_timeout_ms)


def follower_fetch_timeout_ms(s: RaftState) -> int:
    """The time in ms that a follower waits for a successful Fetch.

    The fetch timeout plus a stagger by rank. Voters that lose a silent leader at the same moment
    would start their elections at the same moment and split the vote.
    """
    return s.config.fetch_timeout_ms + election_stagger_ms(s)


def election_stagger_ms(s: RaftState) -> int:
    """The delay in ms of this voter's election against that of the first rank.

    RANK_STEP_MS is enough for the pre-votes of the rank before to arrive; with short timeouts a
    rank takes 1/20 of the fetch timeout instead.
    """
    step = min(RANK_STEP_MS, s.config.fetch_timeout_ms // 20)
    return step * election_rank(s, s.leader_id)


def check_quorum_ms(s: RaftState) -> int:
    """The time in ms without a Fetch from a majority after which a leader resigns (Q4 of `progress`).

    1.5 fetch timeouts (`LeaderState.CHECK_QUORUM_TIMEOUT_FACTOR`): the followers give up first, so
    that a short delay of all Fetch requests does not end a leadership that they still accept.
    """
    return int(s.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)


def _check_deadline(s: RaftState) -> int:
    return s.now + check_quorum_ms(s)


def update_check_quorum(s: RaftState, role: Leader, key: ReplicaKey) -> None:
    """A replica sent a request; a majority of voters restarts the check quorum timer (Q3 of `progress`)."""
    if role.progress.update_check_quorum(key):
        role.check_deadline = _check_deadline(s)


def become_prospective(s: RaftState, why: str, *, suspicion: int = 0) -> None:
    """Start pre-votes (KIP-996, E2 of `election`); epoch, leader and vote stay, nothing is stored.

    `suspicion` > 0: there is a sign that the leader is gone, so the round is short.
    """
    check(s.electable, "prospective without being a voter", s.me)
    check(not isinstance(s.role, Prospective), "prospective already", s.me)
    old = s.role
    ballot = Ballot(s.voters)
    ballot.record(s.me.id, True)
    deadline = s.election_timeout()
    if suspicion:
        deadline = min(deadline, s.now + 2 * suspicion_backoff_ms(s, suspicion))
    ended = isinstance(old, Follower) and old.ended
    s.enter(Prospective(ballot, deadline, s.leader_endpoints, suspicion, ended), why)
    _leave_role(s, old)


def become_candidate(s: RaftState, why: str = "") -> None:
    """Vote for this node in the next epoch (E4 of `election`); the vote counts once it is durable.

    The ballot starts empty: `election.poll_candidate` adds the own vote.
    """
    check(s.electable, "candidate without being a voter", s.me)
    check(s.epoch < MAX_EPOCH, "an election after the last epoch", s.epoch)
    old = s.role
    s.save(ElectionState(s.epoch + 1, -1, s.me))
    s.enter(Candidate(Ballot(s.voters), s.election_timeout()), why)
    _leave_role(s, old)


def become_leader(s: RaftState, granting: set[int]) -> None:
    """Lead the epoch (E7 of `election`): append its first batch.

    `LeaderState.appendStartOfEpochControlRecords`.

    1. LeaderChange. Committing it commits all records before it (Raft, section 5.4.2).
    2. KRaftVersion and Voters in two cases. The voter set is only in the bootstrap snapshot, which
       is never sent (KIP-853). Or this node's own entry differs from its configuration.
    """
    check(s.electable, "leader without being a voter", s.me)
    old = s.role
    s.save(ElectionState(s.epoch, s.me.id))
    # At kraft.version 0 the other voters report themselves (UpdateRaftVoter) after each election.
    volatile = None
    if s.controls.version == 0:
        volatile = s.voters.update_ignoring_directory(s.own_voter)
    role = Leader(
        epoch_start=s.log.end_offset,
        progress=ProgressTracker(s.me, s.voters, s.config.limits),
        check_deadline=_check_deadline(s),
        begin_deadline=s.now,
        volatile_voters=volatile,
        probes=unproven_endpoints(s),
    )
    role.progress.own.end_offset = s.durable.end_offset
    for voter_id in granting & role.progress.voters.keys():
        role.progress.voters[voter_id].has_voted = True
    records: list[ControlRecord] = [LeaderChange(s.me.id, s.voters.ids, tuple(sorted(granting)))]
    if s.controls.version > 0 and s.is_voter:
        bootstrap_only = s.controls.voters_offset == -1
        if bootstrap_only or s.voters.needs_update(s.own_voter):
            voters = s.voters.update(s.own_voter)
            check(voters is not None, "the leader is not in its voter set", s.me)
            assert voters is not None
            records += [KRaftVersion(s.controls.version), VotersRecord(voters.voters)]
    s.enter(role)
    _leave_role(s, old)
    append_control(s, role, tuple(records))


def become_resigned(s: RaftState, why: str) -> None:
    """Stop leading, and name the successors in EndQuorumEpoch: the most advanced voters first.

    Q7 of `progress`. The others would vote for a candidate with a shorter log only in vain.
    """
    role = s.role
    assert isinstance(role, Leader)
    successors = role.progress.by_descending_end()
    others = {voter_id for voter_id in s.voters.ids if voter_id != s.me.id}
    s.enter(Resigned(s.election_timeout(), others, successors), why)
    _leave_role(s, role)


def _leave_role(s: RaftState, old: Role) -> None:
    """End what the old role had pending; called after the new role is entered.

    1. Requests in flight belong to the old role: their answers will be ignored.
    2. A leader's parked Fetch requests and its voter change get NOT_LEADER_OR_FOLLOWER.
    3. A follower's download ends: another leader may not have that snapshot.
    """
    s.requests.reset()
    if isinstance(old, Leader):
        for parked in old.parked:
            refuse(s, parked.reply_to, parked.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if old.change is not None:
            answer_change(s, old.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    elif isinstance(old, Follower) and old.download is not None:
        s.out.write(AbandonSnapshot(old.download.snapshot_id))


def answer_change(
    s: RaftState, change: VoterChange, error: ErrorCode, message: str | None = None
) -> None:
    """Answer the request of a voter change, unless it was answered when it was appended.

    Without `message` the response has the error's own text (`RaftUtil.addVoterResponse`).
    """
    message = error.message if message is None else message
    if isinstance(change, AskingVersions):
        s.out.reply(change.reply_to, AddVoterResponse(error, message))
    elif change.reply_to is not None:
        response = RemoveVoterResponse if change.removal else AddVoterResponse
        s.out.reply(change.reply_to, response(error, message))


# -- the log, as every role appends to it ------------------------------------------------------
def append_batch(s: RaftState, batch: Batch) -> None:
    """Append a batch; its control records are in force at once, committed or not (KIP-853)."""
    s.log.append(batch.base_offset, batch.end_offset, batch.epoch)
    if batch.control:
        _apply_control_records(s, batch)
    s.out.append(batch)
    s.durable.appended(batch.end_offset, s.now)


def _apply_control_records(s: RaftState, batch: Batch) -> None:
    """Apply the control records of a batch, in order.

    A voter set that shares no majority with the one before comes from a leader with other rules:
    Kafka allows one voter for another at once. It is applied, with a warning.
    """
    for offset, record in enumerate(batch.control, batch.base_offset):
        before, known = s.voters, s.controls.has_voters
        if not s.controls.apply(offset, record) or not isinstance(record, VotersRecord):
            continue
        _note_voters(s, offset, before)
        if before.get(s.me.id) != s.voters.get(s.me.id):
            warn_of_directory_mismatch(s)
        if known and not before.overlaps(s.voters):
            s.warn(f"voters {before} and {s.voters} need not share a majority")


def _note_voters(s: RaftState, offset: int, before: VoterSet) -> None:
    """Note the new voter set; with the same voters, the listeners that changed.

    Two nodes on copies of one directory change the listeners without end, so that case is limited.
    """
    text = f"offset {offset}: voters {s.voters}"
    moves = _listener_changes(s, before) if before.keys == s.voters.keys else ""
    if moves:
        s.note_sparingly(moves, f"{text}, {moves}")
    else:
        s.note(text)


def _listener_changes(s: RaftState, before: VoterSet) -> str:
    pairs = zip(before.voters, s.voters.voters, strict=True)
    places = [(new.key, s.usable(old.listeners), s.usable(new.listeners)) for old, new in pairs]
    return ", ".join(f"{key} moved from {old} to {new}" for key, old, new in places if old != new)


def append_control(s: RaftState, role: Leader, records: tuple[ControlRecord, ...]) -> Batch:
    """Append control records of the leader as one batch; they are replicated and truncated together."""
    base = s.log.end_offset
    batch = Batch(base, base + len(records) - 1, s.epoch, 0, control=records)
    append_batch(s, batch)
    role.progress.set_voters(s.voters)
    role.recount = True
    return batch


# -- suspicion: the leader's connection broke --------------------------------------------------
def election_rank(s: RaftState, leader_id: int) -> int:
    """This node's index by id among the voters other than the leader, their number if none.

    Kafka draws a random election timeout; the rank makes the order of elections deterministic, so
    that two voters rarely start in the same moment.
    """
    others = [voter_id for voter_id in s.voters.ids if voter_id != leader_id]
    return others.index(s.me.id) if s.me.id in others else len(others)


def suspicion_backoff_ms(s: RaftState, rounds: int) -> int:
    """The time in ms before the next election round: doubling, random within a factor of two."""
    step = SUSPICION_STEP_MS << min(rounds - 1, 10)
    return min(step + int(s.random() * step), s.config.fetch_timeout_ms)


def suspect_leader(s: RaftState, role: Follower) -> None:
    """The connection to the leader broke: start a pre-vote soon, the lowest voter id first.

    As if the leader had sent EndQuorumEpoch with the other voters by id; Kafka waits for the fetch
    timeout. Pre-votes make it safe: voters that still fetch from the leader reject them. Until a
    Fetch succeeds this node grants pre-votes.
    """
    role.has_fetched = False
    role.suspicion += 1
    wait = RANK_STEP_MS * election_rank(s, s.leader_id)
    role.fetch_deadline = min(role.fetch_deadline, s.now + wait)
