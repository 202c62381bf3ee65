"""One replica beside Kafka's scenarios: what `raft.single` lacks (voter sets, answers, batches).

Node 1 is under test; its log ends at (5, epoch 3), its epoch is 4. As leader it leads epoch 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listener, OffsetAndEpoch, ReplicaKey
from quorate.raft.inputs import CleanTo, SendFailed, SendFailure, SnapshotCreated
from quorate.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    Request,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Append, Ready, Send
from quorate.raft.values import Batch, ControlRecord, ElectionState, RecoveredLog, Voter, Voters
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    fetch,
    follower,
    granted,
    leader,
    recovered,
    unattached,
)

SET = tuple(voter(i) for i in (1, 2, 3))
STATIC = tuple(voter(i, known=False) for i in (1, 2, 3))
LEADER = LeaderAndEpoch(2, EPOCH)
"""Whom a follower follows."""
OWN = LeaderAndEpoch(1, EPOCH + 1)
"""Node 1 as leader."""
START = END + 1
"""Log end of a leader whose first batch is a LeaderChange alone."""
SNAPSHOT = OffsetAndEpoch(3, LAST_EPOCH)
SERVERS = (("seed", 1), ("seed", 2))
MOVED = (Listener("CONTROLLER", "moved", 1),)


# -- roles ---------------------------------------------------------------------------------------
def in_log(*voters: Voter, **changes: object) -> RecoveredLog:
    """A log whose record at offset 4 is this voter set."""
    return recovered(control_records=((4, Voters(voters)),), **changes)


def without_voters(**changes: object) -> RecoveredLog:
    """A log that says nothing about voters: the configured ones count."""
    return recovered(**({"snapshots": (), "snapshot_control": None} | changes))


def empty() -> RecoveredLog:
    """The log of a node that was just formatted, with the voters 1, 2, 3."""
    return recovered(end_offset=0, epochs=(), batch_ends=())


def led(voters: tuple[Voter, ...] = SET, **config: object) -> Single:
    """Leader of epoch 5 with nothing committed; its first batch is a LeaderChange."""
    single = unattached(**({"log": in_log(*voters)} | config))
    single.wait(2000)
    needed = [v.key.id for v in voters if v.key.id != 1][: len(voters) // 2]
    for epoch in (EPOCH, EPOCH + 1):
        for node_id in needed:
            single.answer(VoteRequest, granted(epoch), to=node_id)
    assert single.core.role == "leader"
    return single


def committed(voters: tuple[Voter, ...] = SET, **config: object) -> Single:
    """As `led`, all of the log committed; node 4 has caught up as an observer."""
    single = led(voters, **config)
    acknowledge(single, 2)
    acknowledge(single, 4)
    return single


def static(make: Callable[..., Single] = leader, **config: object) -> Single:
    """At kraft.version 0; a leader has all committed."""
    fields: dict[str, object] = {"log": without_voters(), "static_voters": STATIC}
    single = make(**(fields | config))
    if single.core.role == "leader":
        acknowledge(single, 2)
    return single


def alone(**config: object) -> Single:
    """The only voter."""
    return Single(**({"log": in_log(voter(1))} | config))  # type: ignore[arg-type]


def observer(**config: object) -> Single:
    """Node 4, no voter, with the bootstrap servers -2 and -3; knows no leader."""
    fields: dict[str, object] = {"bootstrap_servers": SERVERS, "election": ElectionState(EPOCH)}
    return Single(4, **(fields | config))  # type: ignore[arg-type]


def snapshotted(*, cleaned: bool = True) -> Single:
    """As `committed`, with a snapshot (3, 3), and with `cleaned` a log that starts there."""
    single = committed()
    single.step(SnapshotCreated(SNAPSHOT))
    if cleaned:
        single.step(CleanTo(SNAPSHOT))
    return single


# -- events ---------------------------------------------------------------------------------------
def acknowledge(single: Single, node_id: int, end: int | None = None) -> None:
    """A replica fetches at the leader's log end (or at `end`), and so says that it has it."""
    offset, epoch = single.core.log_end
    request = fetch(offset if end is None else end, epoch, replica=key(node_id), max_wait_ms=0)
    answer = single.ask(replace(request, epoch=single.core.epoch))
    assert answer is not None and answer.error == ErrorCode.NONE, answer


def refused(epoch: int = EPOCH, leader_id: int = -1) -> VoteResponse:
    return VoteResponse(ErrorCode.NONE, LeaderAndEpoch(leader_id, epoch))


def response(**changes: object) -> FetchResponse:
    """Leader 2's answer to a Fetch."""
    fields: dict[str, object] = {"error": ErrorCode.NONE, "leader": LEADER, "high_watermark": 0}
    return FetchResponse(**(fields | changes))  # type: ignore[arg-type]


def batch(base: int, epoch: int = EPOCH, count: int = 1) -> Batch:
    return Batch(base, base + count - 1, epoch, 10, (), f"b{base}")


def end(*preferred: ReplicaKey, epoch: int = EPOCH, leader_id: int = 2) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(CLUSTER_ID, LeaderAndEpoch(leader_id, epoch), preferred)


def add(**changes: object) -> AddVoterRequest:
    return replace(AddVoterRequest(CLUSTER_ID, key(4), listeners(4)), **changes)  # type: ignore[arg-type]


def remove(node_id: int = 3) -> RemoveVoterRequest:
    return RemoveVoterRequest(CLUSTER_ID, key(node_id))


def update(node_id: int = 2, **changes: object) -> UpdateVoterRequest:
    request = UpdateVoterRequest(CLUSTER_ID, EPOCH + 1, key(node_id), MOVED, 0, 1)
    return replace(request, **changes)  # type: ignore[arg-type]


def versions(single: Single) -> Ready:
    """The new voter reports that it supports kraft.version 0 and 1."""
    features = {"kraft.version": (0, 1)}
    return single.answer(ApiVersionsRequest, ApiVersionsResponse(ErrorCode.NONE, features))


def snapshot_request(**changes: object) -> FetchSnapshotRequest:
    request = FetchSnapshotRequest(CLUSTER_ID, key(3), EPOCH + 1, SNAPSHOT, 0, 100)
    return replace(request, **changes)  # type: ignore[arg-type]


def chunk(position: int, data: bytes, size: int = 10, **changes: object) -> FetchSnapshotResponse:
    """Leader 2's answer to a FetchSnapshot of (20, 3)."""
    wanted = OffsetAndEpoch(20, LAST_EPOCH)
    answer = FetchSnapshotResponse(ErrorCode.NONE, LEADER, wanted, size, position, data)
    return replace(answer, **changes)  # type: ignore[arg-type]


def follower_of_two() -> Single:
    """A follower that has no node but its leader to ask."""
    return follower(log=in_log(voter(1), voter(2)))


def downloading() -> Single:
    """A follower whose leader sent it the snapshot id (20, 3)."""
    single = follower()
    wanted = OffsetAndEpoch(20, LAST_EPOCH)
    single.answer(FetchRequest, response(snapshot_id=wanted))
    return single


def lose(
    single: Single, kind: type[Request], failure: SendFailure = SendFailure.DISCONNECTED
) -> Ready:
    """The newest request of this kind gets no answer."""
    send = single.sent(kind)
    assert send is not None
    return single.step(SendFailed(send.correlation, failure))


def keep_fetching(single: Single, duration_ms: int = 2000) -> None:
    """Time passes while every Fetch is answered with nothing."""
    leader_now = LeaderAndEpoch(single.core.leader.leader_id, single.core.epoch)
    for _ in range(duration_ms // 500):
        single.wait(500)
        single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leader_now, 0))


# -- what was done -------------------------------------------------------------------------------
def sent_since(single: Single, before: int, kind: type[Request]) -> list[Send]:
    return [send for send in single.sends[before:] if isinstance(send.request, kind)]


def control_records(ready: Ready) -> tuple[ControlRecord, ...]:
    """The control records that a step appended."""
    batches = [b for write in ready.writes if isinstance(write, Append) for b in write.batches]
    return tuple(record for b in batches for record in b.control)


def state(single: Single) -> tuple[str, int, int]:
    """(role, epoch, leader)"""
    election = single.core.election
    return single.core.role, election.epoch, election.leader_id


def roles_since(single: Single, first: int) -> list[str]:
    """The roles taken, according to the notes from number `first` on."""
    names = ("unattached", "prospective", "candidate", "leader", "follower", "observer", "resigned")
    words = [
        note.split(": ", 1)[1].split()[0].rstrip(",")
        for note in single.notes[first:]
        if note.startswith("epoch ")
    ]
    return [word for word in words if word in names]
