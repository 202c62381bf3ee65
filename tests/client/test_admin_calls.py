"""Calls of the admin client: routing, pages, errors of items, kinds of endpoints, cancellation."""

import ast
import asyncio
import hashlib
import threading
import time
from pathlib import Path

import pytest

from client.fake_node import HANG_UP, SILENCE, FakeNode
from client.test_admin import BROKER, cluster, quorum
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.client import (
    Admin,
    AsyncAdmin,
    ClientConfig,
    ConnectError,
    MismatchedEndpointTypeError,
    NoResponseError,
    RequestFailedError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
)
from quorate.client.admin import client
from quorate.client.admin.client import bootstrap_config
from quorate.client.admin.cluster import ClusterCalls
from quorate.client.admin.configs import (
    AlterConfigOp,
    ConfigEntrySource,
    OpType,
    Resource,
    ResourceType,
)
from quorate.client.admin.elections import ElectionType
from quorate.client.admin.io import BlockingIo, finish
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.quotas import ANY_NAME
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.routing import Router
from quorate.client.admin.security import ScramMechanism, ScramUpsertion
from quorate.client.admin.topics import (
    CreatedTopic,
    NewPartitions,
    TopicCreation,
    TopicDescription,
)
from quorate.client.config import BootstrapError
from quorate.client.errors import InvalidValueError
from quorate.wire.messages import (
    AlterReplicaLogDirsResponse,
    AlterUserScramCredentialsResponse,
    CreateTopicsResponse,
    DescribeClientQuotasResponse,
    DescribeClusterResponse,
    DescribeConfigsResponse,
    DescribeLogDirsResponse,
    DescribeTopicPartitionsResponse,
    ElectLeadersResponse,
    IncrementalAlterConfigsResponse,
    MetadataResponse,
)

BIG = 3_000_000_000
KEY = Uuid(bytes(16))
TOPIC = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
RESULT = DescribeConfigsResponse.DescribeConfigsResult


def config(*nodes, controllers=True, **changes):
    values = {"retry_backoff_ms": 1, "default_api_timeout_ms": 2000, "unreachable_after_ms": 50}
    return ClientConfig(tuple(node.address for node in nodes), controllers, **values | changes)


def open_admin(*nodes, **changes):
    return Admin(config(*nodes, **changes))


def brokers(*nodes):
    """DescribeCluster's answer of brokers 1, 2, ... at these fakes."""
    answer = cluster(*nodes)
    answer.endpoint_type = 1
    return answer


def page(name, *indexes, after=None, error=0):
    cls = DescribeTopicPartitionsResponse
    part = TOPIC.DescribeTopicPartitionsResponsePartition
    return cls(
        topics=[
            TOPIC(
                name=name,
                error_code=error,
                partitions=[
                    part(partition_index=i, leader_id=-1 if i else 4, replica_nodes=[4, 5])
                    for i in indexes
                ],
            )
        ],
        next_cursor=after and cls.Cursor(topic_name=after[0], partition_index=after[1]),
    )


def test_topics_are_put_together_from_pages():
    pages = [page("a", 0, 1, after=("a", 2)), page("a", 2, after=("b", 0)), page("b", 0)]
    with FakeNode({"DescribeTopicPartitionsRequest": pages}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.describe_topics(["b", "a"], page=2)
        asked = node.asked("DescribeTopicPartitionsRequest")
    assert {name: [p.index for p in topic.partitions] for name, topic in found.items()} == {
        "a": [0, 1, 2],
        "b": [0],
    }
    assert [p.leader for p in found["a"].partitions] == [4, None, None]
    assert [[topic.name for topic in each.topics] for each in asked] == [
        ["a", "b"],
        ["a", "b"],
        ["b"],
    ]
    assert asked[0].response_partition_limit == 2


def test_many_names_are_asked_in_parts():
    names = [f"topic-{n:04}" for n in range(2500)]

    def answer(request):
        asked = [topic.name for topic in request.topics]
        assert len(asked) <= 1000
        return DescribeTopicPartitionsResponse(topics=[TOPIC(name=name) for name in asked])

    with FakeNode({"DescribeTopicPartitionsRequest": answer}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert list(admin.describe_topics(names)) == names
        assert len(node.asked("DescribeTopicPartitionsRequest")) == 3


def test_many_resources_are_asked_in_small_requests():
    wanted = [Resource(ResourceType.TOPIC, f"{n:04}" + "x" * 200) for n in range(1000)]

    def answer(request):
        assert sum(len(each.resource_name) + 8 for each in request.resources) <= 48 * 1024
        return DescribeConfigsResponse(
            results=[configs_of(2, each.resource_name, "v") for each in request.resources]
        )

    with FakeNode({"DescribeConfigsRequest": answer}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.describe_configs(wanted)
        assert len(node.asked("DescribeConfigsRequest")) == 5
    assert list(found) == wanted
    assert all(entries[0].value == "v" for entries in found.values())


def test_the_parts_of_a_large_request_are_asked_at_the_same_time():
    wanted = [Resource(ResourceType.TOPIC, f"t{n}") for n in range(1000)]
    together = threading.Barrier(4)

    def answer(request):
        together.wait(10)
        return DescribeConfigsResponse(
            results=[
                configs_of(2, each.resource_name, each.resource_name) for each in request.resources
            ]
        )

    with FakeNode({"DescribeConfigsRequest": answer}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.describe_configs(wanted)
    assert [(each, entries[0].value) for each, entries in found.items()] == [
        (each, each.name) for each in wanted
    ]


def test_a_large_request_is_asked_again_when_one_of_its_connections_breaks():
    wanted = [Resource(ResourceType.TOPIC, f"t{n}") for n in range(2000)]
    broken = iter([False, False, True])

    def answer(request):
        if next(broken, False):
            return HANG_UP
        return DescribeConfigsResponse(
            results=[configs_of(2, each.resource_name, "v") for each in request.resources]
        )

    with FakeNode({"DescribeConfigsRequest": answer}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert list(admin.describe_configs(wanted)) == wanted
        assert len(node.asked("DescribeConfigsRequest")) > 8


def test_a_cursor_that_stands_still_does_not_loop():
    pages = [page("a", 0, after=("a", 1))]
    with (
        FakeNode({"DescribeTopicPartitionsRequest": pages}) as node,
        open_admin(node, default_api_timeout_ms=20) as admin,
        pytest.raises(NoResponseError, match="a cursor that does not advance"),
    ):
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        admin.describe_topics()


def test_an_older_broker_is_asked_by_metadata():
    topic = MetadataResponse.MetadataResponseTopic
    part = topic.MetadataResponsePartition
    answer = MetadataResponse(
        topics=[
            topic(name="a", topic_id=KEY, partitions=[part(leader_id=1, replica_nodes=[1])]),
            topic(name="x", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
    )
    old = {key: versions for key, versions in BROKER.items() if key != 75}
    with FakeNode({"MetadataRequest": [answer]}, old) as node:
        with open_admin(node, controllers=False) as admin:
            found = admin.describe_topics(["a", "x"])
        [request] = node.asked("MetadataRequest")
    assert request.allow_auto_topic_creation is False
    assert isinstance(found["a"], TopicDescription)
    assert found["a"].partitions[0].elr is None
    assert found["x"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_each_item_has_its_own_outcome_and_kafkas_text():
    result = CreateTopicsResponse.CreatableTopicResult
    answer = CreateTopicsResponse(
        topics=[
            result(name="a", topic_id=KEY, num_partitions=3, replication_factor=2),
            result(name="b", error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message="Topic 'b'"),
            result(name="c", error_code=ErrorCode.INVALID_PARTITIONS),
        ]
    )
    moved = CreateTopicsResponse(topics=[result(name="a", error_code=ErrorCode.NOT_CONTROLLER)])
    with FakeNode({"CreateTopicsRequest": [moved, answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.create_topics(
            [TopicCreation("a", 3, 2), TopicCreation("b"), TopicCreation("c", 0)]
        )
        assert len(node.asked("CreateTopicsRequest")) == 2
    assert found["a"] == CreatedTopic(KEY, 3, 2)
    assert (found["b"].code, found["b"].reason) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'b'")
    assert found["c"].reason == "Number of partitions is below 1."


def configs_of(kind, name, value):
    entry = RESULT.DescribeConfigsResourceResult(name="k", value=value, config_source=5)
    return RESULT(resource_type=kind, resource_name=name, configs=[entry])


def test_a_broker_describes_itself_and_any_broker_the_rest():
    with FakeNode({}, BROKER) as one, FakeNode({}, BROKER) as two:
        for node, results in (
            (one, [configs_of(2, "t", "topic"), configs_of(4, "", "default")]),
            (two, [configs_of(4, "2", "broker"), configs_of(8, "2", "logger")]),
        ):
            node.answers["DescribeClusterRequest"] = [brokers(one, two)]
            node.answers["DescribeConfigsRequest"] = [DescribeConfigsResponse(results=results)]
        wanted = [
            Resource(ResourceType.TOPIC, "t"),
            Resource(ResourceType.BROKER, "2"),
            Resource(ResourceType.BROKER, ""),
            Resource(ResourceType.BROKER_LOGGER, "2"),
        ]
        with open_admin(one, controllers=False) as admin:
            found = admin.describe_configs(wanted)
        assert len(one.asked("DescribeConfigsRequest")[0].resources) == 2
    assert {each: entries[0].value for each, entries in found.items()} == dict(
        zip(wanted, ["topic", "broker", "default", "logger"], strict=True)
    )
    assert found[wanted[0]][0].source == ConfigEntrySource.DEFAULT_CONFIG


def test_controllers_take_broker_configs_at_the_active_one_and_loggers_at_the_named_one():
    result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    change = [AlterConfigOp("k", OpType.SET, "v")]
    changes = {
        Resource(ResourceType.BROKER, "7"): change,
        Resource(ResourceType.BROKER_LOGGER, "2"): change,
    }
    with FakeNode({}) as one, FakeNode({}) as two:
        for node, kind, name in ((one, 4, "7"), (two, 8, "2")):
            node.answers["DescribeClusterRequest"] = [cluster(one, two)]
            node.answers["IncrementalAlterConfigsRequest"] = [
                IncrementalAlterConfigsResponse(
                    responses=[result(resource_type=kind, resource_name=name)]
                )
            ]
        with open_admin(one, two) as admin:
            assert admin.incremental_alter_configs(changes) == dict.fromkeys(changes)


def test_quota_filters_say_exact_default_and_any():
    answer = DescribeClientQuotasResponse(entries=None)
    with FakeNode({"DescribeClientQuotasRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert admin.describe_client_quotas({"user": "a", "client-id": ANY_NAME, "ip": None}) == ()
        [request] = node.asked("DescribeClientQuotasRequest")
    assert [(c.entity_type, c.match_type, c.match) for c in request.components] == [
        ("user", 0, "a"),
        ("client-id", 2, None),
        ("ip", 1, None),
    ]


def test_a_password_is_salted_before_it_is_sent():
    answer = AlterUserScramCredentialsResponse()
    with FakeNode({"AlterUserScramCredentialsRequest": [answer]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        with open_admin(node) as admin:
            for _ in range(2):
                admin.alter_user_scram_credentials(
                    [ScramUpsertion("a", ScramMechanism.SCRAM_SHA_512, 4096, b"secret")]
                )
        sent = [each.upsertions[0] for each in node.asked("AlterUserScramCredentialsRequest")]
    assert sent[0].salt != sent[1].salt
    for each in sent:
        key = hashlib.pbkdf2_hmac("sha512", b"secret", each.salt, 4096)
        assert (each.mechanism, each.salted_password) == (2, key)


def test_an_election_of_all_partitions_names_none():
    result = ElectLeadersResponse.ReplicaElectionResult
    answer = ElectLeadersResponse(
        replica_election_results=[
            result(
                topic="t",
                partition_result=[
                    result.PartitionResult(partition_id=1),
                    result.PartitionResult(
                        partition_id=2, error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
                    ),
                ],
            )
        ]
    )
    with FakeNode({"ElectLeadersRequest": [answer]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        found = admin.elect_leaders(ElectionType.UNCLEAN)
        [request] = node.asked("ElectLeadersRequest")
    assert (request.election_type, request.topic_partitions) == (1, None)
    assert found[PartitionName("t", 1)] is None
    assert found[PartitionName("t", 2)].code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


def test_log_directories_are_asked_of_each_broker():
    path = DescribeLogDirsResponse.DescribeLogDirsResult
    moved = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
    done = moved(topic_name="t", partitions=[moved.AlterReplicaLogDirPartitionResult()])
    with FakeNode({}, BROKER) as one, FakeNode({}, BROKER) as two:
        for node, name in ((one, "/one"), (two, "/two")):
            node.answers["DescribeClusterRequest"] = [brokers(one, two)]
            found = DescribeLogDirsResponse(results=[path(log_dir=name)])
            node.answers["DescribeLogDirsRequest"] = [found]
            node.answers["AlterReplicaLogDirsRequest"] = [
                AlterReplicaLogDirsResponse(results=[done])
            ]
        with open_admin(one, controllers=False) as admin:
            dirs = admin.describe_log_dirs([2, 1])
            moves = {TopicPartitionReplica(PartitionName("t", 0), each): "/new" for each in (1, 2)}
            assert admin.alter_replica_log_dirs(moves) == dict.fromkeys(moves)
    assert {each: [d.path for d in found] for each, found in dirs.items()} == {
        1: ["/one"],
        2: ["/two"],
    }


def test_a_broker_that_fails_does_not_hide_the_directories_of_the_others():
    path = DescribeLogDirsResponse.DescribeLogDirsResult
    refused = DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with FakeNode({}, BROKER) as one, FakeNode({}, BROKER) as two:
        for node in (one, two):
            node.answers["DescribeClusterRequest"] = [brokers(one, two)]
        found = DescribeLogDirsResponse(results=[path(log_dir="/one")])
        one.answers["DescribeLogDirsRequest"] = [found]
        two.answers["DescribeLogDirsRequest"] = [refused]
        with open_admin(one, controllers=False) as admin:
            dirs = admin.describe_log_dirs([1, 2])
    assert [each.path for each in dirs[1]] == ["/one"]
    assert dirs[2].code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# -- values --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: a.create_topics([TopicCreation("t", BIG)]), "num_partitions is 3000000000"),
        (lambda a: a.create_topics([TopicCreation("t", 1, 70000)]), "int16 goes from -32768 to"),
        (
            lambda a: a.create_partitions({"t": NewPartitions(BIG)}),
            "an int32 goes from -2147483648",
        ),
        (lambda a: a.describe_topics(["t"], BIG), "response_partition_limit is 3000000000"),
        (lambda a: a.renew_delegation_token(b"x", 1 << 70), "an int64 goes from"),
        (lambda a: a.unregister_broker(BIG), "broker_id is 3000000000"),
    ],
)
def test_a_number_beyond_its_field_is_refused_by_name_before_it_is_sent(call, said):
    with FakeNode({}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        with pytest.raises(InvalidValueError, match=said):
            call(admin)
        assert admin.describe_cluster().cluster_id  # the connection is still of use


# -- kinds of endpoints (KIP-919) ----------------------------------------------------------------
def test_a_controller_is_refused_where_a_broker_is_expected():
    with FakeNode({}) as controller, open_admin(controller, controllers=False) as admin:
        with pytest.raises(MismatchedEndpointTypeError, match="--bootstrap-controller") as caught:
            admin.describe_quorum()
        assert len(controller.requests) == 1  # ApiVersions
    assert caught.value.code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.MISMATCHED_ENDPOINT_TYPE, MismatchedEndpointTypeError),
        (ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, UnsupportedEndpointTypeError),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, RequestFailedError),
    ],
)
def test_a_node_that_refuses_to_describe_controllers(code, error):
    answer = DescribeClusterResponse(error_code=code, error_message="because")
    with (
        FakeNode({"DescribeClusterRequest": [answer]}, BROKER) as node,
        open_admin(node) as admin,
        pytest.raises(error, match="because") as caught,
    ):
        admin.describe_cluster()
    assert type(caught.value) is error


def test_calls_that_only_brokers_answer_send_nothing_to_controllers():
    with FakeNode({}) as node, open_admin(node) as admin:
        for call in (
            lambda: admin.describe_log_dirs([1]),
            lambda: admin.alter_replica_log_dirs({}),
            admin.list_groups,
        ):
            with pytest.raises(UnsupportedEndpointTypeError, match="--bootstrap-server"):
                call()
        assert node.requests == []


def test_a_controller_of_kafka_does_not_describe_topics():
    kafka = {key: BROKER[key] for key in (18, 60)}
    with (
        FakeNode({}, kafka) as node,
        open_admin(node) as admin,
        pytest.raises(UnsupportedVersionError, match="does not support DescribeTopicPartitions"),
    ):
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        admin.describe_topics()


def test_exactly_one_bootstrap_list(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.controllers=c:1\nbootstrap.servers=b:1\n")
    with pytest.raises(BootstrapError, match="You cannot set both"):
        bootstrap_config(None, None, file)
    with pytest.raises(BootstrapError, match="You cannot set both"):
        bootstrap_config("a:1", "b:1", None)
    with pytest.raises(BootstrapError, match="You must set either"):
        bootstrap_config(None, None, None)
    given = bootstrap_config("a:2", None, file)
    assert (given.controllers, [each.host for each in given.bootstrap]) == (False, ["a"])
    file.write_text("bootstrap.controllers=c:1\n")
    found = bootstrap_config(None, None, file)
    assert (found.controllers, [each.host for each in found.bootstrap]) == (True, ["c"])


# -- connections and the event loop --------------------------------------------------------------
def test_one_connection_serves_all_calls():
    with FakeNode({"DescribeQuorumRequest": [quorum()]}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        for _ in range(3):
            admin.describe_quorum()
        assert len(node.asked("ApiVersionsRequest")) == 1
        assert len(node.asked("DescribeClusterRequest")) == 1


def test_both_clients_have_the_same_calls():
    def calls(cls):
        return {name for name in dir(cls) if not name.startswith("_")}

    with FakeNode({}) as node, open_admin(node) as admin:
        assert calls(AsyncAdmin(config(node))) - {"router"} == calls(admin)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = admin.nonsense


def test_type_checkers_see_the_calls_that_there_are():
    """Admin finds its calls by name; for type checkers it lists them."""
    tree = ast.parse(Path(client.__file__).read_text())
    [cls] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Admin"]
    [block] = [node for node in cls.body if isinstance(node, ast.If)]
    listed = {ast.unparse(node.targets[0]) for node in block.body if isinstance(node, ast.Assign)}
    calls = {name for name in dir(AsyncAdmin) if not name.startswith("_")}
    assert listed == calls - {"close", "open"}


def test_calls_run_side_by_side_on_an_event_loop():
    """Each broker answers only when both were asked."""
    asked = []

    def answer(name):
        def wait(_):
            asked.append(name)
            end = time.monotonic() + 5
            while len(asked) < 2 and time.monotonic() < end:
                time.sleep(0.001)
            result = DescribeLogDirsResponse.DescribeLogDirsResult
            return DescribeLogDirsResponse(results=[result(log_dir=f"/{name}{len(asked)}")])

        return wait

    async def main():
        async with AsyncAdmin(config(one, controllers=False)) as admin:
            return await admin.describe_log_dirs([1, 2])

    with FakeNode({}, BROKER) as one, FakeNode({}, BROKER) as two:
        for node, name in ((one, "one"), (two, "two")):
            node.answers["DescribeClusterRequest"] = [brokers(one, two)]
            node.answers["DescribeLogDirsRequest"] = answer(name)
        found = asyncio.run(main())
    assert [dirs[0].path for dirs in found.values()] == ["/one2", "/two2"]


def test_a_cancelled_call_breaks_its_connection_and_the_next_call_works():
    async def main():
        admin = AsyncAdmin(config(node))
        waiting = asyncio.create_task(admin.describe_quorum())
        while not node.asked("DescribeQuorumRequest"):
            await asyncio.sleep(0.001)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        found = await admin.describe_quorum()
        admin.close()
        return found

    with FakeNode({"DescribeQuorumRequest": [SILENCE, quorum()]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        began = time.monotonic()
        assert asyncio.run(main()).leader_epoch == 7
        assert time.monotonic() - began < 5  # the silent call does not hold the loop's threads
        assert len(node.asked("ApiVersionsRequest")) == 2


def test_the_wait_between_attempts_doubles_up_to_its_limit():
    waits = []

    class Io(BlockingIo):
        async def pause(self, seconds):
            waits.append(seconds * 1000)

    with FakeNode({}) as gone:
        pass
    clock = (step * 2.5 for step in range(10**6))
    limits = config(gone, retry_backoff_ms=4, retry_backoff_max_ms=16, unreachable_after_ms=27_000)
    limits = limits._replace(default_api_timeout_ms=27_000)
    router = Router(limits, Io(), monotonic=lambda: next(clock))
    with pytest.raises(ConnectError):
        finish(ClusterCalls(router).describe_cluster())
    for wait, expected in zip(waits, (4, 8, 16, 16, 16), strict=True):
        assert expected * 0.8 <= wait <= expected * 1.2


def test_an_unreachable_cluster_names_every_address():
    with FakeNode({}) as gone:
        pass

    async def main():
        await AsyncAdmin(config(gone)).describe_cluster()

    with pytest.raises(ConnectError, match=str(gone.address)):
        asyncio.run(main())
