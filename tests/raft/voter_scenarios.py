"""A leader whose voters are to change, and the requests that change them."""

from __future__ import annotations

from dataclasses import replace

from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    Listener,
)
from quorate.raft.messages import (
    AddVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorate.raft.ready import Append, Ready
from quorate.raft.values import Voter, Voters
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    Single,
    fetch,
    leader,
    recovered,
)

SET = tuple(voter(i) for i in (1, 2, 3))
START = END + 1
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
REFUSED = ErrorCode.INVALID_REQUEST
NEW = Voter(key(4), listeners(4), 0, 1)
NAMELESS = (Listener("CONTROLLER", "moved", 1), Listener("", "moved", 2))
"""Kafka's nodes end at a voter set that has such a listener."""
TWICE = (Listener("CONTROLLER", "moved", 1), Listener("CONTROLLER", "elsewhere", 2))
"""Kafka's nodes go by the last one of a name."""


def led(voters: tuple[Voter, ...] = SET, **config: object) -> Single:
    """Leader of epoch 5 with nothing committed; its voter set stands in the log at offset 4."""
    return leader(log=recovered(control_records=((4, Voters(voters)),)), **config)


def committed(voters: tuple[Voter, ...] = SET) -> Single:
    """As `led`, all of the log committed; node 4 has caught up as an observer."""
    single = led(voters)
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0, replica=key(4)))
    assert single.core.high_watermark == START
    return single


def static() -> Single:
    """Leader at kraft.version 0, all committed."""
    voters = tuple(voter(i, known=False) for i in (1, 2, 3))
    single = leader(log=recovered(snapshots=(), snapshot_control=None), static_voters=voters)
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    assert single.core.high_watermark == START
    return single


def add(**changes: object) -> AddVoterRequest:
    return replace(AddVoterRequest(CLUSTER_ID, key(4), listeners(4)), **changes)  # type: ignore[arg-type]


def remove(**changes: object) -> RemoveVoterRequest:
    return replace(RemoveVoterRequest(CLUSTER_ID, key(3)), **changes)  # type: ignore[arg-type]


def update(**changes: object) -> UpdateVoterRequest:
    where = (Listener("CONTROLLER", "moved", 1),)
    request = UpdateVoterRequest(CLUSTER_ID, EPOCH + 1, key(2), where, 0, 1)
    return replace(request, **changes)  # type: ignore[arg-type]


def versions(single: Single, least: int = 0, most: int = 1, **other: object) -> Ready:
    features = {"kraft.version": (least, most)} if most >= 0 else {}
    return single.answer(ApiVersionsRequest, ApiVersionsResponse(ErrorCode.NONE, features))


def appended(ready: Ready) -> tuple[Voter, ...]:
    """The voter set that a step wrote."""
    (write,) = ready.writes
    assert isinstance(write, Append)
    (batch,) = write.batches
    (record,) = batch.control
    assert isinstance(record, Voters)
    return record.voters
