"""From events to their causes, and from evidence to names: without Spark."""

from __future__ import annotations

import pytest

from quorate.spark.tables.events import _NAMES
from quorate.spark.who.causes import EVENTS, Cause, Context, Facts, cause_of
from quorate.spark.who.judge import Candidate, Witness, judge
from quorate.spark.who.keys import BODY, CLUSTER, MENTION, NAMED, TOLD
from quorate.spark.who.messages import Offer

COLUMNS = (
    *("event", "cause", "topic_name", "partition", "node_id", "resource_type", "resource_name"),
    *("name", "principal", "offset"),
)


def event(what, /, **words):
    return dict.fromkeys(COLUMNS) | {"event": what, "offset": 100} | words


def cause(what, /, before=None, after=None, context=None, **words):
    return cause_of(event(what, **words), Facts(before or {}, after or {}), context or Context())


def keys(found, strength):
    return [offer.key for offer in found.wants if offer.strength == strength]


def candidate(
    principal, strength, mentions=False, request="CreateTopics", twice=False, inside=True
):
    best = Witness("10.0.0.7", None, request, "/logs/a", 7, "[...] DEBUG ...", twice)
    inside = inside and strength == BODY
    return Candidate(principal, strength, mentions, 1, [request], best, inside)


def befell(text):
    return Context(node_events=[text])


LEFT = {"before": {"isr": [11, 12]}, "after": {"isr": [11]}}
ASKED = Cause("request", (Offer("x", NAMED),))


# Causes


def test_every_event_of_the_changes_has_a_cause():
    names = set()
    for name in _NAMES.values():
        names |= {name(None, 1), name(1, 1), name(1, None)}
    assert names <= EVENTS


def test_a_new_topic_brings_its_partitions_and_configs():
    created = Context(topic_created=True)
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
        "config deleted", before={"value": "1"}, context=Context(topic_deleted=True), **about
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
            {**LEFT, "context": Context(node_events=["broker 12 fenced"])},
            "controller",
        ),
        ("isr shrunk", {**LEFT, "context": Context(node_events=["broker 13 fenced"])}, "broker"),
        ("leader changed", {"cause": "leader left the ISR"}, "controller"),
        ("leader changed", {"cause": "preferred leader elected"}, "unknown"),
        ("recovery state changed", {"after": {"leader_recovery_state": 1}}, "unknown"),
        ("recovery state changed", {"after": {"leader_recovery_state": 0}}, "broker"),
        ("leader changed", {"context": Context(reassigned=True)}, "request"),
        ("controller elected", {}, "controller"),
        ("producer ids allocated", {}, "broker"),
        ("feature set", {"context": Context(bootstrap=True)}, "bootstrap"),
        ("voter added", {"offset": 2, "node_id": 1}, "bootstrap"),
        ("feature set", {"offset": 1, "name": "kraft.version", "after": {"level": 1}}, "bootstrap"),
        ("feature set", {"offset": 35, "name": "kraft.version", "after": {"level": 1}}, "request"),
        ("voter added", {"after": {"listeners": []}, "node_id": 1}, "request"),
    ],
)
def test_what_nodes_do_by_themselves_is_no_persons(name, words, expected):
    assert cause(name, **words).cause == expected


def test_an_upgrade_of_a_static_quorum_brings_its_voters():
    """As in the sample g-upgraded-v1: KRaftVersion and KRaftVoters at the offsets 35 and 36."""
    upgrade = cause("feature set", after={"level": 1}, name="kraft.version", offset=35)
    assert keys(upgrade, BODY) == ["UpdateFeatures\tfeature\tkraft.version\t1"]
    voter = {"after": {"listeners": []}, "node_id": 1, "offset": 36}
    assert keys(cause("voter added", **voter, context=Context(upgraded=True)), BODY) == keys(
        upgrade, BODY
    )
    assert keys(cause("voter added", **voter), BODY) == ["AddRaftVoter\tvoter\t1"]


def test_a_reassignment_ends_by_the_leader_or_by_who_called_it_off():
    before = {"replicas": [1, 2, 3], "adding_replicas": [3], "removing_replicas": [1]}
    done = cause("reassignment finished", before, {"replicas": [2, 3]})
    off = cause("reassignment finished", before, {"replicas": [1, 2]}, topic_name="a", partition=0)
    assert (done.cause, off.cause) == ("broker", "request")
    assert keys(off, NAMED) == ["AlterPartitionReassignments\tCluster\tkafka-cluster"]


def test_a_token_names_who_asked_for_it():
    after = {"owner": "User:alice", "requester": "User:bob"}
    verdict = judge(cause("token set", after=after, name="t"), [])
    assert (verdict.who, verdict.confidence) == ("User:bob", "certain")


# Verdicts


def test_a_body_is_certain_whoever_else_was_allowed():
    verdict = judge(ASKED, [candidate("User:bob", NAMED), candidate("User:alice", BODY)])
    assert (verdict.who, verdict.confidence) == ("User:alice", "certain")
    assert [one.principal for one in verdict.candidates] == ["User:alice", "User:bob"]


def test_a_body_whose_request_fits_only_if_clocks_differ_is_likely():
    """Its record was written before the request began, or after its end, by the times told."""
    verdict = judge(ASKED, [candidate("User:alice", BODY, inside=False)])
    assert (verdict.who, verdict.confidence) == ("User:alice", "likely")
    assert "lies outside it by less than the skew" in verdict.reason


def test_the_only_one_who_was_allowed_is_likely():
    verdict = judge(ASKED, [candidate("User:alice", NAMED)])
    assert (verdict.who, verdict.confidence) == ("User:alice", "likely")


@pytest.mark.parametrize("strength", [BODY, NAMED, CLUSTER])
def test_of_two_who_fit_equally_none_is_named(strength):
    found = [candidate("User:bob", strength), candidate("User:alice", strength)]
    verdict = judge(ASKED, found)
    assert (verdict.who, verdict.confidence) == (None, "ambiguous")
    assert [one.principal for one in verdict.candidates] == ["User:alice", "User:bob"]


def test_a_line_that_names_the_topic_is_better_than_a_right_on_the_cluster():
    verdict = judge(ASKED, [candidate("User:admin", CLUSTER), candidate("User:alice", NAMED)])
    assert (verdict.who, verdict.confidence) == ("User:alice", "likely")
    assert "1 more had a right on the cluster only" in verdict.reason


def test_a_right_on_the_cluster_with_a_line_about_the_topic_names_it():
    both = candidate("User:admin", CLUSTER, mentions=True)
    assert judge(ASKED, [both, candidate("User:alice", NAMED)]).confidence == "ambiguous"
    assert judge(ASKED, [both, candidate("User:alice", CLUSTER)]).who == "User:admin"


def test_a_mention_alone_is_no_evidence():
    """Kafka logs it for a request too that it then refuses."""
    verdict = judge(ASKED, [candidate("User:alice", MENTION, mentions=True)])
    assert (verdict.who, verdict.confidence, verdict.candidates) == (None, "unknown", ())


def test_without_evidence_it_says_what_to_log():
    verdict = judge(ASKED, [])
    assert (verdict.cause, verdict.who, verdict.confidence) == ("request", None, "unknown")
    assert "at DEBUG of kafka.authorizer.logger" in verdict.reason


def test_an_hour_that_came_twice_is_never_certain_and_told():
    verdict = judge(ASKED, [candidate("User:alice", BODY, twice=True)])
    assert verdict.confidence == "likely" and "came twice that night" in verdict.reason


def test_the_controllers_own_words_make_a_fencing_certain():
    fenced = cause("broker fenced", node_id=12)
    told = candidate(None, TOLD, request=None)
    assert judge(fenced, []).confidence == "likely"
    assert judge(fenced, [told]).confidence == "certain"
    assert judge(fenced, [told]).who is None


def test_a_preferred_leader_may_be_asked_for_or_not():
    moved = cause("leader changed", cause="preferred leader elected", topic_name="a", partition=0)
    assert judge(moved, []).cause == "unknown"
    asked = judge(moved, [candidate("User:admin", NAMED, request="ElectLeaders")])
    assert (asked.cause, asked.who, asked.confidence) == ("request", "User:admin", "likely")
