"""AlterClientQuotas (KIP-546) on the active controller; the rules are `controller.quotas`."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.controller.quotas import Alteration, Outcome, alter
from quorate.formats.records import encode_record
from quorate.node.calls import Call
from quorate.node.host import ControllerHost
from quorate.node.replica import Committed
from quorate.raft.ready import Refused
from quorate.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from quorate.wire.schema import Message


def alter_client_quotas(host: ControllerHost, call: Call) -> Message | None:
    """Decide, append, and answer when it is committed."""
    message = call.message
    assert isinstance(message, AlterClientQuotasRequest)
    alterations = [_alteration(entry) for entry in message.entries]
    if not host.is_active:
        return _all_failed(alterations, ErrorCode.NOT_CONTROLLER, "")
    committed = host.image.client_quotas
    records, outcomes = alter(host.quotas.over(committed), alterations)
    if message.validate_only:
        return _response(outcomes)
    host.quotas.begin(committed, records)

    def done(outcome: Committed | Refused) -> Message:
        host.quotas.settle()
        if isinstance(outcome, Refused):
            return _all_failed(alterations, outcome.error, outcome.message)
        return _response(outcomes)

    # Without a record to write the answer still waits for what was decided on before.
    host.submit(call, [encode_record(record, 0) for record in records], done)
    return None


def _alteration(entry: AlterClientQuotasRequest.EntryData) -> Alteration:
    return Alteration(
        tuple((part.entity_type, part.entity_name) for part in entry.entity),
        tuple((op.key, None if op.remove else op.value) for op in entry.ops),
    )


def _all_failed(alterations: list[Alteration], error: ErrorCode, text: str) -> Message:
    return _response([Outcome(item.entity, error, text or None) for item in alterations])


def _response(outcomes: list[Outcome]) -> Message:
    data = AlterClientQuotasResponse.EntryData
    return AlterClientQuotasResponse(
        entries=[
            data(
                error_code=outcome.error,
                error_message=outcome.message,
                entity=[
                    data.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in outcome.entity
                ],
            )
            for outcome in outcomes
        ]
    )
