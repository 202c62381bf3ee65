"""Running the command line inside the test's process."""

import json
from typing import NamedTuple

import pytest

from cli.json_schema import fits
from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA, schema_of
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
        if outcome.code == 0 and "--json" in words and words[0] in TOOLS_WITH_SCHEMA:
            documents = outcome.out.splitlines() if "alter" in words else [outcome.out]
            for document in map(json.loads, documents):
                assert fits(schema_of(words[0]), document), document
        return outcome

    return quorate
