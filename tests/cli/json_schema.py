"""A validator of the JSON Schema keywords that the tools' schemas have; any other keyword fails."""

import math

KNOWN = {"type", "required", "properties", "items", "additionalProperties", "enum"}
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def problems(schema, value, place="$"):
    """What is wrong with a value, as texts."""
    assert set(schema) <= KNOWN, schema
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
