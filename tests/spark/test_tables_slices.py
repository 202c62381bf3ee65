"""Gold of random logs equals a replay at every offset, slice by slice; no Spark needed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metadata.image_model import MARKS
from metadata.image_strategies import any_records, calm
from metadata.test_image_model import FURNITURE
from narrow import not_none
from quorate.base.ids import Uuid
from quorate.formats import records as r
from quorate.spark.tables.kinds import HIDDEN
from spark.slice_logs import Slices, contents, fitting, steps
from time_budget import examples, one_in

NOWHERE = Uuid(bytes(15) + bytes([9]))
plain_records = any_records.filter(lambda it: not isinstance(it, MARKS))


def feed_all(slices, found, cuts=(), growth=(), start=0):
    """The log in several runs, cut at these records; the slices grow with each."""
    names: dict[Any, str] = {}
    batch, grown = [], list(growth)
    for offset, (record, _) in enumerate(found):
        if offset < start:
            if isinstance(record, r.TopicRecord):
                names[record.topic_id] = record.name
            continue
        if isinstance(record, r.TopicRecord):
            names[record.topic_id] = record.name
        batch += steps(offset, record, names.get(getattr(record, "topic_id", None)))
        if offset in cuts:
            slices.feed(batch, grown.pop(0) if grown else None)
            batch = []
    slices.feed(batch, grown.pop(0) if grown else None)


@settings(calm, max_examples=examples(60))
@given(
    st.lists(plain_records, max_size=30),
    st.sets(st.integers(5, 40), max_size=3),
    st.sampled_from([(), (4,), (2, 2, 8), (1, 4)]),
)
def test_history_is_replay_at_every_offset(records, cuts, growth):
    found = fitting(FURNITURE + records)
    with tempfile.TemporaryDirectory() as home:
        slices = Slices(Path(home))
        feed_all(slices, found, cuts, growth)
        for offset, (_, image) in enumerate(found):
            assert slices.at(offset) == contents(image), offset
        assert slices.rows("quarantine") == []
        for kind in slices.live:
            for row in slices.rows(kind):
                assert row["is_current"] == (row["valid_to_offset"] is None)
                assert row["is_current"] or row["valid_from_offset"] < row["valid_to_offset"]


@pytest.mark.slow
@settings(calm, max_examples=examples(60))
@given(
    st.lists(plain_records, max_size=30),
    st.sets(st.integers(5, 40), max_size=3),
    st.sampled_from([(), (2, 4, 8), (4,), (1, 4)]),
    st.floats(0, 1),
)
def test_it_is_the_same_after_going_back_and_on_again(records, cuts, growth, back):
    found = fitting(FURNITURE + records)
    with tempfile.TemporaryDirectory() as home:
        slices = Slices(Path(home))
        feed_all(slices, found, cuts, growth)
        end = round(back * len(found))
        slices.rewind(end)
        for offset, (_, image) in enumerate(found[:end]):
            assert slices.at(offset) == contents(image), offset
        feed_all(slices, found, start=end)
        for offset, (_, image) in enumerate(found):
            assert slices.at(offset) == contents(image), offset
        assert slices.rows("quarantine") == []


@pytest.mark.parametrize("growth", one_in(3, [(1, 1, 4), (1, 2, 8), (2, 2, 2)]))
@pytest.mark.parametrize("back", one_in(2, [40, 47, 60, 79]))
def test_what_ended_when_there_were_fewer_slices_holds_again_where_it_belongs(
    tmp_path, growth, back
):
    topics = [Uuid(bytes([n]) * 16) for n in range(1, 21)]
    born = [
        record
        for n, id in enumerate(topics)
        for record in (
            r.TopicRecord(name=f"t{n}", topic_id=id),
            r.PartitionRecord(
                topic_id=id, replicas=[1, 2], isr=[1, 2], leader=1, directories=[NOWHERE] * 2
            ),
        )
    ]
    changed = [r.PartitionChangeRecord(topic_id=id, leader=2, isr=[2]) for id in topics] * 2
    late = [r.TopicRecord(name="late", topic_id=Uuid(bytes([99]) * 16))]
    found = fitting([*born, *changed, *late])
    work = Slices(tmp_path)
    feed_all(work, found, {39, 79}, growth)
    work.rewind(back)
    for offset in (39, back - 1):
        assert work.at(offset) == contents(found[offset][1])
    feed_all(work, found, start=back)
    for offset in (39, back - 1, back, 79, 80):
        if offset < len(found):
            assert work.at(offset) == contents(found[offset][1])
    assert work.rows("quarantine") == []


@pytest.mark.parametrize("slices", [1, 4])
def test_a_record_that_does_not_fit_is_quarantined_and_changes_nothing(tmp_path, slices):
    work = Slices(tmp_path)
    work.slices = slices
    stray = r.PartitionChangeRecord(partition_id=7, topic_id=Uuid(bytes([9]) * 16), leader=1)
    found = [*fitting(FURNITURE), (stray, None)]
    feed_all(work, found)
    [row] = work.rows("quarantine")
    assert row["reason"] == "misfit" and row["offset"] == len(FURNITURE)
    assert "has no partition 7" in row["problem"]
    assert work.at(len(found)) == contents(not_none(found[-2][1]))


def test_a_hidden_value_that_is_set_again_is_a_version_of_its_own(tmp_path):
    """It may be another one; what can be seen to be the same goes on."""
    slices = Slices(tmp_path)
    log = [("ssl.key.password", HIDDEN), ("log.retention.ms", "1")] * 2
    for offset, (name, value) in enumerate(log):
        record = r.ConfigRecord(resource_type=4, resource_name="1", name=name, value=value)
        slices.feed(steps(offset, record, None))
    found = {(row["name"], row["valid_from_offset"]) for row in slices.rows("configs")}
    assert found == {("ssl.key.password", 0), ("ssl.key.password", 2), ("log.retention.ms", 1)}
