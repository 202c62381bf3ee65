"""The rows and options of `quorate pipeline who`, without Spark."""

from __future__ import annotations

import pytest

from quorate.cli import main
from quorate.cli.pipeline.who import principal_text, subject

COLUMNS = (
    *("topic_name", "partition", "node_id", "resource_type", "resource_name", "name"),
    *("principal", "who", "confidence", "caused_by"),
)


def row(**words):
    return dict.fromkeys(COLUMNS) | {"confidence": "certain", "candidates": []} | words


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"topic_name": "orders"}, "orders"),
        ({"topic_name": "orders", "partition": 0}, "orders-0"),
        ({"node_id": 12}, "node 12"),
        (
            {"topic_name": "a", "resource_type": "topic", "resource_name": "a", "name": "x"},
            "topic/a x",
        ),
        ({"resource_type": "broker", "resource_name": "", "name": "x"}, "broker/<default> x"),
        (
            {"resource_type": "cluster", "resource_name": "kafka-cluster", "principal": "User:b"},
            "cluster/kafka-cluster User:b",
        ),
        ({"principal": "carol", "name": "SCRAM-SHA-256"}, "carol SCRAM-SHA-256"),
        ({}, "-"),
    ],
)
def test_what_a_change_is_about(words, text):
    assert subject(row(**words)) == text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"who": "User:alice"}, "User:alice"),
        ({"caused_by": "broker"}, "(broker)"),
        ({"confidence": "unknown", "caused_by": "request"}, None),
        (
            {"confidence": "ambiguous", "candidates": [{"principal": "a"}, {"principal": "b"}]},
            "a? b?",
        ),
    ],
)
def test_who_is_shown(words, text):
    assert principal_text(row(**words)) == text


def test_the_help_has_examples(capsys):
    assert main.run(["pipeline", "who", "--help"]) == 0
    assert "quorate pipeline who -w warehouse --authorizer-log" in capsys.readouterr().out


def test_a_window_without_a_unit_is_refused(capsys):
    words = ["--authorizer-log", "x", "--window", "5"]
    assert main.run(["pipeline", "who", "-w", "w", *words]) == 2
    assert "5: it must be like 5s, 200ms, 2m or 1h" in capsys.readouterr().err
