"""Tables of types and ranges of keys, and the check of a file against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from quorate.config.settings import Settings

_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}


class ValueRule(NamedTuple):
    """The allowed values of a key: a number (`type` INT, LONG, ...) in a range, or a BOOLEAN."""

    type: str
    least: str
    most: str


def value_rules(ranges: str) -> Iterator[tuple[str, ValueRule]]:
    """Parse lines of `TYPE LOWEST..HIGHEST: KEYS` into (key, rule).

    Both bounds are inclusive and optional. A line without a colon has more keys of the line before.
    """
    rule = ValueRule("", "", "")
    for line in ranges.splitlines():
        head, colon, keys = line.partition(":")
        if colon:
            type_name, _, bounds = head.partition(" ")
            least, _, most = bounds.partition("..")
            rule = ValueRule(type_name, least, most)
        for key in (keys if colon else line).split():
            yield key, rule


def check_values(settings: Settings, ranges: str, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ConfigError for the first value outside its range or its choices."""
    for key, rule in value_rules(ranges):
        if key in settings:
            _check(settings, key, rule)
    for key, allowed in choices.items():
        value = settings.text(key)
        if value is not None and value not in allowed:
            settings.invalid(key, value, f"String must be one of: {', '.join(allowed)}")


def _check(settings: Settings, key: str, rule: ValueRule) -> None:
    if rule.type == "BOOLEAN":
        settings.boolean(key, False)
        return
    value: float | None
    if rule.type == "DOUBLE":
        value = settings.double(key)
    else:
        value = settings.integer(key, None, bits=_BITS[rule.type])
    assert value is not None
    if rule.least and value < float(rule.least):
        settings.invalid(key, value, f"Value must be at least {rule.least}")
    if rule.most and value > float(rule.most):
        settings.invalid(key, value, f"Value must be no more than {rule.most}")
