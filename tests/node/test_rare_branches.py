"""What a controller does that `make guards` found neither tested nor reached by a world."""

import gc
from types import SimpleNamespace
from typing import Any

import pytest

from narrow import as_any
from node.world import LISTENER, World
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch, Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.controller.delegation_tokens import EXPIRE_DELEGATION_TOKENS
from quorate.controller.elections import ELECT_PREFERRED
from quorate.controller.token_config import TokenConfig
from quorate.formats.records import FeatureLevelRecord, PartitionRecord, encode_record
from quorate.node.audit import MOST_ITEMS, WriteFacts, of_request, of_write
from quorate.node.client_quotas import ClientQuotas
from quorate.node.controller_node import ControllerNode
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.own_writes import OwnWrites
from quorate.node.raft_rpc_inbound import request_from_wire
from quorate.node.raft_rpc_outbound import request_to_wire, response_from_wire
from quorate.node.registration import Registrant
from quorate.node.requests import Call
from quorate.raft import messages as core
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire import messages as wire
from quorate.wire.header import WireRequest
from quorate.wire.registry import APIS

ALICE = "User:alice"
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


def started(**config):
    world = World(bootstrap=Bootstrap((encode_record(LEVEL, 0),)), **config)
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


@pytest.fixture
def world():
    """Nodes may ask each other anything, alice nothing."""
    return started(authorizer=AuthorizerConfig(super_users=frozenset({"User:ANONYMOUS"})))


def call(message, **fields):
    key = type(message).schema.key
    request = WireRequest(key, APIS[key].max_version, 1, "tool", message)
    return Call(1, request, LISTENER, **fields)


# -- refusals --------------------------------------------------------------------------------------
def test_reassignments_are_listed_with_permission_only(world):
    leader = world.active.node_id
    answer = world.ask(leader, wire.ListPartitionReassignmentsRequest(), principal=ALICE)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_acls_are_described_where_there_is_an_authorizer(world):
    everything = wire.DescribeAclsRequest(
        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
    )
    assert world.ask(world.active.node_id, everything).error_code == 0
    without = started()
    answer = without.ask(without.active.node_id, wire.DescribeAclsRequest())
    assert answer.error_code == ErrorCode.SECURITY_DISABLED


def test_a_cursor_before_the_first_partition_is_refused(world):
    cls = wire.DescribeTopicPartitionsRequest
    request = cls(
        topics=[cls.TopicRequest(name="t")], cursor=cls.Cursor(topic_name="t", partition_index=-1)
    )
    answer = world.ask(world.active.node_id, request)
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]


# -- descriptions ----------------------------------------------------------------------------------
def test_a_controller_without_this_listener_is_not_described():
    """Also the active one: a client could not reach it."""
    world = started()
    leader = world.active.node_id
    cls = wire.ControllerRegistrationRequest
    ends = [cls.Listener(name="OTHER", host="h", port=1, security_protocol=0)]
    for node_id in (9, leader):
        world.ask(
            leader, cls(controller_id=node_id, incarnation_id=Uuid(b"i" * 16), listeners=ends)
        )
    answer = world.ask(leader, wire.DescribeClusterRequest(endpoint_type=2))
    assert answer.controller_id == -1
    assert not {9, leader} & {node.broker_id for node in answer.brokers}


def test_a_voter_that_never_fetched_has_no_times():
    world = World(bootstrap=Bootstrap((encode_record(LEVEL, 0),)))
    world.cut.add(3)
    world.run_until(lambda: world.active)
    topic = wire.DescribeQuorumRequest.TopicData
    request = wire.DescribeQuorumRequest(
        topics=[topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData()])]
    )
    [part] = world.ask(world.leader.node_id, request).topics[0].partitions
    [silent] = [state for state in part.current_voters if state.replica_id == 3]
    assert (silent.last_fetch_timestamp, silent.last_caught_up_timestamp) == (-1, -1)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("own", "found"), [((), 1), ((Listener("CONTROLLER", "me", 1),), 2)], ids=["none", "one"]
)
def test_the_active_peer_is_asked_at_the_listener_of_the_same_name(own, found):
    ends = (Listener("EXTERNAL", "h", 1), Listener("CONTROLLER", "h", 2))
    leader = SimpleNamespace(leader_id=2)
    node = SimpleNamespace(
        node_id=1,
        replica=SimpleNamespace(
            core=SimpleNamespace(leader=leader, leader_endpoints=ends, epoch=5),
            applied=OffsetAndEpoch(9, 5),
            config=SimpleNamespace(listeners=own),
        ),
    )
    assert vars(ControllerNode)["active_peer"].fget(node) == (2, Address("h", found))


# -- the audit trail -------------------------------------------------------------------------------
def test_what_a_client_places_is_counted():
    facts = WriteFacts()
    facts.submitted([PartitionRecord(partition_id=n) for n in range(3)])
    facts.committed(97, 100)
    request = wire.CreatePartitionsRequest()
    entry = of_write("CreatePartitions", request, call(request), False, facts, ErrorCode.NONE)
    assert entry is not None
    assert (entry["placements"], entry["reason"]) == (3, "asked for by the client")


def test_an_entry_without_errors_and_one_without_a_message():
    request = wire.RemoveRaftVoterRequest(cluster_id="c", voter_id=2)
    entry = of_request("RemoveRaftVoter", call(request), wire.RemoveRaftVoterResponse())
    assert entry["result"] == "NONE" and "errors" not in entry
    unread = Call(1, WireRequest(81, 0, 1, "tool", None), LISTENER)
    entry = of_request("RemoveRaftVoter", unread, wire.RemoveRaftVoterResponse(error_code=42))
    assert entry["result"] == "INVALID_REQUEST" and "what" not in entry


def test_a_long_list_is_cut_and_ids_are_text():
    cls = wire.DeleteTopicsRequest
    topics = [cls.DeleteTopicState(name=None, topic_id=Uuid(bytes(15) + b"1"))] * (MOST_ITEMS + 2)
    request = cls(topics=topics)
    entry = of_request("DeleteTopics", call(request), wire.DeleteTopicsResponse())
    *shown, rest = entry["what"]["topics"]
    assert rest == "and 2 more" and len(shown) == MOST_ITEMS
    assert shown[0] == {"topic_id": "AAAAAAAAAAAAAAAAAAAAMQ"}


# -- settings and quotas ---------------------------------------------------------------------------
def test_tasks_by_configuration():
    def tasks(**config):
        own = Registrant(1, Uuid(bytes(16)), ())
        writes = OwnWrites(own, Bootstrap(), ControllerConfig(1, "c", **config))
        writes.lead(0)
        found = set()
        for now_ms in range(0, 4_000_000, 100_000):
            found |= {task for task, _ in writes.due(now_ms, MetadataMachine().image)}
            for task in found:
                writes.done(task, None, now_ms)
        return found

    usual = tasks(auto_leader_rebalance_enable=True)
    assert ELECT_PREFERRED in usual and EXPIRE_DELEGATION_TOKENS not in usual
    some = tasks(auto_leader_rebalance_enable=False, tokens=TokenConfig(secret_key="k"))
    assert ELECT_PREFERRED not in some and EXPIRE_DELEGATION_TOKENS in some


@pytest.mark.interpreted
def test_a_response_without_a_field_for_it_hides_the_throttle_time(monkeypatch):
    quotas = ClientQuotas(ControllerConfig(1, "c"))
    monkeypatch.setattr(quotas.requests, "throttle_ms", lambda *_: 70)
    image = as_any(SimpleNamespace(client_quotas={"x": 1}))
    request = wire.DescribeClusterRequest()
    message = wire.BeginQuorumEpochResponse()
    assert quotas.throttle(call(request), message, image, work_ns=0, now_ms=0, denied=False) == 70


def test_the_collector_is_off_while_the_only_node_of_a_process_loads():
    machine = MetadataMachine(owns_process=True)
    try:
        machine.begin_load(OffsetAndEpoch(1, 1), 0)
        assert not gc.isenabled()
        machine.load([encode_record(LEVEL, 0)])
        machine.end_load()
        assert gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


# -- Raft messages ---------------------------------------------------------------------------------
def test_a_begin_quorum_epoch_for_any_voter_names_none():
    request = core.BeginQuorumEpochRequest("c", None, LeaderAndEpoch(1, 5), ())
    message: Any = request_to_wire(request, 1)
    assert message.voter_id == -1


def test_another_partition_is_not_the_metadata_partition():
    request: Any = request_to_wire(core.VoteRequest("c", None, 5, ReplicaKey(1), 0, 0, False), 0)
    request.topics[0].partitions[0].partition_index = 1
    assert not isinstance(request_from_wire(request, 0, "c"), core.VoteRequest)


def test_endpoints_of_other_nodes_are_not_the_leader_s():
    cls = wire.BeginQuorumEpochResponse
    part = cls.TopicData.PartitionData(leader_id=3, leader_epoch=7)
    ends = [cls.NodeEndpoint(node_id=n, host=f"h{n}", port=9000 + n) for n in (2, 3)]
    topic = cls.TopicData(topic_name="__cluster_metadata", partitions=[part])
    found = response_from_wire(cls(topics=[topic], node_endpoints=ends), LISTENER)
    assert isinstance(found, core.BeginQuorumEpochResponse)
    assert [end.host for end in found.leader_endpoints] == ["h3"]


@pytest.mark.parametrize(
    ("protocol", "error"),
    [
        ("PLAINTEXT", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        ("SASL_PLAINTEXT", ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
    ],
)
def test_tokens_are_described_to_who_has_logged_in(protocol, error):
    world = started(security_protocols={LISTENER: protocol})
    message = wire.DescribeDelegationTokenRequest(owners=None)
    answer = world.ask(world.active.node_id, message, principal=ALICE)
    assert answer.error_code == error
