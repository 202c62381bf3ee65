"""Quotas on changes of topics and partitions (KIP-599)."""

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from controller.cluster import Cluster
from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.controller.mutation_quotas import MUTATION_RATE, MutationQuotas, find_limit
from quorate.controller.new_partitions import CREATE_PARTITIONS
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.controller.topics import CREATE_TOPICS
from quorate.metadata.settings import quota_entity
from quorate.wire.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)

EXCEEDED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
USER = {"user": "alice"}
CLIENT = {"client-id": "app"}
DEFAULT_USER, DEFAULT_CLIENT = {"user": None}, {"client-id": None}


def quotas(*entities, rate=2.0):
    """Each entity has a rate of its own: `rate`, and one more for each further entity."""
    return Map({quota_entity(e): Map({MUTATION_RATE: rate + i}) for i, e in enumerate(entities)})


ORDER = [
    (USER | CLIENT, ("alice", "app")),
    (USER | DEFAULT_CLIENT, ("alice", "app")),
    (USER, ("alice", "")),
    (DEFAULT_USER | CLIENT, ("alice", "app")),
    (DEFAULT_USER | DEFAULT_CLIENT, ("alice", "app")),
    (DEFAULT_USER, ("alice", "")),
    (CLIENT, ("", "app")),
    (DEFAULT_CLIENT, ("", "app")),
]


@pytest.mark.parametrize("place", range(len(ORDER)))
def test_the_most_specific_quota_counts(place):
    entities = [entity for entity, _ in ORDER[place:]]
    limit = not_none(find_limit(quotas(*entities), MUTATION_RATE, "alice", "app"))
    assert (limit.rate, (limit.user, limit.client_id)) == (2.0, ORDER[place][1])
    others = quotas({"user": "bob"}, {"client-id": "other"}, USER | {"client-id": "other"})
    assert find_limit(others, MUTATION_RATE, "alice", "app") is None


def test_a_strict_quota_lets_the_last_tokens_be_overdrawn():
    buckets, limits = MutationQuotas(windows=5, window_s=1), quotas(USER)

    def take(permits, now_ms):
        quota = not_none(buckets.of(limits, "alice", "app", now_ms, strict=True))
        return quota.take(permits), quota.throttle_ms

    assert take(14, 0) == (True, 0), "10 tokens, and 4 too many"
    assert take(1, 0) == (False, 2_000)
    assert take(1, 1_999) == (False, 1)
    assert take(1, 2_000) == (True, 0)
    assert take(0, 3_000_000) == (True, 0)
    assert take(11, 3_000_000) == (True, 0), "the bucket is never fuller than 10"
    assert take(1, 3_000_000) == (False, 500)


def test_a_permissive_quota_accepts_and_throttles():
    buckets, limits = MutationQuotas(windows=5, window_s=1), quotas(USER)
    quota = not_none(buckets.of(limits, "alice", "app", 0, strict=False))
    assert quota.take(10) and quota.throttle_ms == 0
    assert quota.take(5) and quota.throttle_ms == 2_500
    assert quota.take(5) and quota.throttle_ms == 5_000


def test_clients_share_a_bucket_as_the_entity_says():
    limits = quotas(USER)
    buckets = MutationQuotas(windows=5)
    assert not_none(buckets.of(limits, "alice", "app", 0, strict=True)).take(11)
    assert not not_none(buckets.of(limits, "alice", "other", 0, strict=True)).take(1)
    assert buckets.of(limits, "bob", "app", 0, strict=True) is None
    by_client = quotas(DEFAULT_USER | DEFAULT_CLIENT)
    buckets = MutationQuotas(windows=5)
    assert not_none(buckets.of(by_client, "alice", "app", 0, strict=True)).take(11)
    assert not_none(buckets.of(by_client, "alice", "other", 0, strict=True)).take(1)
    assert not not_none(buckets.of(by_client, "alice", "app", 0, strict=True)).take(1)


def charged(cluster, buckets, *, strict=True):
    limits = quotas(USER, rate=1.0)
    cluster.mutation_quota = buckets.of(limits, "alice", "app", cluster.now_ms, strict=strict)


def topics_request(**partitions):
    cls = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[cls(name=n, num_partitions=p, replication_factor=1) for n, p in partitions.items()]
    )


def errors(results):
    return {r.name: ErrorCode(r.error_code) for r in results}


@kafka_scenario("ControllerApisTest", "createTopicsMutationQuota")
@kafka_scenario("ReplicationControlManagerTest", "createTopicsWithMutationQuotaExceeded")
def test_topics_are_created_as_far_as_the_quota_goes():
    cluster, buckets = Cluster(1), MutationQuotas(windows=5)
    charged(cluster, buckets)
    response = cluster.decide(CREATE_TOPICS, topics_request(a=4, b=2, c=1))
    assert errors(response.topics) == {
        "a": ErrorCode.NONE,
        "b": ErrorCode.NONE,
        "c": EXCEEDED,
    }
    assert response.topics[2].error_message == EXCEEDED.message
    assert response.throttle_time_ms == 1_000
    assert set(cluster.image.topics.ids) == {"a", "b"}
    cluster.now_ms += 1_000
    charged(cluster, buckets)
    assert cluster.decide(CREATE_TOPICS, topics_request(c=1)).throttle_time_ms == 0


def test_an_old_client_is_throttled_and_not_refused():
    cluster, buckets = Cluster(1), MutationQuotas(windows=5)
    charged(cluster, buckets, strict=False)
    response = cluster.decide(CREATE_TOPICS, topics_request(a=4, b=4), 5)
    assert errors(response.topics) == {"a": ErrorCode.NONE, "b": ErrorCode.NONE}
    assert response.throttle_time_ms == 3_000


@kafka_scenario("ControllerApisTest", "createPartitionsMutationQuota", "deleteTopicsMutationQuota")
@kafka_scenario(
    "ReplicationControlManagerTest",
    "deleteTopicsWithMutationQuotaExceeded",
    "createPartitionsWithMutationQuotaExceeded",
)
def test_partitions_and_deletions_are_charged():
    cluster, buckets = Cluster(1), MutationQuotas(windows=5)
    cluster.create("a", partitions=2, factor=1)
    cluster.create("b", partitions=1, factor=1)
    charged(cluster, buckets)
    more = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[more(name="a", count=8, assignments=None), more(name="b", count=2)]
    )
    request.topics[1].assignments = None
    response = cluster.decide(CREATE_PARTITIONS, request)
    assert errors(response.results) == {"a": ErrorCode.NONE, "b": EXCEEDED}
    assert response.throttle_time_ms == 1_000
    cluster.now_ms += 1_000
    charged(cluster, buckets)
    cls = DeleteTopicsRequest.DeleteTopicState
    deletion = DeleteTopicsRequest(topics=[cls(name="a"), cls(name="b")])
    response = cluster.decide(DELETE_TOPICS, deletion, 6)
    assert errors(response.responses) == {"a": ErrorCode.NONE, "b": EXCEEDED}
    assert response.throttle_time_ms == 8_000
    assert set(cluster.image.topics.ids) == {"b"}
