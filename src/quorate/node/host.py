"""What a handler of requests may look at and do: the node that it runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.metadata.image import Image
from quorate.node.ahead import Ahead
from quorate.node.calls import Call
from quorate.node.machine import Now
from quorate.node.replica import Committed
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

    quotas: Ahead
    """Client quotas, with the changes that are being written."""


Handler = Callable[[Host, Call], Message | None]
