"""The bugs that a member can plant into itself."""

from __future__ import annotations

from typing import Final

NONE: Final = "none"
OWN: Final = {
    "forget": "syncs of the log return and have done nothing",
    "hasty": "writes are answered before they are committed",
    "stale": "any member answers gets from what it has, without asking whether that is all",
}
"""Bugs of the member, which it plants itself."""
