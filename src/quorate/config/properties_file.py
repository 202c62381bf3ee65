"""Read settings from a properties file and from the command line, with their sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from quorate.base.file_errors import why
from quorate.config.paths import check_paths
from quorate.config.providers import PROVIDERS, Resolved, resolution
from quorate.config.secret_files import open_secrets
from quorate.config.settings import ConfigError, Settings, parse_properties

_Kind = TypeVar("_Kind", bound=Settings)


def read_settings(path: Path | str, overrides: Sequence[str] = ()) -> Settings:
    """Read a properties file; an override `key=value` takes precedence over the file.

    Raises ConfigError when the file cannot be read or parsed, or an override has no `=`.
    """
    return read_as(Settings, path, overrides)


def read_as(kind: type[_Kind], path: Path | str, overrides: Sequence[str] = ()) -> _Kind:
    """`read_settings` for settings of another kind."""
    source = str(path)
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"Cannot read {source}: {why(error)}") from None
    found = parse_properties(data, source)
    in_file = {key: one.value for key, one in found.items()}
    values = dict(in_file)
    places = {key: f"{source}, line {one.line}" for key, one in found.items()}
    for override in overrides:
        key, equals, value = override.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ConfigError(f"--override {override}: must have the form key=value")
        values[key] = value
        places[key] = f"--override {override}"
    done = resolution(values, places) if PROVIDERS in values else Resolved(values, [], set())
    settings = kind(done.values, places, source)
    settings.each(_refuse, done.faults)
    settings.leave_open(done.open_keys)
    check_paths(settings)
    settings.notes += open_secrets(in_file, done.values, source)
    return settings


def _refuse(fault: ConfigError) -> None:
    raise fault
