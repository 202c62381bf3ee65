"""Errors of a cluster that answers in part, or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorate.base.ids import Address
from quorate.client.errors import ClientError, ConnectError

ADVICE: Final = "; quorate cluster problems says which do not"
"""The end of a text about voters. That tool itself leaves it out."""


class NoReachableNodeError(ConnectError):
    """No known node accepts a connection, or answers on one. The message lists every failure."""

    def __init__(self, message: str, causes: Iterable[Exception] = ()) -> None:
        """causes: the failure of each node that was tried."""
        super().__init__(message)
        self.causes = tuple(causes)


class NoActiveControllerError(ConnectError):
    """A node answers, and the controller that it believes to be active is unreachable."""

    def __init__(self, asked: Address, named: Address, why: Exception, nodes: Iterable[Address]):
        """asked: the node that answered. named: the controller that it named. nodes: all it named."""
        super().__init__(
            f"No controller is active: {asked} answers and names {named}, which is unreachable "
            f"({why}). A majority of the voters must run and reach each other{ADVICE}"
        )
        self.nodes = tuple(nodes)


class NotLoadedError(ClientError):
    """The node cannot describe the cluster: it has not loaded committed metadata yet."""

    def __init__(self, node: Address) -> None:
        super().__init__(
            f"{node} has not loaded the committed metadata yet: the quorum has no leader (a majority "
            "of the voters must run), or the node has just started"
        )
