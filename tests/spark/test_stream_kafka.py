"""The live source against Kafka controllers: what Kafka wrote and dumps, across leader changes."""

from __future__ import annotations

import random

import pytest

from interop import kafka
from interop.checks import dump
from interop.kafka import Quorum
from interop.process import wait_for
from interop.test_cleaning import SMALL, CleaningJava
from quorate.spark.stream.live import WrongQuorumError
from spark.streams import (
    Stream,
    alive,
    batch_rows,
    caught_up,
    facts,
    goes_on_after_cleaning,
    reader,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("stream-kafka")]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    with Quorum(tmp_path_factory.mktemp("kafka"), dict.fromkeys((1, 2, 3), "java")) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader(90)
        yield quorum


def test_each_record_that_kafka_commits_is_read_once_under_kills_and_restarts(quorum):
    chance = random.Random(5)
    stream = Stream(bootstrap=quorum.bootstrap, maxOffsetsPerPartition=9)
    for kill in (False, True, False, True):
        alive(quorum).write(chance.randrange(4, 9))
        stream.plan()
        if kill:
            quorum.leader().kill()
        stream.restart()
        caught_up(stream, quorum, most=chance.choice([None, 7]))
    end = stream.end(quorum.cluster_id)
    assert stream.offset_list == list(range(end))
    leader = alive(quorum).leader()
    assert facts(stream.rows) == facts(batch_rows(leader.data, end))
    log = dump(leader).log
    assert [row["epoch"] for row in stream.rows] == [log[offset][0] for offset in range(end)]
    assert quorum.view().observers == {}, "nobody counts the reader"


def test_a_snapshot_takes_the_place_of_what_kafka_cleaned(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka, "KINDS", {"java": CleaningJava})
    with Quorum(tmp_path, {1: "java"}, config=SMALL) as quorum:
        quorum.format()
        quorum.start()
        node = quorum.leader(60)
        stream = Stream(bootstrap=quorum.bootstrap)
        end = caught_up(stream, quorum)
        goes_on_after_cleaning(stream, quorum, node, end)


def test_a_broker_is_refused_as_a_controller(quorum):
    broker = alive(quorum).add_broker(11)
    asked = reader(bootstrap=broker.address, timeoutMs=60_000)

    def refused():
        try:
            asked.prepareForTriggerAvailableNow()
        except WrongQuorumError as error:
            return str(error)
        return None

    assert f"{broker.address} is a broker" in wait_for(refused, "the broker to say what it is", 90)
