"""Events and their facts, without Spark."""

from __future__ import annotations

import json
import math

import pytest

from quorate.base.ids import Uuid
from quorate.metadata.image import Partition
from quorate.spark.tables.events import change_events, facts_json, leader_cause
from quorate.spark.tables.kinds import PARTITIONS, QUOTAS, TopicPartition
from quorate.spark.tables.rules import ThingChange


def strictly(text):
    """JSON as the standard has it: Python takes Infinity and NaN too."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize(
    ("value", "shown"),
    [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"), (1e300, 1e300), (5, 5)],
)
def test_facts_are_json_whatever_a_quota_is(value, shown):
    [event] = change_events(ThingChange(QUOTAS, ("{}", "request_percentage"), None, (value,)))
    assert strictly(facts_json(event.after)) == {"value": shown}
    assert facts_json(event.before) is None


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ((1, 2, 3), (1, 3), "isr shrunk"),
        ((1,), (1, 2), "isr expanded"),
        ((1, 2), (1, 3), "isr changed"),
        ((1, 2), (2, 1), "isr changed"),
        ((1, 2), (3,), "isr changed"),
    ],
)
def test_an_isr_shrinks_or_expands_only_without_other_changes(before, after, name):
    topic = bytes(range(16))
    was, now = (
        TopicPartition(
            "orders", Partition((1, 2, 3), (Uuid(bytes(16)),) * 3, isr, (), (), 1, 0, 5, 7)
        )
        for isr in (before, after)
    )
    [event] = change_events(ThingChange(PARTITIONS, (topic, 0), was, now))
    assert event[:3] == (name, {"isr": before}, {"isr": after})


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ((2, (2, 3), (), 0), (-1, (2,), (), 0), "no replica in sync is online"),
        ((-1, (2,), (), 0), (2, (2,), (), 0), "a replica in sync came back"),
        ((-1, (2,), (), 0), (3, (3,), (), 1), "unclean election"),
        ((-1, (3,), (), 1), (3, (3,), (), 1), "a replica in sync came back"),
        ((-1, (3,), (), 1), (1, (1,), (), 1), "unclean election"),
        ((3, (3,), (), 1), (1, (1,), (), 1), "unclean election"),
        ((-1, (), (1,), 1), (1, (1,), (), 1), "a replica in sync came back"),
        ((3, (3,), (), 1), (-1, (3,), (), 1), "no replica in sync is online"),
        ((3, (3,), (), 1), (3, (3,), (), 1), "same leader, new epoch"),
    ],
)
def test_an_election_is_unclean_each_time_that_a_replica_out_of_sync_leads(before, after, cause):
    """Kafka writes the recovery state only when it changes: not of the second one in a row."""
    was, now = (
        Partition(
            (1, 2, 3), (Uuid(bytes(16)),) * 3, isr, (), (), leader, recovery, epoch, epoch, elr
        )
        for epoch, (leader, isr, elr, recovery) in enumerate((before, after))
    )
    assert leader_cause(was, now) == cause
