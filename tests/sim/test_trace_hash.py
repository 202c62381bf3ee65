"""The trace covers contents of messages and writes, not only node, kind and time."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    ReadChunk,
    VoteRequest,
)
from quorate.raft.ready import SaveElection, Truncate
from quorate.raft.values import Batch, ElectionState
from quorate.replica.disk_jobs import AppendBatches, ReadLog, Write
from quorate.sim.plan.plan import ClientPlan, FaultEvent, Plan
from quorate.sim.run.run import run_plan, run_world
from quorate.sim.world.fingerprint import of_medium, of_message, of_writes
from quorate.sim.world.trace import TraceHash
from quorate.sim.world.world import World
from quorate.storage.api import AppendedBatch
from sim.fake import key

FETCH = FetchRequest("cluster", key(1), 1, 5, 1, 500, 1 << 20, 4)
ANSWER = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 4, 0)
CHUNK = FetchSnapshotResponse(
    ErrorCode.NONE, LeaderAndEpoch(1, 1), OffsetAndEpoch(7, 1), 9, 0, b"abc"
)
SAME = {"cluster_id", "max_bytes", "records", "leader_endpoints"}
"""Not hashed: they are constant, or follow from the other fields."""


def others(message: Any) -> list[Any]:
    """The message with each of its fields changed in turn."""
    found = []
    for name in (field.name for field in fields(message) if field.name not in SAME):
        value = getattr(message, name)
        if isinstance(value, ErrorCode):
            changed: object = ErrorCode.FENCED_LEADER_EPOCH
        elif isinstance(value, int):
            changed = value + 1
        elif name == "batches":
            changed = (Batch(5, 6, 1, 80),)
        elif name == "chunk":
            changed = b"abd"
        elif name == "leader":
            changed = LeaderAndEpoch(2, 1)
        else:
            changed = key(2) if name == "replica" else OffsetAndEpoch(8, 1)
        found.append(replace(message, **{name: changed}))
    return found


@pytest.mark.parametrize("message", [FETCH, ANSWER, CHUNK], ids=lambda m: type(m).__name__)
def test_the_hash_of_a_message_covers_all_its_fields(message: Any) -> None:
    hashes = {of_message(other) for other in (message, *others(message))}
    assert len(hashes) == 1 + len(others(message))
    assert of_message(replace(message)) == of_message(message)


def test_the_hash_of_a_message_covers_its_values() -> None:
    vote = VoteRequest("cluster", key(2), 3, key(1), 1, 5, True)
    assert of_message(vote) != of_message(replace(vote, candidate=key(3)))
    named = replace(CHUNK, chunk=ReadChunk(OffsetAndEpoch(7, 1), 0, 9))
    assert of_message(named) != of_message(CHUNK)


def test_the_hash_of_writes_covers_their_bytes_and_values() -> None:
    def hash_of(*writes: Any) -> int:
        return of_writes([ReadLog(1, 0, 9, 1), Write(1, writes)])

    found = {
        hash_of(),
        hash_of(AppendBatches((AppendedBatch(0, 0, 1, b"a"),))),
        hash_of(AppendBatches((AppendedBatch(0, 0, 1, b"b"),))),
        hash_of(SaveElection(ElectionState(1, -1, key(1)), 1)),
        hash_of(SaveElection(ElectionState(1, -1, key(1)), 0)),
        hash_of(Truncate(4)),
    }
    assert len(found) == 6 and hash_of() == 0


def test_the_hash_of_a_medium_covers_names_and_bytes() -> None:
    media: tuple[dict[str, bytes], ...]
    media = ({}, {"a": b"1"}, {"b": b"1"}, {"a": b"2"}, {"a": b"1", "b": b"2"})
    assert len(set(map(of_medium, media))) == len(media)
    assert of_medium({"b": b"2", "a": b"1"}) == of_medium({"a": b"1", "b": b"2"})


def jumping(wall_ms: int) -> Plan:
    """A single voter, whose client writes; its clock steps by so much."""
    fault_events = (FaultEvent(1500, "jump", (1, wall_ms)),)
    return Plan(
        seed=5, voters=1, duration_ms=4000, clients=ClientPlan(count=1), fault_events=fault_events
    )


def test_two_worlds_that_differ_in_the_text_of_a_fault() -> None:
    one, other = run_plan(jumping(1000)), run_plan(jumping(1001))
    assert one.events == other.events
    assert one.trace_hash != other.trace_hash


class WithoutFaults(TraceHash):
    """A trace hash that no fault reaches."""

    def add_text(self, text: str) -> None:
        """Nothing."""


@pytest.mark.interpreted
def test_two_worlds_that_differ_in_what_is_written() -> None:
    """The time in the records, and nothing else."""
    traces = []
    for wall_ms in (1000, 1000, 3000):
        world = World(jumping(wall_ms))
        world.trace = WithoutFaults()
        run_world(world)
        traces.append((world.events, world.trace.hexdigest()))
    assert traces[0] == traces[1] != traces[2]
    assert traces[0][0] == traces[2][0]
