"""Error codes, their names and the texts that we send with them are those of Kafka's jars."""

from pathlib import Path

import pytest

from interop.java import KAFKA_4_4, libs
from interop.process import run_tool
from quorate.base.errors import ErrorCode

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def table_of(jars):
    source = Path(__file__).with_name("ErrorTable.java")
    run = run_tool(["java", "-cp", f"{jars}/*", str(source)], timeout=120)
    assert run.returncode == 0, run
    return [line.split("\t") for line in run.stdout.splitlines()]


def test_the_table_of_errors_is_kafkas():
    """The codes of 4.4, and the texts of 4.3.1 where both releases have the code."""
    theirs = table_of(libs(KAFKA_4_4))
    ours = [[str(int(e)), e.name, str(e.retriable).lower()] for e in ErrorCode]
    assert [row[:3] for row in theirs] == ours
    texts = {name: text for _, name, _, text in (*theirs, *table_of(libs()))}
    sent = [error for error in ErrorCode if error.message is not None]
    assert sent
    assert [error.message for error in sent] == [texts[error.name] for error in sent]
