"""Texts that are counted."""

from __future__ import annotations


def many(count: int, one: str, more: str = "") -> str:
    """A count of things in words; `more`: what several of them are called, where no `s` does."""
    return f"{count} {one if count == 1 else more or one + 's'}"
