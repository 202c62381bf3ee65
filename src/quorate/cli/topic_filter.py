"""Patterns of topic names, as Kafka's tools read them (`TopicFilter.IncludeList`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from quorate.base.errors import QuorateError


class TopicPatternError(QuorateError):
    """A pattern of topics that is no regular expression."""


@cache
def topic_pattern(text: str) -> re.Pattern[str]:
    """The pattern of `--topic`; a comma separates alternatives. Raises TopicPatternError."""
    regex = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(regex)
    except re.error as error:
        raise TopicPatternError(f"{regex} is an invalid regex. ({error})") from None


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that one of the patterns matches as a whole; every name without patterns."""
    if not patterns:
        return list(names)
    wanted = [topic_pattern(text) for text in patterns]
    return [name for name in names if any(pattern.fullmatch(name) for pattern in wanted)]
