"""The follower and the observer: fetch, append, truncate, download snapshots, find the leader."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, OffsetAndEpoch
from quorate.raft.epochs import tells_more
from quorate.raft.inputs import InstallFailed, SnapshotInstalled
from quorate.raft.joining import voter_request
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
)
from quorate.raft.moves import append_batch, become_prospective, explain_key, fetch_patience
from quorate.raft.ready import AbandonSnapshot, InstallSnapshot, SnapshotChunk, Truncate
from quorate.raft.requests import InFlight
from quorate.raft.roles import NEVER, Download, Follower, Unattached
from quorate.raft.state import State
from quorate.raft.voters import updated

_SAID_AFTER: Final = 8
"""So often a server is asked in vain, in about two seconds, before a word is said."""


# -- the answer to a Fetch ---------------------------------------------------------------------
def on_fetch_response(s: State, flight: InFlight, response: FetchResponse) -> bool:
    """`KafkaRaftClient.handleFetchResponse`. False: let the peer rest before the next Fetch.

    Where Java stops the node (a high watermark that falls, truncation below it) this replica
    refuses, notes it and does not restart its fetch timer: a leader that goes on like that is
    voted out.
    """
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    role = s.role
    if response.error != ErrorCode.NONE or not isinstance(role, Follower):
        s.note(f"Fetch: {response.error.name}")
        return False
    if s.usable(response.leader_endpoints) is not None:
        # Only the leader answers so, and it knows best where it is: under the listener that was
        # asked. Of the others it says nothing here.
        role.leader_endpoints = updated(role.leader_endpoints, response.leader_endpoints)
    if response.diverging is not None and response.diverging.epoch >= 0:
        well = _truncate(s, response.diverging)
    elif response.snapshot_id is not None and max(response.snapshot_id) >= 0:
        well = _begin_download(s, role, response.snapshot_id)
    else:
        well = _append(s, response)
        if well:
            _follow_high_watermark(s, response.high_watermark)
    if well:
        role.leader_high_watermark = max(role.leader_high_watermark, response.high_watermark)
        fetched_well(s, role)
    return well


def fetched_well(s: State, role: Follower) -> None:
    """The leader answered: it is there, and this replica vouches for it."""
    if role.ended:
        return
    role.fetch_deadline = s.now + fetch_patience(s)
    role.has_fetched = True
    role.suspicion = 0


def _truncate(s: State, diverging: OffsetAndEpoch) -> bool:
    cut = s.log.truncation_offset(diverging)
    if cut < s.committed_floor or diverging.offset < s.high_watermark:
        s.warn_sparingly(
            f"truncate {s.leader_id}",
            f"leader {s.leader_id} asks to truncate to {diverging.offset}, below what is "
            f"committed ({s.committed_floor}): refused",
        )
        return False
    if cut >= s.log.end_offset:
        text = f"leader {s.leader_id} diverges at {diverging}, where this log has nothing to cut"
        s.warn_sparingly(f"diverges {s.leader_id}", text)
        return False
    truncate(s, cut)
    return True


def truncate(s: State, cut: int) -> None:
    """Drop the log from `cut` on, and what its control records brought into force.

    Usual after a failover, but whoever reads the log later wants to know: these records were on
    this disk, and if they had been acknowledged, another disk has forgotten them.
    """
    end = s.log.end_offset
    s.out.write(Truncate(cut))
    s.log.truncate(cut)
    s.durable.truncated(cut, s.now)
    s.warn(f"truncated to {cut}, from {end}: leader {s.leader_id} does not have the rest")
    if s.controls.truncate(cut):
        s.note(f"voters {s.voters} again")


def _append(s: State, response: FetchResponse) -> bool:
    """Append what continues the log; the first batch that does not, and all after it, is left.

    A batch above the epoch of this follower is skipped (KAFKA-18723). False where a batch can
    never fit: then the same Fetch would bring it again and again.
    """
    for batch in response.batches:
        if batch.epoch > s.epoch:
            text = f"batch at {batch.base_offset} of epoch {batch.epoch} skipped in {s.epoch}"
            s.note_sparingly(f"early {s.leader_id}", text)
            return False
        fits = batch.base_offset == s.log.end_offset and batch.last_offset >= batch.base_offset
        if not fits or batch.epoch < s.log.last_epoch:
            s.warn_sparingly(
                f"batch {s.leader_id}",
                f"batch at {batch.base_offset} of epoch {batch.epoch} does not continue the log "
                f"that ends at {s.log.end_offset} in epoch {s.log.last_epoch}: refused",
            )
            return False
        append_batch(s, batch)
    return True


def _follow_high_watermark(s: State, leaders: int) -> None:
    if leaders < 0:
        return
    offset = min(s.log.end_offset, leaders)
    if offset < s.high_watermark:
        text = f"leader {s.leader_id} has high watermark {leaders}, below {s.high_watermark}"
        s.note_sparingly(f"watermark {s.leader_id}", text)
    s.commit(offset)


# -- snapshots ---------------------------------------------------------------------------------
def _begin_download(s: State, role: Follower, snapshot_id: OffsetAndEpoch) -> bool:
    """The leader's log does not reach back to where this one ends: take its snapshot first."""
    newest = s.log.newest_snapshot
    oldest_epoch = newest.epoch if newest is not None else 0
    # Of an epoch above this one the log could not go on from it, and no later start could, either.
    if (
        snapshot_id.offset < max(s.committed_floor, 1)
        or not oldest_epoch <= snapshot_id.epoch <= s.epoch
    ):
        text = f"leader {s.leader_id} sends snapshot id {tuple(snapshot_id)}: refused"
        s.warn_sparingly(f"snapshot {s.leader_id}", text)
        return False
    if role.download is None or role.download.snapshot_id != snapshot_id:
        _abandon(s, role)
        role.download = Download(snapshot_id)
        s.note(f"fetches snapshot {tuple(snapshot_id)}")
    role.download.unanswered = False
    return True


def _abandon(s: State, role: Follower) -> None:
    if role.download is not None:
        s.out.write(AbandonSnapshot(role.download.snapshot_id))
        role.download = None


def on_fetch_snapshot_response(s: State, flight: InFlight, response: FetchSnapshotResponse) -> bool:
    """`handleFetchSnapshotResponse`; a wrong id or position abandons it (Java: fatal)."""
    if isinstance(s.role, Follower) and s.role.download is not None:
        s.role.download.unanswered = False
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    role = s.role
    if not isinstance(role, Follower) or role.download is None:
        s.note("a snapshot chunk that nobody waits for")
        return False
    gone = response.error == ErrorCode.SNAPSHOT_NOT_FOUND
    if gone or (response.error == ErrorCode.NONE and min(response.snapshot_id) < 0):
        s.note(f"leader {s.leader_id} no longer has snapshot {tuple(role.download.snapshot_id)}")
        _abandon(s, role)
        fetched_well(s, role)
        return True
    if response.error != ErrorCode.NONE:
        s.note(f"FetchSnapshot: {response.error.name}")
        return False
    return _take_chunk(s, role, role.download, response)


def on_fetch_snapshot_failed(s: State) -> None:
    """The leader of the download may be gone; others are asked whether another one leads."""
    if isinstance(s.role, Follower) and s.role.download is not None:
        s.role.download.unanswered = True


def _take_chunk(
    s: State, role: Follower, download: Download, response: FetchSnapshotResponse
) -> bool:
    chunk = response.chunk if isinstance(response.chunk, bytes | memoryview) else b""
    end = download.position + len(chunk)
    expected = (download.snapshot_id, download.position)
    if (response.snapshot_id, response.position) != expected or end > response.size or not chunk:
        s.note(
            f"chunk {tuple(response.snapshot_id)} at {response.position} of {response.size}, "
            f"expected {tuple(download.snapshot_id)} at {download.position}: begun anew"
        )
        _abandon(s, role)
        return False
    s.out.write(SnapshotChunk(download.snapshot_id, download.position, chunk))
    download.position = end
    if end == response.size:
        s.out.write(InstallSnapshot(download.snapshot_id))
        s.installing = download.snapshot_id
        role.download = None
    fetched_well(s, role)
    return True


def on_installed(s: State, event: SnapshotInstalled) -> None:
    """The log is that snapshot now, whatever role this replica took meanwhile."""
    if s.installing != event.snapshot_id:
        s.note(f"snapshot {tuple(event.snapshot_id)} installed, but not asked for: ignored")
        return
    s.installing = None
    s.log.install(event.snapshot_id)
    before = s.voters.get(s.me.id)
    s.controls.reset(event.snapshot_id, event.control)
    s.durable.installed(event.snapshot_id.offset)
    s.commit(event.snapshot_id.offset)
    s.note(f"log starts at snapshot {tuple(event.snapshot_id)}, voters {s.voters}")
    if before != s.voters.get(s.me.id):
        explain_key(s)
    if isinstance(s.role, Follower):
        s.role.fetch_deadline = max(s.role.fetch_deadline, s.now + s.config.fetch_timeout_ms)


def on_install_failed(s: State, event: InstallFailed) -> None:
    if s.installing != event.snapshot_id:
        return
    s.installing = None
    s.warn(f"snapshot {tuple(event.snapshot_id)} is damaged, fetched anew: {event.reason}")
    if s.leader_id >= 0:
        s.requests.fail(s.leader_id, s.now)


# -- time and requests -------------------------------------------------------------------------
def poll_unattached(s: State, role: Unattached) -> int:
    """Look for a leader; as a voter, for one's own chance too."""
    if not s.electable:
        role.election_deadline = NEVER
    elif role.election_deadline >= NEVER:
        role.election_deadline = s.election_timeout()
    if s.now >= role.election_deadline and s.installing is None and s.shutdown_deadline is None:
        become_prospective(s, "election timeout")
        return s.now
    if s.shutdown_deadline is None:
        _fetch_from_any(s)
    return role.election_deadline if s.installing is None else NEVER


def poll_follower(s: State, role: Follower) -> int:
    """Fetch; as a voter, run for the leader's place when it has been silent for too long.

    Better than Kafka: a leader that let a request time out is looked for elsewhere before it is
    asked anything more. An observer that would join asked a silent one for ever: the period of its
    request is as long as the request's timeout.
    """
    if s.shutdown_deadline is not None:
        return NEVER
    voter = s.electable
    if voter and s.now >= role.fetch_deadline and s.installing is None:
        why = "fetch timeout"
        if role.suspicion:
            why = "the leader ended its epoch" if role.ended else "connection to the leader lost"
        become_prospective(s, why, suspicion=role.suspicion)
        return s.now
    silent = s.requests.timed_out(s.leader_id, s.now)
    if silent and _may_fetch(s):
        s.requests.forget(s.leader_id)
        silent = _fetch_from_any(s)
    if s.now >= role.update_deadline and s.durable.election and not silent:
        address = s.usable(role.leader_endpoints)
        request = voter_request(s, role)
        if request is None or address is None:
            role.update_deadline = s.now + s.config.fetch_timeout_ms
        elif s.requests.ready(s.leader_id, s.now):
            s.send(s.leader_id, address, request)
            role.update_deadline = s.now + s.config.fetch_timeout_ms
    _fetch_from_best(s, role)
    wake = role.fetch_deadline if voter and s.installing is None else NEVER
    held_back = s.now >= role.update_deadline and not s.requests.ready(s.leader_id, s.now)
    return wake if held_back else min(wake, role.update_deadline)


def _may_fetch(s: State) -> bool:
    """A Fetch acknowledges what is before its offset: all of that must be durable."""
    return s.durable.election and s.durable.log and s.installing is None


def _fetch_from_best(s: State, role: Follower) -> None:
    """From the leader; from a bootstrap server while the leader does not answer."""
    leader = s.leader_id
    if not _may_fetch(s):
        return
    if s.requests.backing_off(leader, s.now):
        if role.download is None or role.download.unanswered:
            _fetch_from_any(s)
    elif not s.requests.any_in_flight(s.now):
        address = s.usable(role.leader_endpoints)
        assert address is not None
        s.send(leader, address, _next_request(s, role))


def _fetch_from_any(s: State) -> bool:
    """Ask a bootstrap server, where one may be asked now."""
    if not _may_fetch(s):
        return False
    server: tuple[int, Address] | None = s.requests.ready_server(s.servers(), s.random, s.now)
    if server is None:
        return False
    s.send(server[0], server[1], fetch_request(s))
    return True


def found_no_leader(s: State, node_id: int) -> None:
    """An observer without a leader asked in vain: it asks ever more rarely, and says so once.

    Kafka asks each server fifty times a second for as long as it takes, and says nothing.
    """
    s.requests.fail(node_id, s.now, s.config.fetch_max_wait_ms)
    if s.requests.failures(node_id) == _SAID_AFTER and node_id == s.requests.bootstrap[0][0]:
        asked = ", ".join(str(address) for _, address in s.servers())
        s.warn(
            f"nobody knows a leader: asked {asked}. If the quorum works, "
            "controller.quorum.bootstrap.servers names none of its voters"
        )


def _next_request(s: State, role: Follower) -> Request:
    if role.download is None:
        return fetch_request(s)
    return FetchSnapshotRequest(
        s.config.cluster_id,
        s.me,
        s.epoch,
        role.download.snapshot_id,
        role.download.position,
        s.config.snapshot_max_bytes,
    )


def fetch_request(s: State) -> FetchRequest:
    return FetchRequest(
        s.config.cluster_id,
        s.me,
        s.epoch,
        s.log.end_offset,
        s.log.last_epoch,
        s.config.fetch_max_wait_ms,
        s.config.fetch_max_bytes,
        s.high_watermark,
    )
