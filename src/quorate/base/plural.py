"""English plurals in messages."""

from __future__ import annotations


def pluralize(count: int, one: str, more: str = "") -> str:
    """`count` and its noun: "1 batch", "2 batches". `more`: the plural, where `s` does not make it."""
    return f"{count} {one if count == 1 else more or one + 's'}"
