"""The leader: append, answer Fetch, advance the high watermark, and check quorum.

It resigns when no majority fetches (check quorum, KIP-595), when its disk hangs, and on shutdown. It
also resigns when the state machine asks for it, and when it is no longer a voter.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch
from quorate.raft.anomalies import LOST_RECORDS, duplicate_replica
from quorate.raft.answers import bare_refusal, leader_error, refuse, wrong_cluster
from quorate.raft.inputs import Propose, Resign
from quorate.raft.log_index import BOOTSTRAP_SNAPSHOT, Diverging, NeedsSnapshot
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ReadChunk,
    ReadRange,
)
from quorate.raft.progress import ReplicaProgress
from quorate.raft.reachability import begin_address, begin_sent, probed
from quorate.raft.ready import Accepted, Refused
from quorate.raft.reconfig import expire_change, high_watermark_moved
from quorate.raft.roles import NEVER, Leader, ParkedFetch
from quorate.raft.state import RaftState
from quorate.raft.transitions import (
    append_batch,
    become_resigned,
    check_quorum_ms,
    update_check_quorum,
)
from quorate.raft.values import Batch

DISK_HANGS: Final = "its disk has not moved for as long as it may go without a majority"


# -- appending ---------------------------------------------------------------------------------
def on_propose(s: RaftState, event: Propose) -> None:
    """Append one proposal as one batch; all batches of a step become one write and one sync."""
    role = s.role
    epoch = s.election.epoch
    if not isinstance(role, Leader) or event.epoch != epoch or role.resign is not None:
        text = f"not the leader of epoch {event.epoch}: leader {s.leader_id} in epoch {epoch}"
        error = Refused(event.token, ErrorCode.NOT_LEADER_OR_FOLLOWER, text)
        s.out.proposals.append(error)
        return
    most = s.config.limits.batch_bytes
    if event.count < 1 or event.size > most:
        code = ErrorCode.INVALID_REQUEST if event.count < 1 else ErrorCode.RECORD_LIST_TOO_LARGE
        text = f"{event.count} records of {event.size} bytes: a batch has at least one record and "
        text += f"at most {most} bytes"
        s.out.proposals.append(Refused(event.token, code, text))
        return
    base = s.log.end_offset
    end = base + event.count
    append_batch(s, Batch(base, end - 1, epoch, event.size, (), event.payload))
    s.out.proposals.append(Accepted(event.token, base, end))


def on_resign(s: RaftState, event: Resign) -> None:
    """Resign for the state machine; a resignation of another epoch is ignored.

    `KafkaRaftClient.resign`.

    The state machine asks asynchronously; by now this node may lead a later epoch.
    """
    if isinstance(s.role, Leader) and event.epoch == s.epoch:
        s.role.resign = s.role.resign or "state machine gave up"
    else:
        s.note(f"resignation of epoch {event.epoch} ignored in epoch {s.epoch}")


def on_durable(s: RaftState, role: Leader) -> None:
    """The leader counts its own log only as far as it is durable.

    Followers may acknowledge a record before the leader's own sync ends: the majority commits it.
    """
    own = role.progress.own
    if s.durable.end_offset > own.end_offset:
        own.end_offset = s.durable.end_offset
        if maybe_update_high_watermark(s, role):
            complete_parked(s, role)


def maybe_update_high_watermark(s: RaftState, role: Leader) -> bool:
    """Raise the high watermark to what a majority holds; True when it rose.

    `LeaderState.maybeUpdateHighWatermark`.
    1. Only when a record of this epoch is covered (Raft, section 5.4.2): a record of an earlier
       epoch that a majority holds can still be overwritten by another leader.
    2. Never lower it. With a new voter set the same log ends may give less, but what was committed
       under the old set stays committed.
    """
    offset = role.progress.majority_end()
    if offset <= role.epoch_start or offset <= role.high_watermark:
        return False
    role.high_watermark = offset
    s.commit(offset)
    high_watermark_moved(s, role)
    return True


# -- Fetch -------------------------------------------------------------------------------------
def on_fetch(s: RaftState, reply_to: int, request: FetchRequest) -> None:
    """Answer a Fetch or park it; like Kafka this ignores PartitionMaxBytes and MinBytes.

    `KafkaRaftClient.handleFetchRequest`.

    1. Cluster id, ranges of the fields, leadership of the epoch.
    2. Update the replica's progress, unless the Fetch diverges or needs a snapshot.
    3. Answer at once with records, a diverging epoch, a snapshot id or a higher high watermark;
       else park the request for at most `max_wait_ms`.
    """
    if wrong_cluster(s, request.cluster_id):
        s.out.reply(reply_to, bare_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    last = request.last_fetched_epoch
    if request.max_wait_ms < 0 or request.offset < 0 or not 0 <= last <= request.epoch:
        refuse(s, reply_to, request, ErrorCode.INVALID_REQUEST)
        return
    if error := leader_error(s, request.epoch):
        refuse(s, reply_to, request, error)
        return
    role = s.role
    assert isinstance(role, Leader)
    if request.replica.id == s.me.id:
        s.warn_sparingly(
            "own id",
            f"Fetch from {request.replica}, which has this leader's own id: refused. It has its "
            "node.id, or runs on a copy of its directory",
        )
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    wait = request.max_wait_ms
    # A response announces that this node leads the epoch. Until its election is durable a crash would
    # take that back, so the request waits parked (`on_election_durable`).
    if s.durable.election_is_durable:
        response = _answer(s, role, request, update_progress=True)
        if _has_content(request, response):
            wait = min(wait, _linger(s, role, request, response))
        if wait == 0:
            s.out.reply(reply_to, response)
            return
    role.parked.append(ParkedFetch(reply_to, request, s.now + wait))


def _has_content(request: FetchRequest, response: FetchResponse) -> bool:
    return (
        response.records is not None
        or response.diverging is not None
        or response.snapshot_id is not None
        or request.high_watermark < response.high_watermark
    )


def _linger(s: RaftState, role: Leader, request: FetchRequest, response: FetchResponse) -> int:
    """The time in ms that an answer with only a new high watermark may wait for records.

    A voter acknowledges records before they are committed, so it does not need the high watermark
    soon. While its Fetch is parked, the next record is sent at once instead of after a round trip.
    A leader that resigns or shuts down answers at once: the voter would not learn of it.
    """
    ms = s.config.high_watermark_linger_ms
    if (
        ms == 0
        or response.records is not None
        or response.diverging is not None
        or response.snapshot_id is not None
        or role.resign is not None
        or s.shutdown_deadline is not None
        or not role.progress.has_voter(request.replica)
    ):
        return 0
    return ms


def _answer(
    s: RaftState, role: Leader, request: FetchRequest, *, update_progress: bool
) -> FetchResponse:
    """The answer for the request as of now (`KafkaRaftClient.tryCompleteFetchRequest`).

    1. Offset 0 and a snapshot exists: its id (S1 of `following`), although the log may start at 0.
       A new replica is faster with the snapshot, as in Kafka. The bootstrap snapshot (0-0) is never
       sent.
    2. Offset or epoch before the log's start: the id of the newest snapshot.
    3. The last fetched epoch ends elsewhere in this log: the diverging epoch.
    4. Else records, up to the log end. They need not be committed or durable here.

    `update_progress`: False for a waiting request, whose progress is already recorded. Only a Fetch in
    case 4 updates the replica's progress: else its log is not known to be a prefix of this one.
    """
    offset = request.offset
    newest = s.log.newest_snapshot
    place: Diverging | NeedsSnapshot | None
    if offset == 0 and newest is not None and newest != BOOTSTRAP_SNAPSHOT:
        place = NeedsSnapshot(newest)
    else:
        place = s.log.validate(offset, request.last_fetched_epoch)
    records = None
    if place is None:
        end = s.log.end_offset
        if update_progress and request.replica.id >= 0:  # tools fetch with id -1
            _fetched(s, role, role.progress.row(request.replica, s.now), offset)
        if offset < end:
            records = ReadRange(offset, end, min(request.max_bytes, s.config.answer_max_bytes))
    return FetchResponse(
        ErrorCode.NONE,
        LeaderAndEpoch(s.me.id, s.election.epoch),
        role.high_watermark,
        s.log.start_offset,
        place.end if isinstance(place, Diverging) else None,
        place.snapshot_id if isinstance(place, NeedsSnapshot) else None,
        records,
        (),
        s.config.listeners,
    )


def _fetched(s: RaftState, role: Leader, row: ReplicaProgress, offset: int) -> None:
    if offset < row.end_offset:
        _report_regression(s, role, row, offset)
    moved = offset != row.end_offset  # a repeated Fetch cannot raise the high watermark
    row.fetched(offset, s.log.end_offset, s.now)
    update_check_quorum(s, role, row.key)  # Q1 of `progress`
    if moved and role.progress.is_voter(row) and maybe_update_high_watermark(s, role):
        complete_parked(s, role)


def _report_regression(s: RaftState, role: Leader, row: ReplicaProgress, offset: int) -> None:
    """Warn of a replica that fetches below what it acknowledged in this epoch.

    A voter lost durable records. Kafka's brokers, which are observers, do not sync before they
    fetch, so for an observer this is normal after a crash.
    """
    text = f"{row.key} fetches at {offset}, having acknowledged {row.end_offset}"
    if not role.progress.is_voter(row):
        s.warn_sparingly("observer fell", text)
    elif s.anomalies.record_regression(row.key.id, s.now):
        sign = f"time and again it fetches below what it acknowledged, now at {offset}"
        s.warn_sparingly(f"copies {row.key}", duplicate_replica(row.key, sign))
    else:
        s.warn_sparingly(f"fell {row.key}", f"{text}: {LOST_RECORDS}")


def complete_parked(s: RaftState, role: Leader) -> None:
    """Records were appended or the high watermark rose: answer the parked Fetch requests.

    One with only a new high watermark may stay for `high_watermark_linger_ms` (`_linger`).
    """
    if not s.durable.election_is_durable:
        return
    parked, role.parked = role.parked, []
    for fetch in parked:
        response = _answer(s, role, fetch.request, update_progress=False)
        linger = _linger(s, role, fetch.request, response)
        if linger and fetch.deadline > s.now:
            fetch.deadline = min(fetch.deadline, s.now + linger)
            role.parked.append(fetch)
        else:
            s.out.reply(fetch.reply_to, response)


def on_election_durable(s: RaftState, role: Leader) -> None:
    """The election became durable (E7 of `election`): process the Fetch requests that came before."""
    parked, role.parked = role.parked, []
    for fetch in parked:
        on_fetch(s, fetch.reply_to, fetch.request)


# -- FetchSnapshot -----------------------------------------------------------------------------
def on_fetch_snapshot(s: RaftState, reply_to: int, request: FetchSnapshotRequest) -> None:
    """Answer with a chunk of a snapshot (`KafkaRaftClient.handleFetchSnapshotRequest`).

    The core does not know file sizes: the driver fills in `size`, and answers POSITION_OUT_OF_RANGE
    for a position at or beyond it. The bootstrap snapshot (0-0) is never sent, as in Kafka.
    """
    if wrong_cluster(s, request.cluster_id):
        s.out.reply(reply_to, bare_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if error := leader_error(s, request.epoch):
        refuse(s, reply_to, request, error)
        return
    role = s.role
    assert isinstance(role, Leader)
    known = request.snapshot_id in s.log.snapshots
    if not known or request.snapshot_id == BOOTSTRAP_SNAPSHOT:
        refuse(s, reply_to, request, ErrorCode.SNAPSHOT_NOT_FOUND)
        return
    if request.position < 0:
        refuse(s, reply_to, request, ErrorCode.POSITION_OUT_OF_RANGE)
        return
    # Q1 of `progress`: a download may outlast the check quorum timer, and no Fetch comes meanwhile.
    update_check_quorum(s, role, request.replica)
    most = min(max(request.max_bytes, 0), s.config.snapshot_max_bytes)
    s.out.reply(
        reply_to,
        FetchSnapshotResponse(
            ErrorCode.NONE,
            s.leader_and_epoch,
            request.snapshot_id,
            0,
            request.position,
            ReadChunk(request.snapshot_id, request.position, most),
            s.leader_endpoints,
        ),
    )


# -- time --------------------------------------------------------------------------------------
def poll_leader(s: RaftState, role: Leader) -> int:
    """Resign, expire, remind. Returns the time of the next poll (ms).

    1. Resign: shutdown, check quorum (`LeaderState.timeUntilCheckQuorumExpires`), a hanging disk.
    2. Expire the pending voter change and parked requests.
    3. Send BeginQuorumEpoch to voters that do not fetch (`LeaderState.timeUntilBeginQuorumEpoch`).
    """
    # 1. (Q7 of `progress`)
    if s.shutdown_deadline is not None:
        role.resign = "shutdown"
    elif s.now >= role.check_deadline and not s.voters.is_only_voter(s.me):
        role.resign = "no fetch from a majority of the voters"
    elif s.now >= _disk_deadline(s):
        role.resign = DISK_HANGS
    if role.resign is not None:
        become_resigned(s, role.resign)
        return s.now
    # 2.
    expire_change(s, role)
    _expire_parked(s, role)
    # 3. Not before the election is durable: a crash could take back what the request announces.
    if s.now >= role.begin_deadline and s.durable.election_is_durable:
        _send_begin(s, role)
    wake = min(role.begin_deadline, _disk_deadline(s))
    if not s.voters.is_only_voter(s.me):
        wake = min(wake, role.check_deadline)
    if role.change is not None:
        wake = min(wake, role.change.deadline)
    for fetch in role.parked:
        wake = min(wake, fetch.deadline)
    return wake


def _disk_deadline(s: RaftState) -> int:
    """The time (ms) at which a leader with a hanging disk resigns; NEVER while its log is durable.

    Q6 of `progress`. The followers hold the records, so they are committed without this disk, but
    this node cannot apply and answer them. Kafka's raft thread blocks in the write: its leader
    answers no Fetch and loses leadership. Here the disk has a thread of its own, so the core must decide it.
    """
    if s.durable.log_is_durable or s.voters.is_only_voter(s.me):
        return NEVER
    return s.durable.log_stalled_since_ms(s.now) + check_quorum_ms(s)


def _expire_parked(s: RaftState, role: Leader) -> None:
    if not role.parked or not s.durable.election_is_durable:
        return
    now = s.now
    due = [fetch for fetch in role.parked if fetch.deadline <= now]
    if due:
        role.parked = [fetch for fetch in role.parked if fetch.deadline > now]
        for fetch in due:
            s.out.reply(fetch.reply_to, _answer(s, role, fetch.request, update_progress=False))


def _send_begin(s: RaftState, role: Leader) -> None:
    """Send BeginQuorumEpoch to the voters that have not fetched for half the fetch timeout.

    It repeats for the whole epoch (`LeaderState.beginQuorumEpochTimer`): a voter that restarted
    with other listeners, or that knows no bootstrap server, finds its leader only so. Voters at whose
    endpoint no node has answered yet get it too (`reachability`).
    """
    period = s.config.fetch_timeout_ms // 2
    for key in sorted({*role.progress.silent(period, s.now), *probed(s, role)}):
        address = begin_address(s, role, key.id)
        if address is not None and s.requests.ready(key.id, s.now):
            request = BeginQuorumEpochRequest(
                s.config.cluster_id, key, s.leader_and_epoch, s.config.listeners
            )
            begin_sent(role, key.id, s.send(key.id, address, request))
    role.begin_deadline = s.now + period


def after_append(s: RaftState, role: Leader) -> None:
    """Once per step in which the leader appended, so that parked requests are answered once.

    `recount`: with a new voter set in force the same log ends may make a higher majority.
    """
    if role.recount:
        role.recount = False
        maybe_update_high_watermark(s, role)
    complete_parked(s, role)
