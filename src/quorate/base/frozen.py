"""Immutable values, made fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")

held_at_run_time = False
"""The tests set it, before anything else is imported: a change then raises."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A dataclass with slots that may not be changed: with `==` and a hash, as `frozen=True` gives.

    The type checker and the tests hold that it is immutable. At run time it would make
    each of the dozen values of a step four times as slow to build.
    """
    return dataclass(slots=True, unsafe_hash=True, frozen=held_at_run_time)(cls)
