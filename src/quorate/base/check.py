"""Assertions that stay on in production."""

from __future__ import annotations

from quorate.base.errors import BrokenInvariant


def check(condition: bool, what: str, *facts: object) -> None:
    """Raise BrokenInvariant(`what` and the facts) unless `condition` holds."""
    if not condition:
        raise BrokenInvariant(what if not facts else f"{what}: {', '.join(map(repr, facts))}")
