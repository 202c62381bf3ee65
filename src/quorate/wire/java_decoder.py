"""Decode what Kafka's generated readers take, though it is damaged.

1. In text that is not UTF-8, U+FFFD replaces what is malformed (`ByteBufferAccessor.readString`).
2. The size that precedes a known tagged field is not compared with the field.

For tools that print what Kafka's tools print. A node refuses such bytes: encoded again, the message
would be another one.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from quorate.base.java_utf8 import java_text
from quorate.wire import codec
from quorate.wire.errors import WireError
from quorate.wire.generated import Decoder
from quorate.wire.schema import Message

M = TypeVar("M", bound=Message)

_DECODERS: Final[dict[tuple[type[Message], int], Decoder]] = {}


def decode_prefix_as_java(cls: type[M], version: int, data: bytes, pos: int) -> tuple[M, int]:
    """The message that starts at `pos`, and the position behind it (exclusive).

    Raises WireError when the bytes are not a `cls` of `version` for Kafka either.
    """
    try:
        return codec.decode_prefix(cls, version, data, pos)
    except WireError:
        low, high = cls.schema.versions
        if not low <= version <= high:
            raise
    decode = _DECODERS.get((cls, version)) or _compiled(cls, version)
    return decode(data, pos)


def _compiled(cls: type[Message], version: int) -> Decoder:
    # Only where a codec is made: it costs start-up time.
    from quorate.wire import codegen
    from quorate.wire.source_decode import decoder_source

    _, name = codegen.names(cls, version)
    lines, layouts = decoder_source(cls, version, name, as_java=True)
    source = "\n".join([codegen.HEADER, *sorted(layouts), "", *lines, ""])
    scope: dict[str, Any] = {struct.__name__: struct for struct in codegen.structs(cls)}
    scope["java_text"] = java_text
    exec(compile(source, f"<Java's decoder of {cls.__name__} v{version}>", "exec"), scope)
    decode: Decoder = scope[name]
    _DECODERS[cls, version] = decode
    return decode
