"""Messages to bytes and back.

Two codecs do the same from the same declarations: one in Python, generated for each version of a
message, and one in C where it has been built (see `native`).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeVar

from quorate.wire import generated, native
from quorate.wire.errors import WireError
from quorate.wire.schema import Message

M = TypeVar("M", bound=Message)
Buffer = bytes | bytearray | memoryview
SMALL_BYTES: Final = 32_768
"""So many bytes the codec in Python, too, decodes within 20 ms."""


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message` in `version`.

    Raises EncodeError when a value does not fit its type or the version does not exist;
    UnsupportedFieldError when a field is set that the version lacks and that is not ignorable.
    """
    return generated.encode(message, version)


def decode(cls: type[M], version: int, data: Buffer) -> M:
    """The message in `data`, all of it.

    Raises WireError when the bytes are not a `cls` of `version`.
    """
    message, pos = generated.decode_prefix(cls, version, bytes(data), 0)
    if pos != len(data):
        raise WireError(
            f"{cls.schema.name} v{version}: it ends at byte {pos}, but {len(data)} were given"
        )
    return message


def decode_prefix(cls: type[M], version: int, data: Buffer, pos: int) -> tuple[M, int]:
    """The message that starts at `pos`, and the position behind it (exclusive).

    Raises WireError when the bytes are not a `cls` of `version`.
    """
    return generated.decode_prefix(cls, version, bytes(data), pos)


def decode_prefix_in_steps(
    cls: type[M], version: int, data: bytes, pos: int
) -> Generator[None, None, tuple[M, int]]:
    """Decode as `decode_prefix` does, with pauses where that takes many milliseconds."""
    if len(data) - pos <= SMALL_BYTES:
        return decode_prefix(cls, version, data, pos)
    return (yield from generated.decode_in_steps(cls, version, data, pos))


NATIVE: Final = native.start(encode, decode, decode_prefix)
"""True when the codec in C is in use."""

if NATIVE:
    # They replace ours instead of being called by them: the call would cost as much as the work.
    encode, decode, decode_prefix = native.functions()
