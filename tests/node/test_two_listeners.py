"""Controllers with two listeners: a request on one must not replace the endpoints of both."""

from dataclasses import replace

import pytest

from node.test_controllers_together import quota, quotas_of
from node.world import CLUSTER, World, listener, snapshots_of
from quorate.base.ids import Listener, ReplicaKey
from quorate.node.raft_rpc_outbound import request_to_wire
from quorate.node.requests import Call
from quorate.raft.messages import FetchRequest
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.wire.header import decode_request, decode_response, encode_request

SMALL = 400
"""Bytes of a snapshot that one answer carries: downloads take seconds."""


def both(node_id):
    return (listener(node_id), Listener("SECOND", f"host{node_id}", 9100 + node_id))


@pytest.fixture
def world():
    world = World(policy=SnapshotPolicy(max_bytes=400_000))
    for node in world.nodes.values():
        node.config = replace(node.config, listeners=both(node.node_id), snapshot_max_bytes=SMALL)
        node.storage = type(node.storage)()
        world.start(node.node_id)
    world.run_until(lambda: world.active)
    return world


def test_a_snapshot_that_takes_seconds_is_fetched_once(world):
    late = next(node for node in world.alive if node is not world.active)
    world.crash(late.node_id)
    for number in range(300):
        world.call(world.active.node_id, quota(f"user-{number}" + "x" * 2000, 1.0))
        world.run(3)
    world.run_until(lambda: snapshots_of(world.active))
    late.storage = type(late.storage)()
    world.start(late.node_id)
    late.notes.clear()
    began = world.now_ms
    world.run_until(lambda: len(quotas_of(late)) == 300, 60_000)
    assert world.now_ms - began > 1_500, "no reminder of the leader came in between"
    assert sum("fetches snapshot" in note for note in late.notes) == 1


def test_a_follower_names_the_leaders_endpoint_of_the_listener_that_was_asked(world):
    world.run(5_000)
    follower = next(node for node in world.alive if node is not world.active)
    fetch = FetchRequest(CLUSTER, ReplicaKey(9), follower.core.epoch, 0, 0, 0, 1000, -1)
    frame = encode_request(request_to_wire(fetch, 17), 17, 1, "an observer")[4:]
    for name, port in (("CONTROLLER", listener(0).port), ("SECOND", 9100)):
        answers: list[bytes] = []
        token = world._answer_to(answers.append)
        world.give(follower.node_id, Call(token, decode_request(frame), name))
        world.run_until(lambda: answers)  # noqa: B023
        [endpoint] = decode_response(answers[0], 1, 17)[1].node_endpoints  # type: ignore[attr-defined]
        leader_id = world.active.node_id
        assert (endpoint.node_id, endpoint.port) == (leader_id, port + leader_id)
