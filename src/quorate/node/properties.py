"""A properties file as a node's configuration."""

from __future__ import annotations

from quorate.formats.properties import MalformedProperties, Property, load_properties
from quorate.node.settings import ConfigError


def parse_properties(data: bytes, source: str) -> dict[str, Property]:
    """As `load_properties`; raises ConfigError with the line that cannot be parsed."""
    try:
        return load_properties(data)
    except MalformedProperties as error:
        where = f"{source}, line {error.line}"
        raise ConfigError(f"Not a properties file: {error}", where=where) from None
