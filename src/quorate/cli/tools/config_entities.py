"""Whose configs: the entities that the options of `quorate configs` name."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

from quorate.cli.flat_options import FlatToolError, refuse_with

TOPICS: Final = "topics"
CLIENTS: Final = "clients"
USERS: Final = "users"
BROKERS: Final = "brokers"
IPS: Final = "ips"
CLIENT_METRICS: Final = "client-metrics"
GROUPS: Final = "groups"
LOGGERS: Final = "broker-loggers"
TYPES: Final = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, LOGGERS)
FLAGS: Final[Mapping[str, str]] = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
"""Options that name an entity -> its type."""
DEFAULT_FLAGS: Final[Mapping[str, str]] = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
"""Options that name a default entity -> its type."""
_WITH_DEFAULTS: Final = frozenset({USERS, CLIENTS, BROKERS, IPS})
_KEY: Final = re.compile(r"[$a-zA-Z0-9._-]*")
_OUTSIDE_BRACKETS: Final = r"(?=[^\]]*(?:\[|$))"
_NAMES: Final = "quorate.configs.entity_names"


@dataclass(frozen=True, slots=True)
class ConfigEntities:
    """Types and names in the order of the options; an empty name is the default entity.

    There are fewer names than types where a type means all of its entities.
    """

    types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def type(self) -> str:
        return self.types[0]


def add_names(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Callback of --entity-name and --entity-default: keeps the order in which they are written."""
    names = ctx.meta.setdefault(_NAMES, [])
    names += [""] * value if isinstance(value, int) else value
    return value


def entities_of(
    ctx: click.Context, given: Collection[str], options: Mapping[str, Any]
) -> ConfigEntities:
    """The entities of a command line (`ConfigCommandOptions`)."""
    flags = [name for name in FLAGS if name in given]
    defaults = [name for name in DEFAULT_FLAGS if name in given]
    types = [
        *options["entity_type"],
        *(FLAGS[f] for f in flags),
        *(DEFAULT_FLAGS[f] for f in defaults),
    ]
    names = [*ctx.meta.get(_NAMES, ()), *(options[f.replace("-", "_")] for f in flags)]
    return ConfigEntities(tuple(types), (*names, *("" for _ in defaults)))


def check_options(given: Collection[str], entities: ConfigEntities) -> None:
    """Raise UsageError or FlatToolError for options that do not fit (`checkArgs`)."""
    if len({"alter", "describe"} & set(given)) != 1:
        raise click.UsageError("Command must include exactly one action: --describe, --alter")
    refuse_with(given, "describe", ("add-config", "delete-config"))
    _check_types(entities.types)
    by_type = {"entity-name", "entity-type", "entity-default"} & set(given)
    if by_type and (FLAGS.keys() | DEFAULT_FLAGS.keys()) & set(given):
        raise FlatToolError(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    _check_names(entities)
    if "describe" in given:
        _check_describe(given, entities)
    else:
        _check_alter(given, entities)


def _check_types(types: Collection[str]) -> None:
    twice = [kind for n, kind in enumerate(types) if kind in list(types)[:n]]
    if twice:
        raise FlatToolError(f"Duplicate entity type(s) specified: {','.join(twice)}")
    for kind in types:
        if kind not in TYPES:
            raise FlatToolError(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)} "
                f"with a --bootstrap-server or --bootstrap-controller argument{_nearest(kind)}"
            )
    if not types:
        raise FlatToolError("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise FlatToolError(
            f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together"
        )


def _nearest(kind: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(kind, TYPES, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _check_names(entities: ConfigEntities) -> None:
    for name in filter(None, entities.names):
        if entities.type in (BROKERS, LOGGERS) and not re.fullmatch(r"[+-]?\d{1,10}", name):
            raise FlatToolError(
                f"The entity name for {entities.type} must be a valid integer broker id, but it is: "
                f"{name}"
            )
        if entities.type == IPS and not _is_host(name):
            raise FlatToolError(
                f"The entity name for {entities.type} must be a valid IP or resolvable host, but it "
                f"is: {name}"
            )


def _is_host(name: str) -> bool:
    try:
        socket.getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return False
    return True


def _check_describe(given: Collection[str], entities: ConfigEntities) -> None:
    shown = ",".join(entities.types)
    if "entity-default" in given and not _WITH_DEFAULTS & set(entities.types):
        raise FlatToolError(f"--entity-default must not be specified with --describe of {shown}")
    if LOGGERS in entities.types and not any(entities.names):
        raise FlatToolError(f"An entity name must be specified with --describe of {shown}")


def _check_alter(given: Collection[str], entities: ConfigEntities) -> None:
    if _WITH_DEFAULTS & set(entities.types):
        if not entities.names:
            raise FlatToolError(
                "An entity-name or default entity must be specified with --alter of users, clients, "
                "brokers or ips"
            )
    elif not any(entities.names):
        shown = ",".join(entities.types)
        raise FlatToolError(f"An entity name must be specified with --alter of {shown}")
    if {"add-config", "add-config-file"} <= set(given):
        raise FlatToolError("Only one of --add-config or --add-config-file must be specified")
    if not {"add-config", "add-config-file", "delete-config"} & set(given):
        raise FlatToolError(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )


def configs_to_add(text: str | None, file: str | None) -> dict[str, str]:
    """The configs of --add-config (`a=1,b=[2,3]`) and of --add-config-file.

    Raises FlatToolError, and ConfigError for a file that cannot be read.
    """
    from quorate.config_definitions.java_text import split_parts

    found: dict[str, str] = {}
    if file is not None:
        from quorate.config.properties_file import read_settings

        settings = read_settings(file)
        found |= {key: settings.text(key) or "" for key in settings}
    if text is not None:
        for entry in split_parts(re.split("," + _OUTSIDE_BRACKETS, text)):
            pair = re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, entry)
            if len(pair) != 2:
                raise FlatToolError(
                    "requirement failed: Invalid entity config: all configs to be added must be in the "
                    'format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
                )
            found[pair[0].strip()] = pair[1].replace("[", "").replace("]", "").strip()
    for key in found:
        if not _KEY.fullmatch(key):
            raise FlatToolError(f"Invalid character found for config key: {key}")
    return found


def configs_to_delete(entries: Collection[str]) -> list[str]:
    """The names of --delete-config; commas separate them."""
    return [name.strip() for entry in entries for name in entry.split(",") if name]
