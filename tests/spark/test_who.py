"""Who made a change, from logs that Kafka 4.3.1 wrote (tests/data/who), on Spark."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.read import read_table
from quorate.spark.tables.warehouse import open_store
from quorate.spark.who import LogPaths, Reading, who

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "who"
CLUSTER = "cYnaZ0YZQESvFYLkE3Imtg"
BERLIN = Reading(zone="Europe/Berlin")

DONE = {
    (42, "acl added"): ("User:admin", "CreateAcls"),
    (46, "acl added"): ("User:admin", "CreateAcls"),
    (50, "acl added"): ("User:admin", "CreateAcls"),
    (53, "topic created"): ("User:alice", "CreateTopics"),
    (54, "config set"): ("User:alice", "CreateTopics"),
    (55, "partition created"): ("User:alice", "CreateTopics"),
    (56, "partition created"): ("User:alice", "CreateTopics"),
    (64, "topic created"): ("User:ANONYMOUS", "CreateTopics"),
    (65, "partition created"): ("User:ANONYMOUS", "CreateTopics"),
    (66, "partition created"): ("User:ANONYMOUS", "CreateTopics"),
    (71, "quota set"): ("User:bob", "AlterClientQuotas"),
    (76, "config set"): ("User:alice", "IncrementalAlterConfigs"),
    (81, "partition created"): ("User:alice", "CreatePartitions"),
    (86, "scram credential set"): ("User:admin", "AlterUserScramCredentials"),
    (91, "config set"): ("User:bob", "IncrementalAlterConfigs"),
    (97, "config set"): ("User:alice", "IncrementalAlterConfigs"),
    (103, "config set"): ("User:admin", "IncrementalAlterConfigs"),
    (107, "topic created"): ("User:alice", "CreateTopics"),
    (108, "partition created"): ("User:alice", "CreateTopics"),
    (116, "token set"): ("User:alice", "CreateDelegationToken"),
    (121, "isr shrunk"): ("User:admin", "AlterPartitionReassignments"),
    (121, "leader changed"): ("User:admin", "AlterPartitionReassignments"),
    (121, "replicas changed"): ("User:admin", "AlterPartitionReassignments"),
    (160, "leader changed"): ("User:admin", "ElectLeaders"),
    (161, "leader changed"): ("User:admin", "ElectLeaders"),
    (162, "leader changed"): ("User:admin", "ElectLeaders"),
    (166, "config deleted"): ("User:alice", "DeleteTopics"),
    (166, "topic deleted"): ("User:alice", "DeleteTopics"),
    (179, "broker unregistered"): ("User:admin", "UnregisterBroker"),
}
"""What the clients of `record.py` did: (offset, event) to principal and request."""
FENCED = (133, 175)


@pytest.fixture(scope="module")
def warehouse(spark, tmp_path_factory):
    home = str(tmp_path_factory.mktemp("who") / "warehouse")
    ingest(spark, [str(SAMPLE / "metadata")], home)
    return home


@pytest.fixture(scope="module")
def asked(spark, warehouse):
    """Rows of an answer by offset and event, and its summary; each question is asked once."""
    known = {}

    def ask(reading=BERLIN, **logs):
        question = reading, tuple(sorted(logs.items()))
        if question not in known:
            paths = {kind: [str(SAMPLE / path)] for kind, path in logs.items()}
            answer = who(spark, open_store(warehouse), LogPaths(**paths), reading=reading)
            rows = {(row.offset, row.event): row for row in answer.rows.collect()}
            known[question] = rows, answer.summary()
            answer.close()
        return known[question]

    return ask


def named(rows):
    return {at: (row.who, row.request) for at, row in rows.items() if row.who is not None}


def test_with_request_bodies_every_name_is_certain(asked):
    rows, summary = asked(authorizer=".", request=".", controller="controller")
    assert named(rows) == DONE
    assert {row.confidence for row in rows.values()} == {"certain"}
    assert summary["caused_by"] == {
        "bootstrap": 9,
        "broker": 15,
        "controller": 22,
        "request": len(DONE),
    }
    assert (summary["unread_lines"], summary["notes"]) == (0, [])
    assert abs(summary["controller_clock_ahead_ms"]) < 50
    alice = rows[53, "topic created"]
    assert (alice.host, alice.client_id) == ("127.0.0.1", "alice-laptop")
    assert '"CREATE_TOPICS"' in alice.line and alice.file.endswith("broker11/kafka-request.log.gz")
    with gzip.open(alice.file) as log:
        log.seek(alice.position)
        assert log.readline().decode().startswith(alice.line[:100])
    assert "Fencing broker 12 at epoch" in rows[133, "broker fenced"].line
    assert not any("User:bob" in str(row.candidates) for row in rows.values() if row.who is None)


def test_with_the_authorizer_log_alone_names_are_likely_or_missing(asked):
    rows, summary = asked(authorizer=".")
    ambiguous = rows[103, "config set"]
    assert (ambiguous.who, ambiguous.confidence) == (None, "ambiguous")
    assert [one.principal for one in ambiguous.candidates] == ["User:admin", "User:alice"]
    names = {at: who for at, (who, _) in named(rows).items()}
    assert names == {at: who for at, (who, _) in DONE.items() if at != (103, "config set")}
    assert summary["confidence"] == {"ambiguous": 1, "certain": 45, "likely": 29}
    assert rows[116, "token set"].confidence == "certain", "the record names alice"
    assert all(rows[at, "broker fenced"].confidence == "likely" for at in FENCED)
    auto = rows[107, "topic created"]
    assert "on behalf of its Metadata request" in auto.reason
    for row in rows.values():
        assert row.who is None or row.line or row.event == "token set", "no name without evidence"


def test_a_wrong_time_zone_gives_no_name_and_is_reported(asked):
    rows, summary = asked(Reading(zone="UTC"), authorizer=".", controller="controller")
    assert set(named(rows)) == {(116, "token set")}
    shift, overlap = summary["notes"]
    assert shift.startswith("the controllers' logs are 3600.0 s ahead of the records")
    assert overlap.startswith("the logs do not cover the time of the changes")
    unknown = rows[53, "topic created"]
    assert unknown.confidence == "unknown" and "at DEBUG" in unknown.reason


@pytest.mark.parametrize(("moved_ms", "sure"), [(0, "certain"), (890, "likely"), (2000, "unknown")])
def test_a_request_that_begins_after_the_record_is_not_certain(
    spark, warehouse, tmp_path, moved_ms, sure
):
    """The controller's line of a request, as if that had begun so long after the record's time."""
    with gzip.open(SAMPLE / "controller" / "kafka-request.log.gz", "rt") as log:
        line = next(line for line in log if '"retention.ms"' in line and "INCREMENTAL" in line)
    if moved_ms:
        total = json.loads(line[line.index("{") : line.rindex("}") + 1])["totalTimeMs"]
        at = datetime.fromisoformat(line[1:24].replace(",", "."))
        later = at + timedelta(milliseconds=moved_ms + total)
        line = f"[{later:%Y-%m-%d %H:%M:%S},{later.microsecond // 1000:03}" + line[24:]
    path = tmp_path / "kafka-request.log"
    path.write_text(line)
    answer = who(spark, open_store(warehouse), LogPaths(request=[str(path)]), reading=BERLIN)
    [row] = answer.rows.where("offset = 76 AND event = 'config set'").collect()
    answer.close()
    assert (row.confidence, row.who) == (sure, None if sure == "unknown" else "User:alice")
    assert ("outside it" in row.reason) == (sure == "likely")


def test_a_denied_client_is_no_candidate(asked):
    rows, summary = asked(authorizer=".")
    assert sum(one["denied"] for one in summary["files"]) > 0
    assert not any(
        "User:bob" in (one.principal for one in row.candidates)
        for row in rows.values()
        if row.event == "topic created"
    )


# The command


@pytest.fixture
def command(pipeline, warehouse):
    """Runs `quorate pipeline who ...` on the sample's warehouse: (exit code, stdout, stderr)."""
    return lambda *words, home=warehouse: pipeline("who", "-w", home, *words)


def test_the_command_prints_a_table_or_json_and_keeps_a_table(
    command, spark, warehouse, tmp_path, in_berlin
):
    home = tmp_path / "warehouse"
    shutil.copytree(warehouse, home)
    logs = tmp_path / "kafka-authorizer.log"
    logs.write_bytes((SAMPLE / "controller" / "kafka-authorizer.log").read_bytes() + b"torn\n")
    words = ("--authorizer-log", logs, "--tz", "Europe/Berlin", "--out")
    code, out, err = command(*words, "--where", "event = 'topic deleted'", home=home)
    assert code == 1, err
    text = " ".join(out.split())
    assert "Z 166 topic deleted orders.eu User:alice likely DeleteTopics" in text
    assert "75 rows kept as table who" in out and "75 changes of" in out
    assert "1 line could not be read; the first, at byte 15794: 'torn'" in err
    code, out, _ = command(*words, "--json", "--quiet", home=home)
    *rows, last = map(json.loads, out.splitlines())
    assert code == 1 and last["summary"]["kept_rows"] == 75
    assert {row["caused_by"] for row in rows} == {"request"}
    assert rows[0]["time"] == "2026-11-22T02:31:04.555Z" and len(rows) == len(DONE)
    code, out, err = command(*words[:-1], "--json", "--limit", "2", home=home)
    assert len(out.splitlines()) == 3 and "only 2 are shown" in err
    kept = read_table(spark, open_store(str(home)), "who")
    assert kept.count() == 75, "the same again is there once"
    assert kept.where("who = 'User:bob'").count() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give at least one log"),
        (["--authorizer-log", "nowhere"], "nowhere: there is no such file or directory"),
        (["--authorizer-log", "empty.log"], "the logs are empty"),
        (["--authorizer-log", "binary.log"], "binary.log: this is a binary file"),
        (
            ["--authorizer-log", "other.log"],
            "none of its 1 lines is of the layout [%d]",
        ),
        (["--authorizer-log", "controller.log"], "lines is a line of the authorizer"),
        (["--authorizer-log", "folder"], "there is no kafka-authorizer.log* below it"),
        (["--authorizer-log", "controller.log", "--tz", "Nowhere"], "time zone 'Nowhere'"),
        (["--authorizer-log", "controller.log", "--pattern", "%m"], "it needs %d (time) and %m"),
        (["--server-log", "controller.log", "--cluster", "x"], f"it has {CLUSTER}"),
        (["--server-log", "controller.log", "--where", "nope = 1"], "nope"),
        (["--server-log", "controller.log", "--where", "event ="], "--where: [PARSE_SYNTAX_ERROR]"),
        (["--server-log", "controller.log", "--window", "5"], "it must be like 5s"),
    ],
)
def test_wrong_arguments_are_exit_code_2(command, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.log").touch()
    (tmp_path / "binary.log").write_bytes(b"\0\1\2" * 100)
    (tmp_path / "other.log").write_text("Nov 22 03:31:08 host kafka[1]: hello\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.log").write_text("x\n")
    shutil.copy(SAMPLE / "controller" / "controller.log", tmp_path)
    code, out, err = command(*arguments)
    assert (code, out) == (2, ""), err
    assert message in err and "Traceback" not in err


def test_without_a_warehouse_the_message_says_what_to_do(command, tmp_path):
    log = SAMPLE / "controller" / "controller.log"
    code, _, err = command("--controller-log", log, home=tmp_path / "none")
    assert (
        code == 2 and "there is no warehouse here: create one with `quorate pipeline ingest`" in err
    )
