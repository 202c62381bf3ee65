"""Markers that map tests of ours to scenarios of Kafka's own tests.

docs/conformance.md is generated from them.

`tools/conformance.py` reads the markers from the syntax trees of the tests. The names that exist stand in
kafka_scenarios.toml beside this file.
"""

from __future__ import annotations

import pytest


def kafka_scenario(kafka_class: str, *names: str) -> pytest.MarkDecorator:
    """This test proves what these tests of `kafka_class` prove."""
    return pytest.mark.kafka_scenario(kafka_class, *names)


def kafka_guarantee(kafka_class: str, *names: str) -> pytest.MarkDecorator:
    """These tests of `kafka_class` do not apply here; this test proves what holds their guarantee instead."""
    return pytest.mark.kafka_guarantee(kafka_class, *names)
