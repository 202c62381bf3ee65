"""Resolve `${provider:path:key}` in values: Kafka's config providers.

Sources: KIP-297, `ConfigTransformer`, `EnvVarConfigProvider`, `FileConfigProvider`,
`DirectoryConfigProvider`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from quorate.base.file_errors import why
from quorate.config.settings import ConfigError, parse_properties
from quorate.config_definitions.java_text import COMMA

PROVIDERS: Final = "config.providers"
_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")

Params = Mapping[str, str]
Lookup = Callable[[str, str, Params], str | None]
"""Returns the value for a path (may be empty) and a key, None when absent. Raises ConfigError."""


class Resolved(NamedTuple):
    """The values of a file with references replaced."""

    values: dict[str, str]
    """Without the keys whose references cannot be replaced."""
    faults: list[ConfigError]
    open_keys: set[str]
    """The keys whose value needs a provider that has a fault."""


def resolved(values: Mapping[str, str], places: Mapping[str, str]) -> dict[str, str]:
    """The values of `resolution`. Raises ConfigError, the first of its faults."""
    found = resolution(values, places)
    for fault in found.faults:
        raise fault
    return found.values


def resolution(values: Mapping[str, str], places: Mapping[str, str]) -> Resolved:
    """Replace every reference in `values` and leave out the providers' own keys.

    Replacement is not recursive. A `${...}` whose provider `config.providers` does not name stays as
    it is. Unlike Kafka, a reference to a missing value is refused: Kafka would keep the text
    `${...}`, which would then become the name of a log directory.

    `values` and `places` map a key to its text and to its source.
    """
    names = [name for name in COMMA.split(values.get(PROVIDERS, "").strip()) if name]
    faults: list[ConfigError] = []
    open_keys: set[str] = set()
    found: dict[str, tuple[Lookup, Params]] = {}
    for name in names:
        prefix = f"{PROVIDERS}.{name}."
        kind = values.get(f"{prefix}class", "").strip()
        lookup = _KINDS.get(kind.rpartition(".")[2])
        if lookup is None:
            where = places.get(f"{prefix}class", places[PROVIDERS])
            known = ", ".join(f"{_PACKAGE}{one}" for one in _KINDS)
            problem = f"the class {kind} is not supported" if kind else f"{prefix}class is missing"
            why = f"Config provider {name}: {problem}; supported are {known}"
            faults.append(ConfigError(why, key=f"{prefix}class", where=where))
            continue
        start = f"{prefix}param."
        params = {
            key[len(start) :]: value for key, value in values.items() if key.startswith(start)
        }
        found[name] = lookup, params

    def replace(key: str, value: str) -> str:
        def one(match: re.Match[str]) -> str:
            name, path, wanted = match[1], match[2] or "", match[3]
            if name not in found:
                if name in names:
                    open_keys.add(key)
                return match[0]
            lookup, params = found[name]
            try:
                resolved_value = lookup(path, wanted, params)
                why = f"{key}: {match[0]} has no value"
            except ConfigError as error:
                resolved_value, why = None, error.reason
            if resolved_value is None:
                faults.append(ConfigError(why, key=key, where=places.get(key)))
                return match[0]
            return resolved_value

        return _REFERENCE.sub(one, value)

    replaced = {
        key: replace(key, value)
        for key, value in values.items()
        if key != PROVIDERS and not key.startswith(f"{PROVIDERS}.")
    }
    wrong = open_keys.union(fault.key for fault in faults if fault.key)
    return Resolved({k: v for k, v in replaced.items() if k not in wrong}, faults, open_keys)


def files_of(values: Mapping[str, str]) -> Iterator[str]:
    """The files that the references in `values` read; a file may come more than once."""
    for name, path, key in (
        found for text in values.values() for found in _REFERENCE.findall(text)
    ):
        kind = values.get(f"{PROVIDERS}.{name}.class", "").strip().rpartition(".")[2]
        if kind == "FileConfigProvider":
            yield path
        elif kind == "DirectoryConfigProvider":
            yield f"{path}/{key}"


def _from_environment(path: str, key: str, params: Params) -> str | None:
    if path:
        _refuse(f"Path is not supported for EnvVarConfigProvider, invalid value '{path}'")
    pattern = params.get("allowlist.pattern")
    if pattern and not re.fullmatch(pattern, key):
        return None
    return os.environ.get(key)


def _from_file(path: str, key: str, params: Params) -> str | None:
    _check_allowed(path, params)
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        _refuse(f"Could not read properties from file {path}: {why(error)}")
    found = parse_properties(data, path).get(key)
    return None if found is None else found.value


def _from_directory(path: str, key: str, params: Params) -> str | None:
    """The whole text of the file `key` in the directory `path`, as Kubernetes mounts secrets."""
    _check_allowed(path, params)
    if "/" in key:
        return None
    try:
        return Path(path, key).read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        _refuse(f"Could not read file {path}/{key}: {why(error)}")


def _check_allowed(path: str, params: Params) -> None:
    allowed = [Path(one) for one in COMMA.split(params.get("allowed.paths", "").strip()) if one]
    place = Path(os.path.normpath(path))
    if allowed and not any(place.is_relative_to(one) for one in allowed):
        _refuse(f"{path} is not below allowed.paths ({', '.join(map(str, allowed))})")


def _refuse(reason: str) -> NoReturn:
    raise ConfigError(reason)


_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_KINDS: Final[Mapping[str, Lookup]] = {
    "EnvVarConfigProvider": _from_environment,
    "FileConfigProvider": _from_file,
    "DirectoryConfigProvider": _from_directory,
}
