"""Invalid requests to a node that runs: Kafka's code, a message that helps, and nothing is written.

Each row is one request, with one thing wrong. The log of the node grows by no record while they are refused.
"""

import pytest

from e2e.refusing import (
    DIRECTORY,
    FOREIGN,
    NOBODY,
    STALE,
    STRAY,
    acl,
    added,
    assigned,
    beat,
    configs,
    deleted,
    elected,
    isr,
    levels,
    newcomer,
    no_password,
    partitions,
    password,
    placed,
    quota,
    reassigned,
    registration,
    removed,
    running,
    said,
    topic,
    topics,
)
from node.test_apis import envelope
from quorate.base.errors import ErrorCode as E
from quorate.base.ids import Uuid
from quorate.wire import messages as m

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("refused")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("refused")) as cluster:
        yield cluster


REFUSED = {
    # topics
    "a name that is empty": (lambda c: topics(topic("")), E.INVALID_TOPIC_EXCEPTION, "empty"),
    "a name with a slash": (lambda c: topics(topic("a/b")), E.INVALID_TOPIC_EXCEPTION, "a/b"),
    "a name of 250": (lambda c: topics(topic("a" * 250)), E.INVALID_TOPIC_EXCEPTION, "249"),
    "an internal name": (
        lambda c: topics(topic("__cluster_metadata")),
        E.INVALID_REQUEST,
        "prohibited",
    ),
    "a topic twice": (lambda c: topics(topic(), topic()), E.INVALID_REQUEST, "Duplicate topic"),
    "a topic that exists": (
        lambda c: topics(topic("orders")),
        E.TOPIC_ALREADY_EXISTS,
        "'orders' already exists",
    ),
    "no partition": (lambda c: topics(topic(count=0)), E.INVALID_PARTITIONS, "non-positive"),
    "no replica": (
        lambda c: topics(topic(factor=0)),
        E.INVALID_REPLICATION_FACTOR,
        "larger than 0",
    ),
    "too many replicas": (
        lambda c: topics(topic(factor=3)),
        E.INVALID_REPLICATION_FACTOR,
        "only 2 broker",
    ),
    "a million partitions": (
        lambda c: topics(topic(count=1_000_000)),
        E.POLICY_VIOLATION,
        "Excessively large number of partitions",
    ),
    "a broker that is not there": (
        lambda c: assigned((0, [NOBODY])),
        E.INVALID_REPLICA_ASSIGNMENT,
        "99",
    ),
    "a broker twice": (
        lambda c: assigned((0, [1, 1])),
        E.INVALID_REPLICA_ASSIGNMENT,
        "more than once",
    ),
    "an assignment with a gap": (
        lambda c: assigned((0, [1]), (2, [1])),
        E.INVALID_REPLICA_ASSIGNMENT,
        "consecutive",
    ),
    "a config of no topic": (
        lambda c: topics(topic(no_such_config="1")),
        E.INVALID_CONFIG,
        "no.such.config",
    ),
    "a config of a wrong type": (
        lambda c: topics(topic(retention_ms="soon")),
        E.INVALID_CONFIG,
        "retention.ms",
    ),
    "an unknown topic": (lambda c: deleted(name="nope"), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    "an unknown topic id": (lambda c: deleted(topic_id=STRAY), E.UNKNOWN_TOPIC_ID, ""),
    "neither name nor id": (lambda c: deleted(), E.INVALID_REQUEST, "Neither topic name nor id"),
    "fewer partitions": (lambda c: partitions("orders", 0), E.INVALID_PARTITIONS, "increase"),
    "as many partitions": (lambda c: partitions("orders", 1), E.INVALID_PARTITIONS, "already has"),
    "a million more partitions": (
        lambda c: partitions("orders", 1_000_000),
        E.POLICY_VIOLATION,
        "excessively large",
    ),
    "more partitions of an unknown topic": (
        lambda c: partitions("nope", 2),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "",
    ),
    "a wrong number of assignments": (
        lambda c: partitions("orders", 3, [1]),
        E.INVALID_REPLICA_ASSIGNMENT,
        "1 assignment",
    ),
    "a reassignment to no broker": (
        lambda c: reassigned("orders", 0, []),
        E.INVALID_REPLICA_ASSIGNMENT,
        "",
    ),
    "a reassignment to an unknown broker": (
        lambda c: reassigned("orders", 0, [NOBODY]),
        E.INVALID_REPLICA_ASSIGNMENT,
        "99",
    ),
    "a reassignment of an unknown partition": (
        lambda c: reassigned("orders", 7, [1]),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "",
    ),
    "a cancellation of nothing": (
        lambda c: reassigned("orders", 0, None),
        E.NO_REASSIGNMENT_IN_PROGRESS,
        "",
    ),
    "an election in an unknown topic": (
        lambda c: elected("nope", 0),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "nope",
    ),
    "an election that is not needed": (lambda c: elected("orders", 0), E.ELECTION_NOT_NEEDED, ""),
    "an election of an unknown kind": (
        lambda c: elected("orders", 0, 9),
        E.INVALID_REQUEST,
        "Unknown election type 9",
    ),
    # configs, features
    "configs of an unknown kind": (lambda c: configs(77, "x"), E.UNSUPPORTED_VERSION, "77"),
    "configs of an unknown topic": (
        lambda c: configs(2, "nope"),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "",
    ),
    "configs of an unknown broker": (
        lambda c: configs(4, "99", "log.retention.ms"),
        E.BROKER_ID_NOT_REGISTERED,
        "99",
    ),
    "configs of no broker": (
        lambda c: configs(4, "first", "log.retention.ms"),
        E.INVALID_REQUEST,
        "base 10",
    ),
    "a wrong value": (lambda c: configs(2, "orders", value="soon"), E.INVALID_CONFIG, "soon"),
    "an append to a number": (
        lambda c: configs(2, "orders", operation=2),
        E.INVALID_CONFIG,
        "Can't APPEND",
    ),
    "a feature that does not exist": (
        lambda c: levels("no.such.version", 1),
        E.INVALID_UPDATE_VERSION,
        "does not support this feature",
    ),
    "a level that does not exist": (
        lambda c: levels("metadata.version", 99),
        E.INVALID_UPDATE_VERSION,
        "only supports versions",
    ),
    "a downgrade that loses metadata": (
        lambda c: levels("metadata.version", 7, 2),
        E.INVALID_UPDATE_VERSION,
        "might delete metadata",
    ),
    # security
    "an entry for every kind": (
        lambda c: acl(resource_type=1),
        E.INVALID_REQUEST,
        "Invalid resourceType ANY",
    ),
    "a principal without a type": (lambda c: acl(principal="al"), E.INVALID_REQUEST, "no colon"),
    "an entry without a host": (lambda c: acl(host=""), E.INVALID_REQUEST, "Host pattern"),
    "a cluster of another name": (
        lambda c: acl(resource_type=4),
        E.INVALID_REQUEST,
        "kafka-cluster",
    ),
    "a filter of no kind": (
        lambda c: m.DeleteAclsRequest(
            filters=[m.DeleteAclsRequest.DeleteAclsFilter(resource_type_filter=0)]
        ),
        E.INVALID_REQUEST,
        "Unknown patternFilter.",
    ),
    "a quota of a planet": (
        lambda c: quota("planet", "x"),
        E.INVALID_REQUEST,
        "Unhandled client quota entity type: planet",
    ),
    "a quota that is not known": (
        lambda c: quota("user", "a", "speed"),
        E.INVALID_REQUEST,
        "speed",
    ),
    "a quota below 0": (lambda c: quota("user", "a", value=-1.0), E.INVALID_REQUEST, "greater"),
    "a password for nobody": (lambda c: password(""), E.UNACCEPTABLE_CREDENTIAL, "not be empty"),
    "a password of an unknown mechanism": (
        lambda c: password(mechanism=9),
        E.UNSUPPORTED_SASL_MECHANISM,
        "",
    ),
    "too few iterations": (lambda c: password(iterations=1), E.UNACCEPTABLE_CREDENTIAL, "Too few"),
    "too many iterations": (
        lambda c: password(iterations=1 << 30),
        E.UNACCEPTABLE_CREDENTIAL,
        "Too many",
    ),
    "a password that is not there": (lambda c: no_password(), E.RESOURCE_NOT_FOUND, ""),
    "a token on plaintext": (
        lambda c: m.CreateDelegationTokenRequest(max_lifetime_ms=-1),
        E.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        "",
    ),
    # brokers
    "a broker of another cluster": (
        lambda c: newcomer(c, cluster_id=FOREIGN),
        E.INCONSISTENT_CLUSTER_ID,
        "",
    ),
    "a broker that is too old": (
        lambda c: newcomer(c, levels={"metadata.version": (7, 7)}),
        E.UNSUPPORTED_VERSION,
        "",
    ),
    "a broker without a directory": (
        lambda c: newcomer(c, log_dirs=[]),
        E.INVALID_REGISTRATION,
        "",
    ),
    "a broker with a directory twice": (
        lambda c: newcomer(c, log_dirs=[DIRECTORY] * 2),
        E.INVALID_REGISTRATION,
        "",
    ),
    "a broker with another's directory": (
        lambda c: newcomer(c, log_dirs=[Uuid(bytes([1]) * 15 + b"d")]),
        E.INVALID_REGISTRATION,
        "",
    ),
    "a second process of a broker that lives": (
        lambda c: registration(1, cluster_id=c.quorum.cluster_id, incarnation_id=STRAY),
        E.DUPLICATE_BROKER_REGISTRATION,
        "",
    ),
    "a heartbeat of nobody": (lambda c: beat(NOBODY, 1), E.STALE_BROKER_EPOCH, ""),
    "a heartbeat of an old epoch": (lambda c: beat(1, STALE), E.STALE_BROKER_EPOCH, ""),
    "producer ids for an old epoch": (
        lambda c: m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=STALE),
        E.STALE_BROKER_EPOCH,
        "",
    ),
    "an ISR from an old epoch": (lambda c: isr(c, epoch=STALE), E.STALE_BROKER_EPOCH, ""),
    "an ISR of an old leader epoch": (
        lambda c: isr(c, leader_epoch=-1),
        E.FENCED_LEADER_EPOCH,
        "",
    ),
    "an ISR of a later leader epoch": (lambda c: isr(c, leader_epoch=9), E.NOT_CONTROLLER, ""),
    "an ISR of an old partition epoch": (
        lambda c: isr(c, partition_epoch=-1),
        E.INVALID_UPDATE_VERSION,
        "",
    ),
    "an ISR with an unknown broker": (lambda c: isr(c, 1, NOBODY), E.INVALID_REQUEST, ""),
    "an ISR of an unknown topic": (lambda c: isr(c, topic_id=STRAY), E.UNKNOWN_TOPIC_ID, ""),
    "an ISR of an unknown partition": (lambda c: isr(c, index=7), E.UNKNOWN_TOPIC_OR_PARTITION, ""),
    "a directory from an old epoch": (lambda c: placed(c, epoch=STALE), E.STALE_BROKER_EPOCH, ""),
    "a directory of an unknown topic": (
        lambda c: placed(c, topic_id=STRAY),
        E.UNKNOWN_TOPIC_ID,
        "",
    ),
    "a directory of an unknown partition": (
        lambda c: placed(c, index=7),
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "",
    ),
    "the removal of nobody": (
        lambda c: m.UnregisterBrokerRequest(broker_id=NOBODY),
        E.BROKER_ID_NOT_REGISTERED,
        "99",
    ),
    # the quorum
    "a voter of another cluster": (
        lambda c: added(c, 7, cluster_id=FOREIGN),
        E.INCONSISTENT_CLUSTER_ID,
        "",
    ),
    "a voter with an id in use": (lambda c: added(c, 1), E.DUPLICATE_VOTER, "1"),
    "a voter without a listener": (lambda c: added(c, 7, listeners=False), E.INVALID_REQUEST, ""),
    "the removal of an unknown voter": (lambda c: removed(c, 7), E.VOTER_NOT_FOUND, "7"),
    "the removal of a voter of another cluster": (
        lambda c: removed(c, 1, cluster_id=FOREIGN),
        E.INCONSISTENT_CLUSTER_ID,
        "",
    ),
    # Envelopes
    "an Envelope without a principal": (
        lambda c: m.EnvelopeRequest(request_data=b"", client_host_address=bytes(4)),
        E.PRINCIPAL_DESERIALIZATION_FAILURE,
        "",
    ),
    "an Envelope around a request for brokers": (
        lambda c: envelope(beat(1, c.epoch), 2),
        E.INVALID_REQUEST,
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_code_and_nothing_is_written(cluster, name):
    request, error, words = REFUSED[name]
    before = cluster.end
    found = list(said(cluster.ask(request(cluster))))
    assert {code for code, _ in found} == {error}
    assert any(words in text for _, text in found), found
    assert cluster.end == before
