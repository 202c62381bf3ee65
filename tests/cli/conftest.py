"""Running the command line inside the test's process."""

from typing import NamedTuple

import pytest

from quorate.cli.main import run


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def quorate(capsys):
    """Run `quorate ARGUMENTS...`; exit code, stdout and stderr."""

    def quorate(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return quorate
