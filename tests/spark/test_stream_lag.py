"""How far a stream is behind: computed from what Spark reports."""

from __future__ import annotations

import json
from pathlib import Path

from quorate.spark.jobs.follow import FollowSummary, LagWatch
from quorate.spark.stream.lag import LagMeter, StreamLag, offsets_in
from spark.logs import batches, log_directory
from spark.streams import Stream


def report(read, newest):
    def text(places):
        return json.dumps({id: {"offset": offset, "epoch": 1} for id, offset in places.items()})

    source = {"startOffset": "{}", "endOffset": text(read), "latestOffset": text(newest)}
    return {"sources": [{"endOffset": '{"logOffset":3}', "latestOffset": "none"}, source]}


def test_the_offsets_of_a_report():
    found = offsets_in(report({"a": 5}, {"a": 9, "b": 4}))
    assert found == {"a": (5, 9), "b": (0, 4)}
    # a leader that does not know its high watermark yet
    assert offsets_in(report({"a": 5}, {"a": 3})) == {"a": (5, 5)}
    assert offsets_in(report({"a": 5}, {})) == {"a": (5, 5)}
    assert offsets_in({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}
    assert offsets_in({}) == {}


def test_the_delay_is_the_age_of_the_oldest_unread_record():
    now = [100.0]
    meter = LagMeter(lambda: now[0])

    def after(seconds, read, newest):
        now[0] += seconds
        return meter.update(report({"a": read}, {"a": newest}))["a"]

    assert after(0, 5, 5) == StreamLag(0, 0)
    assert after(1, 5, 8) == StreamLag(3, 0)
    assert after(2, 5, 10) == StreamLag(5, 2000)
    assert after(1, 8, 12) == StreamLag(4, 1000)  # up to 8 is read; 10 was first seen 1 s ago
    assert after(4, 12, 12) == StreamLag(0, 0)
    assert after(9, 12, 13) == StreamLag(1, 0)
    assert after(1, 12, 13) == StreamLag(1, 1000)


def test_the_job_reports_each_batch_that_is_behind_once():
    said: list[str] = []
    now = [0.0]
    watch = LagWatch(said.append, LagMeter(lambda: now[0]))
    watch.look(None)
    for number, read in ((0, 5), (0, 5), (1, 8), (2, 9)):
        watch.look({"batchId": number, "timestamp": f"t{number}", **report({"a": read}, {"a": 9})})
        now[0] += 0.5
    assert said == ["batch 0: a is 4 records, 0.0 s behind", "batch 1: a is 1 record, 1.0 s behind"]
    assert watch.lag == {"a": StreamLag(0, 0)}
    summary = FollowSummary("w", lag={"a": StreamLag(2, 30)})
    assert summary.to_json()["lag"] == {"a": {"records": 2, "ms": 30}}


def test_the_newest_offset_is_asked_again_after_a_batch(tmp_path: Path):
    log = batches((3, 2, 8))
    home = log_directory(tmp_path / "node1", {0: b"".join(log[:2])})
    stream = Stream(path=home, upTo="end", pollMs=0)
    while stream.step():
        pass
    end = stream.end("cluster-a")
    segment = home / f"__cluster_metadata-0/{0:020}.log"
    segment.write_bytes(b"".join(log))
    found = stream.reader.reportLatestOffset()
    assert found is not None
    assert stream.end("cluster-a") == end < found["cluster-a"]["offset"]
    segment.unlink()  # what is wrong is for the next batch to say
    assert stream.reader.reportLatestOffset() == found
