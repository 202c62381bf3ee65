"""Keys of ours about what a node shows of itself: the log of its authorizer, its HTTP listener."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.base.ids import Address
from quorate.config.host_port import parse_host_port
from quorate.config.security_settings import TLS_KEYS
from quorate.config.settings import Settings

METRICS_LISTENER: Final = "quorate.metrics.listener"
AUTHORIZER_LOG_DIR: Final = "quorate.authorizer.log.dir"
_LEVEL: Final = "quorate.authorizer.log.level"
_FORMAT: Final = "quorate.authorizer.log.format"
_MAX_BYTES: Final = "quorate.authorizer.log.max.bytes"
_MAX_FILES: Final = "quorate.authorizer.log.max.files"
_LEVELS: Final = ("INFO", "DEBUG")
_FORMATS: Final = ("text", "json")
METRICS_PREFIX: Final = "quorate.metrics."
METRICS_PROTOCOL: Final = "quorate.metrics.security.protocol"
CREDENTIALS_FILE: Final = "quorate.metrics.credentials.file"
OPEN_PATHS: Final = "quorate.metrics.open.paths"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL")
KEYS: Final = (
    *(METRICS_LISTENER, AUTHORIZER_LOG_DIR, _LEVEL, _FORMAT, _MAX_BYTES, _MAX_FILES),
    *(METRICS_PROTOCOL, CREDENTIALS_FILE, OPEN_PATHS),
    *(METRICS_PREFIX + key for key in sorted(TLS_KEYS) if key.startswith("ssl.")),
)
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


@dataclass(frozen=True, slots=True)
class PagesSettings:
    """What the HTTP listener asks for. Kafka has no such keys."""

    tls: Mapping[str, str] | None = field(default=None, repr=False)
    """The `ssl.*` keys: `quorate.metrics.ssl.x` goes before `ssl.x`; None: plaintext."""
    credentials: Path | None = None
    """A file with lines `user:password`; None: no password is asked for."""
    open_paths: tuple[str, ...] = ()
    """Pages that need no password."""


def _choice(settings: Settings, key: str, choices: Sequence[str]) -> str:
    def read() -> str:
        value = settings.text(key) or choices[0]
        if value not in choices:
            settings.invalid(key, value, f"It should be one of {', '.join(choices)}")
        return value

    return settings.guarded(read, choices[0])


def pages_settings(settings: Settings) -> PagesSettings:
    """`quorate.metrics.*` but the listener. Raises ConfigError."""
    protocol = _choice(settings, METRICS_PROTOCOL, _PROTOCOLS)

    def page(path: str) -> str:
        if not path.startswith("/"):
            settings.invalid(OPEN_PATHS, path, "It should be a list of pages, such as /healthz")
        return path

    given = settings.guarded(lambda: settings.items(OPEN_PATHS), None)
    paths = tuple(settings.each(page, given or ()))
    file = settings.guarded(lambda: settings.text(CREDENTIALS_FILE), None)
    prefix = METRICS_PREFIX
    own = {k[len(prefix) :]: v for k, v in settings.values.items() if k.startswith(f"{prefix}ssl.")}
    return PagesSettings(
        {**settings.values, **own} if protocol == "SSL" else None,
        Path(file) if file else None,
        paths,
    )


def authorizer_log(settings: Settings) -> AuthorizerLogSettings | None:
    """The settings of the authorizer's log; None: there is none. Raises ConfigError."""
    folder = settings.guarded(lambda: settings.text(AUTHORIZER_LOG_DIR), None)
    level = _choice(settings, _LEVEL, _LEVELS)

    def known(form: str) -> str:
        if form not in _FORMATS:
            settings.invalid(_FORMAT, form, f"It should be a list of {', '.join(_FORMATS)}")
        return form

    formats = settings.each(known, settings.items(_FORMAT) or ("text",))
    max_bytes = settings.guarded(
        lambda: settings.integer(_MAX_BYTES, 10 * _MIB, at_least=4096, bits=64), 10 * _MIB
    )
    max_files = settings.guarded(lambda: settings.integer(_MAX_FILES, 5, at_least=1), 5)
    assert max_bytes is not None
    assert max_files is not None
    if not folder:
        return None
    return AuthorizerLogSettings(
        Path(folder), level == "DEBUG", tuple(dict.fromkeys(formats)), max_bytes, max_files
    )


def metrics_listener(settings: Settings) -> Address | None:
    """Return `quorate.metrics.listener`; None: there are no pages. Raises ConfigError."""
    text = settings.text(METRICS_LISTENER)
    if not text:
        return None
    address = parse_host_port(text)
    if address is None:
        settings.invalid(METRICS_LISTENER, text, "It should be of the form host:port")
    return address
