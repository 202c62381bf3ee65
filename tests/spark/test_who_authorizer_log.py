"""`pipeline who` reads the log that a node of ours writes of its authorizer's decisions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from node.world import World
from quorate.base.errors import ErrorCode
from quorate.config.monitoring_settings import AuthorizerLogSettings
from quorate.controller.activation import Bootstrap
from quorate.formats.records import FeatureLevelRecord, encode_record
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, DENY, LITERAL, AuthorizerConfig, DecisionLog
from quorate.server.authorizer_log import JSON_FILE, TEXT_FILE, AuthorizerLog
from quorate.spark.who.keys import NAMED, key
from quorate.spark.who.layout import KAFKA, layout
from quorate.spark.who.lines import LogPiece
from quorate.spark.who.logs import LogSource, Reading, evidence
from quorate.spark.who.messages import parse_authorizer
from quorate.wire.messages import CreateAclsRequest, CreateTopicsRequest, DescribeClusterRequest

ADMIN, ALICE = "User:admin", "User:alice"
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
AT_MS = 1_790_000_000_123


@pytest.fixture
def world():
    config = AuthorizerConfig(super_users=frozenset({ADMIN, "User:ANONYMOUS"}))
    world = World(authorizer=config, bootstrap=Bootstrap((encode_record(LEVEL, 0),)))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


def acl(name, permission, operation):
    return CreateAclsRequest.AclCreation(
        resource_type=AclResource.TOPIC,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=ALICE,
        host="*",
        operation=operation,
        permission_type=permission,
    )


def ask_for_everything(world):
    """Requests that are allowed and denied by each kind of rule."""
    creations = [acl("a", ALLOW, AclOperation.CREATE), acl("b", DENY, AclOperation.CREATE)]
    request = CreateAclsRequest(creations=creations)
    assert world.ask(world.active.node_id, request, principal=ADMIN).results[0].error_code == 0
    world.run_until(lambda: len(world.active.image.acls) == 2)
    topic = CreateTopicsRequest.CreatableTopic
    names = ("a", "b", "c\nd", "e for request = x")
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in names]
    world.ask(world.active.node_id, CreateTopicsRequest(topics=topics), principal=ALICE)
    cluster = world.ask(world.active.node_id, DescribeClusterRequest(), principal=ALICE)
    assert cluster.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def write(world, folder, **more):
    decisions = DecisionLog(with_allowed=more.get("with_allowed", False))
    world.active.controller.counts.decisions = decisions
    log = AuthorizerLog(AuthorizerLogSettings(folder, **more), decisions, 1)
    ask_for_everything(world)
    log.write_new(AT_MS)
    log.close()


def read(folder: Path):
    """The rows of evidence, and the statistics of the file, as `pipeline who` reads it."""
    path = folder / TEXT_FILE
    source = LogSource("authorizer", LogPiece(str(path), 0, path.stat().st_size))
    *rows, stats = evidence(source, layout(KAFKA, "UTC"), Reading())
    return rows, json.loads(stats["file_stats"])


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """Kafka's lines have the local time of the node."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_who_reads_what_was_allowed(world, tmp_path):
    write(world, tmp_path, with_allowed=True)
    rows, stats = read(tmp_path)
    assert stats["unread"] == 0
    assert stats["allowed"] >= 2
    assert stats["denied"] == 4
    assert stats["first_ms"] == AT_MS
    created = [row for row in rows if row["key"] == key("CreateTopics", "Topic", "a")]
    assert [(row["principal"], row["strength"]) for row in created] == [(ALICE, NAMED)]
    assert any(row["principal"] == ADMIN and row["request"] == "CreateAcls" for row in rows)


def test_by_default_only_refusals_are_logged(world, tmp_path):
    write(world, tmp_path)
    lines = (tmp_path / TEXT_FILE).read_text().splitlines()
    assert len(lines) == 4
    assert lines[0] == (
        "[2026-09-21 14:13:20,123] INFO Principal = User:alice is Denied operation = CREATE from "
        "host = 10.0.0.7 on resource = Topic:LITERAL:b for request = CreateTopics with "
        "resourceRefCount = 1 based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC, "
        "resourceName=b, patternType=LITERAL, principal=User:alice, host=*, operation=CREATE, "
        "permissionType=DENY]) (kafka.authorizer.logger)"
    )
    assert "Topic:LITERAL:c\\nd for request" in lines[1], "a name cannot forge a line"
    assert "based on rule DefaultDeny" in lines[3]
    forged = parse_authorizer(lines[2].partition("INFO ")[2].partition(" (kafka.auth")[0])
    assert forged is not None
    assert (forged.resource_name, forged.request) == ("e for request = x", "CreateTopics")


def test_json_lines_have_the_same_decisions(world, tmp_path):
    write(world, tmp_path, formats=("json",), with_allowed=True)
    assert not (tmp_path / TEXT_FILE).exists()
    found = [json.loads(line) for line in (tmp_path / JSON_FILE).read_text().splitlines()]
    [allowed] = [
        one for one in found if one["resourceName"] == "a" and one["operation"] == "CREATE"
    ]
    assert allowed == {
        "time": "2026-09-21T14:13:20.123+00:00",
        "node": 1,
        "principal": ALICE,
        "result": "Allowed",
        "operation": "CREATE",
        "address": "10.0.0.7",
        "resourceType": "Topic",
        "resourceName": "a",
        "request": "CreateTopics",
        "rule": "MatchingAcl",
        "acl": {
            "resourceType": "TOPIC",
            "resourceName": "a",
            "patternType": "LITERAL",
            "principal": ALICE,
            "host": "*",
            "operation": "CREATE",
            "permissionType": "ALLOW",
        },
    }
    assert {one["rule"] for one in found} == {"MatchingAcl", "SuperUser", "DefaultDeny"}
