"""The admin client: `AsyncAdmin` beside an event loop, `Admin` with blocking calls.

Both have the calls of Kafka's `Admin` that a cluster's operator needs, and reach the cluster through
brokers or directly through its controllers (KIP-919). The groups of calls are in the modules beside
this one; `Admin` loads a group when one of its calls is first used, so that a tool starts fast.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeAlias, TypeVar

from quorate.client.admin.io import BlockingIo, finish
from quorate.client.admin.pool import ClientConfig
from quorate.client.admin.routing import Calls, Router
from quorate.client.errors import ClientError, RequestNotSentError
from quorate.client.results import refusal_of

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.client.admin.acls import AclCalls
    from quorate.client.admin.cluster import ClusterCalls
    from quorate.client.admin.configs import ConfigCalls
    from quorate.client.admin.elections import ElectionCalls
    from quorate.client.admin.log_dirs import LogDirCalls
    from quorate.client.admin.quorum import QuorumCalls
    from quorate.client.admin.quotas import QuotaCalls
    from quorate.client.admin.reassignments import ReassignmentCalls
    from quorate.client.admin.security import SecurityCalls
    from quorate.client.admin.topics import TopicCalls
    from quorate.client.connection import ClientSecurity

Bootstrap: TypeAlias = str | Sequence[str]
Properties: TypeAlias = "Path | Mapping[str, object]"
P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=Calls)

_GROUPS: Final = {
    ("quorum", "QuorumCalls"): (
        "describe_quorum describe_features add_voter remove_voter update_features"
    ),
    ("cluster", "ClusterCalls"): (
        "describe_cluster api_versions unregister_broker unregister_controller"
    ),
    ("quotas", "QuotaCalls"): "describe_client_quotas alter_client_quota",
    ("topics", "TopicCalls"): (
        "list_topics describe_topics create_topics create_partitions delete_topics"
    ),
    ("configs", "ConfigCalls"): (
        "describe_configs incremental_alter_configs list_config_resources list_groups"
    ),
    ("acls", "AclCalls"): "describe_acls create_acls delete_acls",
    ("security", "SecurityCalls"): (
        "describe_user_scram_credentials alter_user_scram_credentials "
        "create_delegation_token renew_delegation_token expire_delegation_token "
        "describe_delegation_tokens"
    ),
    ("reassignments", "ReassignmentCalls"): (
        "alter_partition_reassignments list_partition_reassignments"
    ),
    ("elections", "ElectionCalls"): "elect_leaders",
    ("log_dirs", "LogDirCalls"): "describe_log_dirs alter_replica_log_dirs",
}
"""Module and class of a group of calls -> its calls."""
MAX_TIMEOUT_S: Final = ((1 << 31) - 1) // 1000
"""`default.api.timeout.ms` has 32 bits."""
_HOME: Final = {name: home for home, names in _GROUPS.items() for name in names.split()}


def bootstrap_config(
    bootstrap_servers: Bootstrap | None,
    bootstrap_controllers: Bootstrap | None,
    properties: Properties | None,
    *,
    timeout_s: float | None = None,
    security: ClientSecurity | None = None,
) -> ClientConfig:
    """The configuration of one of two bootstrap lists and of client properties.

    A list is `host:port,...` or several `host:port`. The properties are a file, or the keys and
    values themselves. A list that is given replaces both lists of the properties, `timeout_s` their
    `default.api.timeout.ms`, and `security` what they say of it.

    Raises BootstrapError unless there is exactly one list, and ConfigError for invalid properties.
    """
    from quorate.client.config import BootstrapError, client_config, with_timeout

    settings = None
    if isinstance(properties, Mapping):
        from quorate.config.settings import Settings

        texts = {key: str(value) for key, value in properties.items()}
        settings = Settings(texts, {}, "properties")
    elif properties is not None:
        from quorate.config.properties_file import read_settings

        settings = read_settings(properties)
    if timeout_s is not None and not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise BootstrapError(
            f"The timeout must be a number of seconds above 0, at most {MAX_TIMEOUT_S}: not {timeout_s}"
        )
    config = client_config(settings, _text(bootstrap_servers), _text(bootstrap_controllers))
    config = with_timeout(config, timeout_s)
    return config if security is None else config._replace(security=security)


def _text(addresses: Bootstrap | None) -> str | None:
    return addresses if addresses is None or isinstance(addresses, str) else ",".join(addresses)


class OpenedByAddresses:
    """A client that `open` makes of a bootstrap list or of client properties."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config

    @classmethod
    def open(
        cls,
        *,
        bootstrap_servers: Bootstrap | None = None,
        bootstrap_controllers: Bootstrap | None = None,
        properties: Properties | None = None,
        timeout_s: float | None = None,
        security: ClientSecurity | None = None,
    ) -> Self:
        """A client of brokers or of controllers; see `bootstrap_config` for what it raises."""
        config = bootstrap_config(
            bootstrap_servers,
            bootstrap_controllers,
            properties,
            timeout_s=timeout_s,
            security=security,
        )
        return cls(config)


class Admin(OpenedByAddresses):
    """A client with blocking calls.

    Each call retries after leader changes and lost connections. It returns within
    `default_api_timeout_ms` or raises ClientError. Close it, or use it as a context manager. Where
    several threads use it, their calls wait for each other, and `close` ends them.
    """

    if TYPE_CHECKING:

        @staticmethod
        def _blocking(
            call: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
        ) -> Callable[Concatenate[Admin, P], T]: ...

        describe_quorum = _blocking(QuorumCalls.describe_quorum)
        describe_features = _blocking(QuorumCalls.describe_features)
        add_voter = _blocking(QuorumCalls.add_voter)
        remove_voter = _blocking(QuorumCalls.remove_voter)
        update_features = _blocking(QuorumCalls.update_features)
        describe_cluster = _blocking(ClusterCalls.describe_cluster)
        api_versions = _blocking(ClusterCalls.api_versions)
        unregister_broker = _blocking(ClusterCalls.unregister_broker)
        unregister_controller = _blocking(ClusterCalls.unregister_controller)
        describe_client_quotas = _blocking(QuotaCalls.describe_client_quotas)
        alter_client_quota = _blocking(QuotaCalls.alter_client_quota)
        list_topics = _blocking(TopicCalls.list_topics)
        describe_topics = _blocking(TopicCalls.describe_topics)
        create_topics = _blocking(TopicCalls.create_topics)
        create_partitions = _blocking(TopicCalls.create_partitions)
        delete_topics = _blocking(TopicCalls.delete_topics)
        describe_configs = _blocking(ConfigCalls.describe_configs)
        incremental_alter_configs = _blocking(ConfigCalls.incremental_alter_configs)
        list_config_resources = _blocking(ConfigCalls.list_config_resources)
        list_groups = _blocking(ConfigCalls.list_groups)
        describe_acls = _blocking(AclCalls.describe_acls)
        create_acls = _blocking(AclCalls.create_acls)
        delete_acls = _blocking(AclCalls.delete_acls)
        describe_user_scram_credentials = _blocking(SecurityCalls.describe_user_scram_credentials)
        alter_user_scram_credentials = _blocking(SecurityCalls.alter_user_scram_credentials)
        create_delegation_token = _blocking(SecurityCalls.create_delegation_token)
        renew_delegation_token = _blocking(SecurityCalls.renew_delegation_token)
        expire_delegation_token = _blocking(SecurityCalls.expire_delegation_token)
        describe_delegation_tokens = _blocking(SecurityCalls.describe_delegation_tokens)
        alter_partition_reassignments = _blocking(ReassignmentCalls.alter_partition_reassignments)
        list_partition_reassignments = _blocking(ReassignmentCalls.list_partition_reassignments)
        elect_leaders = _blocking(ElectionCalls.elect_leaders)
        describe_log_dirs = _blocking(LogDirCalls.describe_log_dirs)
        alter_replica_log_dirs = _blocking(LogDirCalls.alter_replica_log_dirs)

    def __init__(
        self,
        config: ClientConfig,
        monotonic: Callable[[], float] = time.monotonic,
        on_wait: Callable[[str], None] = lambda reason: None,
        give_up_at: float | None = None,
        on_refusal: Callable[[str], None] = lambda line: None,
        on_resend: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`on_wait` gets the reason once per call that takes longer than `report_after_ms`.

        `give_up_at` (monotonic, s) ends every call; None: each has `default_api_timeout_ms`. `on_refusal`
        gets a line about each call that an authorizer refused: by which node, and which ACL is missing.
        `on_resend` gets a line about a change that was sent twice, where its result does not show what the
        first attempt may have done.
        """
        super().__init__(config)
        self._on_refusal = on_refusal
        self._lock = RLock()
        self._router = Router(config, BlockingIo(), monotonic, on_wait, give_up_at, on_resend)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a later call opens new ones.

        Calls of other threads raise ClientClosedError; its `note` says whether a change may have been
        made.
        """
        self._router.close()

    def __getattr__(self, name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"'Admin' object has no attribute {name!r}")
        module, group = home
        calls = getattr(import_module(f"quorate.client.admin.{module}"), group)(self._router)
        call = partial(self._run, getattr(calls, name))
        setattr(self, name, call)  # the next use does not come here
        return call

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOME})

    def _run(self, call: Callable[..., Coroutine[Any, Any, T]], /, *args: Any, **words: Any) -> T:
        if self._lock.acquire(blocking=False):
            try:
                return self._finish(call, *args, **words)
            finally:
                self._lock.release()
        # The wait for another thread's call is a part of this call's time.
        with self._router.deadlines.one_call() as (started, ends):
            if not self._lock.acquire(timeout=max(ends - started, 0)):
                raise RequestNotSentError(
                    "The calls of other threads took all the time of this one"
                )
            try:
                return self._finish(call, *args, **words)
            finally:
                self._lock.release()

    def _finish(
        self, call: Callable[..., Coroutine[Any, Any, T]], /, *args: Any, **words: Any
    ) -> T:
        try:
            found = finish(call(*args, **words))
        except ClientError as error:
            self._note_refusal(error)
            raise
        self._note_refusal(found)
        return found

    def _note_refusal(self, outcome: object) -> None:
        found, asked = refusal_of(outcome), self._router.asked
        if found is not None and asked is not None:
            from quorate.client.admin.refusals import explained

            self._on_refusal(explained(*found, asked, self.config))
