"""A node's configuration, read from Kafka's own properties file.

The names, defaults, ranges and checks between keys are those of Kafka 4.3.1 (`QuorumConfig`,
`KRaftConfigs`, `MetadataLogConfig`, `SocketServerConfigs`, `KafkaConfig.validateValues`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.base.ids import Address, Listener, Listeners
from quorate.config import listeners as addresses
from quorate.config import monitoring_settings
from quorate.config import validation as cross_checks
from quorate.config.monitoring_settings import AuthorizerLogSettings, PagesSettings
from quorate.config.properties_file import read_settings
from quorate.config.sasl_settings import SaslSettings, is_known, sasl_settings
from quorate.config.security_settings import is_tls_key
from quorate.config.settings import ConfigError, Settings

if TYPE_CHECKING:
    from quorate.raft.values import Voter

__all__ = ["ConfigError", "NodeConfig", "load_config"]

ROLES: Final = ("broker", "controller")
_INT_MAX: Final = 2**31 - 1
_WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
_MIB: Final = 1024 * 1024
_OURS: Final = ("controller.quorum.", "metadata.log.", "metadata.max.", "quorate.")
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "controller.quorum.append.linger.ms": "writes that arrive during a round form the next round",
    "internal.metadata.max.batch.size.in.bytes": "a batch is limited to 8 MiB",
    "internal.metadata.delete.delay.millis": "cleaned files are deleted at once",
}
"""Kafka keys that are checked but have no effect, and the reason."""
AUDIT_DIR: Final = "quorate.audit.dir"
AUTHORIZER: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOKEN_KEY: Final = "delegation.token.secret.key"  # noqa: S105 - the name of a key
SUPER_USERS: Final = "super.users"
CREATE_TOPIC_POLICY: Final = "quorate.create.topic.policy"
ALTER_CONFIG_POLICY: Final = "quorate.alter.config.policy"
POLICIES: Final[Mapping[str, str]] = {
    CREATE_TOPIC_POLICY: "create.topic.policy.class.name",
    ALTER_CONFIG_POLICY: "alter.config.policy.class.name",
}
"""The key for a policy of ours -> Kafka's key, which names a Java class."""
PRINCIPAL_FUNCTION: Final = "quorate.principal.builder"
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
        *POLICIES,
        *POLICIES.values(),
        PRINCIPAL_FUNCTION,
        *monitoring_settings.KEYS,
    ),
)


def _int(default: int | None, *, at_least: int | None = None, bits: int = 32) -> Any:
    """Declare a numeric setting; the field is named like Kafka's key, with `_` for `.`."""
    return field(default=default, metadata={"at_least": at_least, "bits": bits})


def _flag(default: bool = False) -> Any:
    """Declare a boolean setting."""
    return field(default=default, metadata={"boolean": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """A node's configuration. Times are in ms, sizes in bytes; -1 means no limit, as in Kafka.

    A field named like a Kafka key (with `_` for `.`) holds that key's value.
    """

    node_id: int
    roles: frozenset[str]
    listeners: Listeners
    """Endpoints to bind. Host "" or 0.0.0.0: every interface; port 0: any free port."""
    advertised_listeners: Listeners
    """Endpoints of the controller. Host "": this machine's name; port 0: the bound port."""
    controller_listener_names: tuple[str, ...]
    security_protocols: Mapping[str, str]
    """Listener name (upper case) -> PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    static_voters: tuple[Voter, ...] = ()
    """`controller.quorum.voters`, sorted by id; empty in a dynamic quorum."""
    bootstrap_servers: tuple[Address, ...] = ()
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    max_connections_by_host: Mapping[str, int] = field(default_factory=dict)
    """`max.connections.per.ip.overrides`: host name or IP address -> limit."""
    authorizer: str = ""
    """`authorizer.class.name`; empty: every request is allowed."""
    super_users: frozenset[str] = frozenset()
    """`super.users`: principals (`type:name`) that may do everything, separated by `;`."""
    create_topic_policy: str = ""
    """`quorate.create.topic.policy=module:attribute`; Kafka has no such key. Empty: no policy."""
    alter_config_policy: str = ""
    """`quorate.alter.config.policy=module:attribute`, likewise."""
    principal_function: str = ""
    """`quorate.principal.builder=module:attribute`, likewise. Empty: Kafka's default principals."""
    delegation_token_secret_key: str = field(default="", repr=False)
    """Empty: no delegation tokens."""
    audit_dir: str = ""
    """`quorate.audit.dir`; Kafka has no such key. Empty: no audit trail."""
    sasl: SaslSettings = field(default_factory=SaslSettings)
    """`sasl.*`, of the controller's listeners."""
    metrics_listener: Address | None = None
    """`quorate.metrics.listener=host:port`; Kafka has no such key."""
    warnings: tuple[str, ...] = ()
    """Messages for the operator: unknown keys, keys without effect, likely typing errors."""
    source: str = ""
    file: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Every key of the properties file and its value as text, passwords too."""

    quorate_register_observer: bool = _flag()
    """Register before this node is a voter, as Kafka does; Kafka has no such key."""

    controller_quorum_election_timeout_ms: int = _int(1000, at_least=0)
    controller_quorum_fetch_timeout_ms: int = _int(2000, at_least=0)
    controller_quorum_election_backoff_max_ms: int = _int(1000, at_least=0)
    controller_quorum_append_linger_ms: int = _int(25, at_least=0)
    controller_quorum_request_timeout_ms: int = _int(2000, at_least=0)
    controller_quorum_retry_backoff_ms: int = _int(20, at_least=0)
    controller_quorum_auto_join_enable: bool = _flag()
    controller_quorum_fetch_max_bytes: int = _int(_MIB, at_least=1)
    controller_quorum_fetch_snapshot_max_bytes: int = _int(_MIB, at_least=1)

    metadata_log_max_record_bytes_between_snapshots: int = _int(20 * _MIB, at_least=1, bits=64)
    metadata_log_max_snapshot_interval_ms: int = _int(60 * 60 * 1000, at_least=0, bits=64)
    metadata_log_segment_bytes: int = _int(1024 * _MIB, at_least=8 * _MIB)
    metadata_log_segment_ms: int = _int(_WEEK_MS, bits=64)
    metadata_max_retention_bytes: int = _int(100 * _MIB, bits=64)
    metadata_max_retention_ms: int = _int(_WEEK_MS, bits=64)
    metadata_max_idle_interval_ms: int = _int(500, at_least=0)
    internal_metadata_log_segment_bytes: int | None = _int(None)
    internal_metadata_max_batch_size_in_bytes: int = _int(8 * _MIB)
    internal_metadata_delete_delay_millis: int = _int(60_000, bits=64)

    socket_request_max_bytes: int = _int(100 * _MIB, at_least=1)
    socket_send_buffer_bytes: int = _int(-1, at_least=-1)
    socket_receive_buffer_bytes: int = _int(-1, at_least=-1)
    """-1, the default: the operating system sizes the buffers. Kafka's default is 100 KiB."""
    socket_listen_backlog_size: int = _int(50, at_least=1)
    connections_max_idle_ms: int = _int(10 * 60 * 1000, bits=64)
    max_connections: int = _int(_INT_MAX, at_least=0)
    max_connections_per_ip: int = _int(_INT_MAX, at_least=0)
    queued_max_requests: int = _int(500, at_least=1)
    queued_max_request_bytes: int = _int(-1, bits=64)
    unstable_feature_versions_enable: bool = _flag()
    min_insync_replicas: int = _int(1, at_least=1)
    """A new cluster's log records it as the default, for eligible leader replicas (KIP-966)."""
    unclean_leader_election_enable: bool = _flag()
    unclean_leader_election_interval_ms: int = _int(5 * 60 * 1000, at_least=1, bits=64)
    pages: PagesSettings = field(default_factory=PagesSettings)
    """What the HTTP listener asks for."""
    authorizer_log: AuthorizerLogSettings | None = None
    """`quorate.authorizer.log.*`; None: decisions are not logged."""
    auto_leader_rebalance_enable: bool = _flag(True)
    leader_imbalance_check_interval_seconds: int = _int(300, at_least=1, bits=64)
    broker_session_timeout_ms: int = _int(9000)
    broker_heartbeat_interval_ms: int = _int(2000)
    default_replication_factor: int = _int(1)
    num_partitions: int = _int(1, at_least=1)
    delete_topic_enable: bool = _flag(True)
    allow_everyone_if_no_acl_found: bool = _flag()
    quorate_audit_entries: int = _int(1_000, at_least=1)
    quorate_audit_max_bytes: int = _int(10 * _MIB, at_least=4096, bits=64)
    quorate_audit_max_files: int = _int(5, at_least=1)
    max_connection_creation_rate: int = _int(_INT_MAX, at_least=0)
    quota_window_num: int = _int(11, at_least=1)
    quota_window_size_seconds: int = _int(1, at_least=1)
    controller_quota_window_num: int = _int(11, at_least=1)
    controller_quota_window_size_seconds: int = _int(1, at_least=1)
    delegation_token_max_lifetime_ms: int = _int(_WEEK_MS, at_least=1, bits=64)
    delegation_token_expiry_time_ms: int = _int(24 * 60 * 60 * 1000, at_least=1, bits=64)
    delegation_token_expiry_check_interval_ms: int = _int(60 * 60 * 1000, at_least=1, bits=64)

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def segment_bytes(self) -> int:
        """Size at which a log segment is rolled. The internal key, meant for tests, takes precedence."""
        return self.internal_metadata_log_segment_bytes or self.metadata_log_segment_bytes

    @property
    def directories(self) -> tuple[str, ...]:
        """All log directories and the metadata log directory, sorted, without duplicates."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    def controller_listeners(self) -> Listeners:
        """The entries of `listeners` that serve the controller."""
        names = self.controller_listener_names
        return tuple(listener for listener in self.listeners if listener.name in names)


_SETTINGS: Final[Mapping[str, Field[Any]]] = {
    item.name.replace("_", "."): item for item in fields(NodeConfig) if item.metadata
}
_KNOWN: Final = frozenset((*_OTHER_KEYS, *_SETTINGS))


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
    values: dict[str, Any] = {item.name: _value(settings, key) for key, item in _SETTINGS.items()}
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
        max_connections_by_host=cross_checks.connections_by_host(settings),
        authorizer=settings.text(AUTHORIZER) or "",
        super_users=_super_users(settings),
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
        warnings=(*settings.notes, *_warnings(settings)),
        source=settings.source,
        file=settings.values,
        **values,
    )
    _validate(config, settings, given)
    return config


def _value(settings: Settings, key: str) -> int | bool | None:
    item = _SETTINGS[key]
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
    return [key for key in settings if not (key in _KNOWN or is_known(key) or is_tls_key(key))]


def _warnings(settings: Settings) -> tuple[str, ...]:
    warnings = [
        f"{key} has no effect: {why} ({settings.where(key)})"
        for key, why in _WITHOUT_EFFECT.items()
        if key in settings
    ]
    return (*warnings, *_unknown(settings))


def _unknown(settings: Settings) -> list[str]:
    unknown = unknown_keys(settings)
    if not unknown:
        return []
    from difflib import get_close_matches

    warnings, unused = [], []
    for key in unknown:
        close = get_close_matches(key, _KNOWN, n=1, cutoff=0.8)
        if key.startswith(_OURS):
            hint = f"; did you mean {close[0]}?" if close else ""
            warnings.append(f"Unknown key {key} is ignored{hint} ({settings.where(key)})")
        else:
            unused.append(key)
    if unused:
        warnings.append(f"Keys that Quorate does not use are ignored: {', '.join(sorted(unused))}")
    return warnings


def _validate(config: NodeConfig, settings: Settings, given: Listeners | None) -> None:
    """Check keys against each other, in the order of `KafkaConfig.validateValues`."""
    cross_checks.check_early_start(settings, config.listeners)
    cross_checks.check_broker_times(settings)
    if not config.static_voters and not config.bootstrap_servers:
        settings.refuse(
            addresses.BOOTSTRAP,
            f"If using process.roles, either {addresses.BOOTSTRAP} must contain the set of "
            f"bootstrap controllers or {addresses.VOTERS} must contain a parseable set of "
            "controllers.",
        )
    if config.is_controller:
        _validate_controller(config, settings)
    else:
        _validate_broker_only(config, settings)
    for endpoint in given or ():
        # Kafka refuses 0.0.0.0 only. `::` would send every peer to itself in the same way.
        if addresses.is_wildcard(endpoint.host):
            settings.refuse(
                addresses.ADVERTISED,
                f"{addresses.ADVERTISED} cannot use the nonroutable meta-address {endpoint.host}. "
                "Use a routable IP address.",
            )
    cross_checks.check_broker_sasl(settings, config.security_protocols)
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        settings.refuse(
            "queued.max.request.bytes",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        )
    cross_checks.check_connections(
        settings,
        config.max_connections_per_ip,
        config.max_connections_by_host,
        config.connections_max_idle_ms,
    )


def _validate_controller(config: NodeConfig, settings: Settings) -> None:
    names = config.controller_listener_names
    if "broker" not in config.roles and len(config.advertised_listeners) != len(config.listeners):
        settings.refuse(
            addresses.LISTENERS,
            f"The {addresses.LISTENERS} config must only contain KRaft controller listeners from "
            f"{addresses.CONTROLLER_NAMES} when process.roles=controller",
        )
    if (
        "broker" not in config.roles
        and cross_checks.BETWEEN_BROKERS in settings
        and cross_checks.between_brokers(settings, config.security_protocols)[0] in names
    ):
        settings.refuse(
            cross_checks.BETWEEN_BROKERS,
            f"{addresses.CONTROLLER_NAMES} must not contain an explicitly set "
            "inter.broker.listener.name configuration value when process.roles=controller'",
        )
    ids = [voter.key.id for voter in config.static_voters]
    if ids and config.node_id not in ids:
        settings.refuse(
            addresses.VOTERS,
            "If process.roles contains the 'controller' role, the node id "
            f"{config.node_id} must be included in the set of voters "
            f"{addresses.VOTERS}=Set({', '.join(map(str, ids))})",
        )
    role = "when running the KRaft controller role"
    if not config.advertised_listeners:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must contain at least one value appearing in the "
            f"'{addresses.LISTENERS}' configuration {role}",
        )
    if not set(names) <= {listener.name for listener in config.listeners}:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must only contain values appearing in the "
            f"'{addresses.LISTENERS}' configuration {role}",
        )


def _validate_broker_only(config: NodeConfig, settings: Settings) -> None:
    ids = [voter.key.id for voter in config.static_voters]
    if config.node_id in ids:
        settings.refuse(
            addresses.VOTERS,
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} must "
            f"not be included in the set of voters {addresses.VOTERS}="
            f"Set({', '.join(map(str, ids))})",
        )
    if config.controller_listeners():
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must not contain a value appearing in the "
            f"'{addresses.LISTENERS}' configuration when running KRaft with just the broker role",
        )
    for name in config.controller_listener_names:
        if name.upper() not in config.security_protocols:
            settings.refuse(
                addresses.PROTOCOL_MAP,
                f"Controller listener with name {name.upper()} defined in "
                f"{addresses.CONTROLLER_NAMES} not found in {addresses.PROTOCOL_MAP}  (an explicit "
                "security mapping for each controller listener is required if "
                f"{addresses.PROTOCOL_MAP} is non-empty, or if there are security protocols other "
                "than PLAINTEXT in use)",
            )
    if config.controller_quorum_auto_join_enable:
        settings.refuse(
            "controller.quorum.auto.join.enable",
            "controller.quorum.auto.join.enable is only supported when process.roles contains the "
            "'controller' role.",
        )
