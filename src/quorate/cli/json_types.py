"""Parts of which the JSON schemas of the tools are made."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "integer"}
QUANTITY: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}


def object_of(**properties: Schema) -> Schema:
    """An object with all of these properties; `with_optional` and `with_any` add others."""
    return {"type": "object", "required": list(properties), "properties": properties}


def list_of(items: Schema) -> Schema:
    """An array of such items."""
    return {"type": "array", "items": items}


def map_of(values: Schema) -> Schema:
    """An object with any names, and such values; `{}` is any value."""
    return {"type": "object", "additionalProperties": values}


def or_null(schema: Schema) -> Schema:
    """Such a value, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def one_of(*values: str) -> Schema:
    """One of these strings."""
    return {"type": "string", "enum": list(values)}


def with_optional(schema: Schema, **properties: Schema) -> Schema:
    """The object may also have these properties."""
    return {**schema, "properties": {**schema["properties"], **properties}}


def with_any(schema: Schema) -> Schema:
    """The object may also have any other property."""
    return {**schema, "additionalProperties": {}}


def all_of(*objects: Schema) -> Schema:
    """An object with the properties of all these objects."""
    return object_of(**{name: one for each in objects for name, one in each["properties"].items()})


MAYBE_TEXT: Final = or_null(TEXT)
MAYBE_NUMBER: Final = or_null(NUMBER)
