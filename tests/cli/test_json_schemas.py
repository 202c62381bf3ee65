"""`--json-schema`: every tool with `--json` has a schema that says something."""

import json

import click
import pytest

from cli.json_schema import fits, problems
from cli.test_options import commands
from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA, schema_of
from quorate.cli.main import TOOLS

OTHERS = {"storage", "server-start", "quickstart", "dump-log", "pipeline", "sim"}
"""Tools of which `--json` has no schema: logs, records and reports with formats of their own."""


def test_tools_with_json_have_a_schema():
    with_json = {
        name.split()[0]
        for name, command in commands()
        if any(
            "--json" in param.opts for param in command.params if isinstance(param, click.Option)
        )
    }
    assert with_json - OTHERS <= TOOLS_WITH_SCHEMA <= set(TOOLS)


@pytest.mark.parametrize("name", sorted(TOOLS_WITH_SCHEMA))
def test_the_schema_is_printed(quorate, name):
    code, out, err = quorate(name, "--json-schema")
    assert (code, err) == (0, "")
    schema = json.loads(out)
    assert schema == schema_of(name)
    assert schema["$id"] == f"urn:quorate:cli:{name}:1"
    assert [each["$ref"] for each in schema["anyOf"]] == [f"#/$defs/{n}" for n in schema["$defs"]]


def test_a_tool_without_a_schema_reports_that(quorate):
    code, out, err = quorate("dump-log", "--json-schema")
    assert (code, out) == (1, "")
    assert "has no schema" in err


def test_the_validator_sees_mistakes():
    schema = schema_of("leader-election")["$defs"]["election"]
    row = {"topic": "t", "partition": 0, "result": "elected", "error": None}
    assert problems(schema, [row]) == []
    wrong = [row | {"partition": "0"}, row | {"result": "maybe"}, {}, 7]
    assert [len(problems(schema, [each])) for each in wrong] == [1, 1, 4, 1]
    assert not fits(schema_of("leader-election"), wrong)
