"""Messages to bytes and back.

The codec of a (class, version) is generated and compiled when it is first used, then kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from quorate.wire.errors import EncodeError, WireError
from quorate.wire.schema import Message

M = TypeVar("M", bound=Message)
Buffer = bytes | bytearray | memoryview
Encoder = Callable[[Any, bytearray], None]
Decoder = Callable[[bytes, int], tuple[Any, int]]

_CODECS: Final[dict[tuple[type[Message], int], tuple[Encoder, Decoder]]] = {}


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message` in `version`.

    Raises EncodeError when a value does not fit its type or the version does not exist;
    UnsupportedFieldError when a field is set that the version lacks and that is not ignorable.
    """
    out = bytearray()
    encode_into(out, message, version)
    return bytes(out)


def encode_into(out: bytearray, message: Message, version: int) -> None:
    """Like `encode`, appending to `out`."""
    cls = type(message)
    pair = _CODECS.get((cls, version))
    if pair is None:
        low, high = cls.schema.versions
        if not low <= version <= high:
            raise EncodeError(f"{cls.schema.name} has versions {low} to {high}, not {version}")
        pair = _compiled(cls, version)
    pair[0](message, out)


def decode(cls: type[M], version: int, data: Buffer) -> M:
    """The message in `data`, all of it.

    Raises WireError when the bytes are not a `cls` of `version`.
    """
    message, pos = decode_prefix(cls, version, data, 0)
    if pos != len(data):
        raise WireError(
            f"{cls.schema.name} v{version}: it ends at byte {pos}, but {len(data)} were given"
        )
    return message


def decode_prefix(cls: type[M], version: int, data: Buffer, pos: int) -> tuple[M, int]:
    """The message that starts at `pos`, and the position behind it (exclusive).

    Raises WireError when the bytes are not a `cls` of `version`.
    """
    pair = _CODECS.get((cls, version))
    if pair is None:
        low, high = cls.schema.versions
        if not low <= version <= high:
            raise WireError(f"{cls.schema.name} has versions {low} to {high}, not {version}")
        pair = _compiled(cls, version)
    if not isinstance(data, bytes):
        data = bytes(data)
    return pair[1](data, pos)


def _compiled(cls: type[Message], version: int) -> tuple[Encoder, Decoder]:
    from quorate.wire import codegen  # only where a codec is made: it costs start-up time

    scope: dict[str, Any] = {struct.__name__: struct for struct in codegen.structs(cls)}
    source = codegen.HEADER + codegen.source_for(cls, version)
    exec(compile(source, f"<codec of {cls.__name__} v{version}>", "exec"), scope)
    encoder_name, decoder_name = codegen.names(cls, version)
    pair = scope[encoder_name], scope[decoder_name]
    _CODECS[cls, version] = pair
    return pair


def is_compiled() -> bool:
    """True when the codecs run as machine code (`quorate.wire.build`), False in pure Python."""
    return False
