"""Values of configs: from text by type, within what is allowed, and back to text.

Messages are those of `ConfigDef.parseType` and of the validators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NoReturn

from quorate.base.errors import QuorateError
from quorate.config_definitions.definition import ConfigType, Definition, Definitions
from quorate.config_definitions.java_text import BLANKS, COMMA, parse_double, parse_integer

Value = bool | int | float | str | tuple[str, ...]

_BITS: Final = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_RANGE: Final = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\]")
_ANY_CASE: Final = "(case insensitive) "
_GZIP_LEVELS: Final = "[1,...,9] or -1"
_THROTTLED_REPLICAS: Final = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
_OFFSET_RESET: Final = "[latest, earliest, by_duration:PnDTnHnMn.nS]"
_REPLICA: Final = re.compile(r"([0-9]+:[0-9]+)?", re.ASCII)
_DURATION: Final = re.compile(
    r"([+-]?)P(?=.)(?:([+-]?[0-9]+)D)?"
    r"(?:T(?=.)(?:([+-]?[0-9]+)H)?(?:([+-]?[0-9]+)M)?(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_SHORT: Final = 64
"""Characters of a text whose value is remembered."""
_SECONDS: Final = (1, 60, 3_600, 86_400)
_NANOS: Final = 10**9


class ConfigValueError(QuorateError):
    """A value is not of the config's type, or is not allowed (`ConfigException`)."""


def parse_all(definitions: Definitions, texts: Mapping[str, str]) -> dict[str, Value | None]:
    """A value for each definition, of its text or of its default (`ConfigDef.parse`).

    Raises ConfigValueError for the first wrong one in the order of the definitions.
    """
    return {
        name: parse(definition, texts.get(name, definition.default))
        for name, definition in definitions.items()
    }


def parse(definition: Definition, text: str | None) -> Value | None:
    """The value of the text; None: there is no value. Raises ConfigValueError."""
    if text is not None and len(text) <= _SHORT:
        return _parse_short(definition, text)
    value = None if text is None else _typed(definition, text)
    _check(definition, value)
    return value


@lru_cache(maxsize=2048)
def _parse_short(definition: Definition, text: str) -> Value:
    """Remembers values, since a check of one topic parses all its defaults again."""
    value = _typed(definition, text)
    _check(definition, value)
    return value


def text_of(definition: Definition, text: str | None) -> str | None:
    """The value's text as Kafka reports it: `TRUE` as `true`. A wrong value is returned as it is."""
    if text is None or definition.type is ConfigType.CLASS:
        return text
    try:
        value = parse(definition, text)
    except ConfigValueError:
        return text
    return None if value is None else to_text(value)


def to_text(value: Value) -> str:
    """The text of a value, as Kafka prints it (`ConfigDef.convertToString`)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _double_text(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _double_text(value: float) -> str:
    """The text of a float as Java's `Double.toString` writes it, where Python would differ."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, _, exponent = f"{value!r}e".partition("e")
    if not exponent:
        shifted = f"{value:e}"
        exponent = shifted.partition("e")[2]
        digits = repr(float(f"{value!r}e{-int(exponent)}"))
    digits = digits if "." in digits else f"{digits}.0"
    return f"{digits}E{int(exponent.rstrip('e'))}"


def _typed(definition: Definition, text: str) -> Value:
    """Parse the text by the type of the config. Raises ConfigValueError."""
    trimmed = text.strip(BLANKS)
    match definition.type:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                _refuse(definition.name, text, "Expected value to be either true or false")
            return trimmed.lower() == "true"
        case ConfigType.LIST:
            parts = tuple(COMMA.split(trimmed)) if trimmed else ()
            # Kafka removes duplicates where the validator is one for lists.
            once = tuple(dict.fromkeys(parts))
            return once if definition.allowed.startswith("distinct") else parts
        case ConfigType.INT | ConfigType.LONG | ConfigType.SHORT | ConfigType.DOUBLE as kind:
            bits = _BITS.get(kind)
            number = parse_double(trimmed) if bits is None else parse_integer(trimmed, bits)
            if number is None:
                _refuse(definition.name, text, f"Not a number of type {kind.name}")
            return number
        case _:
            return trimmed


def _check(definition: Definition, value: Value | None) -> None:
    """Check the value. Raises ConfigValueError where the validator of the config refuses it."""
    allowed = definition.allowed
    if not allowed:
        return
    if allowed.startswith("distinct"):
        _check_list(definition, value)
    elif (bounds := _RANGE.fullmatch(allowed)) is not None:
        _check_range(definition.name, value, *bounds.groups())
    elif (special := _SPECIAL.get(allowed)) is not None:
        special(definition.name, value)
    elif allowed.startswith((_ANY_CASE, "[")):
        _check_choice(definition.name, value, allowed)


def _check_range(name: str, value: Value | None, least: str, most: str | None) -> None:
    if value is None:
        _refuse(name, None, "Value must be non-null")
    assert isinstance(value, int | float)
    if value < float(least):
        _refuse(name, value, f"Value must be at least {least}")
    if most is not None and value > float(most):
        _refuse(name, value, f"Value must be no more than {most}")


def _check_list(definition: Definition, value: Value | None) -> None:
    if value is None:
        return
    assert isinstance(value, tuple)
    name, choices = definition.name, definition.allowed.partition("[")[2].rstrip("]")
    if not value and definition.allowed.startswith("distinct non-empty"):
        right = f"[{choices}]" if choices else "any non-empty value"
        text = f"Configuration '{name}' must not be empty. Valid values include: {right}"
        raise ConfigValueError(text)
    for item in value:
        if not item:
            raise ConfigValueError(f"Configuration '{name}' values must not be empty.")
        if choices and item not in choices.split(", "):
            _refuse(name, item, f"String must be one of: {choices}")


def _check_choice(name: str, value: Value | None, allowed: str) -> None:
    assert isinstance(value, str)
    any_case = allowed.startswith(_ANY_CASE)
    choices = allowed.removeprefix(_ANY_CASE)[1:-1]
    if (value.upper() if any_case else value) not in choices.split(", "):
        how = " (case insensitive)" if any_case else ""
        _refuse(name, value, f"String must be one of{how}: {choices}")


def _check_not_empty(name: str, value: Value | None) -> None:
    if value == "":
        _refuse(name, value, "String must be non-empty")


def _check_gzip_level(name: str, value: Value | None) -> None:
    if not isinstance(value, int) or (value != -1 and not 1 <= value <= 9):
        _refuse(name, value, "Value must be between 1 and 9 or equal to -1")


def _check_throttled_replicas(name: str, value: Value | None) -> None:
    """Check a list of PARTITION:BROKER pairs, or `*` (`ThrottledReplicaListValidator`)."""
    assert isinstance(value, tuple)
    parts = [part.strip(BLANKS) for part in value]
    if "".join(parts) != "*" and not all(map(_REPLICA.fullmatch, parts)):
        _refuse(
            name,
            value,
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            f"{_THROTTLED_REPLICAS}",
        )


def _check_offset_reset(name: str, value: Value | None) -> None:
    """Check an offset reset: earliest, latest or by_duration:DURATION.

    `ShareGroupAutoOffsetResetStrategy.Validator`.
    """
    assert isinstance(value, str)
    strategy, _, duration = value.partition(":")
    if value not in ("earliest", "latest") and not (
        strategy == "by_duration" and _is_duration(duration)
    ):
        _refuse(
            name,
            value,
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


def _is_duration(text: str) -> bool:
    """A duration of ISO 8601 as `java.time.Duration.parse` reads it, and not negative.

    Java adds the seconds of each part as longs, from the last part to the first. An overflow on the way is
    an error, also where the sum would fit.
    """
    found = _DURATION.fullmatch(text)
    if found is None:
        return False
    sign, *parts, fraction = found.groups()
    total = 0
    for digits, seconds in zip(reversed(parts), _SECONDS, strict=True):
        if digits is None:
            continue
        number = parse_integer(digits, 64)
        if number is None or not _is_long(number * seconds):
            return False
        total += number * seconds
        if not _is_long(total):
            return False
    nanos = int((fraction or "").ljust(9, "0"))
    last = parts[-1]
    exact = total * _NANOS + (-nanos if last is not None and last.startswith("-") else nanos)
    signed = -exact if sign == "-" else exact
    return signed >= 0 and _is_long(exact // _NANOS) and _is_long(signed // _NANOS)


def _is_long(number: int) -> bool:
    return -(2**63) <= number < 2**63


_SPECIAL: Final[Mapping[str, Callable[[str, Value | None], None]]] = {
    "non-empty string": _check_not_empty,
    _GZIP_LEVELS: _check_gzip_level,
    _THROTTLED_REPLICAS: _check_throttled_replicas,
    _OFFSET_RESET: _check_offset_reset,
}


def _refuse(name: str, value: Value | None, why: str) -> NoReturn:
    """Raise ConfigValueError with Kafka's message for a wrong value."""
    if value is None:
        shown = "null"
    else:
        shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else _shown(value)
    raise ConfigValueError(f"Invalid value {shown} for configuration {name}: {why}")


def _shown(value: bool | int | float | str) -> str:
    return value if isinstance(value, str) else to_text(value)
