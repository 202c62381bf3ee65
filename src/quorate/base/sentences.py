"""Sentences that are put together from texts of others."""

from __future__ import annotations

_ENDS = (".", "!", "?")


def sentence(text: str) -> str:
    """The text with a full stop, unless it ends as a sentence already: errors of Kafka often do."""
    text = text.rstrip()
    return text if text.endswith(_ENDS) else text + "."
