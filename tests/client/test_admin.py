"""The admin client: controller discovery, retries, and changes that are made once."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from client.fake_node import HANG_UP, FakeNode
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.client import (
    Admin,
    ClientConfig,
    ClientError,
    ConnectError,
    NotLoadedError,
    RequestFailedError,
    UnsupportedVersionError,
)
from quorate.client.config import client_config
from quorate.wire.messages import (
    AddRaftVoterResponse,
    ApiVersionsResponse,
    DescribeClusterResponse,
    DescribeQuorumResponse,
    RemoveRaftVoterResponse,
    UpdateFeaturesResponse,
)
from quorate.wire.registry import APIS, CONTROLLER_API_VERSIONS

PARTITION = DescribeQuorumResponse.TopicData.PartitionData
KEYS = [ReplicaKey(node_id, Uuid(bytes([node_id]) * 16)) for node_id in range(5)]
LISTENER = Listener("CONTROLLER", "h", 9)
BROKER = {key: (api.min_version, api.max_version) for key, api in APIS.items()}


def cluster(*nodes, leader=1):
    """DescribeCluster's answer: controllers 1, 2, ... at these fakes."""
    return DescribeClusterResponse(
        cluster_id="c",
        controller_id=leader,
        endpoint_type=2,
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=node_id, host=node.address.host, port=node.address.port
            )
            for node_id, node in enumerate(nodes, 1)
        ],
    )


def quorum(*voters, error=ErrorCode.NONE):
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponse.TopicData(
                topic_name="__cluster_metadata",
                partitions=[
                    PARTITION(
                        error_code=error,
                        leader_id=1,
                        leader_epoch=7,
                        high_watermark=100,
                        current_voters=[
                            PARTITION.ReplicaState(
                                replica_id=key.id,
                                replica_directory_id=key.directory_id,
                                log_end_offset=100,
                            )
                            for key in voters
                        ],
                    )
                ],
            )
        ]
    )


@pytest.fixture
def admin():
    """Make an Admin that does not wait long; all are closed at the end."""
    made = []

    def admin(*nodes, **changes):
        values: dict[str, Any] = {
            "bootstrap": tuple(getattr(node, "address", node) for node in nodes),
            "controllers": True,
            "retry_backoff_ms": 1,
            "default_api_timeout_ms": 2000,
            "unreachable_after_ms": 50,
        }
        made.append(Admin(ClientConfig(**values | changes)))
        return made[-1]

    yield admin
    for each in made:
        each.close()


def test_a_request_goes_to_the_active_controller(admin):
    with FakeNode({}) as one, FakeNode({"DescribeQuorumRequest": [quorum(KEYS[1])]}) as two:
        one.answers["DescribeClusterRequest"] = [cluster(one, two, leader=2)]
        found = admin(one).describe_quorum()
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 7, 100)
    assert found.leader.key == KEYS[1]
    assert found.leader.last_fetch_ms == -1


def test_the_client_finds_a_new_leader(admin):
    stale = quorum(error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    with (
        FakeNode({"DescribeQuorumRequest": [stale]}) as one,
        FakeNode({"DescribeQuorumRequest": [quorum(KEYS[1])]}) as two,
    ):
        supported = [cluster(one, two, leader=leader) for leader in (1, -1, 2)]
        one.answers["DescribeClusterRequest"] = two.answers["DescribeClusterRequest"] = supported
        assert admin(one).describe_quorum().leader_epoch == 7
        assert len(one.asked("DescribeClusterRequest") + two.asked("DescribeClusterRequest")) == 3


def test_the_client_reconnects_and_tries_the_other_bootstrap_node(admin):
    with FakeNode({"DescribeClusterRequest": [HANG_UP]}) as one, FakeNode({}) as two:
        two.answers["DescribeClusterRequest"] = [cluster(one, two, leader=2)]
        two.answers["DescribeQuorumRequest"] = [HANG_UP, quorum(KEYS[1])]
        gone = Address("127.0.0.1", 1)
        client = admin(gone, two)
        assert client.describe_quorum().leader_id == 1
        assert len(two.asked("DescribeQuorumRequest")) == 2


def test_the_client_waits_for_a_new_leader(admin):
    """Nodes name the dead leader until an election, perhaps longer than `unreachable_after_ms`."""
    with FakeNode({}) as two:
        gone = SimpleNamespace(address=two.address)
    with FakeNode({"DescribeQuorumRequest": [quorum(KEYS[1])]}) as one:
        elected = time.monotonic() + 0.2
        one.answers["DescribeClusterRequest"] = lambda _: cluster(
            one, gone, leader=1 if time.monotonic() > elected else 2
        )
        assert admin(one).describe_quorum().leader_id == 1


def test_unreachable_nodes_fail_early_with_every_address(admin):
    with pytest.raises(ConnectError) as caught:
        admin(Address("127.0.0.1", 1), Address("127.0.0.1", 2)).describe_cluster()
    assert "127.0.0.1:1" in str(caught.value)
    assert "127.0.0.1:2" in str(caught.value)


NO_DIRECT = DescribeClusterResponse(
    error_code=ErrorCode.UNSUPPORTED_VERSION, error_message="Direct-to-controller communication"
)


def versions(level, epoch):
    """What a node reports of itself at a finalized metadata.version."""
    cls = ApiVersionsResponse
    keys = [
        cls.ApiVersion(api_key=key, min_version=low, max_version=high)
        for key, (low, high) in CONTROLLER_API_VERSIONS.items()
    ]
    level_key = cls.FinalizedFeatureKey(
        name="metadata.version", min_version_level=level, max_version_level=level
    )
    return cls(api_keys=keys, finalized_features_epoch=epoch, finalized_features=[level_key])


@pytest.mark.parametrize("first", [ApiVersionsResponse(), versions(7, -1)])
def test_a_node_that_has_not_loaded_the_metadata_is_retried(admin, first):
    first.api_keys = versions(30, 9).api_keys
    with FakeNode({"ApiVersionsRequest": [first, first, versions(30, 9)]}) as one:
        one.answers["DescribeClusterRequest"] = [NO_DIRECT, NO_DIRECT, cluster(one)]
        assert admin(one).describe_cluster().controller_id == 1


def test_a_cluster_without_controller_bootstrap_fails_at_once(admin):
    with FakeNode({"ApiVersionsRequest": [versions(14, 9)]}) as one:
        one.answers["DescribeClusterRequest"] = [NO_DIRECT]
        with pytest.raises(RequestFailedError, match="Direct-to-controller"):
            admin(one).describe_cluster()
        assert len(one.asked("DescribeClusterRequest")) == 1


def test_a_node_that_never_loads_the_metadata_ends_with_the_api_timeout(admin):
    with FakeNode({"DescribeClusterRequest": [NO_DIRECT]}) as one:
        with pytest.raises(
            NotLoadedError, match=f"{one.address} has not loaded the committed metadata yet"
        ):
            admin(one, default_api_timeout_ms=50).describe_cluster()
        assert len(one.asked("DescribeClusterRequest")) > 1


def test_a_long_wait_is_reported_once():
    said: list[str] = []
    with FakeNode({"DescribeClusterRequest": [NO_DIRECT]}) as one:
        config = ClientConfig(
            (one.address,), True, default_api_timeout_ms=300, retry_backoff_ms=1, report_after_ms=5
        )
        with Admin(config, on_wait=said.append) as client, pytest.raises(NotLoadedError) as caught:
            client.describe_cluster()
    assert said == [str(caught.value)]


@pytest.mark.parametrize(
    "unhelpful", [[NO_DIRECT], [HANG_UP], [cluster(leader=-1)]], ids=["new", "broken", "lone"]
)
def test_the_client_tries_another_node_when_one_cannot_help(admin, unhelpful):
    """The first bootstrap controller may be partitioned, new, or of another quorum."""
    with FakeNode({"DescribeClusterRequest": unhelpful}) as lone, FakeNode({}) as good:
        good.answers["DescribeClusterRequest"] = [cluster(good)]
        good.answers["DescribeQuorumRequest"] = [quorum(KEYS[1])]
        client = admin(lone, good)
        assert client.describe_quorum().leader_id == 1
        assert len(lone.asked("DescribeClusterRequest")) == 1


def test_the_client_tries_another_broker_when_one_is_silent(admin):
    with (
        FakeNode({"DescribeQuorumRequest": [HANG_UP]}, BROKER) as bad,
        FakeNode({}, BROKER) as good,
    ):
        good.answers["DescribeQuorumRequest"] = [quorum(KEYS[1])]
        assert admin(bad, good, controllers=False).describe_quorum().leader_id == 1
        assert len(bad.asked("DescribeQuorumRequest")) == 1


def test_no_leader_ends_with_the_api_timeout(admin):
    with FakeNode({}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one, leader=-1)]
        with pytest.raises(RequestFailedError, match="No controller is active") as caught:
            admin(one, default_api_timeout_ms=50).describe_quorum()
    assert caught.value.code == ErrorCode.NOT_CONTROLLER


def test_an_error_that_is_not_retriable_fails_at_once(admin):
    refusal = AddRaftVoterResponse(
        error_code=ErrorCode.DUPLICATE_VOTER, error_message="there is one"
    )
    with FakeNode({"AddRaftVoterRequest": [refusal]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        with pytest.raises(RequestFailedError, match=r"there is one \(DUPLICATE_VOTER\)"):
            admin(one).add_voter(KEYS[2], [LISTENER])
        assert len(one.asked("AddRaftVoterRequest")) == 1


def test_add_voter_sends_these_fields(admin):
    with FakeNode({"AddRaftVoterRequest": [AddRaftVoterResponse()]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        admin(one).add_voter(KEYS[2], [LISTENER], cluster_id="c")
        (request,) = one.asked("AddRaftVoterRequest")
    assert (request.cluster_id, request.voter_id, request.voter_directory_id) == ("c", *KEYS[2])
    assert request.ack_when_committed is True
    assert [(one.name, one.host, one.port) for one in request.listeners] == [LISTENER]


DUPLICATE = AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER, error_message="it is one")
NOT_FOUND = RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND, error_message="none")


def test_a_lost_response_is_not_a_refusal(admin):
    """The node died after adding the voter; another node shows it in a committed voter set."""
    with FakeNode({"AddRaftVoterRequest": [HANG_UP, DUPLICATE]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        one.answers["DescribeQuorumRequest"] = [quorum(KEYS[1], KEYS[2])]
        admin(one).add_voter(KEYS[2], [LISTENER])
        assert len(one.asked("AddRaftVoterRequest")) == 2


def test_after_a_lost_response_another_voter_of_that_id_is_a_refusal(admin):
    with FakeNode({"AddRaftVoterRequest": [HANG_UP, DUPLICATE]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        one.answers["DescribeQuorumRequest"] = [quorum(KEYS[1], KEYS[3])]
        with pytest.raises(RequestFailedError, match="DUPLICATE_VOTER"):
            admin(one).add_voter(KEYS[2], [LISTENER])


@pytest.mark.parametrize(
    "first",
    [
        HANG_UP,
        RemoveRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT),
        RemoveRaftVoterResponse(
            error_code=ErrorCode.REQUEST_TIMED_OUT,
            error_message=ErrorCode.REQUEST_TIMED_OUT.message,
        ),
        RemoveRaftVoterResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
    ids=["lost", "timed out", "timed out with Kafka's text", "leader gone"],
)
def test_a_change_committed_by_a_timed_out_attempt_is_a_success(admin, first):
    with FakeNode({"RemoveRaftVoterRequest": [first, NOT_FOUND]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        admin(one).remove_voter(KEYS[2])
        assert len(one.asked("RemoveRaftVoterRequest")) == 2


@pytest.mark.parametrize(
    "first", [HANG_UP, RemoveRaftVoterResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)]
)
def test_a_change_only_in_the_leaders_log_is_not_done(admin, first):
    """DescribeQuorum has the newest voter set, committed or not; a lost leader takes it along."""
    waiting = RemoveRaftVoterResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message="Request timed out waiting for voters to commit the latest voter change at "
        "Optional[7] with HWM 6",
    )
    answers = [first, waiting, waiting, RemoveRaftVoterResponse()]
    with FakeNode({"RemoveRaftVoterRequest": answers}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        one.answers["DescribeQuorumRequest"] = [quorum(KEYS[1])]
        admin(one).remove_voter(KEYS[2])
        assert len(one.asked("RemoveRaftVoterRequest")) == 4


def test_removing_an_unknown_voter_fails_even_while_another_change_is_pending(admin):
    busy = RemoveRaftVoterResponse(
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message="Request timed out waiting for leader to handle previous voter change "
        "request",
    )
    with FakeNode({"RemoveRaftVoterRequest": [busy, NOT_FOUND]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        with pytest.raises(RequestFailedError, match=r"none \(VOTER_NOT_FOUND\)"):
            admin(one).remove_voter(KEYS[2])


def test_requests_to_brokers_need_no_controller_lookup(admin):
    with FakeNode({"DescribeQuorumRequest": [quorum(KEYS[1])]}, BROKER) as broker:
        assert admin(broker, controllers=False).describe_quorum().leader_id == 1
        assert broker.asked("DescribeClusterRequest") == []


def test_a_broker_is_refused_as_controller_bootstrap(admin):
    with (
        FakeNode({}, {60: (0, 0)}) as broker,
        pytest.raises(
            UnsupportedVersionError, match="does not support DescribeCluster in version 1"
        ),
    ):
        admin(broker).describe_cluster()


def supported(**levels):
    return ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=60, min_version=0, max_version=2)],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=1
            )
        ],
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level)
            for name, level in levels.items()
        ],
        finalized_features_epoch=5,
    )


def test_features_of_any_node_or_of_a_given_one(admin):
    with FakeNode({"ApiVersionsRequest": [supported(a=1)]}) as one, FakeNode({}) as two:
        two.answers["ApiVersionsRequest"] = [supported(a=2)]
        one.answers["DescribeClusterRequest"] = [cluster(one, two)]
        client = admin(one)
        assert client.describe_features() == ({"kraft.version": (0, 1)}, {"a": 1}, 5)
        assert client.describe_features(2).finalized == {"a": 2}
        with pytest.raises(ClientError, match="The cluster has no node 3; it has 1, 2"):
            client.describe_features(3)


def test_feature_updates_fail_one_by_one_or_together(admin):
    result = UpdateFeaturesResponse.UpdatableFeatureResult
    mixed = UpdateFeaturesResponse(
        results=[
            result(feature="a"),
            result(feature="b", error_code=ErrorCode.INVALID_UPDATE_VERSION, error_message="no"),
        ]
    )
    whole = UpdateFeaturesResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="none")
    with FakeNode({"UpdateFeaturesRequest": [mixed, whole]}, {57: (0, 1), 60: (0, 2)}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        client = admin(one)
        outcome = client.update_features({"a": 1, "b": 2}, validate_only=True)
        assert outcome["a"] is None
        assert (outcome["b"].code, outcome["b"].reason) == (ErrorCode.INVALID_UPDATE_VERSION, "no")
        with pytest.raises(RequestFailedError, match="none"):
            client.update_features({"a": 1})
        first, second = one.asked("UpdateFeaturesRequest")
    assert (first.validate_only, second.validate_only) == (True, False)


def test_a_response_without_the_metadata_partition_is_an_error(admin):
    with FakeNode({"DescribeQuorumRequest": [DescribeQuorumResponse()]}) as one:
        one.answers["DescribeClusterRequest"] = [cluster(one)]
        with pytest.raises(ClientError, match="returned 0 partitions"):
            admin(one, default_api_timeout_ms=20).describe_quorum()


def test_an_address_without_a_host_means_localhost():
    config = client_config(None, controllers=":9093")
    assert config.bootstrap == (Address("localhost", 9093),)
