"""Credentials: SCRAM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.security.scram import ScramError, parse_scram
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "scram": "ScramError parse_scram",
        },
    )

__all__ = [
    "ScramError",
    "parse_scram",
]
