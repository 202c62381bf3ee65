"""The text of a Java properties file."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from quorate.node.settings import ConfigError

_MALFORMED: Final = "Malformed \\uxxxx encoding."


def parse_properties(data: bytes, source: str) -> dict[str, str]:
    """Keys and values of a Java properties text (ISO-8859-1, Java's escapes; the last one wins).

    Raises ConfigError with the line of the first thing that cannot be parsed.
    """
    from jproperties import ParseError, Properties  # costs 8 ms that most commands need not pay

    properties = Properties()
    try:
        properties.load(BytesIO(data), "iso-8859-1")
    except ParseError as error:
        where = f"{source}, line {error.line_number}"
        reason = error.message if error.message and "int()" not in error.message else _MALFORMED
        raise ConfigError(f"Not a properties file: {reason}", where=where) from None
    return dict(properties.properties)
