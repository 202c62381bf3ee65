"""Events and their facts, without Spark."""

from __future__ import annotations

import json
import math

import pytest

from quorate.spark.tables.events import events, facts_json
from quorate.spark.tables.kinds import QUOTAS
from quorate.spark.tables.rules import Change


def strictly(text):
    """JSON as the standard has it: Python takes Infinity and NaN too."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize(
    ("value", "told"),
    [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN"), (1e300, 1e300), (5, 5)],
)
def test_facts_are_json_whatever_a_quota_is(value, told):
    [event] = events(Change(QUOTAS, ("{}", "request_percentage"), None, (value,)))
    assert strictly(facts_json(event.after)) == {"value": told}
    assert facts_json(event.before) is None
