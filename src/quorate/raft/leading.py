"""The leader: append, answer fetches, count the majority, notice when it is gone."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch
from quorate.raft.answers import bare_refusal, leader_error, refuse, wrong_cluster
from quorate.raft.doubts import FORGOT, copies
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
from quorate.raft.moves import append_batch, become_resigned, check_quorum_ms, heard_from
from quorate.raft.progress import Row
from quorate.raft.ready import Accepted, Refused
from quorate.raft.reconfig import expire_change, high_watermark_moved
from quorate.raft.roles import NEVER, Leader, Parked
from quorate.raft.state import State
from quorate.raft.values import Batch

DISK_HANGS: Final = "its disk has not moved for as long as it may go without a majority"


# -- appending ---------------------------------------------------------------------------------
def on_propose(s: State, event: Propose) -> None:
    """One proposal, one batch; nothing is waited for, the batches of a step are one write."""
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


def on_resign(s: State, event: Resign) -> None:
    """`KafkaRaftClient.resign`: another epoch than the present one is of no concern."""
    if isinstance(s.role, Leader) and event.epoch == s.epoch:
        s.role.resign = s.role.resign or "state machine gave up"
    else:
        s.note(f"resignation of epoch {event.epoch} ignored in epoch {s.epoch}")


def on_durable(s: State, role: Leader) -> None:
    """More of the own log is durable: the leader's own voice."""
    own = role.progress.own
    if s.durable.end_offset > own.end_offset:
        own.end_offset = s.durable.end_offset
        if count(s, role):
            complete_parked(s, role)


def count(s: State, role: Leader) -> bool:
    """Publish a new high watermark when a majority holds more (`maybeUpdateHighWatermark`).

    Only once a record of the own epoch is covered; it never falls, even where a new voter set
    computes to less.
    """
    offset = role.progress.majority_end()
    if offset <= role.epoch_start or offset <= role.high_watermark:
        return False
    role.high_watermark = offset
    s.commit(offset)
    high_watermark_moved(s, role)
    return True


# -- Fetch -------------------------------------------------------------------------------------
def on_fetch(s: State, reply_to: int, request: FetchRequest) -> None:
    """`KafkaRaftClient.handleFetchRequest`; PartitionMaxBytes and MinBytes count for nothing."""
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
    if s.durable.election:
        response = _answer(s, role, request, first=True)
        if _says_something(request, response):
            wait = min(wait, _linger(s, role, request, response))
        if wait == 0:
            s.out.reply(reply_to, response)
            return
    role.parked.append(Parked(reply_to, request, s.now + wait))


def _says_something(request: FetchRequest, response: FetchResponse) -> bool:
    return (
        response.records is not None
        or response.diverging is not None
        or response.snapshot_id is not None
        or request.high_watermark < response.high_watermark
    )


def _linger(s: State, role: Leader, request: FetchRequest, response: FetchResponse) -> int:
    """How long this answer may wait for records to go with it: ms.

    A voter needs no commit to go on; while its Fetch waits here, the next record leaves at once
    instead of after another round trip. Not while this leader is about to go.
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


def _answer(s: State, role: Leader, request: FetchRequest, *, first: bool) -> FetchResponse:
    """Records, a diverging epoch, a snapshot id, or nothing.

    `tryCompleteFetchRequest`: only a Fetch at a valid place counts for the replica's row.
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
        if first and request.replica.id >= 0:
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


def _fetched(s: State, role: Leader, row: Row, offset: int) -> None:
    if offset < row.end_offset:
        _fell(s, role, row, offset)
    moved = offset != row.end_offset
    row.fetched(offset, s.log.end_offset, s.now)
    heard_from(s, role, row.key)
    if moved and role.progress.is_voter(row) and count(s, role):
        complete_parked(s, role)


def _fell(s: State, role: Leader, row: Row, offset: int) -> None:
    """A replica goes back behind its own word. An observer has given none: Kafka's do not sync."""
    text = f"{row.key} fetches at {offset}, having acknowledged {row.end_offset}"
    if not role.progress.is_voter(row):
        s.warn_sparingly("observer fell", text)
    elif s.doubts.fell(row.key.id, s.now):
        sign = f"time and again it fetches below what it acknowledged, now at {offset}"
        s.warn_sparingly(f"copies {row.key}", copies(row.key, sign))
    else:
        s.warn_sparingly(f"fell {row.key}", f"{text}: {FORGOT}")


def complete_parked(s: State, role: Leader) -> None:
    """Records were appended or the high watermark moved: answer every parked Fetch that does not
    linger."""
    if not s.durable.election:
        return
    parked, role.parked = role.parked, []
    for fetch in parked:
        response = _answer(s, role, fetch.request, first=False)
        linger = _linger(s, role, fetch.request, response)
        if linger and fetch.deadline > s.now:
            fetch.deadline = min(fetch.deadline, s.now + linger)
            role.parked.append(fetch)
        else:
            s.out.reply(fetch.reply_to, response)


def on_spoken_for(s: State, role: Leader) -> None:
    """The leader's election became durable: fetches that came before are looked at now."""
    parked, role.parked = role.parked, []
    for fetch in parked:
        on_fetch(s, fetch.reply_to, fetch.request)


# -- FetchSnapshot -----------------------------------------------------------------------------
def on_fetch_snapshot(s: State, reply_to: int, request: FetchSnapshotRequest) -> None:
    """`handleFetchSnapshotRequest`.

    The core does not know sizes: the driver fills `size`, and answers POSITION_OUT_OF_RANGE
    where the position is at or beyond it.
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
    heard_from(s, role, request.replica)
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
def poll_leader(s: State, role: Leader) -> int:
    """Resign when it is time, expire what waited too long, remind silent voters of the epoch."""
    if s.shutdown_deadline is not None:
        role.resign = "shutdown"
    elif s.now >= role.check_deadline and not s.voters.is_only_voter(s.me):
        role.resign = "no fetch from a majority of the voters"
    elif s.now >= _disk_deadline(s):
        role.resign = DISK_HANGS
    if role.resign is not None:
        become_resigned(s, role.resign)
        return s.now
    expire_change(s, role)
    _expire_parked(s, role)
    if s.now >= role.begin_deadline and s.durable.election:
        _send_begin(s, role)
    wake = min(role.begin_deadline, _disk_deadline(s))
    if not s.voters.is_only_voter(s.me):
        wake = min(wake, role.check_deadline)
    if role.change is not None:
        wake = min(wake, role.change.deadline)
    for fetch in role.parked:
        wake = min(wake, fetch.deadline)
    return wake


def _disk_deadline(s: State) -> int:
    """When a leader resigns whose disk hangs: ms.

    Others have the records, so they would be committed without it, and wait here for the disk
    without end. Kafka's leader answers nobody meanwhile, and loses its office to check quorum.
    """
    if s.durable.log or s.voters.is_only_voter(s.me):
        return NEVER
    return s.durable.log_stands_ms(s.now) + check_quorum_ms(s)


def _expire_parked(s: State, role: Leader) -> None:
    if not role.parked or not s.durable.election:
        return
    now = s.now
    due = [fetch for fetch in role.parked if fetch.deadline <= now]
    if due:
        role.parked = [fetch for fetch in role.parked if fetch.deadline > now]
        for fetch in due:
            s.out.reply(fetch.reply_to, _answer(s, role, fetch.request, first=False))


def _send_begin(s: State, role: Leader) -> None:
    """BeginQuorumEpoch to voters that have not fetched for half the fetch timeout."""
    period = s.config.fetch_timeout_ms // 2
    for key in role.progress.silent(period, s.now):
        address = s.usable(s.voters.listeners(key.id))
        if address is not None and s.requests.ready(key.id, s.now):
            request = BeginQuorumEpochRequest(
                s.config.cluster_id, key, s.leader_and_epoch, s.config.listeners
            )
            s.send(key.id, address, request)
    role.begin_deadline = s.now + period


def after_append(s: State, role: Leader) -> None:
    """Once per step in which the leader appended: a single wake-up of the parked fetches."""
    if role.recount:
        role.recount = False
        count(s, role)
    complete_parked(s, role)
