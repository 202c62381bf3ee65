"""The codec in C, if it has been built (`python -m quorate.wire.build`).

It only knows the straight road. What it has not learned yet, and every fault, it hands to the
codec in Python, which decides; so both always agree, and errors have one owner.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

from quorate.wire.schema import Message, Schema, Struct

FORMAT: Final = 3
"""Of the programs (program.py) and functions; an extension that was built for another one is left out."""

M = TypeVar("M", bound=Message)
_learned: Final[set[tuple[type[Message], int]]] = set()
_native: ModuleType
is_loaded = False
"""The extension is in use."""
ItemsDecoder = Callable[[bytes, int, int, int], tuple[list[Any], int]]


def start(
    encode: Callable[[Message, int], bytes],
    decode: Callable[..., Any],
    decode_prefix: Callable[..., Any],
) -> bool:
    """Load the extension, with the functions it falls back on; False when there is none."""
    global _native, is_loaded
    try:
        _native = import_module("quorate.wire._native")
    except ImportError:
        return False
    if _native.FORMAT != FORMAT:
        return False

    def slow_encode(message: Message, version: int) -> bytes:
        if _learn(type(message), version):
            found: bytes = _native.encode(message, version)
            return found
        return encode(message, version)

    def slow_decode(cls: type[M], version: int, data: Any, *pos: int) -> Any:
        if _learn(cls, version) or not isinstance(data, bytes):
            again = _native.decode_prefix if pos else _native.decode
            return again(cls, version, bytes(data), *pos)
        return (decode_prefix if pos else decode)(cls, version, data, *pos)

    _native.fall_back(slow_encode, slow_decode)
    is_loaded = True
    return True


def functions() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return `encode`, `decode` and `decode_prefix` in C."""
    return _native.encode, _native.decode, _native.decode_prefix


def items_decoder(cls: type[Struct], schema: Schema, version: int) -> ItemsDecoder | None:
    """Decodes structs of a list in `version` of the message with `schema`; None: there is no extension.

    It takes bytes, a position, where to stop (exclusive) and how many there are. It returns those that end
    before that and are nothing unusual, and the position behind them.
    """
    if not is_loaded:
        return None
    from quorate.wire.program import items_program  # as in `_learn`

    return partial(_native.decode_items, _native.items_spec(items_program(cls, schema, version)))


def _learn(cls: type[Message], version: int) -> bool:
    """Teach the extension a version of a message; False when it knows it, or cannot learn it."""
    low, high = cls.schema.versions
    if (cls, version) in _learned or not low <= version <= high:
        return False
    from quorate.wire.program import program_for  # only where needed: start-up time

    _learned.add((cls, version))
    _native.learn(cls, version, program_for(cls, version))
    return True
