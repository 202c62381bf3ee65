"""The follower and the observer: fetch, append, truncate, download snapshots, find the leader.

A snapshot from the leader (KIP-630), from the Fetch to the log that starts there:

S1. The leader's log starts after the offset of a Fetch, or the follower is empty: the response
    names the leader's newest snapshot (`leading._answer`).
S2. The follower checks the id and begins a download (`_begin_download`).
S3. It sends FetchSnapshot for one chunk after the other (`_next_request`). Each chunk restarts the
    fetch timer (`_take_chunk`).
S4. The disk writes the chunk to a file with the suffix `.part` (`SnapshotStore.write_chunk`). No
    chunk is synced: a crash loses the download, and S1 follows again.
S5. With the last chunk the core orders InstallSnapshot. Until the result the follower neither
    fetches nor starts an election (`RaftState.installing`).
S6. The disk makes all earlier writes durable (`DiskWriter`). Then it verifies, syncs and renames the
    file, and starts the log anew at the snapshot (`DiskStorage.install_snapshot`).
S7. The replica restarts its tail and loads the snapshot into the state machine. The core takes its
    voters and its end, which is committed (`on_installed`).
S8. A damaged or older file is dropped before the log is touched. After a backoff S1 follows again
    (`on_install_failed`).
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, OffsetAndEpoch
from quorate.raft.epochs import handle_common_response
from quorate.raft.inputs import InstallFailed, SnapshotInstalled
from quorate.raft.joining import voter_request
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Request,
)
from quorate.raft.ready import AbandonSnapshot, InstallSnapshot, SnapshotChunk, Truncate
from quorate.raft.requests import InFlightRequest
from quorate.raft.roles import NEVER, Follower, SnapshotDownload, Unattached
from quorate.raft.state import RaftState
from quorate.raft.transitions import (
    append_batch,
    become_prospective,
    follower_fetch_timeout_ms,
    warn_of_directory_mismatch,
)
from quorate.raft.voters import updated

_WARN_AFTER_FAILURES: Final = 8
"""A warning follows this many failed requests to one server: about two seconds."""


# -- the answer to a Fetch ---------------------------------------------------------------------
def on_fetch_response(s: RaftState, flight: InFlightRequest, response: FetchResponse) -> bool:
    """Take what the leader answered; False: back off before the next Fetch.

    `KafkaRaftClient.handleFetchResponse`.

    1. Handle error, epoch and leader like any response.
    2. A diverging epoch: truncate.  3. A snapshot id: start its download.
    4. Else append the records and follow the high watermark.
    5. Only a response that this replica could use restarts the fetch timer.

    Java stops the node on truncation below the high watermark. Here the replica refuses and does
    not restart its fetch timer, so that a leader which insists is voted out.
    """
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    role = s.role
    if response.error != ErrorCode.NONE or not isinstance(role, Follower):
        s.note(f"Fetch: {response.error.name}")
        return False
    if s.usable(response.leader_endpoints) is not None:
        # Only the leader answers with NONE, so its endpoints replace the known ones. It names the
        # listener of this connection only; the other endpoints stay.
        role.leader_endpoints = updated(role.leader_endpoints, response.leader_endpoints)
    # 2.
    if response.diverging is not None and response.diverging.epoch >= 0:
        well = _truncate(s, response.diverging)
    # 3.
    elif response.snapshot_id is not None and max(response.snapshot_id) >= 0:
        well = _begin_download(s, role, response.snapshot_id)
    # 4.
    else:
        well = _append(s, response)
        if well:
            _follow_high_watermark(s, response.high_watermark)
    # 5.
    if well:
        role.leader_high_watermark = max(role.leader_high_watermark, response.high_watermark)
        on_successful_fetch(s, role)
    return well


def on_successful_fetch(s: RaftState, role: Follower) -> None:
    """Restart the fetch timer; this replica rejects pre-votes from now on (KIP-996)."""
    if role.ended:
        return  # a Fetch that the leader answered after EndQuorumEpoch
    role.fetch_deadline = s.now + follower_fetch_timeout_ms(s)
    role.has_fetched = True
    role.suspicion = 0


def _truncate(s: RaftState, diverging: OffsetAndEpoch) -> bool:
    """Truncate to the end of the last common epoch (KIP-595, log reconciliation).

    False where that would drop committed records or nothing. In the second case this log has no
    batch to drop, and the next Fetch would get the same response.
    """
    cut = s.log.truncation_offset(diverging)
    if cut < s.lowest_truncation_offset or diverging.offset < s.high_watermark:
        s.warn_sparingly(
            f"truncate {s.leader_id}",
            f"leader {s.id_and_address(s.leader_id, s.leader_endpoints)} asks to truncate to "
            f"{diverging.offset}, below what is committed ({s.lowest_truncation_offset}): refused. If "
            "it was founded again on an empty disk, it leads another quorum of this cluster id: stop "
            "it",
        )
        return False
    if cut >= s.log.end_offset:
        text = f"leader {s.leader_id} diverges at {diverging}, where this log has nothing to cut"
        s.warn_sparingly(f"diverges {s.leader_id}", text)
        return False
    truncate(s, cut)
    return True


def truncate(s: RaftState, cut: int) -> None:
    """Drop the log from `cut` on, and the effect of its control records.

    Truncation is usual after a failover. The warning is for a later investigation: if these records
    were acknowledged, another voter's disk lost them. `_truncate` drops nothing below a known high
    watermark, but a node that started a moment ago knows none.
    """
    end = s.log.end_offset
    s.out.write(Truncate(cut))
    s.log.truncate(cut)
    s.durable.truncated(cut, s.now)
    newest = s.log.newest_snapshot
    said = f"truncated to {cut}, from {end}: leader {s.leader_id} does not have the rest"
    if s.high_watermark <= (newest.offset if newest is not None else 0):
        said += (
            ". This node knows of no committed record after its newest snapshot: the rest may have "
            "been acknowledged"
        )
    s.warn(said)
    if s.controls.truncate(cut):
        s.note(f"voters {s.voters} again")


def _append(s: RaftState, response: FetchResponse) -> bool:
    """Append the batches that continue the log, up to the first that does not.

    A batch of an epoch above this follower's is not appended (KAFKA-18723): the response was
    overtaken by a newer leader's records, and this replica does not follow that epoch yet. False
    where a batch does not fit: the same Fetch would return it again.
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


def _follow_high_watermark(s: RaftState, leaders: int) -> None:
    """Raise the high watermark to the leader's, at most to the end of this log; -1: unknown."""
    if leaders < 0:
        return
    offset = min(s.log.end_offset, leaders)
    if offset < s.high_watermark:
        text = f"leader {s.leader_id} has high watermark {leaders}, below {s.high_watermark}"
        s.note_sparingly(f"watermark {s.leader_id}", text)
    s.commit(offset)


# -- snapshots ---------------------------------------------------------------------------------
def _begin_download(s: RaftState, role: Follower, snapshot_id: OffsetAndEpoch) -> bool:
    """The leader names a snapshot instead of records: begin its download (S2)."""
    newest = s.log.newest_snapshot
    oldest_epoch = newest.epoch if newest is not None else 0
    # 1. A snapshot below what is committed here would take the log back.
    # 2. One of a higher epoch than this follower's could not be continued: batches of the present
    # epoch would be older than the snapshot, and so refused here and at each later start.
    if (
        snapshot_id.offset < max(s.lowest_truncation_offset, 1)
        or not oldest_epoch <= snapshot_id.epoch <= s.epoch
    ):
        text = f"leader {s.leader_id} sends snapshot id {tuple(snapshot_id)}: refused"
        s.warn_sparingly(f"snapshot {s.leader_id}", text)
        return False
    if role.download is None or role.download.snapshot_id != snapshot_id:
        _abandon(s, role)
        role.download = SnapshotDownload(snapshot_id)
        s.note(f"fetches snapshot {tuple(snapshot_id)}")
    role.download.unanswered = False
    return True


def _abandon(s: RaftState, role: Follower) -> None:
    if role.download is not None:
        s.out.write(AbandonSnapshot(role.download.snapshot_id))
        role.download = None


def on_fetch_snapshot_response(
    s: RaftState, flight: InFlightRequest, response: FetchSnapshotResponse
) -> bool:
    """Take a chunk of the snapshot; False: back off before the next request.

    `KafkaRaftClient.handleFetchSnapshotResponse`.

    1. SNAPSHOT_NOT_FOUND, or a negative id: the leader cleaned the snapshot. Abandon the download;
       the next Fetch names a newer one.
    2. A wrong id or position: abandon the download. Java stops the node.
    3. Append the chunk; install the snapshot when it is complete (S3, S5).
    """
    if isinstance(s.role, Follower) and s.role.download is not None:
        s.role.download.unanswered = False
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    role = s.role
    if not isinstance(role, Follower) or role.download is None:
        s.note("an unexpected snapshot chunk")
        return False
    # 1. The leader is alive, so this restarts the fetch timer.
    gone = response.error == ErrorCode.SNAPSHOT_NOT_FOUND
    if gone or (response.error == ErrorCode.NONE and min(response.snapshot_id) < 0):
        s.note(f"leader {s.leader_id} no longer has snapshot {tuple(role.download.snapshot_id)}")
        _abandon(s, role)
        on_successful_fetch(s, role)
        return True
    if response.error != ErrorCode.NONE:
        s.note(f"FetchSnapshot: {response.error.name}")
        return False
    return _take_chunk(s, role, role.download, response)


def on_fetch_snapshot_failed(s: RaftState) -> None:
    """The leader may be gone: `_fetch_from_best` asks other servers who leads."""
    # unreached: a change of the role resets the requests in flight
    if isinstance(s.role, Follower) and s.role.download is not None:
        s.role.download.unanswered = True


def _take_chunk(
    s: RaftState, role: Follower, download: SnapshotDownload, response: FetchSnapshotResponse
) -> bool:
    # unreached: only a response that is sent names the bytes instead of having them
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
    # S4. Not durable until InstallSnapshot: a crash loses the download and begins it again.
    s.out.write(SnapshotChunk(download.snapshot_id, download.position, chunk))
    download.position = end
    if end == response.size:
        s.out.write(InstallSnapshot(download.snapshot_id))
        # S5. Until SnapshotInstalled the log is neither the old nor the new one: no Fetch, no election.
        s.installing = download.snapshot_id
        role.download = None
    on_successful_fetch(s, role)
    return True


def on_installed(s: RaftState, event: SnapshotInstalled) -> None:
    """The log now starts at the snapshot (S7; `KafkaRaftLog.truncateToLatestSnapshot`).

    The disk worker installs it while the core runs on, so the role may have changed meanwhile.

    1. Log, control records (voters, kraft.version) and durable end are those of the snapshot.
    2. Its end is committed: a leader makes snapshots of committed records only.
    3. The fetch timer restarts: the leader could not be asked during the installation.
    """
    if s.installing != event.snapshot_id:
        s.note(f"snapshot {tuple(event.snapshot_id)} installed, but not asked for: ignored")
        return
    s.installing = None
    # 1.
    s.log.install(event.snapshot_id)
    before = s.voters.get(s.me.id)
    s.controls.reset(event.snapshot_id, event.control)
    s.durable.installed(event.snapshot_id.offset)
    # 2.
    s.commit(event.snapshot_id.offset)
    s.note(f"log starts at snapshot {tuple(event.snapshot_id)}, voters {s.voters}")
    if before != s.voters.get(s.me.id):
        warn_of_directory_mismatch(s)
    # 3.
    if isinstance(s.role, Follower):
        s.role.fetch_deadline = max(s.role.fetch_deadline, s.now + s.config.fetch_timeout_ms)


def on_install_failed(s: RaftState, event: InstallFailed) -> None:
    """The download is damaged and was dropped; the log is the old one (S8).

    The next Fetch waits for a backoff, so that a defective leader is not asked in a hot loop.
    """
    if s.installing != event.snapshot_id:
        return
    s.installing = None
    s.warn(f"snapshot {tuple(event.snapshot_id)} is damaged, fetched anew: {event.reason}")
    if s.leader_id >= 0:
        s.requests.fail(s.leader_id, s.now)


# -- time and requests -------------------------------------------------------------------------
def poll_unattached(s: RaftState, role: Unattached) -> int:
    """Look for a leader; a voter also starts an election. Returns the next poll's time (ms)."""
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


def poll_follower(s: RaftState, role: Follower) -> int:
    """Fetch; as a voter, start an election when the leader is silent. Returns the next poll's time.

    1. Fetch timeout: a voter becomes Prospective (`KafkaRaftClient.pollFollowerAsVoter`).
    2. A request to the leader timed out: ask another server who leads.
    3. Once a period: UpdateRaftVoter or auto join.
    4. Fetch or FetchSnapshot.

    Kafka's observers skip step 2. With auto join such an observer asks a silent leader for ever:
    the period of its request equals the request timeout, so a request is always in flight.
    """
    if s.shutdown_deadline is not None:  # unreached: a follower stops at once
        return NEVER
    voter = s.electable
    # 1. Not while a snapshot is installed: the log that a candidate claims must not change.
    if voter and s.now >= role.fetch_deadline and s.installing is None:
        why = "fetch timeout"
        if role.suspicion:
            why = "the leader ended its epoch" if role.ended else "connection to the leader lost"
        become_prospective(s, why, suspicion=role.suspicion)
        return s.now
    # 2. A connection may look open after the leader's machine is gone. The answers of other servers
    # name a new leader long before this node's own fetch timeout.
    silent = s.requests.timed_out(s.leader_id, s.now)
    if silent and _may_fetch(s):
        s.requests.forget(s.leader_id)
        silent = _fetch_from_any(s)
    # 3. Before the Fetch: one request per node may be in flight, and a Fetch takes 500 ms.
    if s.now >= role.update_deadline and s.durable.election_is_durable and not silent:
        address = s.usable(role.leader_endpoints)
        request = voter_request(s, role)
        if request is None or address is None:
            role.update_deadline = s.now + s.config.fetch_timeout_ms
        elif s.requests.ready(s.leader_id, s.now):
            s.send(s.leader_id, address, request)
            role.update_deadline = s.now + s.config.fetch_timeout_ms
    # 4.
    _fetch_from_best(s, role)
    wake = role.fetch_deadline if voter and s.installing is None else NEVER
    held_back = s.now >= role.update_deadline and not s.requests.ready(s.leader_id, s.now)
    return wake if held_back else min(wake, role.update_deadline)


def _may_fetch(s: RaftState) -> bool:
    """A Fetch acknowledges all records before its offset, so they must be durable (KIP-595)."""
    return s.durable.election_is_durable and s.durable.log_is_durable and s.installing is None


def _fetch_from_best(s: RaftState, role: Follower) -> None:
    """Fetch from the leader; from a bootstrap server while the leader does not answer.

    The leader's failure may mean that another node leads, which the servers' answers name.
    """
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


def _fetch_from_any(s: RaftState) -> bool:
    """Ask a bootstrap server, where one may be asked now."""
    if not _may_fetch(s):
        return False
    server: tuple[int, Address] | None = s.requests.ready_server(s.servers(), s.random, s.now)
    if server is None:
        return False
    s.send(server[0], server[1], fetch_request(s))
    return True


def back_off_observer(s: RaftState, node_id: int) -> None:
    """An observer without a leader asked in vain: it backs off exponentially and warns once.

    Kafka asks each server 50 times a second (retry.backoff.ms) without a message.
    """
    s.requests.fail(node_id, s.now, s.config.fetch_max_wait_ms)
    if (
        s.requests.failures(node_id) == _WARN_AFTER_FAILURES
        and node_id == s.requests.bootstrap[0][0]
    ):
        asked = ", ".join(str(address) for _, address in s.servers())
        s.warn(
            f"no node knows a leader: asked {asked}. If the quorum works, "
            "controller.quorum.bootstrap.servers names none of its voters"
        )


def _next_request(s: RaftState, role: Follower) -> Request:
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


def fetch_request(s: RaftState) -> FetchRequest:
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
