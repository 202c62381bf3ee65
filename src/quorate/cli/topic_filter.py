"""Patterns of topic names, as Kafka's tools read them (`TopicFilter.IncludeList`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError


class TopicPatternError(QuorateError):
    """A pattern of topics that is no regular expression."""


_SPECIAL: Final = re.compile(r"[^\w-]")
_REPEATS: Final = "*+?{"


class TopicStart(NamedTuple):
    """What every name that a pattern matches begins with."""

    text: str
    is_whole: bool
    """No other name matches."""


def _regex(text: str) -> str:
    return text.strip().replace(",", "|").replace(" ", "").strip("\"'")


def topic_starts(patterns: Sequence[str]) -> list[TopicStart]:
    """The starts of all names that one of the patterns can match; one empty start: any name."""
    found = []
    for regex in map(_regex, patterns):
        # An alternative inside parentheses or brackets belongs to what stands before them.
        parts = regex.split("|") if not set("()[]\\") & set(regex) else [regex]
        found += [_start(each) for each in parts if "|" not in each]
        if any("|" in each for each in parts):
            found.append(TopicStart("", is_whole=False))
    if not found or any(not each.text for each in found):
        return [TopicStart("", is_whole=False)]
    return sorted(set(found))


def _start(regex: str) -> TopicStart:
    special = _SPECIAL.search(regex)
    if special is None:
        return TopicStart(regex, is_whole=True)
    end = special.start()
    if special[0] in _REPEATS:
        end -= 1  # the letter before it may be missing
    return TopicStart(regex[: max(end, 0)], is_whole=False)


@cache
def topic_pattern(text: str) -> re.Pattern[str]:
    """The Java pattern of `--topic`; a comma separates alternatives. Raises TopicPatternError."""
    from quorate.security.java_patterns import PatternError, compiled

    regex = _regex(text)
    try:
        return compiled(regex)
    except PatternError as error:
        raise TopicPatternError(
            f"{regex} is an invalid regex. Expected are a topic's name or a regular expression of "
            f"Java, several with commas between: {error}"
        ) from None


def matching(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that one of the patterns matches as a whole; every name without patterns."""
    if not patterns:
        return list(names)
    wanted = [topic_pattern(text) for text in patterns]
    return [name for name in names if any(pattern.fullmatch(name) for pattern in wanted)]
