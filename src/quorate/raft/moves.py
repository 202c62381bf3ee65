"""How a replica takes each role, and what it settles when it leaves one (`QuorumState`)."""

from __future__ import annotations

from quorate.base.check import check
from quorate.base.errors import ErrorCode
from quorate.base.ids import Listeners, ReplicaKey, uuid_to_text
from quorate.raft.answers import refuse
from quorate.raft.messages import AddVoterResponse, RemoveVoterResponse
from quorate.raft.progress import Progress
from quorate.raft.ready import AbandonSnapshot
from quorate.raft.reconfig_state import AskingVersions, Change
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
from quorate.raft.state import State, remaining_or_new
from quorate.raft.values import Batch, ControlRecord, ElectionState, KRaftVersion, LeaderChange
from quorate.raft.values import Voters as VotersRecord
from quorate.raft.voters import VoterSet

CHECK_QUORUM_FACTOR = 1.5
SUSPICION_STEP_MS = 50
RANK_STEP_MS = 30
MAX_EPOCH = (1 << 31) - 1
"""What the files and messages have room for."""


def start(s: State) -> None:
    """The first role, from quorum-state and log (`QuorumState.initialize`)."""
    election = s.election
    if s.log.last_epoch > election.epoch:
        s.warn(f"quorum-state has epoch {election.epoch}, the log {s.log.last_epoch}: log's taken")
        s.save(ElectionState(s.log.last_epoch))
        s.role = Unattached(remaining_or_new(s))
    elif election.leader_id == s.me.id:
        others = {voter_id for voter_id in s.voters.ids if voter_id != s.me.id}
        s.role = Resigned(s.election_timeout(), others)
    elif election.leader_id < 0 and election.voted is not None and _runs_on(s, election.voted):
        s.role = Candidate(Ballot(s.voters), s.election_timeout())
    else:
        endpoints = s.endpoints_of(election.leader_id, ())
        if election.leader_id >= 0 and s.usable(endpoints) is not None:
            s.role = _new_follower(s, endpoints)
        else:
            s.role = Unattached(remaining_or_new(s))
    s.note(f"epoch {s.epoch}: starts as {type(s.role).__name__.lower()}, voters {s.voters}")
    explain_key(s)
    if s.controls.own and len(s.controls.static_voters) > 0:
        s.warn("the configured static voters are ignored: the log has its own voter set")
    if s.voters.is_only_voter(s.me) and isinstance(s.role, Unattached | Resigned):
        become_prospective(s, "only voter")


def explain_key(s: State) -> None:
    """Warn when the voter set knows this node by another directory id: it counts for nothing."""
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


def _runs_on(s: State, voted: ReplicaKey) -> bool:
    """Was this vote one for me, who may run? A v0 file keeps no directory id: the id decides.

    Unlike Kafka, only while the epoch has no leader: his log may have brought another voter set,
    in which I would win an epoch that is won.
    """
    mine = voted.id == s.me.id and voted.directory_id in (bytes(16), s.me.directory_id)
    return mine and s.electable


# -- taking a role -----------------------------------------------------------------------------
def become_unattached(s: State, epoch: int, leader_id: int = -1, why: str = "") -> None:
    """In a higher epoch, or in the same one after a lost pre-vote."""
    old = s.role
    lost = isinstance(old, Prospective) and epoch == s.epoch
    check(lost or epoch > s.epoch, "unattached without a new epoch", s.epoch, epoch)
    check(epoch <= MAX_EPOCH, "an epoch after the last one", s.epoch)
    deadline = remaining_or_new(s)
    voted = s.election.voted if epoch == s.epoch else None
    s.save(ElectionState(epoch, leader_id, voted))
    s.enter(Unattached(deadline), why)
    _settle(s, old)


def become_follower(s: State, epoch: int, leader_id: int, endpoints: Listeners) -> None:
    """Of a leader with a usable address that is not this node."""
    check(leader_id not in (-1, s.me.id), "follower of itself or nobody", leader_id)
    check(s.usable(endpoints) is not None, "follower of a leader without address", leader_id)
    old, old_epoch = s.role, s.epoch
    voted = s.election.voted if epoch == s.epoch else None
    s.save(ElectionState(epoch, leader_id, voted))
    role = _new_follower(s, endpoints)
    if isinstance(old, Prospective) and old.suspicion and epoch == old_epoch:
        role.suspicion, role.ended = old.suspicion + 1, old.ended
        pause = suspicion_pause(s, old.suspicion) + RANK_STEP_MS * rank_without(s, leader_id)
        role.fetch_deadline = s.now + min(pause, s.config.fetch_timeout_ms)
    s.enter(role)
    _settle(s, old)


def _new_follower(s: State, endpoints: Listeners) -> Follower:
    deadline = s.now + fetch_patience(s)
    return Follower(endpoints, deadline, s.now + s.config.fetch_timeout_ms)


def fetch_patience(s: State) -> int:
    """How long a follower waits for a successful Fetch: ms.

    The fetch timeout, and a little more by rank: voters that lose a silent leader at the same
    moment must not run, and split the vote, at the same moment.
    """
    return s.config.fetch_timeout_ms + turn_ms(s)


def turn_ms(s: State) -> int:
    """How much later than the first of the voters this one runs: in a rank's time the pre-votes of
    the rank before have come, unless timeouts are so short that there is no time for that."""
    step = min(RANK_STEP_MS, s.config.fetch_timeout_ms // 20)
    return step * rank_without(s, s.leader_id)


def check_quorum_ms(s: State) -> int:
    """For how long a leader stays that no majority asks (`LeaderState`)."""
    return int(s.config.fetch_timeout_ms * CHECK_QUORUM_FACTOR)


def _check_deadline(s: State) -> int:
    """When a leader that no majority has asked by then resigns."""
    return s.now + check_quorum_ms(s)


def heard_from(s: State, role: Leader, key: ReplicaKey) -> None:
    """A replica asked: that may be the majority which proves that this leader is connected."""
    if role.progress.heard_majority(key):
        role.check_deadline = _check_deadline(s)


def become_prospective(s: State, why: str, *, suspicion: int = 0) -> None:
    """Ask whether an election could be won; epoch, leader and vote stay."""
    check(s.electable, "prospective without being a voter", s.me)
    check(not isinstance(s.role, Prospective), "prospective already", s.me)
    old = s.role
    ballot = Ballot(s.voters)
    ballot.record(s.me.id, True)
    deadline = s.election_timeout()
    if suspicion:
        deadline = min(deadline, s.now + 2 * suspicion_pause(s, suspicion))
    ended = isinstance(old, Follower) and old.ended
    s.enter(Prospective(ballot, deadline, s.leader_endpoints, suspicion, ended), why)
    _settle(s, old)


def become_candidate(s: State, why: str = "") -> None:
    """Vote for this node in the next epoch; the vote counts once it is durable."""
    check(s.electable, "candidate without being a voter", s.me)
    check(s.epoch < MAX_EPOCH, "an election after the last epoch", s.epoch)
    old = s.role
    s.save(ElectionState(s.epoch + 1, -1, s.me))
    s.enter(Candidate(Ballot(s.voters), s.election_timeout()), why)
    _settle(s, old)


def become_leader(s: State, granting: set[int]) -> None:
    """Lead the epoch: append its first batch (`LeaderState.appendStartOfEpochControlRecords`)."""
    check(s.electable, "leader without being a voter", s.me)
    old = s.role
    s.save(ElectionState(s.epoch, s.me.id))
    volatile = None
    if s.controls.version == 0:
        volatile = s.voters.update_ignoring_directory(s.own_voter)
    role = Leader(
        epoch_start=s.log.end_offset,
        progress=Progress(s.me, s.voters, s.config.limits),
        check_deadline=_check_deadline(s),
        begin_deadline=s.now,
        volatile_voters=volatile,
    )
    role.progress.own.end_offset = s.durable.end_offset
    records: list[ControlRecord] = [LeaderChange(s.me.id, s.voters.ids, tuple(sorted(granting)))]
    if s.controls.version > 0 and s.is_voter:
        bootstrap_only = s.controls.voters_offset == -1
        if bootstrap_only or s.voters.needs_update(s.own_voter):
            voters = s.voters.update(s.own_voter)
            check(voters is not None, "the leader is not in its voter set", s.me)
            assert voters is not None
            records += [KRaftVersion(s.controls.version), VotersRecord(voters.voters)]
    s.enter(role)
    _settle(s, old)
    append_control(s, role, tuple(records))


def become_resigned(s: State, why: str) -> None:
    """Lead no more, and tell the voters whom to elect: those most advanced first."""
    role = s.role
    assert isinstance(role, Leader)
    successors = role.progress.by_descending_end()
    others = {voter_id for voter_id in s.voters.ids if voter_id != s.me.id}
    s.enter(Resigned(s.election_timeout(), others, successors), why)
    _settle(s, role)


def _settle(s: State, old: Role) -> None:
    """Forget what was asked in the old role, answer what is still owed from it."""
    s.requests.reset()
    if isinstance(old, Leader):
        for parked in old.parked:
            refuse(s, parked.reply_to, parked.request, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if old.change is not None:
            answer_change(s, old.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    elif isinstance(old, Follower) and old.download is not None:
        s.out.write(AbandonSnapshot(old.download.snapshot_id))


def answer_change(s: State, change: Change, error: ErrorCode, message: str | None = None) -> None:
    """Tell the asker what became of its voter change, unless it was told already.

    Where there is nothing else to say, the error's own text (`RaftUtil.addVoterResponse`).
    """
    message = error.message if message is None else message
    if isinstance(change, AskingVersions):
        s.out.reply(change.reply_to, AddVoterResponse(error, message))
    elif change.reply_to is not None:
        response = RemoveVoterResponse if change.removal else AddVoterResponse
        s.out.reply(change.reply_to, response(error, message))


# -- the log, as every role appends to it ------------------------------------------------------
def append_batch(s: State, batch: Batch) -> None:
    """Append; control records rule at once."""
    s.log.append(batch.base_offset, batch.end_offset, batch.epoch)
    if batch.control:
        _rule(s, batch)
    s.out.append(batch)
    s.durable.appended(batch.end_offset, s.now)


def _rule(s: State, batch: Batch) -> None:
    """Take a batch's control records into force."""
    for offset, record in enumerate(batch.control, batch.base_offset):
        before, known = s.voters, s.controls.own
        if not s.controls.apply(offset, record) or not isinstance(record, VotersRecord):
            continue
        _tell_voters(s, offset, before)
        if before.get(s.me.id) != s.voters.get(s.me.id):
            explain_key(s)
        if known and not before.overlaps(s.voters):
            s.warn(f"voters {before} and {s.voters} need not share a majority")


def _tell_voters(s: State, offset: int, before: VoterSet) -> None:
    """Say who votes now, and where, when nothing but that is news."""
    text = f"offset {offset}: voters {s.voters}"
    moves = _moves(s, before) if before.keys == s.voters.keys else ""
    if moves:
        s.note_sparingly(moves, f"{text}, {moves}")
    else:
        s.note(text)


def _moves(s: State, before: VoterSet) -> str:
    pairs = zip(before.voters, s.voters.voters, strict=True)
    places = [(new.key, s.usable(old.listeners), s.usable(new.listeners)) for old, new in pairs]
    return ", ".join(f"{key} moved from {old} to {new}" for key, old, new in places if old != new)


def append_control(s: State, role: Leader, records: tuple[ControlRecord, ...]) -> Batch:
    """As leader, append control records as one batch."""
    base = s.log.end_offset
    batch = Batch(base, base + len(records) - 1, s.epoch, 0, control=records)
    append_batch(s, batch)
    role.progress.set_voters(s.voters)
    role.recount = True
    return batch


# -- suspicion: the leader's connection broke --------------------------------------------------
def rank_without(s: State, leader_id: int) -> int:
    """This node's place among the voters other than the leader, by id."""
    others = [voter_id for voter_id in s.voters.ids if voter_id != leader_id]
    return others.index(s.me.id) if s.me.id in others else len(others)


def suspicion_pause(s: State, rounds: int) -> int:
    """How long to wait before the next round, doubling, with chance: ms."""
    step = SUSPICION_STEP_MS << min(rounds - 1, 10)
    return min(step + int(s.random() * step), s.config.fetch_timeout_ms)


def suspect_leader(s: State, role: Follower) -> None:
    """The leader's connection broke: run for its place soon, the lowest voter id first.

    As if the leader had sent EndQuorumEpoch with the other voters by id. Until a Fetch succeeds
    this node vouches for the leader no more and so grants pre-votes.
    """
    role.has_fetched = False
    role.suspicion += 1
    wait = RANK_STEP_MS * rank_without(s, s.leader_id)
    role.fetch_deadline = min(role.fetch_deadline, s.now + wait)
