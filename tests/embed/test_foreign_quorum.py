"""Which requests prove to a founder that another quorum of its name lives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.ids import LeaderAndEpoch, ReplicaKey, Uuid
from quorate.embed.foreign_quorum import foreign_quorum
from quorate.raft.messages import BeginQuorumEpochRequest, FetchRequest, VoteRequest

pytestmark = pytest.mark.interpreted  # it hands a stand-in of the core

OWN, LOST, OTHER = (ReplicaKey(i, Uuid(bytes([n]) * 16)) for i, n in ((1, 1), (1, 2), (2, 3)))
UNKNOWN = ReplicaKey(1, Uuid(bytes(16)))
EPOCH, END = 7_000, 10


def core(*voters: ReplicaKey) -> Any:
    """A core with records of one epoch."""
    return SimpleNamespace(
        voters=SimpleNamespace(voters=tuple(SimpleNamespace(key=key) for key in voters)),
        is_voter=OWN in voters,
        has_place=lambda offset, epoch: offset == 0 or (epoch == EPOCH and offset <= END),
    )


def proof(request: Any, *voters: ReplicaKey) -> str | None:
    config = SimpleNamespace(node_id=OWN.id, directory_id=OWN.directory_id)
    return foreign_quorum(core(*voters), config, request)  # type: ignore[arg-type]


def fetch(offset: int, epoch: int, replica: ReplicaKey = OTHER) -> FetchRequest:
    return FetchRequest("kv", replica, EPOCH, offset, epoch, 0, 1, -1)


def vote(voter: ReplicaKey | None) -> VoteRequest:
    return VoteRequest("kv", voter, 8_000, OTHER, 9_000, 20, False)


@pytest.mark.parametrize("voter", [None, OWN, UNKNOWN, ReplicaKey(2, LOST.directory_id)])
def test_a_candidate_that_names_this_member_proves_nothing(voter: ReplicaKey | None) -> None:
    assert proof(vote(voter), OWN) is None


def test_a_voter_with_another_directory_is_of_another_quorum() -> None:
    begin = BeginQuorumEpochRequest("kv", LOST, LeaderAndEpoch(2, 8_000))
    for request in (vote(LOST), begin):
        assert f"it has the voter {LOST}" in str(proof(request, OWN))
        assert proof(request, OTHER) is None  # a joiner in the place of a lost disk


@pytest.mark.parametrize(("offset", "epoch"), [(0, 0), (4, EPOCH), (END, EPOCH)])
def test_a_replica_that_has_what_a_lone_voter_wrote_is_of_its_quorum(
    offset: int, epoch: int
) -> None:
    assert proof(fetch(offset, epoch), OWN) is None


@pytest.mark.parametrize(("offset", "epoch"), [(END + 1, EPOCH), (4, EPOCH - 1), (4, EPOCH + 1)])
def test_records_that_a_lone_voter_never_wrote_are_of_another_quorum(
    offset: int, epoch: int
) -> None:
    assert f"up to offset {offset}" in str(proof(fetch(offset, epoch), OWN))
    assert proof(fetch(offset, epoch), OWN, OTHER) is None  # others have led
    anonymous = ReplicaKey(-1, UNKNOWN.directory_id)
    assert proof(fetch(offset, epoch, anonymous), OWN) is None  # a tool may stop no member
