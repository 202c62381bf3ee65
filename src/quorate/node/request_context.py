"""What a handler of requests may use of its node."""

from __future__ import annotations

from typing import Protocol

from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.token_config import NO_TOKENS, TokenConfig
from quorate.controller.token_secrets import TokenSecrets
from quorate.metadata.image import Image
from quorate.node.loggers import Loggers
from quorate.node.requests import Call
from quorate.raft.describe import QuorumDescription
from quorate.raft.messages import Request
from quorate.raft.values import ControlState
from quorate.replica.replica import Replica
from quorate.replica.state_machine import Now
from quorate.security.acl import AclOperation, AclResource


class NodeView(Protocol):
    """The node of a handler."""

    node_id: int
    cluster_id: str
    unstable_features: bool
    now: Now
    loggers: Loggers
    """Of this process."""
    configs: ConfigsInForce
    """The values of configs in force on this node."""

    @property
    def image(self) -> Image: ...

    @property
    def image_offset(self) -> int:
        """Offset of the last record in the image; -1 for none."""

    @property
    def applied_control(self) -> ControlState: ...

    @property
    def control(self) -> ControlState:
        """kraft.version and voters in force, committed or not."""

    @property
    def leader_id(self) -> int: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def tokens(self) -> TokenConfig:
        """The settings `delegation.token.*`."""

    @property
    def token_secrets(self) -> TokenSecrets:
        """The secrets of the delegation tokens."""

    def may_use_tokens(self, call: Call) -> bool:
        """Whether delegation tokens may be asked for on the connection of the call."""

    @property
    def has_authorizer(self) -> bool:
        """Whether `authorizer.class.name` is set."""

    def may(self, call: Call, operation: AclOperation, resource: AclResource, name: str) -> bool:
        """Whether the requester of the call has this permission on the resource of this name."""

    def describe(self) -> QuorumDescription | None: ...

    def ask_core(self, call: Call, request: Request) -> None:
        """Hand the request to the core; its response answers `call`."""


class ReplicaView:
    """The part of a NodeView that comes from its replica; a base of the nodes."""

    replica: Replica
    now: Now

    @property
    def applied_control(self) -> ControlState:
        return self.replica.applied_control

    @property
    def control(self) -> ControlState:
        return self.replica.core.voters

    @property
    def tokens(self) -> TokenConfig:
        return NO_TOKENS

    @property
    def token_secrets(self) -> TokenSecrets:
        return TokenSecrets()

    def may_use_tokens(self, call: Call) -> bool:
        return False

    @property
    def has_authorizer(self) -> bool:
        return False

    def may(self, call: Call, operation: AclOperation, resource: AclResource, name: str) -> bool:
        return True

    @property
    def leader_id(self) -> int:
        return self.replica.core.leader.leader_id

    @property
    def is_active(self) -> bool:
        return self.replica.leading_epoch is not None

    def describe(self) -> QuorumDescription | None:
        return self.replica.core.describe(self.now.monotonic_ms)
