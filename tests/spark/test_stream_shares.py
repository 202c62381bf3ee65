"""maxOffsetsPerTrigger is shared fairly: no cluster waits for ever."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from quorate.spark.stream.reader import share_offsets
from spark.logs import batches, log_directory
from spark.streams import Stream


@pytest.mark.parametrize("seed", range(200))
def test_a_share_never_exceeds_its_backlog_nor_all_shares_the_limit(seed: int):
    random = Random(seed)
    names = [f"c{n}" for n in range(random.randrange(1, 12))]
    bases = {name: random.randrange(50) for name in names}
    ends = {name: bases[name] + random.choice((0, 1, 2, 50, 10**6)) for name in names}
    most = random.randrange(1, 30)
    found = share_offsets(bases, ends, most)
    assert all(bases[name] <= found[name] <= ends[name] for name in names)
    taken = sum(found[name] - bases[name] for name in names)
    behind = [name for name in names if ends[name] > bases[name]]
    assert min(len(behind), most) <= taken <= most
    if len(behind) <= most:
        assert all(found[name] > bases[name] for name in behind)


def test_what_is_there_is_shared_in_proportion():
    found = share_offsets({"a": 0, "b": 0}, {"a": 100, "b": 900}, 100)
    assert 5 < found["a"] < 15 and 85 < found["b"] < 95


def test_with_fewer_offsets_than_clusters_each_has_its_turn():
    ends = {"a": 5, "b": 5, "c": 5}
    assert share_offsets(dict.fromkeys(ends, 0), ends, 2) == {"a": 1, "b": 1, "c": 0}
    assert share_offsets(dict.fromkeys(ends, 0), ends, 1, ["c", "a", "b"]) == {
        "a": 0,
        "b": 0,
        "c": 1,
    }


def test_none_starves_in_a_stream_whatever_stands_before_it(tmp_path: Path):
    for n in range(6):
        log = b"".join(batches((5,) * 8))
        log_directory(tmp_path / f"{n}", {0: log}, cluster=f"cluster-{n}")
    stream = Stream(path=tmp_path, upTo="end")
    for _ in range(3):
        stream.step(2)
    assert {stream.end(f"cluster-{n}") for n in range(6)} == {1}
    while stream.step(7):
        ends = [stream.end(f"cluster-{n}") for n in range(6)]
        assert max(ends) - min(ends) <= 3
    assert {stream.end(f"cluster-{n}") for n in range(6)} == {41}
    assert len(stream.rows) == 6 * 41
