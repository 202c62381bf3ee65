"""Reads a node's configuration from Kafka's own properties file."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from quorate.base.ids import Address, Listener, Listeners
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

    The order of the checks is Kafka's: a file with several mistakes gets the same message. Settings
    that collect faults get a configuration whose values behind a fault are guesses.
    """
    roles = _listed(settings, "process.roles", ROLES)
    if settings.is_unknown("process.roles"):
        roles = (*roles, "controller")
    names = _listed(settings, addresses.CONTROLLER_NAMES)
    if settings.is_unknown(addresses.CONTROLLER_NAMES):
        from quorate.config.guesses import controller_names

        names = controller_names(settings, names)
    protocols = settings.guarded(
        lambda: addresses.security_protocols(settings, names), dict[str, str]()
    )
    bound = _bound(settings, names, protocols)
    if _has_unknown_names(settings):
        from quorate.config.guesses import protocols_of

        protocols = protocols_of(protocols, [*names, *(one.name for one in bound)])
    given = settings.guarded(lambda: _endpoints(settings, addresses.ADVERTISED, protocols), None)
    node_id = settings.guarded(lambda: _node_id(settings), -1)
    voters = settings.guarded(lambda: addresses.voters(settings), dict[int, Address]())
    log_dirs = _log_dirs(settings)
    if any(key not in _KNOWN for key in settings):
        # Imported here: the definitions of all keys take long to read.
        from quorate.config.unused_keys import check_unused

        check_unused(settings, _KNOWN)
    values: dict[str, Any] = {
        item.name: settings.guarded(partial(_value, settings, key), item.default)
        for key, item in SETTINGS.items()
    }

    def text(key: str) -> str:
        return settings.guarded(lambda: settings.text(key), None) or ""

    config = NodeConfig(
        node_id=node_id,
        roles=frozenset(roles),
        listeners=bound,
        advertised_listeners=addresses.advertised_controllers(
            names, bound, given or (), voters.get(node_id)
        ),
        controller_listener_names=names,
        security_protocols=protocols,
        static_voters=addresses.static_voters(voters, names[0].upper()),
        bootstrap_servers=settings.guarded(lambda: addresses.bootstrap_servers(settings), ()),
        log_dirs=log_dirs,
        metadata_log_dir=_metadata_log_dir(settings, log_dirs),
        max_connections_by_host=settings.guarded(lambda: _connections_by_host(settings), {}),
        authorizer=text(AUTHORIZER),
        super_users=settings.guarded(lambda: _super_users(settings), frozenset()),
        late_listeners=settings.guarded(
            lambda: cross_checks.late_listeners(settings, bound, names[0]), frozenset()
        ),
        audit_dir=text(AUDIT_DIR),
        delegation_token_secret_key=text(TOKEN_KEY),
        create_topic_policy=_function(settings, CREATE_TOPIC_POLICY),
        alter_config_policy=_function(settings, ALTER_CONFIG_POLICY),
        principal_function=_function(settings, PRINCIPAL_FUNCTION),
        sasl=sasl_settings(settings, protocols, names) if "controller" in roles else SaslSettings(),
        metrics_listener=settings.guarded(
            lambda: monitoring_settings.metrics_listener(settings), None
        ),
        pages=monitoring_settings.pages_settings(settings),
        authorizer_log=settings.guarded(lambda: monitoring_settings.authorizer_log(settings), None),
        warnings=(
            *settings.notes,
            *settings.guarded(lambda: _warnings(settings), ()),
            *_not_asked(settings, bound, protocols),
        ),
        source=settings.source,
        file=settings.values,
        **values,
    )
    check_node(config, settings, given)
    return config


def _listed(settings: Settings, key: str, one_of: Sequence[str] = ()) -> tuple[str, ...]:
    """The values of a required list."""
    found = settings.guarded(lambda: settings.distinct(key, one_of=one_of), tuple[str, ...]())
    if not found:
        settings.guarded(lambda: settings.required(key), "")
    return found or ()


def _endpoints(
    settings: Settings, key: str, protocols: Mapping[str, str], *, distinct_ports: bool = False
) -> Listeners | None:
    """The endpoints of a key, of any name where the map of the names has a fault."""
    known = None if _has_unknown_names(settings) else protocols
    return addresses.listeners(settings, key, known, distinct_ports=distinct_ports)


def _has_unknown_names(settings: Settings) -> bool:
    """Whether a fault leaves open which listeners have a security protocol."""
    keys = (addresses.PROTOCOL_MAP, addresses.CONTROLLER_NAMES)
    return any(settings.is_unknown(key) for key in keys)


def _bound(settings: Settings, names: Sequence[str], protocols: Mapping[str, str]) -> Listeners:
    def read() -> Listeners | None:
        return _endpoints(settings, addresses.LISTENERS, protocols, distinct_ports=True)

    bound = settings.guarded(read, tuple[Listener, ...]())
    if settings.is_unknown(addresses.LISTENERS):
        from quorate.config.guesses import bound_listeners

        return bound_listeners(bound or (), names, protocols)
    return (Listener("PLAINTEXT", "", 9092),) if bound is None else bound


def _log_dirs(settings: Settings) -> tuple[str, ...]:
    def read(key: str) -> tuple[str, ...]:
        found = settings.guarded(lambda: settings.distinct(key), tuple[str, ...]())
        if not settings.is_unknown(key):
            return found or ()
        from quorate.config.guesses import directories

        return directories(settings, key)

    one_dir = read("log.dir")
    if not one_dir and not settings.is_unknown("log.dir"):
        one_dir = ("/tmp/kafka-logs",)  # noqa: S108 - Kafka's default
    log_dirs = read("log.dirs")
    return log_dirs if log_dirs or settings.is_unknown("log.dirs") else one_dir


def _metadata_log_dir(settings: Settings, log_dirs: Sequence[str]) -> str:
    """Return the directory of the log; "" where a fault leaves it open."""
    if settings.is_unknown("metadata.log.dir"):
        return ""
    return settings.text("metadata.log.dir") or (log_dirs[0] if log_dirs else "")


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
    node = settings.guarded(lambda: settings.integer("node.id", None, at_least=0), None)
    broker = settings.guarded(lambda: settings.integer("broker.id", None), None)
    settings.needs("node.id")
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

    def checked(user: str) -> str:
        if ":" not in user:
            settings.invalid(
                SUPER_USERS, user, "expected a string in format principalType:principalName"
            )
        return user

    return frozenset(settings.each(checked, filter(None, users)))


def _function(settings: Settings, key: str) -> str:
    def read() -> str:
        text = settings.text(key) or ""
        module, colon, attribute = text.partition(":")
        names = (*module.split("."), *attribute.split("."))
        if text and not (colon and all(name.isidentifier() for name in names)):
            settings.invalid(key, text, "It should be of the form module:attribute")
        return text

    return settings.guarded(read, "")


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
        if key in settings and not settings.is_unknown(key)
    ]
    return (*warnings, *_unknown(settings))


def _not_asked(
    settings: Settings, listeners: Sequence[Listener], protocols: Mapping[str, str]
) -> list[str]:
    """A warning for each listener that asks for no certificate, though `ssl.client.auth` says so."""
    if (settings.values.get(CLIENT_AUTH) or "none").lower() == "none":
        return []
    return [
        f"{CLIENT_AUTH} has no effect on {name}, whose protocol is SASL_SSL: set "
        f"{listener_prefix(name)}{CLIENT_AUTH} ({settings.where(CLIENT_AUTH)})"
        for name in (listener.name for listener in listeners)
        if asks_in_vain(settings.values, name, protocols.get(name, ""))
    ]


def _unknown(settings: Settings) -> list[str]:
    unknown = [key for key in unknown_keys(settings) if not settings.is_unknown(key)]
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
