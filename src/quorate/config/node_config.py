"""A node's configuration: a field for each key that a node uses.

The names, defaults, ranges and checks between keys are those of Kafka 4.3.1 (`QuorumConfig`,
`KRaftConfigs`, `MetadataLogConfig`, `SocketServerConfigs`, `KafkaConfig.validateValues`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from quorate.base.ids import Address, Listeners
from quorate.config.monitoring_settings import AuthorizerLogSettings, PagesSettings
from quorate.config.sasl_settings import SaslSettings

if TYPE_CHECKING:
    from quorate.raft.values import Voter

ROLES: Final = ("broker", "controller")
_INT_MAX: Final = 2**31 - 1
_WEEK_MS: Final = 7 * 24 * 60 * 60 * 1000
_MIB: Final = 1024 * 1024
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
QUOTA_CALLBACK: Final = "client.quota.callback.class"


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
    late_listeners: frozenset[str] = frozenset()
    """Listeners that `early.start.listeners` leaves out, without the one of the quorum: they open when
    the access control entries are known."""
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
    controller_quorum_retry_backoff_max_ms: int | None = _int(None, at_least=1)
    """The backoff doubles up to it (KIP-595; Kafka has no such key). None: it is constant."""
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
    controller_performance_sample_period_ms: int = _int(60_000, at_least=100, bits=64)
    controller_performance_always_log_threshold_ms: int = _int(2_000, at_least=0, bits=64)
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


SETTINGS: Final[Mapping[str, Field[Any]]] = {
    item.name.replace("_", "."): item for item in fields(NodeConfig) if item.metadata
}
"""Kafka's key -> the field of NodeConfig that holds its value."""
