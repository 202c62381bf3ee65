"""Keys of ours about what a node shows of itself: the log of its authorizer, its HTTP listener."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.base.ids import Address
from quorate.config.host_port import parse_host_port
from quorate.config.settings import Settings

METRICS_LISTENER: Final = "quorate.metrics.listener"
AUTHORIZER_LOG_DIR: Final = "quorate.authorizer.log.dir"
_LEVEL: Final = "quorate.authorizer.log.level"
_FORMAT: Final = "quorate.authorizer.log.format"
_MAX_BYTES: Final = "quorate.authorizer.log.max.bytes"
_MAX_FILES: Final = "quorate.authorizer.log.max.files"
_LEVELS: Final = ("INFO", "DEBUG")
_FORMATS: Final = ("text", "json")
KEYS: Final = (METRICS_LISTENER, AUTHORIZER_LOG_DIR, _LEVEL, _FORMAT, _MAX_BYTES, _MAX_FILES)
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AuthorizerLogSettings:
    """`quorate.authorizer.log.*`; Kafka has no such keys."""

    folder: Path
    with_allowed: bool = False
    """`level=DEBUG`: what is allowed is logged, too, as with Kafka's logger."""
    formats: tuple[str, ...] = ("text",)
    max_bytes: int = 10 * _MIB
    """Of one file."""
    max_files: int = 5
    """Of each format, in all."""


def authorizer_log(settings: Settings) -> AuthorizerLogSettings | None:
    """The settings of the authorizer's log; None: there is none. Raises ConfigError."""
    folder = settings.text(AUTHORIZER_LOG_DIR)
    level = settings.text(_LEVEL) or _LEVELS[0]
    if level not in _LEVELS:
        settings.invalid(_LEVEL, level, f"It should be one of {', '.join(_LEVELS)}")
    formats = settings.items(_FORMAT) or ("text",)
    for form in formats:
        if form not in _FORMATS:
            settings.invalid(_FORMAT, form, f"It should be a list of {', '.join(_FORMATS)}")
    max_bytes = settings.integer(_MAX_BYTES, 10 * _MIB, at_least=4096, bits=64)
    max_files = settings.integer(_MAX_FILES, 5, at_least=1)
    assert max_bytes is not None
    assert max_files is not None
    if not folder:
        return None
    return AuthorizerLogSettings(
        Path(folder), level == "DEBUG", tuple(dict.fromkeys(formats)), max_bytes, max_files
    )


def metrics_listener(settings: Settings) -> Address | None:
    """`quorate.metrics.listener`; None: there are no pages. Raises ConfigError."""
    text = settings.text(METRICS_LISTENER)
    if not text:
        return None
    address = parse_host_port(text)
    if address is None:
        settings.invalid(METRICS_LISTENER, text, "It should be of the form host:port")
    return address
