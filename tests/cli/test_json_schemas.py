"""`--json-schema`: every tool with `--json` has a schema that says something."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click
import pytest

from cli.json_schema import definitions, fits, misfits, problems
from cli.test_options import commands
from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA, schema_of
from quorate.nemesis.checks import Violation
from quorate.nemesis.run import NemesisOptions, NemesisResult
from quorate.spark.jobs.repair import RepairSummary


def with_json():
    """The commands that have `--json`: (tool, command or None)."""
    for name, command in commands():
        options = (param for param in command.params if isinstance(param, click.Option))
        if any("--json" in option.opts for option in options):
            tool, _, word = name.partition(" ")
            yield tool, word or None


@pytest.mark.parametrize(("tool", "command"), list(with_json()))
def test_every_command_with_json_has_a_schema(tool, command):
    assert tool in TOOLS_WITH_SCHEMA
    assert definitions(tool, command) != {}


@pytest.mark.parametrize("tool", sorted(TOOLS_WITH_SCHEMA))
def test_every_definition_is_of_a_command(tool):
    of_commands = [definitions(tool, command) for name, command in with_json() if name == tool]
    assert {name for found in of_commands for name in found} == set(schema_of(tool)["$defs"])


@pytest.mark.parametrize("name", sorted(TOOLS_WITH_SCHEMA))
def test_the_schema_is_printed(quorate, name):
    code, out, err = quorate(name, "--json-schema")
    assert (code, err) == (0, "")
    schema = json.loads(out)
    assert schema == schema_of(name)
    assert schema["$id"] == f"urn:quorate:cli:{name}:1"
    assert [each["$ref"] for each in schema["anyOf"]] == [f"#/$defs/{n}" for n in schema["$defs"]]


def test_a_tool_without_a_schema_reports_that(quorate):
    code, out, err = quorate("server-start", "--json-schema")
    assert (code, out) == (1, "")
    assert "has no schema" in err


def test_the_validator_sees_mistakes():
    schema = schema_of("leader-election")["$defs"]["election"]
    row = {"topic": "t", "partition": 0, "result": "elected", "error": None}
    assert problems(schema, [row]) == []
    wrong = [row | {"partition": "0"}, row | {"result": "maybe"}, {}, 7]
    assert [len(problems(schema, [each])) for each in wrong] == [1, 1, 4, 1]
    assert not fits(schema_of("leader-election"), wrong)


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (["storage", "random-uuid"], '{"uuid": 7}'),
        (["storage", "info"], '{"uuid": "of another command"}'),
        (["topics", "--list"], "[1]"),
        (["dump-log"], '{"kind":"log","startOffset":0,"path":"p"}\n{"kind":"what"}'),
        (["sim", "run"], "{}"),
        (["pipeline", "campaign"], "[]"),
    ],
)
def test_what_another_command_prints_does_not_fit(words, out):
    assert len(misfits(words, out)) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("storage", "random-uuid"),
        ("storage", "version-mapping"),
        (
            "storage",
            "feature-dependencies",
            "-f",
            "kraft.version=1",
            "-f",
            "eligible.leader.replicas.version=1",
        ),
        ("features", "version-mapping"),
        ("features", "feature-dependencies", "-f", "share.version=1"),
        ("sim", "run", "--seeds", "0"),
    ],
    ids=" ".join,
)
def test_commands_without_a_cluster_fit_their_schema(quorate, words):
    """The fixture compares; those with a cluster or a warehouse have tests of their own."""
    code, out, _ = quorate(*words, "--json")
    assert (code, out[:1] in "[{") == (0, True)


def test_the_results_of_long_jobs_fit_their_schema():
    """Without the minutes that the jobs take; the tests of the others run them."""
    run = NemesisResult(NemesisOptions(1, 2.5, (), Path("run")), faults=Counter(kill=2))
    run.violations.append(Violation("linearizability", "a read is stale"))
    assert misfits(["sim", "nemesis"], json.dumps(run.to_json())) == []
    repaired = RepairSummary("w", ["a commit"], {"log": ["f"]}, forgotten={"c": [(3, 5)]})
    assert misfits(["pipeline", "repair"], json.dumps(asdict(repaired))) == []
