"""Java properties as typed settings, with Kafka's messages for wrong values.

The rules of types and ranges are those of `org.apache.kafka.common.config.ConfigDef`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NoReturn

from quorate.base.errors import QuorateError

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)
COMMA: Final = re.compile(r"\s*,\s*")
_BLANKS: Final = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away: a no-break space is a part of the value."""
_TYPE_NAMES: Final = {16: "SHORT", 32: "INT", 64: "LONG"}
_DOUBLE: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Infinity", re.ASCII
)


class ConfigError(QuorateError):
    """A configuration that cannot be used: which key and value, where, what is right.

    `reason` is the message without the place.
    """

    def __init__(self, reason: str, *, key: str | None = None, where: str | None = None) -> None:
        super().__init__(f"{reason} ({where})" if where else reason)
        self.reason = reason
        self.key = key
        self.where = where


class Settings:
    """Key and value texts of one properties file and its overrides, and where each was set."""

    def __init__(
        self, values: Mapping[str, str], places: Mapping[str, str], source: str = ""
    ) -> None:
        self._values = {key: value.strip(_BLANKS) for key, value in values.items()}
        self._places = places
        self.source = source
        self.notes: list[str] = []
        """What was accepted, but is hardly meant so."""

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def where(self, key: str) -> str:
        """File and line, or the override, that set `key`; the file alone for an absent key."""
        return self._places.get(key, self.source)

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise ConfigError about `key`."""
        raise ConfigError(reason, key=key, where=self.where(key))

    def invalid(self, key: str, value: object, why: str) -> NoReturn:
        """Raise ConfigError in the form that Kafka gives to a wrong value."""
        self.refuse(key, f"Invalid value {value} for configuration {key}: {why}")

    def text(self, key: str) -> str | None:
        return self._values.get(key)

    def required(self, key: str) -> str:
        value = self._values.get(key)
        if value is None:
            self.refuse(key, f'Missing required configuration "{key}" which has no default value.')
        return value

    def integer(
        self, key: str, default: int | None, *, at_least: int | None = None, bits: int = 32
    ) -> int | None:
        """A signed integer of `bits` bits; `default` when the key is absent."""
        text = self._values.get(key)
        if text is None:
            return default
        limit = 1 << (bits - 1)
        number = int(text) if _INTEGER.fullmatch(text) else limit
        if not -limit <= number < limit:
            self.invalid(key, text, f"Not a number of type {_TYPE_NAMES[bits]}")
        if at_least is not None and number < at_least:
            self.invalid(key, number, f"Value must be at least {at_least}")
        return number

    def double(self, key: str) -> float | None:
        """A decimal number as Java writes it; None when the key is absent."""
        text = self._values.get(key)
        if text is None:
            return None
        if _DOUBLE.fullmatch(text) is None:
            self.invalid(key, text, "Not a number of type DOUBLE")
        return float(text.rstrip("dDfF"))

    def boolean(self, key: str, default: bool) -> bool:
        text = self._values.get(key)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            self.invalid(key, text, "Expected value to be either true or false")
        return text.lower() == "true"

    def items(self, key: str) -> tuple[str, ...] | None:
        """The comma-separated values; None when the key is absent."""
        text = self._values.get(key)
        if text is None:
            return None
        return tuple(COMMA.split(text)) if text else ()

    def distinct(
        self, key: str, *, one_of: Sequence[str] = (), may_be_empty: bool = False
    ) -> tuple[str, ...] | None:
        """At least one value or none, none empty, each in `one_of` where that is given.

        A value that is there twice is taken once, with a note.
        """
        values = self.items(key)
        if values is None:
            return None
        if not values and not may_be_empty:
            right = f"[{', '.join(one_of)}]" if one_of else "any non-empty value"
            self.refuse(
                key, f"Configuration '{key}' must not be empty. Valid values include: {right}"
            )
        once = tuple(dict.fromkeys(values))
        if once != values:
            self.notes.append(f"Duplicate values of {key} are ignored ({self.where(key)})")
        for value in values:
            if not value:
                self.refuse(key, f"Configuration '{key}' values must not be empty.")
            if one_of and value not in one_of:
                self.invalid(key, value, f"String must be one of: {', '.join(one_of)}")
        return once
