"""AlterClientQuotas at the active node.

Decided on the committed image: a change that is still on its way is not seen by the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.controller.quotas import Alteration, Outcome, alter
from quorate.formats.records import encode_record
from quorate.node.calls import Call
from quorate.node.replica import Committed
from quorate.raft.ready import Refused
from quorate.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from quorate.wire.schema import Message

if TYPE_CHECKING:
    from quorate.node.handlers import Host

_Entity = tuple[tuple[str, str | None], ...]


def alter_client_quotas(host: Host, call: Call) -> Message | None:
    """Answered when the records are committed; at once when there are none to write."""
    message = call.message
    assert isinstance(message, AlterClientQuotasRequest)
    alterations = [_alteration(entry) for entry in message.entries]
    entities = [alteration.entity for alteration in alterations]
    if not host.is_active:
        return _all(entities, ErrorCode.NOT_CONTROLLER, "This node is not the active controller.")
    records, outcomes = alter(host.image.client_quotas, alterations)
    if message.validate_only or not records:
        return _answer(outcomes)

    def done(outcome: Committed | Refused) -> Message:
        if isinstance(outcome, Refused):
            return _all(entities, outcome.error, outcome.message)
        return _answer(outcomes)

    host.submit(call, [encode_record(record, 0) for record in records], done)
    return None


def _alteration(entry: AlterClientQuotasRequest.EntryData) -> Alteration:
    return Alteration(
        tuple((part.entity_type, part.entity_name) for part in entry.entity),
        tuple((op.key, None if op.remove else op.value) for op in entry.ops),
    )


def _all(entities: list[_Entity], error: ErrorCode, text: str) -> Message:
    return _answer([Outcome(entity, error, text) for entity in entities])


def _answer(outcomes: list[Outcome]) -> Message:
    entry = AlterClientQuotasResponse.EntryData
    return AlterClientQuotasResponse(
        entries=[
            entry(
                error_code=outcome.error,
                error_message=outcome.message,
                entity=[
                    entry.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in outcome.entity
                ],
            )
            for outcome in outcomes
        ]
    )
