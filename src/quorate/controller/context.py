"""What a decision may use beside the head image: everything that a pure function cannot know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from immutables import Map

from quorate.base.frozen import frozen
from quorate.controller.configs_in_force import NO_CONFIGS, ConfigsInForce
from quorate.controller.counts import ControllerCounts
from quorate.controller.event_durations import PERIOD_MS, THRESHOLD_MS
from quorate.controller.liveness import BrokerLiveness
from quorate.controller.mutation_quotas import MutationQuota
from quorate.controller.policies import AlterConfigPolicy, CreateTopicPolicy
from quorate.controller.token_config import NO_TOKENS, TokenConfig
from quorate.metadata.image import Image
from quorate.raft.values import ControlState
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import (
    CLUSTER_NAME,
    AuthorizerConfig,
    Requester,
    Verdicts,
    decide,
)


class Rng(Protocol):
    """Random ids and choices; `random.Random` is one."""

    def randbytes(self, n: int, /) -> bytes:
        """`n` random bytes, for ids."""

    def randrange(self, stop: int, /) -> int:
        """A random integer in [0, stop)."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """What the node's own configuration says to the decisions of its controller."""

    node_id: int
    cluster_id: str
    unstable_features: bool = False
    """unstable.feature.versions.enable"""
    register_observer: bool = False
    """quorate.register.observer: register before this node is a voter, as Kafka does."""
    file: Map[str, str] = NO_CONFIGS
    """What the node's properties file sets: the defaults of topics and groups."""
    default_replication_factor: int = 1
    """default.replication.factor: of a topic that asks for -1."""
    num_partitions: int = 1
    """num.partitions: of a topic that asks for -1."""
    create_topic_policy: CreateTopicPolicy | None = None
    """quorate.create.topic.policy"""
    alter_config_policy: AlterConfigPolicy | None = None
    """quorate.alter.config.policy"""
    delete_topic_enable: bool = True
    """delete.topic.enable"""
    heartbeat_interval_ms: int = 2_000
    """broker.heartbeat.interval.ms: a heartbeat waits for half of it in the queue."""
    session_timeout_ms: int = 9_000
    """broker.session.timeout.ms: a broker without contact for longer is fenced."""
    auto_leader_rebalance_enable: bool = True
    """auto.leader.rebalance.enable"""
    imbalance_check_interval_ms: int = 300_000
    """leader.imbalance.check.interval.seconds"""
    unclean_election_interval_ms: int = 300_000
    """unclean.leader.election.interval.ms"""
    performance_period_ms: int = PERIOD_MS
    """controller.performance.sample.period.ms"""
    slow_event_ms: int = THRESHOLD_MS
    """controller.performance.always.log.threshold.ms"""
    authorizer: AuthorizerConfig | None = None
    """Of `authorizer.class.name`; None: every request is allowed."""
    mutation_quota_windows: int = 11
    """controller.quota.window.num"""
    mutation_quota_window_s: int = 1
    """controller.quota.window.size.seconds"""
    quota_windows: int = 11
    """quota.window.num"""
    quota_window_s: int = 1
    """quota.window.size.seconds"""
    tokens: TokenConfig = NO_TOKENS
    """delegation.token.*"""
    security_protocols: Map[str, str] = NO_CONFIGS
    """Listener name (upper case) -> its protocol; PLAINTEXT where it is absent."""
    part_records: int = 250
    """Records of one part of a long result: some milliseconds of work. Not an option of the file."""
    audited: bool = False
    """quorate.audit.dir is set."""
    max_idle_ms: int = 500
    """metadata.max.idle.interval.ms: between two NoOpRecords; 0 for none."""

    @property
    def configs(self) -> ConfigsInForce:
        """The configs that topics follow."""
        return ConfigsInForce(self.node_id, self.file)


@frozen
class Context:
    """The circumstances of one decision. A fresh one is made when the decision begins."""

    config: ControllerConfig
    control: ControlState
    """kraft.version and voters in force, committed or not."""
    time_ms: int
    """Since 1970."""
    rng: Rng
    liveness: BrokerLiveness
    """Of the brokers. What a decision changes of it is in its result."""
    monotonic_ms: int = 0
    """The clock of `liveness`."""
    next_offset: int = 0
    """The offset that the first record of this decision gets, unless the raft layer writes a record
    of its own in between: then it is higher."""
    version: int = 0
    """The version of the request's API."""
    is_forwarded: bool = False
    """A broker passed the request on, after checks of its own."""
    listener: str = ""
    """The name of the listener that the request came on, upper case; empty for the controller's own
    writes."""
    mutation_quota: MutationQuota | None = None
    """Of the requester, for changes of topics and partitions; None: no limit."""
    may_use_tokens: bool = False
    """Delegation tokens may be asked for on this connection."""
    requester: Requester | None = None
    """Who asks; None for the controller's own writes."""
    counts: ControllerCounts | None = None
    """Counts what the authorizer decides."""
    committed: Callable[[], Image] = Image
    """The committed image of now: the authorizer knows no other. Not the image itself: a decision in
    turns would keep the one of its beginning, and drop all that has changed since in one long step."""
    verdicts: Verdicts | None = None
    """What decisions of the authorizer have found."""

    @property
    def configs(self) -> ConfigsInForce:
        """The configs that topics follow."""
        return self.config.configs

    @property
    def throttle_ms(self) -> int:
        """How long the requester is to wait because of its quota."""
        return 0 if self.mutation_quota is None else self.mutation_quota.throttle_ms

    def may(
        self,
        operation: AclOperation,
        resource: AclResource,
        name: str,
        *,
        logs_denied: bool = True,
    ) -> bool:
        """Whether the requester has this permission on the resource of this name.

        logs_denied: False where Kafka's log has no line for a refusal, since the request may go on
        """
        config = self.config.authorizer
        if config is None or self.requester is None:
            return True
        asked = self.requester, operation, resource, name
        decision = decide(self.committed(), config, *asked, verdicts=self.verdicts)
        if self.counts is None:
            return decision.is_allowed
        return self.counts.decided(*asked, decision, logs_denied=logs_denied)

    def has_compared_many(self) -> bool:
        """Whether the authorizer has compared so many entries that a pause is due."""
        return self.verdicts is not None and self.verdicts.pause_is_due()

    def may_in_cluster(self, operation: AclOperation) -> bool:
        """Whether the requester may do it to every topic, by its permission on the cluster.

        A refusal is not logged: the permission on each topic counts then.
        """
        return self.may(operation, AclResource.CLUSTER, CLUSTER_NAME, logs_denied=False)

    def is_active(self, image: Image, broker_id: int) -> bool:
        """The broker is registered, and neither fenced, nor leaving, nor shutting down."""
        broker = image.cluster.brokers.get(broker_id)
        return (
            broker is not None
            and not broker.fenced
            and not broker.in_controlled_shutdown
            and not self.liveness.is_leaving(broker_id)
        )
