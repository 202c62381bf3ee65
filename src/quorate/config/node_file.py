"""Reads a node's configuration from Kafka's own properties file."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from quorate.base.ids import Listener
from quorate.config import listeners as addresses
from quorate.config import monitoring_settings
from quorate.config import validation as cross_checks
from quorate.config.node_checks import check_node
from quorate.config.node_config import (
    ALTER_CONFIG_POLICY,
    AUDIT_DIR,
    AUTHORIZER,
    CREATE_TOPIC_POLICY,
    POLICIES,
    PRINCIPAL_FUNCTION,
    QUOTA_CALLBACK,
    ROLES,
    SETTINGS,
    SUPER_USERS,
    TOKEN_KEY,
    NodeConfig,
)
from quorate.config.properties_file import read_settings
from quorate.config.sasl_keys import FORMS, SaslKey, forms_of, is_read, split_key
from quorate.config.sasl_settings import SaslSettings, sasl_settings
from quorate.config.security_settings import (
    CLIENT_AUTH,
    asks_in_vain,
    is_tls_key,
    listener_prefix,
)
from quorate.config.settings import Settings

_OURS: Final = ("controller.quorum.", "metadata.log.", "metadata.max.", "quorate.")
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "controller.quorum.append.linger.ms": "writes that arrive during a round form the next round",
    "internal.metadata.max.batch.size.in.bytes": "a batch is limited to 8 MiB",
    "internal.metadata.delete.delay.millis": "cleaned files are deleted at once",
}
"""Kafka keys that are checked but have no effect, and the reason."""
_OTHER_KEYS: Final = (
    *("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir"),
    *(addresses.LISTENERS, addresses.ADVERTISED, addresses.PROTOCOL_MAP),
    *(addresses.CONTROLLER_NAMES, addresses.VOTERS, addresses.BOOTSTRAP),
    *(
        cross_checks.OVERRIDES,
        AUDIT_DIR,
        AUTHORIZER,
        SUPER_USERS,
        TOKEN_KEY,
        cross_checks.EARLY,
        *POLICIES,
        *POLICIES.values(),
        PRINCIPAL_FUNCTION,
        QUOTA_CALLBACK,
        *monitoring_settings.KEYS,
    ),
)
_OF_BROKERS: Final = ("sasl.mechanism.inter.broker.protocol", "security.inter.broker.protocol")
_KNOWN: Final = frozenset((*_OTHER_KEYS, *SETTINGS))


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> NodeConfig:
    """Read a properties file; each override is `key=value`.

    Raises ConfigError for an unreadable file and for the first wrong value. `warnings` names the
    unknown keys.
    """
    return config_of(read_settings(path, overrides))


def config_of(settings: Settings) -> NodeConfig:
    """Build the configuration from settings. Raises ConfigError for the first wrong value.

    The order of the checks is Kafka's: a file with several mistakes gets the same message.
    """
    roles = settings.distinct("process.roles", one_of=ROLES) or settings.required("process.roles")
    names = settings.distinct(addresses.CONTROLLER_NAMES) or settings.required(
        addresses.CONTROLLER_NAMES
    )
    protocols = addresses.security_protocols(settings)
    bound = addresses.listeners(settings, addresses.LISTENERS, protocols, distinct_ports=True)
    if bound is None:
        bound = (Listener("PLAINTEXT", "", 9092),)
    given = addresses.listeners(settings, addresses.ADVERTISED, protocols, distinct_ports=False)
    node_id = _node_id(settings)
    voters = addresses.voters(settings)
    one_dir = settings.distinct("log.dir") or ("/tmp/kafka-logs",)  # noqa: S108 - Kafka's default
    log_dirs = settings.distinct("log.dirs") or one_dir
    if any(key not in _KNOWN for key in settings):
        # Imported here: the definitions of all keys take long to read.
        from quorate.config.unused_keys import check_unused

        check_unused(settings, _KNOWN)
    values: dict[str, Any] = {item.name: _value(settings, key) for key, item in SETTINGS.items()}
    config = NodeConfig(
        node_id=node_id,
        roles=frozenset(roles),
        listeners=bound,
        advertised_listeners=addresses.advertised_controllers(
            tuple(names), bound, given or (), voters.get(node_id)
        ),
        controller_listener_names=tuple(names),
        security_protocols=protocols,
        static_voters=addresses.static_voters(voters, names[0].upper()),
        bootstrap_servers=addresses.bootstrap_servers(settings),
        log_dirs=log_dirs,
        metadata_log_dir=settings.text("metadata.log.dir") or log_dirs[0],
        max_connections_by_host=_connections_by_host(settings),
        authorizer=settings.text(AUTHORIZER) or "",
        super_users=_super_users(settings),
        late_listeners=cross_checks.late_listeners(settings, bound, names[0]),
        audit_dir=settings.text(AUDIT_DIR) or "",
        delegation_token_secret_key=settings.text(TOKEN_KEY) or "",
        create_topic_policy=_function(settings, CREATE_TOPIC_POLICY),
        alter_config_policy=_function(settings, ALTER_CONFIG_POLICY),
        principal_function=_function(settings, PRINCIPAL_FUNCTION),
        sasl=sasl_settings(settings, protocols, tuple(names))
        if "controller" in roles
        else SaslSettings(),
        metrics_listener=monitoring_settings.metrics_listener(settings),
        pages=monitoring_settings.pages_settings(settings),
        authorizer_log=monitoring_settings.authorizer_log(settings),
        warnings=(*settings.notes, *_warnings(settings), *_not_asked(settings, bound, protocols)),
        source=settings.source,
        file=settings.values,
        **values,
    )
    check_node(config, settings, given)
    return config


def _connections_by_host(settings: Settings) -> dict[str, int]:
    try:
        return cross_checks.connections_by_host(settings.text(cross_checks.OVERRIDES) or "")
    except ValueError as error:
        settings.refuse(cross_checks.OVERRIDES, str(error))


def _value(settings: Settings, key: str) -> int | bool | None:
    item = SETTINGS[key]
    default: Any = item.default
    if "boolean" in item.metadata:
        return settings.boolean(key, default)
    return settings.integer(key, default, **item.metadata)


def _node_id(settings: Settings) -> int:
    node = settings.integer("node.id", None, at_least=0)
    broker = settings.integer("broker.id", None)
    if node is None:
        node = settings.integer("broker.id", None, at_least=0)
    if node is None:
        settings.required("node.id")
    if broker is not None and broker != node:
        settings.refuse("node.id", "You must set `node.id` to the same value as `broker.id`.")
    assert node is not None
    return node


def _super_users(settings: Settings) -> frozenset[str]:
    """The principals in `super.users` (`StandardAuthorizer.getConfiguredSuperUsers`)."""
    users = [user.strip() for user in (settings.text(SUPER_USERS) or "").split(";")]
    for user in users:
        if user and ":" not in user:
            settings.invalid(
                SUPER_USERS, user, "expected a string in format principalType:principalName"
            )
    return frozenset(user for user in users if user)


def _function(settings: Settings, key: str) -> str:
    text = settings.text(key) or ""
    module, colon, attribute = text.partition(":")
    names = (*module.split("."), *attribute.split("."))
    if text and not (colon and all(name.isidentifier() for name in names)):
        settings.invalid(key, text, "It should be of the form module:attribute")
    return text


def unknown_keys(settings: Settings) -> list[str]:
    """The keys that a node does not use, in the order of the file."""
    names = settings.items(addresses.CONTROLLER_NAMES) or ()
    return [
        key for key in settings if not (key in _KNOWN or is_read(key, names) or is_tls_key(key))
    ]


def _warnings(settings: Settings) -> tuple[str, ...]:
    warnings = [
        f"{key} has no effect: {why} ({settings.where(key)})"
        for key, why in _WITHOUT_EFFECT.items()
        if key in settings
    ]
    return (*warnings, *_unknown(settings))


def _not_asked(
    settings: Settings, listeners: Sequence[Listener], protocols: Mapping[str, str]
) -> list[str]:
    """A warning for each listener that asks for no certificate, though `ssl.client.auth` says so."""
    if (settings.text(CLIENT_AUTH) or "none").lower() == "none":
        return []
    return [
        f"{CLIENT_AUTH} has no effect on {name}, whose protocol is SASL_SSL: set "
        f"{listener_prefix(name)}{CLIENT_AUTH} ({settings.where(CLIENT_AUTH)})"
        for name in (listener.name for listener in listeners)
        if asks_in_vain(settings.values, name, protocols.get(name, ""))
    ]


def _unknown(settings: Settings) -> list[str]:
    unknown = unknown_keys(settings)
    if not unknown:
        return []
    from difflib import get_close_matches

    warnings, unused = [], []
    names = {name.lower() for name in settings.items(addresses.CONTROLLER_NAMES) or ()}
    for key in unknown:
        close = get_close_matches(key, _KNOWN, n=1, cutoff=0.8)
        if key.startswith(_OURS):
            hint = f"; did you mean {close[0]}?" if close else ""
            warnings.append(f"Unknown key {key} is ignored{hint} ({settings.where(key)})")
        elif _is_about_security(key, names):
            hint = forms_of((split_key(key) or SaslKey(key)).name)
            why = f"it is read as {hint}" if hint else "Quorate does not use it"
            if key.startswith("listener.name.") and key != key.lower():
                why = "names of listeners and mechanisms are in lower case in a key"
            warnings.append(f"The key {key} is ignored: {why} ({settings.where(key)})")
        else:
            unused.append(key)
    if unused:
        warnings.append(f"Keys that Quorate does not use are ignored: {', '.join(sorted(unused))}")
    return warnings


def _is_about_security(key: str, listeners: Container[str]) -> bool:
    """Whether the operator of a controller may rely on the key for its security.

    A file that is shared with brokers has keys of their listeners and of their connections.
    """
    parts = key.split(".")
    if key.startswith("listener.name."):
        return parts[2].lower() in listeners
    if key in _OF_BROKERS or key.startswith("sasl.kerberos."):
        return False
    return parts[0] in ("sasl", "ssl") or bool({"sasl", "ssl"} & set(parts[1:2])) or key in FORMS
