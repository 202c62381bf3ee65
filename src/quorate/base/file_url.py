"""Paths in `file:` URLs."""

from __future__ import annotations


def path_of(url: str | None) -> str | None:
    """Return the path in a `file:` URL; None for any other text."""
    if url is None or not url.startswith("file:"):
        return None
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path)
