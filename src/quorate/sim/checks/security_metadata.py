"""ACLs, SCRAM credentials, delegation tokens and producer ids of the controllers of a world.

The log is the reference: every image says what the records before it say, and every answer fits to
the records of its write. So nothing that is acknowledged is undone, and what is deleted stays away.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.sim.checks.security_answers import check_read, check_write
from quorate.sim.checks.security_model import SecurityModel, SecurityState, require
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    from quorate.metadata.image import Image
    from quorate.node.node_io import NodeEffects

_IMAGES: Final = 8
"""How many different states of a node a read may show: a long answer takes several steps."""
_PREFIXED: Final = 4


class _Shown:
    """What one incarnation of a node has shown. The newest state is the last."""

    def __init__(self, incarnation: int) -> None:
        self.incarnation = incarnation
        self.states = deque([SecurityState()], _IMAGES)
        self.image: Image | None = None


class SecurityMetadataCheck(Observer):
    """Looks at the records, the image and the answers of each step of a ControllerNode.

    It relies on the clients of a simulated world: `SecurityRequests` has all their requests, and
    `Brokers` those about producer ids.
    """

    def __init__(self) -> None:
        self.model = SecurityModel()
        self._shown: dict[int, _Shown] = {}

    def began(self, world: ObservableWorld) -> None:
        self.model.removed = world.security.removed

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        controller, model = process.controller, self.model
        assert controller is not None
        node, where = controller.node, f"node {process.id}"
        model.clock_ms = max(model.clock_ms, node.now.wall_ms)
        if controller.records:
            model.take(where, controller.records)
        shown = self._shown.get(process.id)
        if shown is None or shown.incarnation != process.incarnation:
            shown = self._shown[process.id] = _Shown(process.incarnation)
        image = node.image
        state = model.at(node.image_offset + 1)
        if image is not shown.image or state is not shown.states[-1]:
            shown.image = image
            if state is not shown.states[-1]:
                shown.states.append(state)
            check_image(f"{where} at {node.image_offset}", image, state)
        for response in responses:
            check_write(where, response, model)
            check_read(where, response, shown.states)


def check_image(where: str, image: Image, state: SecurityState) -> None:
    """An image says what the records up to its offset say, also where an authorizer looks.

    Source: Raft, figure 3, State Machine Safety, for the image. Raises ViolationError.
    """
    lengths = Counter(
        (kind, len(name)) for kind, pattern, name in image.acls_by_pattern if pattern == _PREFIXED
    )
    counted = {
        (kind, length): count
        for kind, counts in image.acl_prefix_lengths.items()
        for length, count in counts.items()
    }
    found = {
        acl_id: (pattern.resource_type, pattern.name, pattern.pattern_type, *acl[3:])
        for pattern, entries in image.acls_by_pattern.items()
        for acl_id, acl in entries.items()
    }
    for name, has, says in (
        ("ACLs", dict(image.acls), state.acls),
        ("ACLs by pattern", found, state.acls),
        ("lengths of prefixes", counted, lengths),
        ("credentials of", sorted(image.scram), sorted(state.credentials)),
        ("keys of credentials", dict(image.scram) == state.credentials, True),
        ("tokens", dict(image.delegation_tokens), state.tokens),
        ("next producer id", image.next_producer_id, state.next_producer_id),
    ):
        message = f"{where} has as {name} {has}, and its records say {says}"
        require(has == says, "images equal records", message)
