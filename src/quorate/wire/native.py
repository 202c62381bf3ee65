"""The codec in C, if it has been built (`python -m quorate.wire.build`).

It only knows the straight road. What it has not learned yet, and every fault, it hands to the
codec in Python, which decides; so both always agree, and errors have one owner.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

from quorate.wire.schema import Message

FORMAT: Final = 3
"""Of the programs (program.py) and functions; an extension that was built for another one is left out."""

M = TypeVar("M", bound=Message)
_learned: Final[set[tuple[type[Message], int]]] = set()
_native: ModuleType


def start(
    encode: Callable[[Message, int], bytes],
    decode: Callable[..., Any],
    decode_prefix: Callable[..., Any],
) -> bool:
    """Load the extension, with the functions it falls back on; False when there is none."""
    global _native
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
    return True


def functions() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return `encode`, `decode` and `decode_prefix` in C."""
    return _native.encode, _native.decode, _native.decode_prefix


def try_decode_prefix(cls: type[M], version: int, data: bytes, pos: int) -> tuple[M, int] | None:
    """As `decode_prefix`; None where the codec in Python has to decide."""
    found: tuple[M, int] | None = _native.try_decode_prefix(cls, version, data, pos)
    if found is None and _learn(cls, version):
        found = _native.try_decode_prefix(cls, version, data, pos)
    return found


def _learn(cls: type[Message], version: int) -> bool:
    """Teach the extension a version of a message; False when it knows it, or cannot learn it."""
    low, high = cls.schema.versions
    if (cls, version) in _learned or not low <= version <= high:
        return False
    from quorate.wire.program import program_for  # only where needed: start-up time

    _learned.add((cls, version))
    _native.learn(cls, version, program_for(cls, version))
    return True
