"""The codec in Python: generated for each (class, version) when first used, compiled once, kept.

This is the codec where there is no C compiler, and where there is one it still decides about
everything unusual: see `codec`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar

from quorate.wire.errors import EncodeError, WireError
from quorate.wire.schema import Message

M = TypeVar("M", bound=Message)
Encoder = Callable[[Any, bytearray], None]
Decoder = Callable[[bytes, int], tuple[Any, int]]
StepDecoder = Callable[[bytes, int], Generator[None, None, tuple[Any, int]]]

_CODECS: Final[dict[tuple[type[Message], int], tuple[Encoder, Decoder]]] = {}
_STEP_DECODERS: Final[dict[tuple[type[Message], int], StepDecoder]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message` in `version`. Raises EncodeError."""
    cls = type(message)
    pair = _CODECS.get((cls, version)) or _compiled(cls, version, EncodeError)
    out = bytearray()
    pair[0](message, out)
    return bytes(out)


def decode_prefix(cls: type[M], version: int, data: bytes, pos: int) -> tuple[M, int]:
    """The message that starts at `pos`, and the position behind it. Raises WireError."""
    pair = _CODECS.get((cls, version)) or _compiled(cls, version, WireError)
    return pair[1](data, pos)


def _compiled(
    cls: type[Message], version: int, error: type[EncodeError] | type[WireError]
) -> tuple[Encoder, Decoder]:
    low, high = cls.schema.versions
    if not low <= version <= high:
        raise error(f"{cls.schema.name} has versions {low} to {high}, not {version}")
    from quorate.wire import codegen  # only where a codec is made: it costs start-up time

    scope: dict[str, Any] = {struct.__name__: struct for struct in codegen.structs(cls)}
    source = codegen.HEADER + codegen.source_for(cls, version)
    exec(compile(source, f"<codec of {cls.__name__} v{version}>", "exec"), scope)
    encoder_name, decoder_name = codegen.names(cls, version)
    pair = scope[encoder_name], scope[decoder_name]
    _CODECS[cls, version] = pair
    return pair


def decode_in_steps(
    cls: type[M], version: int, data: bytes, pos: int
) -> Generator[None, None, tuple[M, int]]:
    """Decode as `decode_prefix` does, with a pause every few kilobytes. The version must exist.

    Raises WireError.
    """
    decoder = _STEP_DECODERS.get((cls, version))
    if decoder is None:
        from quorate.wire import codegen, native  # as in `_compiled`

        scope: dict[str, Any] = {struct.__name__: struct for struct in codegen.structs(cls)}
        for struct in codegen.structs(cls)[1:]:
            decoder_of_items = native.items_decoder(struct, cls.schema, version)
            scope[codegen.items_name(struct)] = decoder_of_items
        source = codegen.HEADER + codegen.step_decoder_source(cls, version)
        exec(compile(source, f"<decoder in steps of {cls.__name__} v{version}>", "exec"), scope)
        decoder = scope[codegen.names(cls, version)[1]]
        _STEP_DECODERS[cls, version] = decoder
    return (yield from decoder(data, pos))
