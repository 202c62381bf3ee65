"""Typed access to Java properties, with Kafka's messages for wrong values.

The rules for types and ranges are those of `org.apache.kafka.common.config.ConfigDef`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NoReturn, TypeVar

from quorate.base.errors import QuorateError
from quorate.config_definitions.java_text import BLANKS, COMMA, parse_double, parse_integer
from quorate.formats.properties import PropertiesError, Property, load_properties

_TYPE_NAMES: Final = {16: "SHORT", 32: "INT", 64: "LONG"}
_Entry = TypeVar("_Entry")
_Found = TypeVar("_Found")
_Other = TypeVar("_Other")


class ConfigError(QuorateError):
    """A configuration that cannot be used. The message names key, value, source and allowed values.

    `reason` is the message without the source.
    """

    def __init__(self, reason: str, *, key: str | None = None, where: str | None = None) -> None:
        super().__init__(f"{reason} ({where})" if where else reason)
        self.reason = reason
        self.key = key
        self.where = where


class Settings:
    """Keys and values of one properties file and its overrides, with the source of each.

    The first fault ends the reading, as in Kafka. `CollectingSettings` goes on behind each.
    """

    def __init__(
        self, values: Mapping[str, str], places: Mapping[str, str], source: str = ""
    ) -> None:
        self._values = {key: value.strip(BLANKS) for key, value in values.items()}
        self._places = places
        self.source = source
        self.notes: list[str] = []
        """Warnings about values that are accepted but probably not intended."""

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    @property
    def values(self) -> Mapping[str, str]:
        """Every key's value as text."""
        return self._values

    def where(self, key: str) -> str:
        """The file and line, or the override, that set `key`; the file for an absent key."""
        return self._places.get(key, self.source)

    def refuse(self, key: str, reason: str) -> NoReturn:
        """Raise ConfigError about `key`."""
        raise ConfigError(reason, key=key, where=self.where(key))

    def invalid(self, key: str, value: object, why: str) -> NoReturn:
        """Raise ConfigError with Kafka's message for a wrong value."""
        self.refuse(key, f"Invalid value {value} for configuration {key}: {why}")

    def guarded(self, read: Callable[[], _Found], otherwise: _Other) -> _Found | _Other:
        """What `read` returns. `otherwise` is for a reader that goes on behind a ConfigError."""
        return read()

    def each(self, read: Callable[[_Entry], _Found], entries: Iterable[_Entry]) -> list[_Found]:
        """What `read` returns for each of independent entries. Raises what `read` raises."""
        return [read(entry) for entry in entries]

    def needs(self, *keys: str) -> None:
        """Say that a rule has no meaning without the values of these keys."""

    def leave_open(self, keys: Iterable[str]) -> None:
        """Say that nothing is known of the values of these keys: a fault elsewhere is noted."""

    def is_unknown(self, key: str) -> bool:
        """Whether a fault leaves the value of the key open; the reading ended there, if it ends at all."""
        return False

    def text(self, key: str) -> str | None:
        """The value as text; None when the key is absent."""
        return self._values.get(key)

    def required(self, key: str) -> str:
        """The value as text. Raises ConfigError when the key is absent."""
        value = self.text(key)
        if value is None:
            self.refuse(key, f'Missing required configuration "{key}" which has no default value.')
        return value

    def integer(
        self, key: str, default: int | None, *, at_least: int | None = None, bits: int = 32
    ) -> int | None:
        """A signed integer of `bits` bits; `default` when the key is absent. Raises ConfigError."""
        text = self.text(key)
        if text is None:
            return default
        number = parse_integer(text, bits)
        if number is None:
            self.invalid(key, text, f"Not a number of type {_TYPE_NAMES[bits]}")
        if at_least is not None and number < at_least:
            self.invalid(key, number, f"Value must be at least {at_least}")
        return number

    def double(self, key: str) -> float | None:
        """A decimal number in Java's syntax; None when the key is absent. Raises ConfigError."""
        text = self.text(key)
        if text is None:
            return None
        number = parse_double(text)
        if number is None:
            self.invalid(key, text, "Not a number of type DOUBLE")
        return number

    def boolean(self, key: str, default: bool) -> bool:
        """`true` or `false` in any case; `default` when the key is absent. Raises ConfigError."""
        text = self.text(key)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            self.invalid(key, text, "Expected value to be either true or false")
        return text.lower() == "true"

    def items(self, key: str) -> tuple[str, ...] | None:
        """The comma-separated values, empty ones included; None when the key is absent."""
        text = self.text(key)
        if text is None:
            return None
        return tuple(COMMA.split(text)) if text else ()

    def distinct(
        self, key: str, *, one_of: Sequence[str] = (), may_be_empty: bool = False
    ) -> tuple[str, ...] | None:
        """The comma-separated values without duplicates; None when the key is absent.

        No value may be empty. Each must be in `one_of`, if given. An empty list needs
        `may_be_empty`. A duplicate adds a note. Raises ConfigError.
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

        def checked(value: str) -> str:
            if not value:
                self.refuse(key, f"Configuration '{key}' values must not be empty.")
            if one_of and value not in one_of:
                self.invalid(key, value, f"String must be one of: {', '.join(one_of)}")
            return value

        return tuple(self.each(checked, once))


def parse_properties(data: bytes, source: str) -> dict[str, Property]:
    """Parse a properties file. Raises ConfigError with the place that cannot be parsed."""
    try:
        return load_properties(data)
    except PropertiesError as error:
        where = f"{source}, line {error.line}, column {error.column}"
        raise ConfigError(f"Not a properties file: {error}", where=where) from None
