"""AllocateProducerIds: blocks of ids for idempotent producers (KIP-730).

Source: `ProducerIdControlManager`, `ProducerIdsBlock`.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.brokers import check_epoch
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import ApiError, Result, WriteOperation
from quorate.formats.records import ProducerIdsRecord
from quorate.wire.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse

BLOCK_SIZE: Final = 1_000
_LAST_ID: Final = 2**63 - 1


def _allocate(
    head: HeadView, request: AllocateProducerIdsRequest, context: Context
) -> Result[AllocateProducerIdsResponse]:
    image = head.image
    check_epoch(image, request.broker_id, request.broker_epoch)
    first = max(image.next_producer_id, 0)
    if first > _LAST_ID - BLOCK_SIZE:
        text = (
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 "
            f"type limit: {first}"
        )
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    response = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Result([record], response, atomic=False)


def _failed(
    request: AllocateProducerIdsRequest, error: ErrorCode, message: str | None
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error)


ALLOCATE_PRODUCER_IDS: Final = WriteOperation("AllocateProducerIds", _allocate, _failed)
