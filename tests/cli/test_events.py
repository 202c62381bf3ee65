"""`quorate cluster events`: trails of several nodes, merged and filtered."""

import json

import pytest

from cli.json_schema import problems
from quorate.base.ids import Address
from quorate.cli.json_schemas import schema_of
from quorate.cli.tools.cluster_events import EventsError, TrailFiles, TrailPage
from quorate.server.audit_log import AuditLog
from quorate.server.audit_page import AuditPage
from quorate.server.web import Question
from server.test_audit_log import numbered, numbers

CREATED = {
    "request": "CreateTopics",
    "principal": "User:alice",
    "address": "10.0.0.1",
    "what": {"topics": [{"name": "orders", "num_partitions": 3}]},
    "result": "NONE",
    "records": 4,
    "firstOffset": 10,
    "endOffset": 14,
}
REFUSED = {
    "request": "DeleteTopics",
    "principal": "User:bob",
    "what": {"topic_names": ["bills\x1b[2J"]},
    "result": "TOPIC_AUTHORIZATION_FAILED",
}
FENCED = {"request": "maybeFenceStaleBroker", "principal": None, "result": "NONE"}


@pytest.fixture
def trails(tmp_path):
    """Node 1 leads epoch 1, node 2 epoch 2, node 1 again epoch 3."""
    folders = [tmp_path / "node1", tmp_path / "node2"]
    one, two = (AuditLog(folder, 10_000, 3, 5) for folder in folders)
    one.write([CREATED], 1, 1, 1_000)
    two.write([REFUSED], 2, 2, 2_000)
    one.write([FENCED], 1, 3, 3_000)
    return folders


def seen(text):
    return [entry["epoch"] for entry in json.loads(text)]


def test_events_are_merged_in_the_order_of_time(quorate, trails):
    code, out, err = quorate("cluster", "events", *trails)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "1970-01-01T00:00:01.000+00:00  node 1  epoch 1  User:alice at 10.0.0.1  CreateTopics  NONE"
        "  offsets 10 to 13  what {topics=[{name=orders, num_partitions=3}]}",
        "1970-01-01T00:00:02.000+00:00  node 2  epoch 2  User:bob  DeleteTopics"
        "  TOPIC_AUTHORIZATION_FAILED  what {topic_names=[bills\\x1b[2J]}",
        "1970-01-01T00:00:03.000+00:00  node 1  epoch 3  (controller)  maybeFenceStaleBroker  NONE",
    ]


def test_the_parts_of_an_operation_come_in_their_order(quorate, tmp_path):
    """Also where the last one has the same time, and no records."""
    parts = {"operation": 10, "more": True}
    first = FENCED | parts | {"part": 1, "firstOffset": 10, "endOffset": 12}
    last = FENCED | parts | {"part": 2, "more": False, "uncommitted": 7, "result": "NOT_CONTROLLER"}
    AuditLog(tmp_path, 10_000, 3, 5).write([first, last], 1, 1, 1_000)
    _, out, _ = quorate("cluster", "events", tmp_path)
    assert [line.split("maybeFenceStaleBroker  ")[1] for line in out.splitlines()] == [
        "NONE  offsets 10 to 11  operation 10 part 1",
        "NOT_CONTROLLER  operation 10 part 2, the last one  uncommitted 7",
    ]


@pytest.mark.parametrize(
    ("words", "epochs"),
    [
        ((), [1, 2, 3]),
        (("--failed",), [2]),
        (("--principal", "User:bob", "--principal", "User:alice"), [1, 2]),
        (("--api", "createtopics"), [1]),
        (("--topic", "orders"), [1]),
        (("--topic", "order"), []),
        (("--topic", "orders", "--failed"), []),
        (("--since", "1970-01-01T00:00:02Z"), [2, 3]),
        (("--since", "1970-01-01T02:00:03+02:00"), [3]),
        (("--since", "1d"), []),
    ],
    ids=str,
)
def test_filters_narrow_each_other(quorate, trails, words, epochs):
    code, out, _ = quorate("cluster", "events", "--json", *words, *trails)
    assert (code, seen(out)) == (0, epochs)
    assert not problems(schema_of("cluster")["$defs"]["events"], json.loads(out))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("/nope",), "/nope is neither a file or directory"),
        (
            ("--bootstrap-controller", "a:9093"),
            "quorate.metrics.listener, or its quorate.audit.dir",
        ),
        (("a:1", "-C=a:9093"), "No Kafka listener serves audit trails: instead of"),
        (("-b", "a:9092", "a:1"), "No Kafka listener serves audit trails: instead of"),
        (("--since", "noon", "."), "'noon' is neither a time"),
        (("--since", "999999d", "."), "'999999d' is neither a time"),
    ],
)
def test_wrong_arguments_are_refused(quorate, words, message):
    code, out, err = quorate("cluster", "events", *words)
    assert (code, out) == (1, "") and message in err and "Traceback" not in err


def test_a_source_that_fails_is_named_and_the_others_are_shown(quorate, trails, tmp_path):
    (tmp_path / "empty").mkdir()
    code, out, err = quorate(
        "cluster", "events", "--json", tmp_path / "empty", trails[0], "[::1]:1"
    )
    assert (code, seen(out)) == (1, [1, 3])
    assert "empty has no audit.jsonl" in err and "[::1]:1 does not answer" in err


def test_one_file_alone_is_read(quorate, trails):
    code, out, _ = quorate("cluster", "events", "--json", trails[0] / "audit.jsonl")
    assert (code, seen(out)) == (0, [1, 3])


def test_files_are_followed_through_rotations_and_torn_lines(tmp_path):
    log = AuditLog(tmp_path, max_bytes=300, max_files=4, entries=5)
    files = TrailFiles(tmp_path)
    found = []
    for number in range(1, 31):
        log.write(numbered(number, number), 1, 1, 0)
        if number % 4 == 0:
            found += numbers(files.read())
    assert found == list(range(1, 29))
    with (tmp_path / "audit.jsonl").open("ab") as file:
        file.write(b'{"records": 3')
        file.flush()
        assert numbers(files.read()) == [29, 30]
        file.write(b"1}\n")
    assert numbers(files.read()) == [31]
    assert files.read() == []


def test_a_page_is_followed_through_a_restart_and_losses_are_named(tmp_path, monkeypatch):
    log = AuditLog(tmp_path, 100_000, 2, entries=3)
    pages = [AuditPage(log)]
    source = TrailPage(Address("node", 1))
    monkeypatch.setattr(
        source,
        "_page",
        lambda: json.loads(pages[0](Question({}, {"from": str(source._next), "limit": "2"})).body),
    )
    log.write(numbered(1, 3), 1, 1, 0)
    assert (numbers(source.read()), numbers(source.read()), source.notices) == ([1, 2, 3], [], [])
    log.write(numbered(4, 8), 1, 1, 0)
    assert numbers(source.read()) == [6, 7, 8]
    assert "2 entries are no longer in the memory" in source.notices.pop()
    log = AuditLog(tmp_path, 100_000, 2, entries=3)
    pages[0] = AuditPage(log)
    log.write(numbered(9, 10), 1, 1, 0)
    assert (numbers(source.read()), source.notices) == ([9, 10], [])


def test_a_listener_that_is_none_of_ours_is_named():
    with pytest.raises(EventsError, match=r"127\.0\.0\.1:1 does not answer"):
        TrailPage(Address("127.0.0.1", 1)).read()
