"""Topics and the permissions on them: who may delete and extend one, and who learns of it."""

from conformance.marker import kafka_scenario
from controller.cluster import Cluster
from controller.test_topics import delete, outcome
from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.new_partitions import CREATE_PARTITIONS
from quorate.formats.records import AccessControlEntryRecord
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, LITERAL, AuthorizerConfig, Requester
from quorate.wire.messages import CreatePartitionsRequest


@kafka_scenario("ControllerApisTest", "invalidDeleteTopicsRequest")
def test_a_topic_that_is_named_twice_is_not_deleted():
    """By its name and its id, or by its id alone."""
    cluster = Cluster(1)
    known = cluster.create("known", 1, 1).topic_id
    found = delete(cluster, ("known", ZERO_UUID), (None, known))
    text = "The provided topic name maps to an ID that was already supplied."
    assert [(r.name, r.topic_id, *outcome(r)) for r in found] == [
        ("known", known, ErrorCode.INVALID_REQUEST, text)
    ]
    found = delete(cluster, (None, known), (None, known))
    assert [(r.name, *outcome(r)) for r in found] == [
        (None, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    ]
    assert "known" in cluster.image.topics.ids and not cluster.records


def grant(cluster, *permissions):
    """alice gets each (operation, name of a topic), and asks from now on."""
    cluster.write(
        [
            AccessControlEntryRecord(
                id=Uuid(number.to_bytes(16, "big")),
                resource_type=AclResource.TOPIC,
                resource_name=name,
                pattern_type=LITERAL,
                principal="User:alice",
                host="*",
                operation=operation,
                permission_type=ALLOW,
            )
            for number, (operation, name) in enumerate(permissions, 1)
        ]
    )
    cluster.requester = Requester("User:alice", "10.0.0.7")


@kafka_scenario(
    "ControllerApisTest",
    "notAuthorizedToDeleteWithTopicExisting",
    "notAuthorizedToDeleteWithTopicNotExisting",
)
def test_only_who_may_describe_a_topic_learns_of_it():
    """Its name, or whether there is one of that name."""
    cluster = Cluster(1, authorizer=AuthorizerConfig(frozenset({"User:admin"})))
    cluster.requester = Requester("User:admin", "10.0.0.7")
    ids = {name: cluster.create(name, 1, 1).topic_id for name in ("foo", "bar", "baz", "quux")}
    grant(
        cluster,
        (AclOperation.DESCRIBE, "foo"),
        (AclOperation.DESCRIBE, "baz"),
        (AclOperation.DESCRIBE, "absent"),
    )
    found = delete(
        cluster,
        (None, ids["foo"]),
        (None, ids["bar"]),
        ("baz", ZERO_UUID),
        ("quux", ZERO_UUID),
        ("absent", ZERO_UUID),
        ("hidden", ZERO_UUID),
    )
    denied, unknown = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {(r.name, r.topic_id): r.error_code for r in found} == {
        ("foo", ids["foo"]): denied,
        (None, ids["bar"]): denied,
        ("baz", ZERO_UUID): denied,
        ("quux", ZERO_UUID): denied,
        ("absent", ZERO_UUID): unknown,
        ("hidden", ZERO_UUID): denied,
    }
    assert set(cluster.image.topics.ids) == set(ids)


@kafka_scenario("ControllerApisTest", "createPartitionsRequest", "createPartitionsAuthorization")
def test_partitions_are_added_by_permission_on_their_topics():
    cluster = Cluster(1, authorizer=AuthorizerConfig(frozenset({"User:admin"})))
    cluster.requester = Requester("User:admin", "10.0.0.7")
    for name in ("foo", "bar", "twice"):
        cluster.create(name, 1, 1)
    grant(cluster, (AclOperation.ALTER, "foo"))
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    names = ("foo", "bar", "absent", "twice", "twice")
    wanted = [topic(name=name, count=2, assignments=None) for name in names]
    found = cluster.decide(CREATE_PARTITIONS, CreatePartitionsRequest(topics=wanted)).results
    assert {result.name: outcome(result) for result in found} == {
        "foo": (ErrorCode.NONE, None),
        "bar": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        "absent": (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None),
        "twice": (ErrorCode.INVALID_REQUEST, "Duplicate topic name."),
    }
    assert [len(cluster.image.topics.named(name).partitions) for name in names[:2]] == [2, 1]
