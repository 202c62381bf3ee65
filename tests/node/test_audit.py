"""The audit trail of requests, and of what the active controller does on its own."""

import pytest

from node.world import World
from quorate.base.errors import ErrorCode
from quorate.controller.activation import Bootstrap
from quorate.formats.records import FeatureLevelRecord, PartitionChangeRecord, encode_record
from quorate.node.audit import MOST_ITEMS, AuditEntry, WriteFacts, of_write
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeAclsRequest,
    IncrementalAlterConfigsRequest,
    RemoveRaftVoterRequest,
)

ADMIN, ALICE = "User:admin", "User:alice"
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)


class AuditedWorld(World):
    entries: list[AuditEntry]
    """Of the active controller, since the fixture has made it."""


@pytest.fixture
def world(monkeypatch):
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    world = AuditedWorld(
        authorizer=config, bootstrap=Bootstrap((encode_record(LEVEL, 0),)), audited=True
    )
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    world.run_until(lambda: set(world.leader.image.cluster.controllers) == {1, 2, 3})
    world.run(100)
    world.entries = []
    step = world.leader.running.step

    def stepped(happened, now):
        effects = step(happened, now)
        world.entries.extend(effects.audit)
        return effects

    monkeypatch.setattr(world.leader.running, "step", stepped)
    return world


def quota(name="bob"):
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name=name)],
                ops=[entry.OpData(key="producer_byte_rate", value=1.0)],
            )
        ]
    )


def test_a_write_says_who_what_and_where(world):
    leader = world.active.node_id
    world.ask(leader, quota(), principal=ADMIN)
    [entry] = [e for e in world.entries if e["request"] == "AlterClientQuotas"]
    end = entry.pop("endOffset")
    assert entry == {
        "request": "AlterClientQuotas",
        "version": 1,
        "principal": ADMIN,
        "clientId": "tool",
        "address": "10.0.0.7",
        "listener": "CONTROLLER",
        "forwarded": False,
        "what": {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "bob"}],
                    "ops": [{"key": "producer_byte_rate", "remove": False}],
                }
            ],
            "validate_only": False,
        },
        "result": "NONE",
        "records": 1,
        "firstOffset": end - 1,
    }
    assert world.active.core.high_watermark >= end


def test_requests_without_permission_are_kept_reads_too(world):
    leader = world.active.node_id
    world.ask(leader, quota(), principal=ALICE)
    world.ask(leader, DescribeAclsRequest(), principal=ALICE)
    found = {e["request"]: (e["principal"], e["result"]) for e in world.entries}
    denied = (ALICE, "CLUSTER_AUTHORIZATION_FAILED")
    assert found["AlterClientQuotas"] == denied
    assert found["DescribeAcls"] == denied


def test_secrets_are_never_shown(world):
    cls = AlterUserScramCredentialsRequest
    upsertion = cls.ScramCredentialUpsertion(
        name="bob", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 16
    )
    world.ask(world.active.node_id, cls(upsertions=[upsertion]), principal=ADMIN)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=4,
                resource_name="",
                configs=[resource.AlterableConfig(name="ssl.key.password", value="hidden-1")],
            )
        ]
    )
    world.ask(world.active.node_id, request, principal=ADMIN)
    scram, configs = (e for e in world.entries if "what" in e)
    assert scram["what"]["upsertions"] == [{"name": "bob", "mechanism": 1, "iterations": 4096}]
    assert configs["what"]["resources"][0]["configs"] == [
        {"name": "ssl.key.password", "config_operation": 0}
    ]
    assert "hidden" not in str(world.entries)


def test_items_that_are_refused_are_named_with_their_reasons(world):
    topic = CreateTopicsRequest.CreatableTopic(name="a b", num_partitions=1, replication_factor=1)
    world.ask(world.active.node_id, CreateTopicsRequest(topics=[topic]), principal=ADMIN)
    [entry] = [e for e in world.entries if e["request"] == "CreateTopics"]
    assert entry["result"] == "PARTIAL"
    [problem] = entry["errors"]
    assert (problem["error"], problem["name"]) == ("INVALID_TOPIC_EXCEPTION", "a b")
    assert "records" not in entry


def test_changes_of_the_voters_are_kept(world):
    request = RemoveRaftVoterRequest(cluster_id="world", voter_id=9)
    world.ask(world.active.node_id, request, principal=ADMIN)
    [entry] = [e for e in world.entries if e["request"] == "RemoveRaftVoter"]
    assert entry["what"]["voter_id"] == 9
    assert entry["result"] != "NONE"


def test_idle_time_and_routine_leave_no_entries(world):
    world.entries.clear()
    world.run(5_000)
    assert world.entries == []


def test_elections_have_the_reason():
    facts = WriteFacts()
    facts.submitted(
        [PartitionChangeRecord(partition_id=n, leader=2) for n in range(MOST_ITEMS + 5)]
        + [PartitionChangeRecord(partition_id=99, isr=[1])]
    )
    facts.committed(100, 116)
    entry = of_write("maybeFenceStaleBroker", None, None, False, facts, ErrorCode.NONE)
    assert entry is not None
    assert entry["principal"] is None
    assert entry["reason"] == "no heartbeat of the broker within broker.session.timeout.ms"
    assert (entry["electionCount"], len(entry["elections"])) == (MOST_ITEMS + 5, MOST_ITEMS)
    assert entry["elections"][0]["leader"] == 2
    assert (entry["firstOffset"], entry["endOffset"], entry["records"]) == (100, 116, 16)


def test_a_request_of_thousands_of_items_makes_a_short_entry():
    cls = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(topics=[cls(name="t" * 249) for _ in range(5_000)])
    results = [
        CreateTopicsResponse.CreatableTopicResult(name="t" * 249, error_code=3)
        for _ in range(5_000)
    ]
    response = CreateTopicsResponse(topics=results)
    entry = of_write("CreateTopics", request, None, response, WriteFacts(), ErrorCode.NONE)
    assert entry is not None and len(entry["errors"]) == MOST_ITEMS
    assert len(str(entry)) < 16_000
