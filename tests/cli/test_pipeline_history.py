"""What `quorate pipeline history` makes of its words before it asks the tables."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest

from quorate.cli.pipeline_history import _then


def test_a_state_is_asked_for_by_offset_or_by_time():
    assert _then("12") == {"offset": 12}
    assert _then("2026-11-17T09:00:00Z") == {"instant": datetime(2026, 11, 17, 9, tzinfo=UTC)}


@pytest.mark.parametrize("text", ["", "-1", "²", "1²", "٣", "tuesday"])
def test_what_is_neither_offset_nor_time_is_refused(text):
    with pytest.raises(click.UsageError, match="must be an offset or a time like"):
        _then(text)
