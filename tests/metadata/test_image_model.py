"""Random records, onto the image and onto its reference model."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from metadata.image_model import MARKS, ImageModel, MisfitError, plain
from metadata.image_strategies import any_records, by_type, calm, uuid_of
from quorate.formats import records as r
from quorate.formats.records import RECORD_TYPES
from quorate.metadata.image import Image
from quorate.metadata.loader import Loader, LogBatch
from quorate.metadata.replay import ReplayError, replay
from time_budget import examples


def applied(model, record):
    try:
        model.apply(record)
    except MisfitError:
        return False
    return True


FURNITURE = [
    r.RegisterBrokerRecord(broker_id=0, broker_epoch=0, log_dirs=[uuid_of(1)]),
    r.RegisterBrokerRecord(broker_id=1, broker_epoch=0),
    r.TopicRecord(name="a", topic_id=uuid_of(1)),
    r.TopicRecord(name="b", topic_id=uuid_of(2)),
    *(
        r.PartitionRecord(
            partition_id=index,
            topic_id=uuid_of(topic),
            replicas=[0, 1],
            isr=[0],
            leader=0,
            directories=[uuid_of(1), uuid_of(2)],
            eligible_leader_replicas=[1],
        )
        for topic in (1, 2)
        for index in (0, 1)
    ),
]
"""So that random records find something to change."""


@settings(calm, max_examples=examples(200))
@given(st.lists(any_records.filter(lambda it: not isinstance(it, MARKS)), max_size=40))
def test_replay_does_what_the_reference_model_does(found):
    model, image = ImageModel(), Image()
    for record in FURNITURE + found:
        if applied(model, copy.deepcopy(record)):
            image = replay(image, record)
        else:
            with pytest.raises(ReplayError, match=type(record).__name__):
                replay(image, record)
        assert plain(image) == model.state


class LoaderMachine(RuleBasedStateMachine):
    """Batches of any records, transaction marks among them, onto a loader and onto reference models."""

    def __init__(self):
        super().__init__()
        self.loader = Loader()
        self.seen = ImageModel()
        self.ahead = None
        self.epoch = 0
        self.place = (-1, -1, -1, False)
        self.feed(FURNITURE, False)

    @rule(found=st.lists(any_records, min_size=1, max_size=6), new_epoch=st.booleans())
    def feed(self, found, new_epoch):
        """A batch of random records; one that does not fit invalidates all of it."""
        self.epoch += new_epoch
        base = self.loader.next_offset
        batch = LogBatch(base, base + len(found) - 1, self.epoch, 1000 + base, found)
        try:
            seen, ahead, place = self.walk(batch)
        except MisfitError:
            before = (self.loader.published, self.loader.transaction)
            with pytest.raises(ReplayError, match="cannot apply the record at offset"):
                self.loader.feed(batch)
            assert (self.loader.published, self.loader.transaction) == before
            assert self.loader.next_offset == base
            return
        self.loader.feed(batch)
        self.seen, self.ahead, self.place = seen, ahead, place
        assert plain(self.loader.published.image) == seen.state
        assert self.loader.published.provenance == place
        assert (self.loader.transaction is not None) == (ahead is not None)

    @rule(found=st.lists(any_records, min_size=1, max_size=12), new_epoch=st.booleans())
    def feed_what_fits(self, found, new_epoch):
        base = self.loader.next_offset
        fitting: list[Any] = []
        for record in found:
            with suppress(MisfitError):
                self.walk(LogBatch(base, base + len(fitting), self.epoch, 0, [*fitting, record]))
                fitting.append(record)
        if fitting:
            self.feed(fitting, new_epoch)

    def walk(self, batch):
        """What may be seen, what an open transaction holds, and the provenance, after `batch`."""
        seen, ahead, place = copy.deepcopy((self.seen, self.ahead, self.place))
        for index, record in enumerate(copy.deepcopy(batch.records)):
            kind = type(record).__name__
            if kind == "BeginTransactionRecord":
                if ahead is not None:
                    raise MisfitError
                ahead = copy.deepcopy(seen)
                if index:
                    place = (batch.base_offset + index - 1, batch.epoch, batch.timestamp_ms, False)
            elif kind in ("EndTransactionRecord", "AbortTransactionRecord"):
                if ahead is None:
                    raise MisfitError
                seen, ahead = (ahead if kind[0] == "E" else seen), None
            else:
                (seen if ahead is None else ahead).apply(record)
        if ahead is None:
            place = (batch.last_offset, batch.epoch, batch.timestamp_ms, True)
        return seen, ahead, place


LoaderMachine.TestCase.settings = settings(calm, max_examples=examples(40), stateful_step_count=20)
TestLoaderMachine = LoaderMachine.TestCase


def test_random_records_are_of_every_type():
    assert set(by_type) == set(RECORD_TYPES.values())
