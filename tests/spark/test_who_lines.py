"""Log files: layouts, times, pieces of files, and the content of lines."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest

from narrow import not_none
from quorate.spark.files.paths import SourceError
from quorate.spark.who import lines
from quorate.spark.who.bodies import READERS, parse_request, shown
from quorate.spark.who.keys import CLUSTER, MENTION, NAMED, REPORTED
from quorate.spark.who.layout import KAFKA, LayoutError, layout
from quorate.spark.who.lines import LogPiece, pieces, records
from quorate.spark.who.logs import LogSource, Reading, evidence
from quorate.spark.who.messages import (
    CAUSING,
    authorizer_evidence,
    controller_evidence,
    parse_authorizer,
)

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "who"
ALLOWED = (
    "Principal = User:alice is Allowed operation = CREATE from host = 10.0.0.7 on resource = "
    "Topic:LITERAL:orders for request = CreateTopics with resourceRefCount = 1 based on rule "
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=*, patternType=LITERAL])"
)


def ms(text):
    return int(datetime.fromisoformat(text).timestamp() * 1000)


# Layouts and times


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (KAFKA, "[2026-11-22 03:31:08,604] DEBUG said (kafka.x)"),
        ("%d{ISO8601} %-5p [%t] %m - %c{1}%n", "2026-11-22T03:31:08,604 WARN  [a b] said - x"),
        ("%d{yyyy-MM-dd HH:mm:ss.SSSSSS} %msg%n%ex", "2026-11-22 03:31:08.604999 said"),
        ("%d %p %enc{%m}{CRLF} (%c)%n", "2026-11-22 03:31:08,604 INFO said (x)"),
        ("%level %date{COMPACT}: %message", "INFO 20261122033108604: said"),
        ("%d{ISO8601}{GMT+01:00} %m%n", "2026-11-22T04:31:08,604 said"),
        ("%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %m%n", "2026-11-22T05:31:08.604+02:00 said"),
        ("%d{UNIX_MILLIS} %m%n", f"{ms('2026-11-22T03:31:08.604Z')} said"),
    ],
)
def test_a_line_is_parsed_by_the_pattern_that_wrote_it(pattern, text):
    line = not_none(layout(pattern).parse(text))
    assert (line.times, line.message) == ((ms("2026-11-22T03:31:08.604Z"),), "said")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("%p %m%n", r"it needs %d \(time\) and %m"),
        ("%d %p%n", r"it needs %d \(time\) and %m"),
        ("%m %d%n", "the time must come before the message"),
        ("%d{ABSOLUTE} %m%n", "is not supported"),
        ("%d{HH:mm:ss} %m%n", "has no year"),
        ("%d %highlight %m%n", "%highlight cannot be parsed"),
        ("%d %d %m", "each conversion may occur once"),
    ],
)
def test_a_pattern_that_cannot_be_parsed_is_refused(pattern, problem):
    with pytest.raises(LayoutError, match=problem):
        layout(pattern)


def test_a_time_zone_that_does_not_exist_is_refused():
    with pytest.raises(LayoutError, match="'Europe/Entenhausen': it does not exist"):
        layout(zone="Europe/Entenhausen")


@pytest.mark.parametrize(
    ("local", "zone", "instants"),
    [
        ("2026-07-01 12:00:00,000", "Europe/Berlin", ["2026-07-01T10:00:00Z"]),
        ("2026-10-25 02:30:00,000", "Europe/Berlin", ["2026-10-25T00:30Z", "2026-10-25T01:30Z"]),
        ("2026-10-25 03:00:00,000", "Europe/Berlin", ["2026-10-25T02:00Z"]),
        ("2026-03-29 02:30:00,000", "Europe/Berlin", ["2026-03-29T01:30Z"]),
        (
            "2026-04-05 01:45:00,000",
            "Australia/Lord_Howe",
            ["2026-04-04T14:45Z", "2026-04-04T15:15Z"],
        ),
        ("2026-07-01 12:00:00,000", "-03:30", ["2026-07-01T15:30Z"]),
    ],
)
def test_a_local_hour_that_occurs_twice_gives_both_instants(local, zone, instants):
    line = not_none(layout(zone=zone).parse(f"[{local}] INFO x (y)"))
    assert line.times == tuple(map(ms, instants))


def test_a_stack_trace_belongs_to_its_record():
    text = "[2026-11-22 03:31:08,604] ERROR it broke (kafka.x)\njava.Lang\n\tat y"
    line = not_none(layout().parse(text))
    assert line.message == "it broke" and line.logger == "kafka.x"


def test_a_line_of_another_layout_is_none():
    for text in ("", "hello", "[2026-13-41 03:31:08,604] INFO x (y)", "[2026-11-22 03:31:08,6"):
        assert layout().parse(text) is None


# Files in pieces


@pytest.mark.parametrize("size", [1, 7, 40, 64, 1000])
def test_each_record_is_in_exactly_one_piece(tmp_path, monkeypatch, size):
    texts = ["[2026-11-22 03:31:08,604] INFO é (y)"] * 3
    texts[1] += "\n\tat somewhere\n\nCaused by: x"
    path = tmp_path / "server.log"
    path.write_text("\n".join(texts) + "\n")
    monkeypatch.setattr(lines, "PIECE_BYTES", size)
    cut = pieces(str(path), path.stat().st_size)
    found = [record for piece in cut for record in records(piece, layout())]
    assert [record.text for record in found] == texts
    for record in found:
        assert path.read_bytes()[record.position :].startswith(b"[2026")


def test_a_compressed_file_gives_the_positions_of_its_text(tmp_path):
    text = "first\n[2026-11-22 03:31:08,604] INFO a (y)\r\n[2026-11-22 03:31:09,604] INFO b (y)"
    path = tmp_path / "server.log.2026-11-22-03.gz"
    path.write_bytes(gzip.compress(text.encode()))
    [piece] = pieces(str(path), path.stat().st_size)
    found = list(records(piece, layout()))
    assert [(r.position, r.begins) for r in found] == [(0, False), (6, True), (44, True)]
    assert found[1].text.endswith("(y)")


def test_a_damaged_compressed_file_is_read_up_to_the_damage(tmp_path):
    texts = [f"[2026-11-22 03:31:08,604] INFO {hash((1, i)):064x} (y)" for i in range(90_000)]
    path = tmp_path / "server.log.gz"
    packed = gzip.compress("\n".join(texts).encode())
    path.write_bytes(packed[: len(packed) * 2 // 3])
    *found, cut = records(LogPiece(str(path), 0), layout())
    assert len(found) > 30_000 and [one.text for one in found] == texts[: len(found)]
    assert not cut.begins and cut.text.startswith("cannot be unpacked from here on: ")
    assert cut.position >= found[-1].position + len(found[-1].text)
    path.write_bytes(packed[:5])
    with pytest.raises(SourceError, match=r"server\.log\.gz"):
        list(records(LogPiece(str(path), 0), layout()))


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    path = tmp_path / "server.log"
    path.write_text("[2026-11-22 03:31:08,604] INFO a (y)\n", "utf-8-sig")
    [found] = records(LogPiece(str(path), 0), layout())
    assert (found.begins, found.text) == (True, "[2026-11-22 03:31:08,604] INFO a (y)")


def test_an_endless_line_is_kept_in_part_only(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 100)
    path = tmp_path / "x.log"
    path.write_text("y" * 950 + "\n[2026-11-22 03:31:08,604] INFO a (y)\n")
    found = list(records(LogPiece(str(path), 0), layout()))
    assert [(r.position, len(r.text)) for r in found] == [(0, 100), (951, 36)]


# What the lines say


def test_an_authorizer_line():
    line = not_none(parse_authorizer(ALLOWED))
    assert (line.principal, line.allowed, line.operation) == ("User:alice", True, "CREATE")
    assert (line.host, line.resource_type, line.resource_name) == ("10.0.0.7", "Topic", "orders")
    assert line.request == "CreateTopics" and not_none(line.rule).startswith("MatchingAcl(")
    assert [offer.strength for offer in authorizer_evidence(line)] == [NAMED]


def test_a_line_of_the_authorizer_before_kafka_4():
    text = (
        "Principal = User:CN=a, OU=b is Allowed Operation = AlterConfigs from host = ::1 on "
        "resource = Topic:LITERAL:a:b for request = IncrementalAlterConfigs with "
        "resourceRefCount = 1"
    )
    line = not_none(parse_authorizer(text))
    assert (line.principal, line.operation) == ("User:CN=a, OU=b", "ALTER_CONFIGS")
    assert (line.host, line.resource_name, line.rule) == ("::1", "a:b", None)


@pytest.mark.parametrize(
    "forged",
    [
        "g is Allowed operation = ALTER_CONFIGS",
        "g from host = 1.2.3.4",
        "g on resource = Topic:LITERAL:orders",
        "g for request = DeleteTopics with resourceRefCount = 1",
    ],
)
def test_a_name_with_the_authorizers_own_words_is_no_evidence(forged):
    """A client picks the name of its group; the line of a refusal could pass for a leave."""
    denied = ALLOWED.replace("is Allowed", "is Denied").replace(
        "Topic:LITERAL:orders", "Group:LITERAL:g"
    )
    assert parse_authorizer(denied) is not None
    assert parse_authorizer(denied.replace("LITERAL:g", f"LITERAL:{forged}")) is None


@pytest.mark.parametrize(
    ("old", "new", "strengths"),
    [
        ("is Allowed", "is Denied", []),
        ("= CreateTopics", "= Fetch", []),
        ("operation = CREATE", "operation = DESCRIBE", []),
        ("operation = CREATE", "operation = DESCRIBE_CONFIGS", [MENTION]),
        ("Topic:LITERAL:orders", "Cluster:LITERAL:kafka-cluster", [CLUSTER]),
    ],
)
def test_only_an_allowed_line_of_the_right_operation_is_evidence(old, new, strengths):
    line = not_none(parse_authorizer(ALLOWED.replace(old, new, 1)))
    assert [offer.strength for offer in authorizer_evidence(line)] == strengths


def test_lines_of_the_controller():
    for text in (
        "[QuorumController id=1] Fencing broker 12 at epoch 30 because its session has timed out.",
        "[QuorumController id=1] handleBrokerFenced: changing 6 partition(s)",
        "[QuorumController id=1] enterControlledShutdown[12]: changing partition(s): a-0, b-1",
        "[QuorumController id=1] Replayed TopicRecord for topic a b with topic ID "
        "b_VaUSIKSs67WHV3ahguSw.",
    ):
        assert [offer.strength for offer in controller_evidence(text)] == [REPORTED], text
    assert not list(controller_evidence("[QuorumController id=1] Processed x in 3 us"))


def completed(name, body, answer, **words):
    entry = {
        "isForwarded": False,
        "requestHeader": {"clientId": "laptop", "requestApiKeyName": name},
        "request": body,
        "response": answer,
        "connection": "127.0.0.1:9092-10.0.0.7:50000-4-1",
        "totalTimeMs": 41.6,
        "principal": "User:alice",
    }
    return "Completed request:" + json.dumps(entry | words)


def test_a_request_with_its_body():
    answer = {"topics": [{"name": "a", "errorCode": 0}, {"name": "b", "errorCode": 36}]}
    text = completed("CREATE_TOPICS", {"validateOnly": False}, answer)
    request = not_none(parse_request(text))
    assert (request.request, request.principal) == ("CreateTopics", "User:alice")
    assert (request.host, request.client_id, request.total_ms) == ("10.0.0.7", "laptop", 42)
    assert request.keys == ("CreateTopics\ttopic\ta",), "what was refused was not done"
    assert parse_request(completed("CREATE_TOPICS", {"validateOnly": True}, answer)) is None
    forwarded = not_none(parse_request(completed("CREATE_TOPICS", {}, answer, isForwarded=True)))
    assert forwarded.host is None, "its connection is the broker's"
    ipv6 = completed("CREATE_TOPICS", {}, answer, connection="[::1]:9092-[fe80::1]:50000-4-1")
    assert not_none(parse_request(ipv6)).host == "fe80::1"


ACL = {
    "resourceType": 2,
    "patternType": 4,
    "principal": "User:b",
    "host": "*",
    "operation": 11,
    "permissionType": 3,
}


@pytest.mark.parametrize(
    ("name", "body", "answer", "keys"),
    [
        (
            "INCREMENTAL_ALTER_CONFIGS",
            {
                "resources": [
                    {
                        "resourceType": 2,
                        "resourceName": "a",
                        "configs": [
                            {"name": "retention.ms", "configOperation": 0, "value": "1"},
                            {"name": "x", "configOperation": 0, "value": "not kept"},
                            {"name": "y", "configOperation": 1, "value": None},
                            {"name": "z", "configOperation": 2, "value": "more"},
                        ],
                    }
                ]
            },
            {"responses": [{"resourceType": 2, "resourceName": "a", "errorCode": 0}]},
            ["topic a retention.ms 1", "topic a x *", "topic a y \0", "topic a z *"],
        ),
        (
            "ALTER_CLIENT_QUOTAS",
            {
                "entries": [
                    {
                        "entity": [{"entityType": "user", "entityName": None}],
                        "ops": [{"key": "k", "value": 5, "remove": False}],
                    }
                ]
            },
            {"entries": [{"errorCode": 0, "entity": [{"entityType": "user", "entityName": None}]}]},
            ['{"user":null} k 5.0'],
        ),
        (
            "DELETE_ACLS",
            {"filters": []},
            {
                "filterResults": [
                    {
                        "errorCode": 0,
                        "matchingAcls": [
                            {"errorCode": 0, "resourceName": "a", **ACL},
                            {"errorCode": 58, "resourceName": "kept", **ACL},
                        ],
                    }
                ]
            },
            ["topic a prefixed User:b * alter-configs allow"],
        ),
        (
            "UPDATE_FEATURES",
            {"featureUpdates": [{"feature": "group.version", "maxVersionLevel": 0}]},
            {"errorCode": 0},
            ["group.version \0"],
        ),
        (
            "UPDATE_FEATURES",
            {"featureUpdates": [{"feature": "group.version", "maxVersionLevel": 1}]},
            {"errorCode": 95},
            [],
        ),
    ],
)
def test_what_a_request_changed(name, body, answer, keys):
    found = not_none(parse_request(completed(name, body, answer))).keys
    assert [" ".join(key.split("\t")[2:]) for key in found] == keys


@pytest.mark.parametrize(
    "text",
    [
        "Completed request:{",
        "Completed request:{}",
        completed("CREATE_TOPICS", {}, {"topics": [{"name": "a"}]}),
    ],
)
def test_a_request_that_is_not_kafkas_is_an_error(text):
    with pytest.raises(ValueError):
        parse_request(text)


def test_evidence_has_no_secrets():
    with gzip.open(SAMPLE / "controller" / "kafka-request.log.gz", "rt") as log:
        [scram] = [line for line in log if '"ALTER_USER_SCRAM_CREDENTIALS"' in line]
    secrets = [json.loads(f'"{part}"') for part in scram.split('"')[1:] if part.endswith("=")]
    assert len(secrets) == 2
    assert not any(secret in shown(scram) for secret in secrets)
    assert '"saltedPassword":"[hidden]"' in shown(scram)


def evidence_of(path, kind="authorizer", zone="UTC"):
    piece = LogPiece(str(path), 0)
    reading = Reading(zone=zone)
    rows = list(evidence(LogSource(kind, piece), layout(zone=zone), reading))
    return rows[:-1], json.loads(rows[-1]["file_stats"])


def test_a_line_covers_changes_from_its_time_to_the_end_of_the_window(tmp_path):
    path = tmp_path / "x.log"
    words = {"topics": [{"name": "a", "errorCode": 0}]}
    path.write_text(
        f"[2026-11-22 03:31:08,604] DEBUG {ALLOWED} (kafka.authorizer.logger)\n"
        f"[2026-11-22 03:31:08,604] DEBUG {completed('CREATE_TOPICS', {}, words)} (x)\n"
    )
    how = Reading(window_ms=300, skew_ms=10)
    rows = list(evidence(LogSource("server", LogPiece(str(path), 0)), layout(), how))[:-1]
    at = ms("2026-11-22T03:31:08.604Z")
    assert [(row["lo"] - at, row["hi"] - at) for row in rows] == [(-10, 310), (-52, 10)]
    allowed, request = (row["begun"] for row in rows)
    assert (allowed, request - at) == (None, -42), "what took 41.6 ms began in the 42nd before"


def test_every_line_of_the_sample_is_read():
    kinds = {"kafka-authorizer.log": "authorizer", "controller.log": "controller"}
    for path in SAMPLE.glob("*/*.log*"):
        rows, stats = evidence_of(path, kinds.get(path.name, "request"))
        assert stats["records"] and not stats["unread"], stats
        assert rows or "broker12" in str(path)


def test_unreadable_lines_are_reported_with_their_positions(tmp_path):
    path = tmp_path / "kafka-authorizer.log"
    good = f"[2026-11-22 03:31:08,604] DEBUG {ALLOWED} (kafka.authorizer.logger)\n"
    path.write_text(good + "[2026-11-22 03:31:08,6\n" + good.replace("Principal", "Somebody"))
    rows, stats = evidence_of(path)
    assert (len(rows), stats["allowed"], stats["unread"]) == (1, 1, 2)
    assert [position for position, _ in stats["first_unread"]] == [len(good), len(good) + 23]


@pytest.mark.parametrize("kind", ["authorizer", "request"])
def test_a_line_that_is_no_utf8_is_unread_and_no_evidence(tmp_path, kind):
    path = tmp_path / "x.log"
    words = {"topics": [{"name": "a", "errorCode": 0}]}
    said = ALLOWED if kind == "authorizer" else completed("CREATE_TOPICS", {}, words)
    text = f"[2026-11-22 03:31:08,604] DEBUG {said} (kafka.x)\n"
    good, bad = (text.replace("User:alice", f"User:J{mark}rgen") for mark in ("", "ü"))
    path.write_bytes(good.encode() + bad.encode("latin-1") + bad.encode())
    rows, stats = evidence_of(path, kind)
    assert [row["principal"] for row in rows] == ["User:Jrgen", "User:Jürgen"]
    assert (stats["records"], stats["unread"], stats["not_utf8"]) == (2, 1, 1)
    assert [position for position, _ in stats["first_unread"]] == [len(good)]


def test_a_line_that_is_cut_inside_a_character_is_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 38)
    path = tmp_path / "x.log"
    path.write_text("[2026-11-22 03:31:08,604] INFO abcdefü (y)\n")
    [record] = records(LogPiece(str(path), 0), layout())
    assert (record.text[-2:], record.is_utf8) == ("ef", True)


def test_a_line_break_in_a_name_does_not_cut_the_record(tmp_path):
    path = tmp_path / "kafka-authorizer.log"
    group = ALLOWED.replace("Topic:LITERAL:orders", "Group:LITERAL:x\ny")
    path.write_text(f"[2026-11-22 03:31:08,604] DEBUG {group} (kafka.authorizer.logger)\n")
    rows, stats = evidence_of(path)
    assert (rows, stats["allowed"], stats["unread"]) == ([], 1, 0)


def test_each_authorized_request_has_a_reader_of_its_body():
    bodies = {name for name, _ in READERS.values()}
    assert bodies - set(CAUSING) == {"RenewDelegationToken", "ExpireDelegationToken"}
    assert set(CAUSING) - bodies == {"Metadata", "StreamsGroupHeartbeat"}
