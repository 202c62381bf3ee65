"""Running the command line inside the test's process."""

from typing import NamedTuple

import pytest

from cli.json_schema import misfits
from quorate.cli.main import run


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def quorate(capsys):
    """Run `quorate ARGUMENTS...`; exit code, stdout and stderr.

    What a tool prints with `--json` fits its schema, in every test.
    """

    def quorate(*arguments: object) -> Outcome:
        words = [str(argument) for argument in arguments]
        outcome = Outcome(run(words), *capsys.readouterr())
        if outcome.out and "--json" in words:
            assert misfits(words, outcome.out) == []
        return outcome

    return quorate
