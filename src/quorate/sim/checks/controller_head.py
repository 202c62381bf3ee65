"""The head of a controller's log beside the committed image, and what a controller acknowledges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError
from quorate.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

if TYPE_CHECKING:
    from quorate.metadata.image import Image, QuotaEntity
    from quorate.node.controller_node import ControllerNode
from quorate.node.node_io import NodeEffects


class ControllerHeadCheck(Observer):
    """Looks at a ControllerNode after each of its steps.

    It relies on the clients of a simulated world: they remove no quota and lower no metadata.version.
    """

    def __init__(self) -> None:
        self.acknowledged: dict[QuotaEntity, tuple[dict[str, float], int]] = {}
        """By entity of an acknowledged quota: its values, and the end offset (exclusive) from which
        on every image has them."""
        self._seen: dict[int, Image] = {}
        """By node: the image that holds every quota acknowledged so far. Images do not change."""

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        assert process.controller is not None
        node = process.controller.node
        self.check_head(node)
        if not effects.stopped and effects.faulted is None:
            self.check_reverted(node)
        for response in responses:
            self.check_response(node, response)
        self.check_acknowledged(node)

    def finished(self, world: ObservableWorld) -> None:
        for process in world.nodes.values():
            if process.controller is not None:
                self._seen.pop(process.id, None)
                self.check_acknowledged(process.controller.node)

    def check_head(self, node: ControllerNode) -> None:
        """`head` is never behind what is committed.

        Source: `QuorumController.handleCommit` and `SnapshotRegistry`: the active controller decides on
        everything that is committed and on its own records after that. `Head` states the invariants:
        `image` holds every record of `committed` and differs from it only while writes are
        outstanding or a transaction is open.
        """
        head, image = node.head, node.image
        if head.committed is not image and head.committed != image:
            raise ViolationError(
                "head is not behind",
                f"node {node.node_id}: head does not follow the committed image at {node.image_offset}",
            )
        is_own = head.transaction is not None or head.outstanding > 0
        if not is_own and head.image is not image and head.image != image:
            raise ViolationError(
                "head is not behind",
                f"node {node.node_id}: head differs from the committed image at "
                f"{node.image_offset}, with nothing outstanding",
            )
        if node.pending_offset < node.replica.applied.offset:
            raise ViolationError(
                "head is not behind",
                f"node {node.node_id}: the newest write ends at {node.pending_offset}, and it has "
                f"applied up to {node.replica.applied.offset}",
            )
        if head.outstanding:
            _check_holds(node)

    def check_reverted(self, node: ControllerNode) -> None:
        """A node that does not lead has nothing of its own in `head`.

        Source: `QuorumController.renounce`: a controller that loses the leadership reverts its
        in-memory state to the last committed offset.
        """
        if not node.is_active and node.head.outstanding:
            raise ViolationError(
                "head is reverted",
                f"node {node.node_id} does not lead, and its head holds {node.head.outstanding} "
                "writes that are not committed",
            )

    def check_response(self, node: ControllerNode, response: ControllerResponse) -> None:
        """A write is answered only when everything that its response depends on is committed.

        Source: `ControllerPurgatory` and `QuorumController.ControllerWriteEvent`: "the future completes
        when the write is committed"; the reply to a write without records waits for the records
        before it. A successful quota is in the log then, so its offset counts for every replica.
        """
        request, found = response.request, response.response
        end = response.committed
        if end is None:
            if isinstance(found, AlterClientQuotasResponse) and _succeeded(found):
                raise ViolationError(
                    "answered when committed",
                    f"node {node.node_id} acknowledges {request} and names no offset for it",
                )
            return
        replica = node.replica
        if end > replica.core.high_watermark or end > replica.applied.offset:
            raise ViolationError(
                "answered when committed",
                f"node {node.node_id} answers a write that ends at {end}, with high watermark "
                f"{replica.core.high_watermark}, applied up to {replica.applied.offset}",
            )
        if isinstance(request, AlterClientQuotasRequest):
            # A write that changes nothing may depend on no offset. What this node has applied
            # holds the quota in any case.
            end = end if end >= 0 else replica.applied.offset
            self._acknowledge(request, end)

    def _acknowledge(self, request: AlterClientQuotasRequest, end: int) -> None:
        for entry in request.entries:
            entity = tuple((part.entity_type, part.entity_name) for part in entry.entity)
            known = self.acknowledged.get(entity)
            values = {op.key: op.value for op in entry.ops}
            self.acknowledged[entity] = values, end if known is None else min(end, known[1])
        self._seen.clear()

    def check_acknowledged(self, node: ControllerNode) -> None:
        """An acknowledged quota is in the committed image of every replica that has applied so far.

        Source: Raft, figure 3, State Machine Safety and Leader Completeness, for the image: whatever
        one controller acknowledges, each later image holds.
        """
        image = node.image
        if self._seen.get(node.node_id) is image:
            return
        applied = node.replica.applied.offset
        is_complete = True
        for entity, (values, end) in self.acknowledged.items():
            if end > applied:
                is_complete = False
                continue
            found = image.client_quotas.get(entity)
            if found is None or dict(found) != values:
                raise ViolationError(
                    "acknowledged metadata",
                    f"node {node.node_id} has applied up to {applied}; the quota {values} of "
                    f"{entity} was acknowledged at {end}, and its image has {found}",
                )
        if is_complete:
            self._seen[node.node_id] = image


def _succeeded(response: AlterClientQuotasResponse) -> bool:
    return all(entry.error_code == ErrorCode.NONE for entry in response.entries)


def _check_holds(node: ControllerNode) -> None:
    """The head with outstanding writes still holds every quota of the committed image, and a
    metadata.version that is not lower."""
    head, committed = node.head.image, node.image
    lost = [entity for entity in committed.client_quotas if entity not in head.client_quotas]
    version, newest = committed.features.metadata_version, head.features.metadata_version
    is_lower = version is not None and (newest is None or newest < version)
    if lost or is_lower:
        raise ViolationError(
            "head is not behind",
            f"node {node.node_id}: with writes outstanding, head has metadata.version {newest} after "
            f"{version} and lacks the committed quotas of {lost}",
        )
