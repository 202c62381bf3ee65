"""Metadata transactions are atomic, and none stays open (KIP-868)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError
from quorate.sim.world.transactions import TRANSACTION_USERS

if TYPE_CHECKING:
    from quorate.metadata.image import Image
    from quorate.node.node_io import NodeEffects


class MetadataTransactionCheck(Observer):
    """Looks at the committed image of each controller, and at the log's end at the end of a world."""

    def __init__(self) -> None:
        self._ended: set[float] = set()
        self._seen: dict[int, Image] = {}
        """By node: the newest image that was checked. Images do not change."""

    def began(self, world: ObservableWorld) -> None:
        self._ended = world.transactions.ended

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        assert process.controller is not None
        image = process.controller.node.image
        if self._seen.get(process.id) is not image:
            self._seen[process.id] = image
            self.check_image(process.id, image)

    def finished(self, world: ObservableWorld) -> None:
        for process in world.nodes.values():
            if process.controller is not None and process.controller.node.is_active:
                self.check_closed(process.id, process.controller.node.head.transaction)

    def check_image(self, node_id: int, image: Image) -> None:
        """An image holds all records of a transaction that has ended, and none of another.

        Source: KIP-868, "Broker-side replay" and "Snapshots": records of a transaction take effect
        when its EndTransactionRecord is read. A transaction that is aborted, by its controller or by
        the next one, has no effect.
        """
        found = {user: image.client_quotas.get((("user", user),)) for user in TRANSACTION_USERS}
        values = {None if quota is None else frozenset(quota.values()) for quota in found.values()}
        if len(values) > 1:
            raise ViolationError(
                "transaction is atomic",
                f"node {node_id} has a part of a metadata transaction in its image: {found}",
            )
        [whole] = values
        if whole is not None and not whole <= self._ended:
            raise ViolationError(
                "transaction is atomic",
                f"node {node_id} has records of a transaction that has not ended: {found}",
            )

    def check_closed(self, node_id: int, transaction: object) -> None:
        """An active controller has aborted what the previous one left open.

        Source: KIP-868, "Controller failover": the new controller writes an AbortTransactionRecord.
        """
        if transaction is not None:
            raise ViolationError(
                "transaction ends", f"node {node_id} leads, and {transaction} is still open"
            )
