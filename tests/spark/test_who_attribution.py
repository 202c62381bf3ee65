"""From events to causes, and from evidence to principals, without Spark."""

from __future__ import annotations

import pytest

from quorate.spark.tables.events import _NAMES
from quorate.spark.who.attribution import EvidenceLine, PrincipalEvidence, attribute
from quorate.spark.who.bodies import READERS
from quorate.spark.who.causes import EVENTS, Cause, ChangeContext, ChangeFacts, cause_of
from quorate.spark.who.keys import BODY, CLUSTER, MENTION, NAMED, REPORTED, key
from quorate.spark.who.messages import EvidenceKey

COLUMNS = (
    *("event", "cause", "topic_name", "partition", "node_id", "resource_type", "resource_name"),
    *("name", "principal", "offset"),
)


def event(what, /, **words):
    return dict.fromkeys(COLUMNS) | {"event": what, "offset": 100} | words


def cause(what, /, before=None, after=None, context=None, **words):
    return cause_of(
        event(what, **words), ChangeFacts(before or {}, after or {}), context or ChangeContext()
    )


def keys(found, strength):
    return [offer.key for offer in found.wants if offer.strength == strength]


def candidate(
    principal, strength, mentions=False, request="CreateTopics", twice=False, inside=True
):
    best = EvidenceLine("10.0.0.7", None, request, "/logs/a", 7, "[...] DEBUG ...", twice)
    inside = inside and strength == BODY
    return PrincipalEvidence(principal, strength, mentions, 1, [request], best, inside)


def with_node_event(text):
    return ChangeContext(node_events=[text])


LEFT = {"before": {"isr": [11, 12]}, "after": {"isr": [11]}}
ASKED = Cause("request", (EvidenceKey("x", NAMED),))


# Causes


def test_every_event_of_the_changes_has_a_cause():
    names = set()
    for name in _NAMES.values():
        names |= {name(None, 1), name(1, 1), name(1, None)}
    assert names <= EVENTS


def test_a_controller_is_removed_by_a_request():
    found = cause("controller removed", node_id=9)
    assert found.cause == "request"
    wanted = {one.key for one in found.wants}
    (body,) = keys(found, BODY)
    (read,) = READERS["UNREGISTER_CONTROLLER"][1]({"controllerId": 9}, {})
    assert body == key("UnregisterController", *read)
    assert wanted == {body, key("UnregisterController", "Cluster", "kafka-cluster")}


def test_a_new_topic_brings_its_partitions_and_configs():
    created = ChangeContext(topic_created=True)
    topic = cause("topic created", topic_name="a")
    partition = cause("partition created", context=created, topic_name="a", partition=0)
    about = {"resource_type": "topic", "resource_name": "a", "name": "x", "topic_name": "a"}
    config = cause("config set", after={"value": "1"}, context=created, **about)
    assert topic == partition == config
    assert keys(topic, BODY) == ["CreateTopics\ttopic\ta"]
    assert "Metadata\tTopic\ta" in keys(topic, NAMED), "a broker that creates it for a client"
    later = cause("partition created", topic_name="a", partition=3)
    assert keys(later, NAMED) == ["CreatePartitions\tTopic\ta"]
    gone = cause(
        "config deleted", before={"value": "1"}, context=ChangeContext(topic_deleted=True), **about
    )
    assert keys(gone, BODY) == ["DeleteTopics\ttopic\ta"]


@pytest.mark.parametrize(
    ("kind", "name", "resource"),
    [
        ("topic", "a", "Topic\ta"),
        ("group", "g", "Group\tg"),
        ("broker", "12", "Cluster\tkafka-cluster"),
        ("client-metrics", "m", "Cluster\tkafka-cluster"),
    ],
)
def test_a_config_is_authorized_by_its_resource(kind, name, resource):
    found = cause(
        "config set", after={"value": "1"}, resource_type=kind, resource_name=name, name="x"
    )
    assert f"IncrementalAlterConfigs\t{resource}" in keys(found, NAMED)
    assert f"IncrementalAlterConfigs\tconfig\t{kind}\t{name}\tx\t1" in keys(found, BODY)


@pytest.mark.parametrize(("value", "number"), [("Infinity", "inf"), ("NaN", "nan"), (5.0, "5.0")])
def test_a_quota_without_limit_is_found_in_the_request_that_set_it(value, number):
    """`changes` has it as a text; Kafka's request log, read as JSON, as a number."""
    found = cause("quota set", after={"value": value}, resource_name="{}", name="k")
    assert keys(found, BODY) == [f"AlterClientQuotas\tquota\t{{}}\tk\t{number}"]


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("broker registered", {"node_id": 1}, "broker"),
        ("broker unfenced", {"node_id": 1}, "broker"),
        ("isr expanded", {"topic_name": "a", "partition": 0}, "broker"),
        (
            "isr shrunk",
            {**LEFT, "context": ChangeContext(node_events=["broker 12 fenced"])},
            "controller",
        ),
        (
            "isr shrunk",
            {**LEFT, "context": ChangeContext(node_events=["broker 13 fenced"])},
            "broker",
        ),
        ("leader changed", {"cause": "leader left the ISR"}, "controller"),
        ("leader changed", {"cause": "preferred leader elected"}, "unknown"),
        ("recovery state changed", {"after": {"leader_recovery_state": 1}}, "unknown"),
        ("recovery state changed", {"after": {"leader_recovery_state": 0}}, "broker"),
        ("leader changed", {"context": ChangeContext(reassigned=True)}, "request"),
        ("controller elected", {}, "controller"),
        ("producer ids allocated", {}, "broker"),
        ("feature set", {"context": ChangeContext(bootstrap=True)}, "bootstrap"),
        ("voter added", {"offset": 2, "node_id": 1}, "bootstrap"),
        ("feature set", {"offset": 1, "name": "kraft.version", "after": {"level": 1}}, "bootstrap"),
        ("feature set", {"offset": 35, "name": "kraft.version", "after": {"level": 1}}, "request"),
        ("voter added", {"after": {"listeners": []}, "node_id": 1}, "request"),
    ],
)
def test_what_nodes_do_by_themselves_has_no_principal(name, words, expected):
    assert cause(name, **words).cause == expected


def test_an_upgrade_of_a_static_quorum_brings_its_voters():
    """As in the sample g-upgraded-v1: KRaftVersion and KRaftVoters at the offsets 35 and 36."""
    upgrade = cause("feature set", after={"level": 1}, name="kraft.version", offset=35)
    assert keys(upgrade, BODY) == ["UpdateFeatures\tfeature\tkraft.version\t1"]
    voter = {"after": {"listeners": []}, "node_id": 1, "offset": 36}
    assert keys(cause("voter added", **voter, context=ChangeContext(upgraded=True)), BODY) == keys(
        upgrade, BODY
    )
    assert keys(cause("voter added", **voter), BODY) == ["AddRaftVoter\tvoter\t1"]


def test_a_reassignment_ends_by_the_leader_or_by_a_cancelling_request():
    before = {"replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [1]}
    done = cause("reassignment finished", before, {"replicas": [2, 3]})
    off = cause("reassignment finished", before, {"replicas": [1, 2]}, topic_name="a", partition=0)
    assert (done.cause, off.cause) == ("broker", "request")
    assert keys(off, NAMED) == ["AlterPartitionReassignments\tCluster\tkafka-cluster"]


def test_a_token_names_its_requester():
    after = {"owner": "User:alice", "requester": "User:bob"}
    attribution = attribute(cause("token set", after=after, name="t"), [])
    assert (attribution.who, attribution.confidence) == ("User:bob", "certain")


# Attributions


def test_a_body_is_certain_whatever_the_authorizer_allowed_to_others():
    attribution = attribute(ASKED, [candidate("User:bob", NAMED), candidate("User:alice", BODY)])
    assert (attribution.who, attribution.confidence) == ("User:alice", "certain")
    assert [one.principal for one in attribution.candidates] == ["User:alice", "User:bob"]


def test_a_body_whose_request_fits_only_if_clocks_differ_is_likely():
    """Its record was written before the request began, or after its end, by the times that were logged."""
    attribution = attribute(ASKED, [candidate("User:alice", BODY, inside=False)])
    assert (attribution.who, attribution.confidence) == ("User:alice", "likely")
    assert "lies outside it by less than the skew" in attribution.reason


def test_the_only_allowed_principal_is_likely():
    attribution = attribute(ASKED, [candidate("User:alice", NAMED)])
    assert (attribution.who, attribution.confidence) == ("User:alice", "likely")


@pytest.mark.parametrize("strength", [BODY, NAMED, CLUSTER])
def test_of_two_equal_matches_none_is_named(strength):
    found = [candidate("User:bob", strength), candidate("User:alice", strength)]
    attribution = attribute(ASKED, found)
    assert (attribution.who, attribution.confidence) == (None, "ambiguous")
    assert [one.principal for one in attribution.candidates] == ["User:alice", "User:bob"]


def test_a_line_that_names_the_topic_is_better_than_a_right_on_the_cluster():
    attribution = attribute(
        ASKED, [candidate("User:admin", CLUSTER), candidate("User:alice", NAMED)]
    )
    assert (attribution.who, attribution.confidence) == ("User:alice", "likely")
    assert "1 more had a right on the cluster only" in attribution.reason


def test_a_right_on_the_cluster_with_a_line_about_the_topic_names_it():
    both = candidate("User:admin", CLUSTER, mentions=True)
    assert attribute(ASKED, [both, candidate("User:alice", NAMED)]).confidence == "ambiguous"
    assert attribute(ASKED, [both, candidate("User:alice", CLUSTER)]).who == "User:admin"


def test_a_mention_alone_is_no_evidence():
    """Kafka also logs it for a request that it refuses afterwards."""
    attribution = attribute(ASKED, [candidate("User:alice", MENTION, mentions=True)])
    assert (attribution.who, attribution.confidence, attribution.candidates) == (
        None,
        "unknown",
        (),
    )


def test_without_evidence_the_reason_says_what_to_log():
    attribution = attribute(ASKED, [])
    assert (attribution.cause, attribution.who, attribution.confidence) == (
        "request",
        None,
        "unknown",
    )
    assert "at DEBUG of kafka.authorizer.logger" in attribution.reason


def test_an_hour_that_occurs_twice_is_never_certain():
    attribution = attribute(ASKED, [candidate("User:alice", BODY, twice=True)])
    assert attribution.confidence == "likely" and "occurred twice that night" in attribution.reason


def test_a_line_of_the_controller_makes_a_fencing_certain():
    fenced = cause("broker fenced", node_id=12)
    line = candidate(None, REPORTED, request=None)
    assert attribute(fenced, []).confidence == "likely"
    assert attribute(fenced, [line]).confidence == "certain"
    assert attribute(fenced, [line]).who is None


def test_a_preferred_leader_election_may_have_a_request():
    moved = cause("leader changed", cause="preferred leader elected", topic_name="a", partition=0)
    assert attribute(moved, []).cause == "unknown"
    asked = attribute(moved, [candidate("User:admin", NAMED, request="ElectLeaders")])
    assert (asked.cause, asked.who, asked.confidence) == ("request", "User:admin", "likely")
