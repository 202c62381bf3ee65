"""Assertions that stay on in production."""

from __future__ import annotations

from quorate.base.errors import InvariantError


def check(condition: bool, what: str, *facts: object) -> None:
    """Raise InvariantError(`what` and the facts) unless `condition` holds."""
    if not condition:
        raise InvariantError(what if not facts else f"{what}: {', '.join(map(repr, facts))}")
