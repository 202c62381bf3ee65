"""Say what a type checker cannot know."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Return the value. Raise AssertionError where there is none."""
    assert value is not None
    return value


def as_any(value: object) -> Any:
    """Return the value as of any type: a stand-in for a real object, or a wrong argument."""
    return value
