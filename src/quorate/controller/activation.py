"""What a controller writes when it becomes active, and while it is idle.

A new cluster begins with bootstrap records (KIP-778). A metadata transaction that the previous
active controller left open is aborted (KIP-868). Source: `ActivationRecordsGenerator`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.notes import Warn
from quorate.controller.context import Context
from quorate.controller.features import min_insync_record
from quorate.controller.head_view import HeadView
from quorate.controller.result import OnException, Result, WriteOperation
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    decode_record,
)
from quorate.formats.supported_levels import check_values
from quorate.formats.versions import (
    DEFAULT,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_of,
)
from quorate.metadata.image import ELR_FEATURE
from quorate.wire.schema import Message

FAILOVER: Final = "Controller failover"
BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The records that a new cluster begins with, from the directory of the node that leads first."""

    values: tuple[bytes, ...] = ()
    """Without any: metadata.version at the default level and nothing else."""

    def records(self) -> tuple[Message, ...]:
        """Decoded. Raises RecordError when one is damaged."""
        if not self.values:
            return (FeatureLevelRecord(name=METADATA_VERSION, feature_level=int(DEFAULT)),)
        return tuple(decode_record(value)[0] for value in self.values)


def _activate(head: HeadView, bootstrap: Bootstrap, context: Context) -> Result[None]:
    """Begin to lead. Raises QuorateError for a log that no controller can have written.

    With transactions (metadata.version 13) the records need not be one batch: readers of the log
    see them when the transaction ends.
    """
    # A metadata.version inside an open transaction does not count: the transaction is aborted, and
    # the bootstrap records are written again.
    version = head.committed.features.metadata_version
    transaction = head.transaction
    notes: list[str] = []
    found: list[Message] = []
    if version is None:
        check_values(bootstrap.values, context.config.unstable_features, "the bootstrap records")
        found = list(bootstrap.records())
        version = metadata_version_in(found)
        if _level(found, ELR_FEATURE):
            found.append(min_insync_record(context.configs.min_insync_replicas))
        notes.append(
            f"The metadata log is empty: writing {len(found)} bootstrap record(s) at "
            f"metadata.version {version}"
        )
        if version.transactions:
            found.insert(0, BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION))
            found.append(EndTransactionRecord())
    if transaction is not None:
        if not version.transactions:
            raise QuorateError(
                f"A metadata transaction is open at offset {transaction.offset}, but "
                f"metadata.version {version} knows no transactions: the log was damaged"
            )
        notes.append(Warn(f"Aborting the transaction open at offset {transaction.offset}"))
        found.insert(0, AbortTransactionRecord(reason=FAILOVER))
    return Result(found, None, atomic=not version.transactions, notes=tuple(notes))


def _write_no_op(head: HeadView, request: None, context: Context) -> Result[None]:
    return Result([NoOpRecord()], None)


def _failed(request: object, error: ErrorCode, message: str | None) -> None:
    """No client waits for the response to a write of the controller's own."""


ACTIVATION: Final = WriteOperation(
    "activation", _activate, _failed, on_exception=OnException.END_NODE
)
NO_OP: Final = WriteOperation(
    "writeNoOpRecord", _write_no_op, _failed, on_exception=OnException.TRY_AGAIN
)
"""Keeps the high watermark moving, so that a leader that lost its majority is noticed (KIP-835)."""


def metadata_version_in(found: Sequence[Message]) -> MetadataVersion:
    """The metadata.version of bootstrap records. Raises FeatureError for an unknown one."""
    return metadata_version_of(_level(found, METADATA_VERSION))


def _level(found: Sequence[Message], name: str) -> int:
    level = 0
    for record in found:
        if isinstance(record, FeatureLevelRecord) and record.name == name:
            level = record.feature_level
    return level
