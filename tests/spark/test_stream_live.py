"""The live source against a quorum of processes of ours: what is committed, once, in order.

The reader is driven as Spark drives it (`streams.Stream`); `test_stream_spark` has Spark do it.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from interop import kafka
from interop.kafka import Quorum
from interop.process import free_port, wait_for
from interop.test_cleaning import SMALL, CleaningQuorate, segments
from quorate.spark.files.paths import SourceError
from quorate.spark.jobs.follow import _clusters
from quorate.spark.stream.live import LogDivergedError, UnreachableError, WrongQuorumError
from quorate.spark.stream.live_feed import LiveFeed
from quorate.spark.stream.options import parse_stream_options
from spark.streams import (
    Stream,
    alive,
    batch_rows,
    caught_up,
    facts,
    goes_on_after_cleaning,
    reader,
    whole_snapshots,
)

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("stream-live")]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    with Quorum(tmp_path_factory.mktemp("live"), dict.fromkeys((1, 2, 3), "quorate")) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def assert_rows_are_those_of_the_log(stream: Stream, quorum: Quorum):
    end = stream.end(quorum.cluster_id)
    leader = quorum.leader()
    assert facts(stream.rows) == facts(batch_rows(leader.data, end))


def test_a_stream_gives_the_committed_log_and_then_what_comes(quorum):
    alive(quorum).write(20)
    stream = Stream(bootstrap=quorum.bootstrap)
    first = caught_up(stream, quorum)
    assert_rows_are_those_of_the_log(stream, quorum)
    row = stream.rows[-1]
    assert (row["cluster_id"], row["kind"], row["position"]) == (quorum.cluster_id, "log", None)
    assert row["file"].startswith("kraft://") and row["node_id"] in quorum.nodes
    quorum.write(5)
    assert caught_up(stream, quorum) > first
    assert_rows_are_those_of_the_log(stream, quorum)


def test_the_quorum_does_not_count_the_reader(quorum):
    alive(quorum)
    caught_up(Stream(bootstrap=quorum.bootstrap), quorum)
    view = quorum.view()
    assert view.observers == {} and set(view.voters) == {1, 2, 3}


def test_admission_control_keeps_to_the_limit(quorum):
    alive(quorum).write(20)
    stream = Stream(bootstrap=quorum.bootstrap, maxOffsetsPerPartition=3)
    sizes: list[int] = []
    while stream.step(7):
        sizes.append(len(stream.rows) - sum(sizes))
        assert sizes[-1] <= 7
        if stream.end(quorum.cluster_id) > 30:
            break
    assert sizes[:3] == [7, 7, 7]
    assert_rows_are_those_of_the_log(stream, quorum)


def test_parts_of_a_batch_are_cut_by_offset_and_read_alone(quorum):
    alive(quorum).write(20)
    stream = Stream(bootstrap=quorum.bootstrap, maxOffsetsPerPartition=5)
    assert stream.plan()
    assert stream.planned is not None
    parts = stream.reader.partitions(*stream.planned)
    assert len(parts) >= 4
    cut = [(part.start, part.end.offset) for part in parts]  # type: ignore[attr-defined]
    assert all(one[1] == two[0] for one, two in pairwise(cut))
    stream.finish()
    assert_rows_are_those_of_the_log(stream, quorum)


@pytest.mark.parametrize("seed", [1, 2])
def test_restarts_and_killed_leaders_lose_nothing_and_double_nothing(quorum, seed):
    chance = random.Random(seed)
    stream = Stream(bootstrap=quorum.bootstrap, maxOffsetsPerPartition=9)
    alive(quorum)
    caught_up(stream, quorum)
    for round_ in range(6):
        alive(quorum).write(chance.randrange(1, 8))
        match chance.randrange(4):
            case 0:  # Spark died after it had planned a batch, before that was done
                stream.plan()
                stream.restart()
            case 1:
                stream.restart()
            case 2:  # the leader dies between plan and read
                stream.plan()
                quorum.leader().kill()
            case 3:
                quorum.leader().kill()
        caught_up(stream, quorum, most=chance.choice([None, 4, 11]))
        assert stream.offset_list == list(range(len(stream.rows))), f"round {round_}"
    assert_rows_are_those_of_the_log(stream, alive(quorum))


def test_a_quorum_that_is_down_for_a_while_is_waited_for(quorum):
    stream = Stream(bootstrap=quorum.bootstrap, timeoutMs=60_000)
    before = caught_up(stream, alive(quorum))
    for node in quorum.controllers:
        node.kill()
    assert not stream.step()  # silence is not an end
    alive(quorum).write(3)
    assert caught_up(stream, quorum) > before
    assert_rows_are_those_of_the_log(stream, quorum)


def test_one_silent_cluster_does_not_delay_the_others(quorum):
    words = {
        "bootstrap.controllers.here": alive(quorum).bootstrap,
        "bootstrap.controllers.gone": f"127.0.0.1:{free_port()}",
    }
    stream = Stream(**words)
    caught_up(stream, quorum)
    assert_rows_are_those_of_the_log(stream, quorum)


@pytest.mark.parametrize("once", [True, False])
def test_a_silent_cluster_is_waited_for_when_asked(quorum, once):
    words: dict[str, Any] = {
        "bootstrap.controllers.here": alive(quorum).bootstrap,
        "bootstrap.controllers.gone": f"127.0.0.1:{free_port()}",
        "timeoutMs": 1,
    }
    found, silent = _clusters(
        parse_stream_options(words | {"timeoutMs": "2000", "onSilence": "wait"})
    )
    assert set(found) == {quorum.cluster_id} and len(silent) == 1
    stream = Stream(**words | {"timeoutMs": 2000 if once else 1}, onSilence="wait")
    if once:
        stream.reader.prepareForTriggerAvailableNow()
    caught_up(stream, quorum)
    assert_rows_are_those_of_the_log(stream, quorum)
    assert not stream.step()
    with pytest.raises(
        UnreachableError, match=r"controllers gone .*: no leader answered within 300 ms"
    ):
        reader(**words | {"timeoutMs": 300}).prepareForTriggerAvailableNow()


def test_available_now_ends_at_what_was_committed_then(quorum):
    alive(quorum).write(10)
    stream = Stream(bootstrap=quorum.bootstrap)
    stream.reader.prepareForTriggerAvailableNow()
    latest = stream.reader.reportLatestOffset()
    assert latest is not None
    target = latest[quorum.cluster_id]["offset"]
    quorum.write(10)
    while stream.step(6):
        pass
    assert stream.end(quorum.cluster_id) == target == len(stream.rows)


def test_the_directories_of_a_running_quorum_can_be_tailed_instead(quorum):
    alive(quorum).write(10)
    stream = Stream(path=quorum.root / "node*" / "data", pollMs=0)
    caught_up(stream, quorum)
    quorum.leader().kill()
    stream.restart()
    alive(quorum).write(5)
    caught_up(stream, quorum, most=6)
    assert stream.offset_list == list(range(stream.end(quorum.cluster_id)))
    assert_rows_are_those_of_the_log(stream, quorum)


def test_latest_begins_where_the_log_ends_now(quorum):
    alive(quorum).write(3)
    stream = Stream(bootstrap=quorum.bootstrap, startingOffsets="latest")
    stream.offsets = stream.reader.initialOffset()
    begin = stream.end(quorum.cluster_id)
    quorum.write(2)
    end = caught_up(stream, quorum)
    assert stream.offset_list == list(range(begin, end))


def test_a_log_that_diverged_from_what_was_read_is_an_error(quorum):
    stream = Stream(bootstrap=quorum.bootstrap)
    caught_up(stream, alive(quorum))
    assert stream.offsets is not None
    at = stream.offsets[quorum.cluster_id]
    stream.offsets = {quorum.cluster_id: {"offset": at["offset"] + 1000, "epoch": at["epoch"]}}
    stream.restart()
    with pytest.raises(LogDivergedError, match=f"at offset {at['offset'] + 1000} with epoch"):
        stream.plan()


def test_a_checkpoint_of_another_cluster_is_refused(quorum):
    stream = Stream(bootstrap=alive(quorum).bootstrap)
    stream.offsets = {"AAAAAAAAAAAAAAAAAAAAAA": {"offset": 7, "epoch": 1}}
    with pytest.raises(SourceError, match="the checkpoint is of cluster AAAAAAAAAAAAAAAAAAAAAA"):
        stream.plan()


def test_a_wrong_cluster_id_is_refused(quorum):
    asked = reader(bootstrap=alive(quorum).bootstrap, clusterId="AAAAAAAAAAAAAAAAAAAAAA")
    with pytest.raises(WrongQuorumError, match="not of the cluster AAAAAAAAAAAAAAAAAAAAAA"):
        asked.prepareForTriggerAvailableNow()


def test_without_an_answer_the_error_names_every_address():
    ports = free_port(), free_port()
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
    asked = reader(bootstrap=bootstrap, timeoutMs=300)
    with pytest.raises(UnreachableError) as caught:
        asked.prepareForTriggerAvailableNow()
    assert all(f"Cannot connect to 127.0.0.1:{port}" in str(caught.value) for port in ports)
    assert "within 300 ms" in str(caught.value)


def test_silence_ends_a_stream_after_its_timeout():
    asked = reader(bootstrap=f"127.0.0.1:{free_port()}", timeoutMs=600)
    stream = Stream(bootstrap="127.0.0.1:1")
    stream.reader = asked

    def refused():
        try:
            assert not stream.step()
        except UnreachableError as error:
            return error
        return None

    assert "silent for" in str(wait_for(refused, "the stream to give up"))


@pytest.fixture
def cleaning(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka, "KINDS", {"quorate": CleaningQuorate})
    with Quorum(tmp_path, {1: "quorate"}, config=SMALL) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def test_deleted_offsets_are_replaced_by_the_snapshot_and_reported(cleaning):
    (node,) = cleaning.controllers
    cleaning.write(5)
    stream = Stream(bootstrap=cleaning.bootstrap)
    end = caught_up(stream, cleaning)
    assert stream.offset_list == list(range(end))
    new = goes_on_after_cleaning(stream, cleaning, node, end)
    assert any(row["problem"] for row in new)

    # A stream that begins now starts with the snapshot.
    late = Stream(bootstrap=cleaning.bootstrap)
    caught_up(late, cleaning, most=40)
    assert_goes_on_behind_its_snapshot(late, late.end(cleaning.cluster_id), beyond=end)


def assert_goes_on_behind_its_snapshot(stream, end, beyond):
    """The newest one, as the log may have been cleaned again; it may end where the log does."""
    *_, newest = whole_snapshots(stream.rows)
    rest = [offset for offset in stream.offset_list if offset is not None and offset >= newest]
    assert newest > beyond
    assert rest == list(range(newest, end))


def clean_beyond(quorum, offset):
    """Write until the log of the only node starts later."""
    (node,) = quorum.controllers

    def is_cleaned():
        quorum.write(10)
        return segments(node)[0] > offset

    wait_for(is_cleaned, f"the log to start beyond {offset}", 100)


@pytest.mark.parametrize("most", [None, 5])
@pytest.mark.parametrize("begun", [False, True])
def test_available_now_continues_when_the_log_is_deleted_beyond_its_end(cleaning, begun, most):
    cleaning.write(30)
    stream = Stream(bootstrap=cleaning.bootstrap)
    stream.reader.prepareForTriggerAvailableNow()
    if begun:
        stream.step(5)
    clean_beyond(cleaning, 60)
    for _ in range(200):
        if not stream.step(most):
            break
    else:
        raise AssertionError("it never ends")
    assert_goes_on_behind_its_snapshot(stream, stream.end(cleaning.cluster_id), beyond=60)
    assert not begun or any(row["problem"] for row in stream.rows)


def test_a_log_that_is_cleaned_while_a_batch_is_cut_is_taken_whole(cleaning, monkeypatch):
    """The snapshot that stands for what is gone cannot be cut."""
    cleaning.write(30)
    stream = Stream(bootstrap=cleaning.bootstrap)
    monkeypatch.setattr(LiveFeed, "epoch_below", lambda self, offset: None)
    assert stream.plan(ReadMaxRows(5))
    assert stream.planned is not None
    end = stream.planned[1][cleaning.cluster_id]["offset"]
    stream.finish()
    assert stream.offset_list == list(range(end)) and end > 5
