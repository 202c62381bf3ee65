"""Error codes, their names and the texts that we send with them are those of Kafka's jars."""

from pathlib import Path

import pytest

from interop.java import libs
from interop.process import run_tool
from quorate.base.errors import ErrorCode

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_the_table_of_errors_is_kafkas():
    source = Path(__file__).with_name("ErrorTable.java")
    run = run_tool(["java", "-cp", f"{libs()}/*", str(source)], timeout=120)
    assert run.returncode == 0, run
    theirs = [line.split("\t") for line in run.stdout.splitlines()]
    ours = [[str(int(e)), e.name, str(e.retriable).lower()] for e in ErrorCode]
    assert [row[:3] for row in theirs] == ours
    texts = {name: text for _, name, _, text in theirs}
    sent = [error for error in ErrorCode if error.message is not None]
    assert sent
    assert [error.message for error in sent] == [texts[error.name] for error in sent]
