"""Lines of log4j: a parser made from the PatternLayout that wrote them.

The layout of Kafka 4.3.1's `config/log4j2.yaml` is `[%d] %p %m (%c)%n`: local time of the node,
without a time zone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quorate.base.errors import QuorateError

KAFKA: Final = "[%d] %p %m (%c)%n"

_NAMED: Final = {
    "": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT_PERIOD": "yyyy-MM-dd HH:mm:ss.SSS",
    "ISO8601": "yyyy-MM-dd'T'HH:mm:ss,SSS",
    "ISO8601_PERIOD": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_OFFSET_DATE_TIME_HH": "yyyy-MM-dd'T'HH:mm:ss,SSSX",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXX",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "COMPACT": "yyyyMMddHHmmssSSS",
}
"""log4j's predefined date formats."""
_DATE: Final = {
    "y": ("year", r"\d{4}"),
    "M": ("month", r"\d{2}"),
    "d": ("day", r"\d{2}"),
    "H": ("hour", r"\d{2}"),
    "m": ("minute", r"\d{2}"),
    "s": ("second", r"\d{2}"),
    "S": ("fraction", r"\d+"),
    "n": ("fraction", r"\d+"),
    "X": ("offset", r"Z|[+-]\d{2}(?::?\d{2})?"),
    "x": ("offset", r"[+-]\d{2}(?::?\d{2})?"),
    "Z": ("offset", r"[+-]\d{4}"),
}
_NEEDED: Final = ("year", "month", "day", "hour", "minute", "second")
_WORDS: Final = {
    **dict.fromkeys(("p", "level"), r"(?P<level>[A-Z]+)"),
    **dict.fromkeys(("m", "msg", "message"), r"(?P<message>.*?)"),
    **dict.fromkeys(("c", "logger"), r"(?P<logger>\S+)"),
    **dict.fromkeys(("t", "tn", "thread", "threadName"), r".*?"),
    **dict.fromkeys(("tid", "T", "threadId", "tp", "threadPriority"), r"\d+"),
    **dict.fromkeys(("r", "relative", "pid", "processId", "sn", "sequenceNumber"), r"\d+"),
    **dict.fromkeys(("L", "line", "C", "class", "M", "method", "F", "file"), r"\S+"),
    **dict.fromkeys(("l", "location", "X", "mdc", "MDC", "x", "NDC", "marker"), r".*?"),
    **dict.fromkeys(("ex", "exception", "throwable", "xEx", "rEx", "n"), ""),
}
_SPECIFIER: Final = re.compile(
    r"%(?:%|(?P<width>-?\d*(?:\.-?\d+)?)(?P<word>[a-zA-Z]+)(?P<args>(?:\{[^}]*\})*))"
)


_ENCODED: Final = re.compile(r"%(?:enc|encode)\{(%\w+)\}(?:\{CRLF\})?")
"""The message with its line breaks escaped."""


class LayoutError(QuorateError):
    """A pattern that cannot be parsed, or a time zone that does not exist."""

    exit_code = 2


class LogRecord(NamedTuple):
    """A log record."""

    times: tuple[int, ...]
    """ms since 1970; two where the local time occurred twice, at the end of daylight saving time."""
    level: str | None
    logger: str | None
    message: str
    rest: str
    """The lines after the first record line: a stack trace."""


class Layout(NamedTuple):
    """A parser for the lines of one PatternLayout."""

    begin: re.Pattern[str]
    """The beginning of a record: a line that does not match continues the record before."""
    regex: re.Pattern[str]
    times: Callable[[re.Match[str]], tuple[int, ...]]

    def parse(self, text: str) -> LogRecord | None:
        """Parse a record (its lines, without the last line break); None for another layout."""
        found = self.regex.match(text)
        if found is None:
            return None
        try:
            times = self.times(found)
        except (ValueError, OverflowError):
            return None
        words = found.groupdict()
        return LogRecord(
            times, words.get("level"), words.get("logger"), words["message"], words["rest"]
        )


def layout(pattern: str = KAFKA, zone: str = "UTC") -> Layout:
    """The parser of a log4j 2 PatternLayout; `zone`: of times without a zone.

    Raises LayoutError where the pattern has no full date or no message, or conversions that cannot
    be parsed.
    """
    given, pattern = pattern, _ENCODED.sub(r"\1", pattern)
    parts, end, own_zone, seen = list[str](), 0, "", set[str]()
    for found in _SPECIFIER.finditer(pattern):
        parts.append(re.escape(pattern[end : found.start()]))
        end = found.end()
        word = found["word"]
        if word is None:
            parts.append("%")
            continue
        args = re.findall(r"\{([^}]*)\}", found["args"])
        if word in ("d", "date"):
            one = _date(args[0] if args else "", given)
            own_zone = args[1] if len(args) > 1 else ""
            seen.add("d")
        else:
            known = _known(word)
            if known is None:
                raise LayoutError(f"--pattern {given}: %{word} cannot be parsed")
            word, rest = known
            one = _WORDS[word] + re.escape(rest)
            seen.add(word)
        padding = r"\s*" if found["width"] else ""
        parts.append(f"{padding}{one}{padding}")
    parts.append(re.escape(pattern[end:]))
    if "d" not in seen or not seen & {"m", "msg", "message"}:
        raise LayoutError(f"--pattern {given}: it needs %d (time) and %m (message)")
    place = next(n for n, part in enumerate(parts) if "(?P<message>" in part)
    try:
        regex = re.compile("".join(parts) + r"(?P<rest>(?:\n.*)?)\Z", re.DOTALL)
        begin = re.compile("".join(parts[:place]) or "(?!)")
    except re.error:
        raise LayoutError(f"--pattern {given}: each conversion may occur once") from None
    if not {"minute", "epoch"} & begin.groupindex.keys():
        raise LayoutError(f"--pattern {given}: the time must come before the message")
    local = time_zone(own_zone or zone)
    if "epoch" in regex.groupindex:
        return Layout(begin, regex, _epoch)
    return Layout(begin, regex, lambda found: _times(found, local))


def _known(word: str) -> tuple[str, str] | None:
    """The longest conversion word that the letters begin with, and the letters after it."""
    for size in range(len(word), 0, -1):
        if word[:size] in _WORDS:
            return word[:size], word[size:]
    return None


def _date(name: str, pattern: str) -> str:
    """The regular expression of a `%d{name}`."""
    if name in ("UNIX", "UNIX_MILLIS"):
        return rf"(?P<epoch>\d{{{10 if name == 'UNIX' else 13}}})"
    text, parts, groups = _NAMED.get(name, name), list[str](), set[str]()
    for found in re.finditer(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']", text):
        letter = found[2]
        if letter is None:
            parts.append(re.escape(found[1] if found[1] is not None else found[0]))
        elif letter in _DATE and not (letter == "M" and len(found[0]) > 2):
            group, regex = _DATE[letter]
            exact = rf"\d{{{len(found[0])}}}" if letter in "Sn" else regex
            parts.append(f"(?P<{group}>{exact})")
            groups.add(group)
        else:
            raise LayoutError(f"--pattern {pattern}: '{found[0]}' in %d{{{name}}} is not supported")
    missing = [group for group in _NEEDED if group not in groups]
    if missing:
        raise LayoutError(f"--pattern {pattern}: %d{{{name}}} has no {missing[0]}")
    return "".join(parts)


def _epoch(found: re.Match[str]) -> tuple[int, ...]:
    text = found["epoch"]
    return (int(text) * (1000 if len(text) == 10 else 1),)


def _times(found: re.Match[str], local: tzinfo) -> tuple[int, ...]:
    words = found.groupdict()
    zone = _offset(words["offset"]) if words.get("offset") else local
    fraction = words.get("fraction") or "0"
    millis = int(fraction[:3].ljust(3, "0"))
    minute = tuple(int(words[name]) for name in _NEEDED[:5])
    seconds = int(words["second"])
    return tuple(start + seconds * 1000 + millis for start in _minutes(minute, zone))


@lru_cache(maxsize=4096)
def _minutes(minute: tuple[int, ...], zone: tzinfo) -> tuple[int, ...]:
    """When a local minute began, ms since 1970; both instants where it occurred twice."""
    year, month, day, hour, at = minute
    first = datetime(year, month, day, hour, at, tzinfo=zone)
    second = first.replace(fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    came_twice = before is not None and after is not None and after < before
    return tuple(
        int(one.timestamp()) * 1000 for one in ((first, second) if came_twice else (first,))
    )


def _offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(4, "0")
    shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-shift if text[0] == "-" else shift)


def time_zone(name: str) -> tzinfo:
    """The zone of a tz database name, or of an offset like +02:00. Raises LayoutError."""
    if re.fullmatch(r"(?:GMT|UTC)?[+-]\d{2}:?\d{2}", name):
        return _offset(name[-6:] if ":" in name else name[-5:])
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise LayoutError(
            f"time zone '{name}': it does not exist; use a name like Europe/Berlin, UTC or +02:00"
        ) from None
