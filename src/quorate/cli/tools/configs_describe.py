"""`quorate configs --describe`: configs of resources, quotas and SCRAM credentials."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.columns import fold
from quorate.cli.flat_options import FlatToolError, print_json
from quorate.cli.tools.config_entities import (
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    LOGGERS,
    TOPICS,
    USERS,
    ConfigEntities,
)
from quorate.client.admin.configs import ConfigEntry, ConfigEntrySource, Resource, ResourceType
from quorate.client.errors import UnsupportedVersionError
from quorate.client.results import RequestFailedError
from quorate.formats.json_text import double

if TYPE_CHECKING:
    from quorate.client import Admin

RESOURCE_TYPES: Final[Mapping[str, ResourceType]] = {
    TOPICS: ResourceType.TOPIC,
    BROKERS: ResourceType.BROKER,
    LOGGERS: ResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ResourceType.CLIENT_METRICS,
    GROUPS: ResourceType.GROUP,
}
QUOTA_TYPES: Final[Mapping[str, str]] = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
"""Types of entities -> those of client quotas."""
_SHOWN: Final = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
_OWN_SOURCE: Final = {
    TOPICS: ConfigEntrySource.DYNAMIC_TOPIC_CONFIG,
    BROKERS: ConfigEntrySource.DYNAMIC_BROKER_CONFIG,
    CLIENT_METRICS: ConfigEntrySource.DYNAMIC_CLIENT_METRICS_CONFIG,
    GROUPS: ConfigEntrySource.DYNAMIC_GROUP_CONFIG,
}


def describe(admin: Admin, entities: ConfigEntities, options: Mapping[str, Any]) -> None:
    """Print what is set (with `--all`: everything that is in force), or as JSON."""
    as_json, every = options["as_json"], options["all_configs"]
    if entities.type in RESOURCE_TYPES:
        found = _described(admin, entities, every, quiet=as_json)
        if as_json:
            print_json([_json(entities.type, name, entries) for name, entries in found])
            return
        for name, entries in found:
            _print_resource(entities.type, name, entries, every)
        return
    quotas = _quotas(admin, entities)
    with_scram = USERS in entities.types and CLIENTS not in entities.types
    scram = _scram(admin, entities) if with_scram and "" not in entities.names else []
    if as_json:
        print_json({"quotas": quotas, "scramCredentials": scram})
        return
    for each in quotas:
        names = [
            f"{_SHOWN[kind]} '{name}'" if name is not None else f"the default {_SHOWN[kind]}"
            for kind in _SHOWN
            for name in [each["entity"].get(kind, "")]
            if kind in each["entity"]
        ]
        values = ", ".join(f"{key}={double(value)}" for key, value in each["quotas"].items())
        _show(f"Quota configs for {', '.join(names)} are {values}")
    for user in scram:
        _print_scram(user)


# -- resources -----------------------------------------------------------------------------------
def _described(
    admin: Admin, entities: ConfigEntities, every: bool, *, quiet: bool
) -> list[tuple[str, list[ConfigEntry]]]:
    """Each resource with its configs in order of names; none if the only one is unknown.

    `quiet`: stdout is for JSON alone.
    """
    kind = entities.type
    if kind == BROKERS and admin.config.controllers and any(entities.names[:1]):
        broker = int(entities.names[0])
        if broker not in admin.describe_cluster().nodes:
            return _of_broker(admin, broker, every, quiet=quiet)
    if entities.names:
        names: Sequence[str] = entities.names[:1]
        is_named = names[0] or kind in (GROUPS, CLIENT_METRICS)  # these have no default entity
        if not every and is_named and not _exists(admin, kind, names[0]):
            text = f"The {kind[:-1]} '{names[0]}' doesn't exist and doesn't have dynamic config."
            click.echo(text, err=quiet)
            return []
    else:
        names = _all_names(admin, kind)
    return _reported(admin, kind, names, every)


def _of_broker(
    admin: Admin, broker: int, every: bool, *, quiet: bool
) -> list[tuple[str, list[ConfigEntry]]]:
    """The configs of a broker that is no controller, from the metadata log of the controllers."""
    from quorate.cli.tools.config_of_brokers import dynamic_configs, image_for_broker, is_known

    if every:
        raise FlatToolError(
            f"Only broker {broker} itself reports all of its configs: use --bootstrap-server, or leave "
            "out --all"
        )
    image = image_for_broker(admin)
    if not is_known(image, broker):
        text = f"The broker '{broker}' doesn't exist and doesn't have dynamic config."
        click.echo(text, err=quiet)
        return []
    return [(str(broker), dynamic_configs(image, broker))]


def _reported(
    admin: Admin, kind: str, names: Sequence[str], every: bool
) -> list[tuple[str, list[ConfigEntry]]]:
    """What the nodes report. Raises RequestFailedError."""
    resources = [Resource(RESOURCE_TYPES[kind], name) for name in names]
    found = admin.describe_configs(resources, synonyms=True) if resources else {}
    rows = []
    for resource in resources:
        entries = found[resource]
        if isinstance(entries, RequestFailedError):
            raise entries
        source = _OWN_SOURCE.get(kind)
        if kind == BROKERS and not resource.name:
            source = ConfigEntrySource.DYNAMIC_DEFAULT_BROKER_CONFIG
        shown = [e for e in entries if every or source is None or e.source == source]
        rows.append((resource.name, sorted(shown, key=lambda e: e.name)))
    return rows


def _exists(admin: Admin, kind: str, name: str) -> bool:
    """Whether an entity is known; True where the cluster cannot say."""
    if kind in (BROKERS, LOGGERS):
        return int(name) in admin.describe_cluster().nodes
    if kind == TOPICS:
        try:
            found = admin.describe_topics([name]).get(name)
        except UnsupportedVersionError:  # a controller of Kafka does not describe topics
            return True
        if (
            isinstance(found, RequestFailedError)
            and found.code.name != "UNKNOWN_TOPIC_OR_PARTITION"
        ):
            raise found
        return found is not None and not isinstance(found, RequestFailedError)
    if kind == CLIENT_METRICS:
        return name in _config_resources(admin, kind)
    try:
        groups, is_complete = _group_names(admin)
    except UnsupportedVersionError:
        return True
    return name in groups or not is_complete


def _all_names(admin: Admin, kind: str) -> Sequence[str]:
    if kind == TOPICS:
        return [topic.name for topic in admin.list_topics()]
    if kind in (BROKERS, LOGGERS):
        return [*map(str, sorted(admin.describe_cluster().nodes)), ""]
    if kind == CLIENT_METRICS:
        return sorted(_config_resources(admin, kind))
    return sorted(_group_names(admin)[0])


def _config_resources(admin: Admin, kind: str) -> Collection[str]:
    return [each.name for each in admin.list_config_resources(RESOURCE_TYPES[kind])]


def _group_names(admin: Admin) -> tuple[Collection[str], bool]:
    """Groups that brokers know and groups that have configs; whether the latter could be listed."""
    names: set[str] = set()
    if not admin.config.controllers:
        names.update(admin.list_groups())
    try:
        names.update(_config_resources(admin, GROUPS))
    except UnsupportedVersionError:  # Kafka before 4.1
        if admin.config.controllers:
            raise
        return names, False
    except RequestFailedError as error:
        if error.code.name != "CLUSTER_AUTHORIZATION_FAILED":
            raise
        return names, False
    return names, True


def _print_resource(kind: str, name: str, entries: Sequence[ConfigEntry], every: bool) -> None:
    if name:
        _show(f"{'All' if every else 'Dynamic'} configs for {kind[:-1]} {name} are:")
    else:
        _show(f"Default configs for {kind} in the cluster are:")
    lines = []
    for entry in entries:
        synonyms = ", ".join(f"{s.source.name}:{s.name}={_java(s.value)}" for s in entry.synonyms)
        lines.append(
            f"  {entry.name}={_java(entry.value)} sensitive={str(entry.is_sensitive).lower()} "
            f"synonyms={{{synonyms}}}"
        )
    _show(*lines)


def _show(*lines: str) -> None:
    for line in fold(lines):
        click.echo(line)


def _java(value: str | None) -> str:
    return "null" if value is None else value


def _json(kind: str, name: str, entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    return {
        "entityType": kind,
        "entityName": name or None,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name,
                "sensitive": entry.is_sensitive,
                "readOnly": entry.is_read_only,
                "synonyms": [
                    {"name": s.name, "value": s.value, "source": s.source.name}
                    for s in entry.synonyms
                ],
            }
            for entry in entries
        ],
    }


# -- users, clients, addresses -------------------------------------------------------------------
def quota_filter(entities: ConfigEntities) -> dict[str, str | object | None]:
    """The filter that finds exactly these entities. Raises FlatToolError for too many names."""
    from quorate.client.admin.quotas import ANY_NAME

    if len(entities.names) > len(entities.types):
        raise FlatToolError("More entity names specified than entity types")
    found: dict[str, str | object | None] = {}
    for index, kind in enumerate(entities.types):
        name: str | object | None = ANY_NAME
        if index < len(entities.names):
            name = entities.names[index] or None
        found[QUOTA_TYPES[kind]] = name
    return found


def _quotas(admin: Admin, entities: ConfigEntities) -> list[dict[str, Any]]:
    found = admin.describe_client_quotas(quota_filter(entities), strict=True)
    return [{"entity": dict(each.entity), "quotas": dict(each.quotas)} for each in found]


def _scram(admin: Admin, entities: ConfigEntities) -> list[dict[str, Any]]:
    from quorate.client.admin.security import ScramMechanism

    texts = {int(each): each.text for each in ScramMechanism}
    rows: list[dict[str, Any]] = []
    for user, infos in admin.describe_user_scram_credentials(entities.names).items():
        if isinstance(infos, RequestFailedError):
            if infos.code.name != "RESOURCE_NOT_FOUND":
                error = f"{infos.code.name}: {infos.reason}"
                rows.append({"user": user, "credentials": [], "error": error})
            continue
        credentials = [
            {
                "mechanism": texts.get(each.mechanism, f"UNKNOWN {each.mechanism}"),
                "iterations": each.iterations,
            }
            for each in infos
        ]
        rows.append({"user": user, "credentials": credentials})
    return rows


def _print_scram(user: Mapping[str, Any]) -> None:
    where = f"SCRAM credential configs for user-principal '{user['user']}'"
    if "error" in user:
        _show(f"Error retrieving {where}: {user['error']}")
        return
    texts = (f"{each['mechanism']}=iterations={each['iterations']}" for each in user["credentials"])
    _show(f"{where} are {', '.join(texts)}")
