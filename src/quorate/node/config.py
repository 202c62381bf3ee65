"""A node's configuration: Kafka's own properties file, its defaults and its rules.

The names, defaults, ranges and cross checks are those of Kafka 4.3.1 (`QuorumConfig`,
`KRaftConfigs`, `MetadataLogConfig`, `SocketServerConfigs`, `KafkaConfig.validateValues`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from quorate.base.ids import Address, Listener, Listeners, ReplicaKey, Uuid
from quorate.node import addresses, cross_checks
from quorate.node.host_port import parse_host_port
from quorate.node.kafka_keys import check_unused
from quorate.node.settings import ConfigError, Settings
from quorate.node.settings_file import read_settings
from quorate.raft.values import RaftConfig, Voter

__all__ = ["ConfigError", "NodeConfig", "load_config", "raft_config"]

ROLES: Final = ("broker", "controller")
_INT_MAX: Final = 2**31 - 1
_WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
_MIB: Final = 1024 * 1024
_OURS: Final = ("controller.quorum.", "metadata.log.", "metadata.max.", "quorate.")
METRICS_LISTENER: Final = "quorate.metrics.listener"
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "controller.quorum.append.linger.ms": "what comes while a round is on its way is the next one",
    "internal.metadata.max.batch.size.in.bytes": "a batch has 8 MiB at most",
    "internal.metadata.delete.delay.millis": "what is cleaned goes at once",
}
"""Keys of Kafka's that are checked as Kafka does and change nothing, and why."""
AUTHORIZER: Final = "authorizer.class.name"
_OTHER_KEYS: Final = (
    *("node.id", "broker.id", "process.roles", "log.dir", "log.dirs", "metadata.log.dir"),
    *(addresses.LISTENERS, addresses.ADVERTISED, addresses.PROTOCOL_MAP),
    *(addresses.CONTROLLER_NAMES, addresses.VOTERS, addresses.BOOTSTRAP, METRICS_LISTENER),
    *(cross_checks.OVERRIDES, AUTHORIZER),
)


def _int(default: int | None, *, at_least: int | None = None, bits: int = 32) -> Any:
    """A numeric setting; the field's name is Kafka's key with `_` for `.`."""
    return field(default=default, metadata={"at_least": at_least, "bits": bits})


def _flag() -> Any:
    """A boolean setting, false by default."""
    return field(default=False, metadata={"boolean": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeConfig:
    """What a node is told. Times in ms, sizes in bytes; -1 means no limit where Kafka says so.

    A field named like a key of Kafka's (`.` written `_`) holds that key's value.
    """

    node_id: int
    roles: frozenset[str]
    listeners: Listeners
    """To bind; host "" or 0.0.0.0: every interface; port 0: any free one."""
    advertised_listeners: Listeners
    """Of the controller; host "": this machine's name; port 0: the bound one."""
    controller_listener_names: tuple[str, ...]
    security_protocols: Mapping[str, str]
    """Listener name, upper case -> PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    static_voters: tuple[Voter, ...] = ()
    """Ordered by id; empty in a dynamic quorum."""
    bootstrap_servers: tuple[Address, ...] = ()
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    max_connections_by_host: Mapping[str, int] = field(default_factory=dict)
    """`max.connections.per.ip.overrides`; a host's name or IP address."""
    authorizer: str = ""
    """`authorizer.class.name`; none: everybody may do everything."""
    metrics_listener: Address | None = None
    """`quorate.metrics.listener=host:port`, ours alone."""
    warnings: tuple[str, ...] = ()
    """Facts for a person: keys that mean nothing here, likely typing errors."""
    source: str = ""

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
    """-1: as the system sizes them, which is our default; Kafka's is 100 KiB."""
    socket_listen_backlog_size: int = _int(50, at_least=1)
    connections_max_idle_ms: int = _int(10 * 60 * 1000, bits=64)
    max_connections: int = _int(_INT_MAX, at_least=0)
    max_connections_per_ip: int = _int(_INT_MAX, at_least=0)
    queued_max_requests: int = _int(500, at_least=1)
    queued_max_request_bytes: int = _int(-1, bits=64)
    unstable_feature_versions_enable: bool = _flag()
    min_insync_replicas: int = _int(1, at_least=1)
    """Written into a new cluster's log as its default, with eligible leader replicas (KIP-966)."""

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def segment_bytes(self) -> int:
        """Size at which a log segment is rolled, tests' override included."""
        return self.internal_metadata_log_segment_bytes or self.metadata_log_segment_bytes

    @property
    def directories(self) -> tuple[str, ...]:
        """Every log directory and the metadata log directory, sorted, none twice."""
        return tuple(sorted({*self.log_dirs, self.metadata_log_dir}))

    def controller_listeners(self) -> Listeners:
        """Those of `listeners` that serve the controller."""
        names = self.controller_listener_names
        return tuple(listener for listener in self.listeners if listener.name in names)


_SETTINGS: Final[Mapping[str, Field[Any]]] = {
    item.name.replace("_", "."): item for item in fields(NodeConfig) if item.metadata
}
_KNOWN: Final = frozenset((*_OTHER_KEYS, *_SETTINGS))


def load_config(path: Path | str, overrides: Sequence[str] = ()) -> NodeConfig:
    """Read a properties file; each override is `key=value`.

    Raises ConfigError for a file that cannot be read and for the first value that is wrong. Keys
    that mean nothing to us are named in `warnings`.
    """
    return config_of(read_settings(path, overrides))


def config_of(settings: Settings) -> NodeConfig:
    """The configuration of settings that were read before; raises ConfigError."""
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
    one_dir = settings.distinct("log.dir") or ("/tmp/kafka-logs",)
    log_dirs = settings.distinct("log.dirs") or one_dir
    check_unused(settings)
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
        static_voters=tuple(
            Voter(ReplicaKey(voter_id), (Listener(names[0].upper(), *address),))
            for voter_id, address in sorted(voters.items())
        ),
        bootstrap_servers=addresses.bootstrap_servers(settings),
        log_dirs=log_dirs,
        metadata_log_dir=settings.text("metadata.log.dir") or log_dirs[0],
        max_connections_by_host=cross_checks.connections_by_host(settings),
        authorizer=settings.text(AUTHORIZER) or "",
        metrics_listener=_metrics_listener(settings),
        warnings=(*settings.notes, *_warnings(settings)),
        source=settings.source,
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


def _metrics_listener(settings: Settings) -> Address | None:
    text = settings.text(METRICS_LISTENER)
    if not text:
        return None
    address = parse_host_port(text)
    if address is None:
        settings.invalid(METRICS_LISTENER, text, "It should be of the form host:port")
    return address


def strangers(settings: Settings) -> list[str]:
    """The keys that mean nothing to a node, and nothing to Kafka's."""
    return [key for key in settings if key not in _KNOWN]


def _warnings(settings: Settings) -> tuple[str, ...]:
    warnings = [
        f"{key} has no effect: {why} ({settings.where(key)})"
        for key, why in _WITHOUT_EFFECT.items()
        if key in settings
    ]
    return (*warnings, *_unknown(settings))


def _unknown(settings: Settings) -> list[str]:
    unknown = strangers(settings)
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
        warnings.append(f"Keys that have no meaning here are ignored: {', '.join(sorted(unused))}")
    return warnings


def _validate(config: NodeConfig, settings: Settings, given: Listeners | None) -> None:
    """The cross checks, in Kafka's order."""
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
    if any(endpoint.host == addresses.WILDCARD for endpoint in given or ()):
        settings.refuse(
            addresses.ADVERTISED,
            f"{addresses.ADVERTISED} cannot use the nonroutable meta-address 0.0.0.0. "
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


def fetch_max_wait_ms(fetch_timeout_ms: int) -> int:
    """How long a leader may keep a Fetch that finds nothing new, ms.

    Kafka's 500 ms whatever the timeout (`KafkaRaftClient`) is a quarter of its default. With a
    timeout near 500 ms an idle quorum would elect without end, so the quarter is kept.
    """
    return max(1, min(500, fetch_timeout_ms // 4))


HIGH_WATERMARK_LINGER_MS: Final = 2
"""See `RaftConfig.high_watermark_linger_ms`; docs/decisions/0007 has the reason."""


def raft_config(
    config: NodeConfig,
    cluster_id: str,
    directory_id: Uuid,
    listeners: Listeners | None = None,
) -> RaftConfig:
    """What the core is told; `listeners` are the advertised ones with hosts and ports filled in."""
    return RaftConfig(
        cluster_id=cluster_id,
        node_id=config.node_id,
        directory_id=directory_id,
        can_be_voter=config.is_controller,
        listeners=config.advertised_listeners if listeners is None else listeners,
        static_voters=config.static_voters,
        bootstrap_servers=tuple(
            (address.host, address.port) for address in config.bootstrap_servers
        ),
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_max_wait_ms=fetch_max_wait_ms(config.controller_quorum_fetch_timeout_ms),
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        answer_max_bytes=min(config.controller_quorum_fetch_max_bytes, config.segment_bytes),
        snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        high_watermark_linger_ms=HIGH_WATERMARK_LINGER_MS,
        auto_join=config.controller_quorum_auto_join_enable,
    )


def resolved_listeners(
    config: NodeConfig, bound_ports: Mapping[str, int], hostname: str
) -> Listeners:
    """The advertised listeners with `hostname` for host "" and the bound port for port 0."""
    return tuple(
        Listener(name, host or hostname, port or bound_ports[name])
        for name, host, port in config.advertised_listeners
    )
