"""Metadata transactions of a world's active controllers (KIP-868).

Kafka's controller writes one when it becomes active, in one batch where that is large enough. Here
some worlds have a periodic task that writes quotas in a transaction of several batches. So leaders
stop, and snapshots fall due, while a transaction is open.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import OnException, Part, Result, Steps, WriteOperation
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    EndTransactionRecord,
)
from quorate.formats.versions import metadata_version_of
from quorate.node.controller_node import ControllerNode
from quorate.sim.prng import Prng

TRANSACTION_USERS: Final = ("transaction-1", "transaction-2", "transaction-3")
"""Each transaction gives all of them one value that no other transaction has."""
_KEY: Final = "producer_byte_rate"
_PERIODS_MS: Final = (0, 0, 700, 1_500)
_ABORTED_IN: Final = 4
"""One transaction of so many is aborted by the controller that began it."""


class MetadataTransactions:
    """The transactions of one world. `period_ms`: between two of them; 0: the world has none."""

    def __init__(self, seed: int) -> None:
        # A stream of its own: what else the seed draws stays as it is.
        self.period_ms = Prng(seed, "transactions").pick(_PERIODS_MS)
        self.ended: set[float] = set()
        """Values whose EndTransactionRecord a controller has written; it may be lost."""
        self._begun = 0
        self._is_stopped = False
        self._task: WriteOperation[None, None] = WriteOperation(
            "transaction", self._decide, _failed, on_exception=OnException.TRY_AGAIN
        )

    def add_to(self, node: ControllerNode) -> None:
        """Let the node write transactions while it is the active controller."""
        if self.period_ms:
            node.add_task(self._task, self.period_ms)

    def stop(self) -> None:
        """Begin no transaction any more."""
        self._is_stopped = True

    def _decide(self, head: HeadView, request: None, context: Context) -> Steps[None]:
        level = head.image.features.metadata_version
        if self._is_stopped or level is None or not metadata_version_of(level).transactions:
            return Result((), None)
        self._begun += 1
        value = float(self._begun)
        yield Part([BeginTransactionRecord(name=f"transaction {self._begun}")])
        for user in TRANSACTION_USERS:
            yield Part([_quota(user, value)])
        if self._begun % _ABORTED_IN == 0:
            return Result([AbortTransactionRecord(reason="every fourth")], None, atomic=False)
        self.ended.add(value)
        return Result([EndTransactionRecord()], None, atomic=False)


def _quota(user: str, value: float) -> ClientQuotaRecord:
    entity = ClientQuotaRecord.EntityData(entity_type="user", entity_name=user)
    return ClientQuotaRecord(entity=[entity], key=_KEY, value=value)


def _failed(request: None, error: ErrorCode, message: str | None) -> None:
    """No client waits for the response."""
