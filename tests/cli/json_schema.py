"""A validator of the JSON Schema keywords that the tools' schemas have; any other keyword fails."""

import json
import math
from importlib import import_module

import click

from quorate.cli.json_schemas import schema_of
from quorate.cli.main import TOOLS

KNOWN = {"type", "required", "properties", "items", "additionalProperties", "enum"}
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def problems(schema, value, place="$"):
    """What is wrong with a value, as texts; the schema {} takes any."""
    assert set(schema) <= KNOWN, schema
    if not schema:
        return []
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(name, value) for name in names):
        return [f"{place}: {value!r} is not {' or '.join(names)}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{place}: {value!r} is not one of {schema['enum']}")
    if isinstance(value, dict):
        missing = set(schema.get("required", ())) - set(value)
        found += [f"{place}: {name} is missing" for name in missing]
        for name, inner in value.items():
            one = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if one is None:
                found.append(f"{place}: {name} is not documented")
            found += problems(one, inner, f"{place}.{name}") if one else []
    if isinstance(value, list) and "items" in schema:
        for number, inner in enumerate(value):
            found += problems(schema["items"], inner, f"{place}[{number}]")
    return found


def _is(name, value):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return _is("integer", value) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, TYPES[name])


def fits(schema, value):
    """Whether a value fits one of the definitions of a tool's schema."""
    return any(not problems(one, value) for one in schema["$defs"].values())


def commands_of(tool):
    """The names of a tool's commands; none where its verbs are options."""
    module, _, attribute = TOOLS[tool].place.partition(":")
    command = getattr(import_module(module), attribute)
    return set(command.commands) if isinstance(command, click.Group) else set()


def definitions(tool, command):
    """The definitions of a command by name; `command`: of a tool that has commands."""
    found = schema_of(tool)["$defs"]
    if command is None:
        return found
    others = commands_of(tool) - {command}
    return {
        name: one
        for name, one in found.items()
        if name == command or (name.startswith(f"{command}-") and name not in others)
    }


def misfits(words, out):
    """The documents of what `quorate WORDS --json` printed that its command's schema refuses."""
    tool, names = words[0], commands_of(words[0])
    allowed = definitions(tool, next((word for word in words if word in names), None))
    assert allowed, words
    try:
        documents = [json.loads(out)]
    except json.JSONDecodeError:
        documents = [json.loads(line) for line in out.splitlines()]
    return [
        min((problems(each, one) for each in allowed.values()), key=len)
        for one in documents
        if all(problems(each, one) for each in allowed.values())
    ]
