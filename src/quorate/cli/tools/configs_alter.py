"""`quorate configs --alter`: set and remove configs, quotas and SCRAM credentials."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.config_entities import BROKERS, CLIENTS, IPS, LOGGERS, USERS, ConfigEntities
from quorate.cli.tools.configs_describe import QUOTA_TYPES, RESOURCE_TYPES, quota_filter
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.client.admin.security import ScramDeletion, ScramUpsertion

_QUOTAS: Final = frozenset(
    {"consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage"}
)
_IP_QUOTAS: Final = frozenset({"connection_creation_rate"})
_SCRAM: Final = frozenset({"SCRAM-SHA-256", "SCRAM-SHA-512"})
_MIN_ITERATIONS: Final = 4096
_CREDENTIAL: Final = re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")
_VIA: Final = "using --bootstrap-server"


def alter(
    admin: Admin,
    entities: ConfigEntities,
    add: Mapping[str, str],
    delete: Sequence[str],
    *,
    quiet: bool,
) -> None:
    """Make the change and, unless `quiet`, say so. Raises FlatToolError or RequestFailedError."""
    if len(entities.types) != len(entities.names):
        raise FlatToolError("An entity name must be specified for every entity type")
    name = entities.names[0]
    if entities.type in RESOURCE_TYPES:
        _alter_resource(admin, entities, add, delete)
    elif entities.type == IPS:
        unknown = [key for key in (*add, *delete) if key not in _IP_QUOTAS]
        if unknown:
            raise FlatToolError(
                f"Only connection quota configs can be added for '{IPS}' {_VIA}. Unexpected config "
                f"names: {','.join(unknown)}"
            )
        _alter_quotas(admin, entities, add, delete)
    else:
        _alter_user(admin, entities, add, delete)
    if quiet:
        return
    if name:
        click.echo(f"Completed updating config for {entities.type[:-1]} {name}.")
    else:
        click.echo(f"Completed updating default config for {entities.type} in the cluster.")


def _alter_resource(
    admin: Admin, entities: ConfigEntities, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    from quorate.client.admin.configs import AlterConfigOp, OpType, Resource

    resource = Resource(RESOURCE_TYPES[entities.type], entities.names[0])
    if entities.type == LOGGERS:
        _check_loggers(admin, resource.name, (*delete, *add))
    elif entities.type == BROKERS and admin.config.controllers:
        click.echo(
            "Warning: the change goes to the controllers directly, so the broker does not validate it "
            "(KIP-919). Use --bootstrap-server to have it validated.",
            err=True,
        )
    changes = [AlterConfigOp(key, OpType.DELETE, "") for key in delete]
    changes += [AlterConfigOp(key, OpType.SET, value) for key, value in add.items()]
    error = admin.incremental_alter_configs({resource: changes})[resource]
    if error is not None:
        raise error


def _check_loggers(admin: Admin, node: str, names: Collection[str]) -> None:
    from quorate.client.admin.configs import Resource, ResourceType

    resource = Resource(ResourceType.BROKER_LOGGER, node)
    known = admin.describe_configs([resource])[resource]
    if isinstance(known, RequestFailedError):
        raise known
    unknown = set(names) - {entry.name for entry in known}
    if unknown:
        shown = ",".join(name for name in names if name in unknown)
        raise FlatToolError(f"Invalid broker logger(s): {shown}")


def _alter_user(
    admin: Admin, entities: ConfigEntities, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    """Quotas of users and clients, or SCRAM credentials of a user."""
    of_client = entities.type == CLIENTS or len(entities.types) == 2
    allowed = _QUOTAS if of_client else _QUOTAS | _SCRAM
    kind, what = (CLIENTS, "quota") if of_client else (USERS, "quota and SCRAM credential")
    for verb, keys, form in (("added", add, "Set({})"), ("deleted", delete, "List({})")):
        unknown = [key for key in keys if key not in allowed]
        if unknown:
            raise FlatToolError(
                f"Only {what} configs can be {verb} for '{kind}' {_VIA}. Unexpected config names: "
                + form.format(", ".join(unknown))
            )
    scram = [key for key in (*add, *delete) if key in _SCRAM]
    quotas = [key for key in (*add, *delete) if key in _QUOTAS]
    if scram and "" in entities.names:
        raise FlatToolError(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM "
            f"Credentials {_VIA}."
        )
    if scram and quotas:
        raise FlatToolError(
            "Cannot alter both quota and SCRAM credential configs simultaneously for "
            f"'{USERS}' {_VIA}."
        )
    if scram:
        _alter_scram(admin, entities.names[0], add, delete)
    else:
        _alter_quotas(admin, entities, add, delete)


def _alter_quotas(
    admin: Admin, entities: ConfigEntities, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    from quorate.config_definitions.java_text import parse_double

    quotas: dict[str, float | None] = dict.fromkeys(delete)
    for key, text in add.items():
        value = parse_double(text)
        if value is None:
            raise FlatToolError(f"Cannot parse quota configuration value for {key}: {text}")
        quotas[key] = value
    if delete:
        found = admin.describe_client_quotas(quota_filter(entities), strict=True)
        known = found[0].quotas if found else {}
        unknown = [key for key in delete if key not in known]
        if unknown:
            raise FlatToolError(f"Invalid config(s): {','.join(unknown)}")
    pairs = zip(entities.types, entities.names, strict=True)
    admin.alter_client_quota({QUOTA_TYPES[kind]: name or None for kind, name in pairs}, quotas)


def _alter_scram(admin: Admin, user: str, add: Mapping[str, str], delete: Sequence[str]) -> None:
    from quorate.client.admin.security import ScramDeletion, ScramMechanism

    mechanisms = {each.text: each for each in ScramMechanism}
    changes: list[ScramDeletion | ScramUpsertion] = [
        ScramDeletion(user, mechanisms[key]) for key in delete
    ]
    changes += [scram_upsertion(user, key, text) for key, text in add.items()]
    for error in admin.alter_user_scram_credentials(changes).values():
        if error is not None:
            raise error


def scram_upsertion(user: str, mechanism: str, text: str) -> ScramUpsertion:
    """The credential of `iterations=4096,password=secret`. Raises FlatToolError."""
    from quorate.client.admin.security import ScramMechanism, ScramUpsertion

    match = _CREDENTIAL.fullmatch(text)
    if match is None:
        raise FlatToolError(
            f"Invalid credential property {mechanism}: it must be "
            f"{mechanism}=[iterations=N,password=SECRET]"
        )
    given, password = match.groups()
    iterations = _MIN_ITERATIONS if given in (None, "", "-1") else int(given)
    if iterations < _MIN_ITERATIONS:
        raise FlatToolError(
            f"Iterations {iterations} is less than the minimum {_MIN_ITERATIONS} required for "
            f"{mechanism}"
        )
    [found] = [each for each in ScramMechanism if each.text == mechanism]
    return ScramUpsertion(user, found, iterations, password.encode())
