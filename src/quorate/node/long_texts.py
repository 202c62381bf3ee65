"""Error messages that are too long for the wire.

Many messages name what they refuse, and a name may have 32,767 bytes itself. Kafka cannot write such a
response and closes the connection; the client would learn neither code nor reason.
"""

from __future__ import annotations

from typing import Final

from quorate.wire.schema import Struct

_MOST_BYTES: Final = 32_767
"""Of a string."""
_KEPT: Final = 1_000
"""Characters that stay at each end of a message that is too long."""


def shorten_error_messages(message: Struct) -> bool:
    """Cut the middle out of each `error_message` that is too long; returns whether there was one."""
    found = False
    for field in type(message).schema.fields:
        value = getattr(message, field.name)
        if field.name == "error_message":
            if value is not None and len(value.encode("utf-8", "replace")) > _MOST_BYTES:
                setattr(message, field.name, f"{value[:_KEPT]} ... {value[-_KEPT:]}")
                found = True
        elif field.type_name == "array" and field.holds_structs:
            for item in value or ():
                found = shorten_error_messages(item) or found
    return found
