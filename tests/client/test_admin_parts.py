"""Calls about many items: several requests, their results together, and what a failure says."""

import pytest

from client.fake_node import HANG_UP, FakeNode
from client.test_admin import cluster
from client.test_admin_calls import open_admin
from quorate.base.errors import ErrorCode
from quorate.client import ClientError, NoResponseError, PartlyDoneError
from quorate.client.admin.acls import AclBinding, AclFilter
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType
from quorate.client.admin.elections import ElectionType
from quorate.client.admin.parts import parts_of
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.security import Principal, ScramDeletion, ScramMechanism
from quorate.client.admin.topics import NewPartitions, TopicCreation
from quorate.node.apis import API_TABLE
from quorate.wire.codec import encode
from quorate.wire.messages import (
    AlterPartitionReassignmentsResponse,
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteAclsResponse,
    DeleteTopicsResponse,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsResponse,
    ElectLeadersResponse,
    IncrementalAlterConfigsResponse,
    ListPartitionReassignmentsResponse,
)

COUNT = 12_000
NAMES = [f"orders-of-the-shop-in-the-old-town-{n:05}" + "x" * 60 for n in range(COUNT)]
PARTITIONS = [PartitionName(name, 0) for name in NAMES]
BINDINGS = [AclBinding(2, name, 3, "User:a", "*", 3, 3) for name in NAMES]
MOVES = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
ONGOING = ListPartitionReassignmentsResponse.OngoingTopicReassignment
ELECTED = ElectLeadersResponse.ReplicaElectionResult

CALLS = {
    "create_topics": (
        lambda admin: admin.create_topics(TopicCreation(name, 1, 1) for name in NAMES),
        lambda r: CreateTopicsResponse(
            topics=[CreateTopicsResponse.CreatableTopicResult(name=t.name) for t in r.topics]
        ),
    ),
    "create_partitions": (
        lambda admin: admin.create_partitions({name: NewPartitions(2, [[1]]) for name in NAMES}),
        lambda r: CreatePartitionsResponse(
            results=[
                CreatePartitionsResponse.CreatePartitionsTopicResult(name=t.name) for t in r.topics
            ]
        ),
    ),
    "delete_topics": (
        lambda admin: admin.delete_topics(NAMES),
        lambda r: DeleteTopicsResponse(
            responses=[DeleteTopicsResponse.DeletableTopicResult(name=t.name) for t in r.topics]
        ),
    ),
    "incremental_alter_configs": (
        lambda admin: admin.incremental_alter_configs(
            {
                Resource(ResourceType.TOPIC, name): [AlterConfigOp("retention.ms", OpType.SET, "1")]
                for name in NAMES
            }
        ),
        lambda r: IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    resource_type=2, resource_name=each.resource_name
                )
                for each in r.resources
            ]
        ),
    ),
    "create_acls": (
        lambda admin: admin.create_acls(BINDINGS),
        lambda r: CreateAclsResponse(
            results=[CreateAclsResponse.AclCreationResult() for _ in r.creations]
        ),
    ),
    "delete_acls": (
        lambda admin: admin.delete_acls([AclFilter(resource_name=name) for name in NAMES]),
        lambda r: DeleteAclsResponse(
            filter_results=[DeleteAclsResponse.DeleteAclsFilterResult() for _ in r.filters]
        ),
    ),
    "elect_leaders": (
        lambda admin: admin.elect_leaders(ElectionType.PREFERRED, PARTITIONS),
        lambda r: ElectLeadersResponse(
            replica_election_results=[
                ELECTED(topic=t.topic, partition_result=[ELECTED.PartitionResult()])
                for t in r.topic_partitions
            ]
        ),
    ),
    "alter_partition_reassignments": (
        lambda admin: admin.alter_partition_reassignments({each: [1, 2] for each in PARTITIONS}),
        lambda r: AlterPartitionReassignmentsResponse(
            responses=[
                MOVES(name=t.name, partitions=[MOVES.ReassignablePartitionResponse()])
                for t in r.topics
            ]
        ),
    ),
    "list_partition_reassignments": (
        lambda admin: admin.list_partition_reassignments(PARTITIONS),
        lambda r: ListPartitionReassignmentsResponse(
            topics=[
                ONGOING(name=t.name, partitions=[ONGOING.OngoingPartitionReassignment()])
                for t in r.topics
            ]
        ),
    ),
    "alter_user_scram_credentials": (
        lambda admin: admin.alter_user_scram_credentials(
            ScramDeletion(name, ScramMechanism.SCRAM_SHA_256) for name in NAMES
        ),
        lambda r: AlterUserScramCredentialsResponse(
            results=[
                AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(user=each.name)
                for each in r.deletions
            ]
        ),
    ),
    "describe_user_scram_credentials": (
        lambda admin: admin.describe_user_scram_credentials(NAMES),
        lambda r: DescribeUserScramCredentialsResponse(
            results=[
                DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult(user=u.name)
                for u in r.users
            ]
        ),
    ),
    "describe_delegation_tokens": (
        lambda admin: admin.describe_delegation_tokens(Principal("User", name) for name in NAMES),
        lambda r: DescribeDelegationTokenResponse(
            tokens=[
                DescribeDelegationTokenResponse.DescribedDelegationToken(
                    token_id=each.principal_name
                )
                for each in r.owners
            ]
        ),
    ),
}


def asked_by(name, answer):
    """A node that refuses what a controller would not take; what it was asked, in order."""
    asked = []

    def checked(request):
        key = type(request).schema.key
        version = max(type(request).schema.versions)
        size = len(encode(request, version)) + 1000
        asked.append(size)
        return answer(request) if size <= API_TABLE[key].max_bytes else HANG_UP

    words = "".join(word.capitalize() for word in name.split("_"))
    request = {"DescribeDelegationTokens": "DescribeDelegationToken"}.get(words, words)
    return {f"{request}Request": checked}, asked


@pytest.mark.parametrize("name", CALLS)
def test_many_items_are_sent_in_requests_that_a_controller_takes(name):
    call, answer = CALLS[name]
    answers, asked = asked_by(name, answer)
    with FakeNode(answers) as node, open_admin(node, default_api_timeout_ms=20_000) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        assert len(call(admin)) == COUNT
    assert len(asked) > 1


def test_no_part_has_more_records_than_an_atomic_change():
    topics = [TopicCreation(f"t{n}", 4000, 1) for n in range(5)]
    sizes = []

    def answer(request):
        sizes.append(sum(topic.num_partitions for topic in request.topics))
        return CALLS["create_topics"][1](request)

    with FakeNode({"CreateTopicsRequest": answer}) as node, open_admin(node) as admin:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        admin.create_topics(topics)
    assert sizes == [8000, 8000, 4000]


def test_a_large_item_is_a_part_of_its_own_and_none_is_one_empty_part():
    assert parts_of([5, 20, 5, 5], lambda item: item, most_bytes=10) == [[5], [20], [5, 5]]
    assert parts_of([], lambda item: item) == [[]]


def electing(second, timeout_ms):
    """Elect leaders in several requests; `second` answers the second one.

    timeout_ms: of the call, in which a busy machine must serve the first request.
    """
    requests = []

    def answer(request):
        requests.append(request)
        return second if len(requests) >= 2 else CALLS["elect_leaders"][1](request)

    with (
        FakeNode({"ElectLeadersRequest": answer}) as node,
        open_admin(node, default_api_timeout_ms=timeout_ms) as admin,
        pytest.raises(PartlyDoneError) as caught,
    ):
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        more = [PartitionName(each.topic, 1) for each in PARTITIONS]
        admin.elect_leaders(ElectionType.PREFERRED, PARTITIONS + more)
    [done] = caught.value.results
    return len(done), caught.value


def test_a_lost_response_in_the_middle_says_what_is_done_and_what_is_not():
    done, error = electing(HANG_UP, 2_000)  # it is sent again until then
    assert done and error.unknown and error.not_done
    assert done + len(error.unknown) + len(error.not_done) == 2 * COUNT
    assert isinstance(error.cause, NoResponseError)
    assert f"Of {2 * COUNT} items {done} were answered before" in str(error)
    assert f"{len(error.unknown)} may have been changed: {error.unknown[0]}, " in str(error)
    assert f"{len(error.not_done)} were not changed: {error.not_done[0]}, " in str(error)
    assert [item for item, failed in error.answered if failed is None] == PARTITIONS[:done]


def test_a_refusal_in_the_middle_leaves_nothing_uncertain():
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    done, error = electing(ElectLeadersResponse(error_code=code), 60_000)
    assert not error.unknown
    assert done + len(error.not_done) == 2 * COUNT


@pytest.mark.parametrize("later", ["silence", "gone"])
def test_a_change_without_a_response_may_have_been_applied(later):
    unread = {"ListConfigResourcesRequest": [HANG_UP]}
    with FakeNode({"DeleteTopicsRequest": [HANG_UP], **unread}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        answers = iter([cluster(node)])
        if later == "gone":
            node.answers["DescribeClusterRequest"] = lambda request: next(answers, HANG_UP)
        with open_admin(node, default_api_timeout_ms=100) as admin:
            with pytest.raises(
                NoResponseError, match="may have been applied: check the topics before you repeat"
            ):
                admin.delete_topics(["a"])
            with pytest.raises(ClientError) as caught:
                admin.list_config_resources()
    assert "may have been applied" not in str(caught.value)
