"""What a handler of requests may look at and do: the node that it runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.formats.records import ClientQuotaRecord, FeatureLevelRecord
from quorate.metadata.image import Features, Image
from quorate.metadata.settings import Quotas
from quorate.node.ahead import Ahead
from quorate.node.calls import Call
from quorate.node.machine import Now
from quorate.node.replica import Committed, Replica
from quorate.raft.describe import QuorumDescription
from quorate.raft.messages import Request
from quorate.raft.ready import Refused
from quorate.raft.values import ControlState
from quorate.wire.schema import Message

Done = Callable[[Committed | Refused], Message | None]
"""Makes the answer of an outcome; None when there is more to wait for."""


class Host(Protocol):
    """What a handler may look at and do: the node."""

    node_id: int
    cluster_id: str
    unstable_features: bool
    now: Now

    @property
    def image(self) -> Image: ...

    @property
    def image_offset(self) -> int:
        """Of the last record in the image; -1 for none."""

    @property
    def applied_control(self) -> ControlState: ...

    @property
    def control(self) -> ControlState:
        """kraft.version and voters in force, committed or not."""

    @property
    def leader_id(self) -> int: ...

    @property
    def is_active(self) -> bool: ...

    def describe(self) -> QuorumDescription | None: ...

    def ask_core(self, call: Call, request: Request) -> None:
        """Its response answers `call`."""

    def submit(self, call: Call, values: list[bytes], done: Done) -> None:
        """Append records; `done` makes the answer to `call` when they are committed or not."""

    def upgrade_kraft_version(
        self, call: Call, version: int, validate_only: bool, done: Done
    ) -> None: ...


class ControllerHost(Host, Protocol):
    """A node that keeps Kafka's metadata."""

    min_insync_replicas: int
    """What its own file says; of a cluster that says nothing itself."""
    quotas: Ahead[Quotas, ClientQuotaRecord]
    """Client quotas, with the changes that are being written."""
    features: Ahead[Features, FeatureLevelRecord]
    """Feature levels, the same."""


Handler = Callable[[Host, Call], Message | None]


class ReplicaView:
    """The part of a Host that its replica knows; for the classes that hold one."""

    replica: Replica
    now: Now

    @property
    def applied_control(self) -> ControlState:
        return self.replica.applied_control

    @property
    def control(self) -> ControlState:
        return self.replica.core.voters

    @property
    def leader_id(self) -> int:
        return self.replica.core.leader.leader_id

    @property
    def is_active(self) -> bool:
        return self.replica.leading_epoch is not None

    def describe(self) -> QuorumDescription | None:
        return self.replica.core.describe(self.now.monotonic_ms)
