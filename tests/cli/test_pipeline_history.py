"""The arguments of `quorate pipeline history`, before it starts Spark."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from quorate.cli.pipeline import history as pipeline_history
from quorate.cli.pipeline.history import _then


def test_a_state_is_given_by_offset_or_time():
    assert _then("12") == {"offset": 12}
    assert _then("2026-11-17T09:00:00Z") == {"instant": datetime(2026, 11, 17, 9, tzinfo=UTC)}


@pytest.mark.parametrize("text", ["", "-1", "²", "1²", "٣", "tuesday", "9" * 20, "9" * 5000])
def test_other_text_than_an_offset_or_a_time_is_refused(text):
    with pytest.raises(click.UsageError, match="must be an offset or a time like"):
        _then(text)


@pytest.mark.parametrize(
    "words", [["--at", "tuesday", "--cluster", "c"], ["--at", "2026-11-17T09:00:00"], ["--at", "5"]]
)
def test_a_wrong_time_is_refused_before_spark_is_started(monkeypatch, words):
    def start(*_):
        raise AssertionError("Spark was started")

    monkeypatch.setattr(pipeline_history, "job_on_spark", start)
    run = CliRunner().invoke(pipeline_history.history, ["topics", "-w", "w", *words])
    assert run.exit_code == 2 and "--at" in run.output
