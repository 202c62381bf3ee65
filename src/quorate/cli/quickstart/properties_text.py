"""Write a Java properties file: ISO-8859-1 with Java's escapes."""

from __future__ import annotations

import struct
from collections.abc import Mapping


def properties_text(values: Mapping[str, str]) -> bytes:
    """A file of these keys, in their order."""
    lines = (f"{key}={escape_property(value)}\n" for key, value in values.items())
    return "".join(lines).encode("iso-8859-1")


def escape_property(value: str) -> str:
    """Escape a value; what is not ASCII becomes UTF-16 units."""
    text = value.replace("\\", "\\\\")
    if text.isascii():
        return text
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    return "".join(chr(unit) if unit < 0x80 else f"\\u{unit:04x}" for (unit,) in units)
