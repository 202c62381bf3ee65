"""AlterClientQuotas (KIP-546): which records a change of client quotas takes.

Rules and error texts: `org.apache.kafka.controller.ClientQuotaControlManager` and `QuotaConfig`.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Generator, Iterable, Sequence
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.java_order import hash_map_order
from quorate.controller.building import Building, each_group
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import MAX_RECORDS, PAUSE_EVERY, Result, Steps, WriteOperation
from quorate.formats.records import ClientQuotaRecord
from quorate.metadata.image import QuotaEntity
from quorate.metadata.settings import Quotas, quota_entity
from quorate.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

_INTEGRAL_MAX: Final = {
    "producer_byte_rate": (2**63 - 1, "a LONG"),
    "consumer_byte_rate": (2**63 - 1, "a LONG"),
    "connection_creation_rate": (2**31 - 1, "an INT"),
}
_USER_KEYS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_IP_KEYS: Final = frozenset({"connection_creation_rate"})
_RESULTS_IN_ONE_STEP: Final = 10 * PAUSE_EVERY


@frozen
class Alteration:
    """A change to one entity: (type, name) pairs, and (key, value) with None to remove."""

    entity: tuple[tuple[str, str | None], ...]
    ops: tuple[tuple[str, float | None], ...]


@frozen
class EntityResult:
    """The result for one entity; `message` is None without an error."""

    entity: tuple[tuple[str, str | None], ...]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class _InvalidError(Exception):
    """Why an entity's change is refused (INVALID_REQUEST)."""


def _decide(
    head: HeadView, request: AlterClientQuotasRequest, context: Context
) -> Steps[AlterClientQuotasResponse]:
    alterations = map(_alteration, request.entries)
    records, results = yield from alter(head.image.client_quotas, alterations)
    response = AlterClientQuotasResponse(entries=[])
    for begin in range(0, len(results), _RESULTS_IN_ONE_STEP):
        if begin:
            yield None
        response.entries += map(_entry, results[begin : begin + _RESULTS_IN_ONE_STEP])
    return Result(() if request.validate_only else records, response)


def _failed(
    request: AlterClientQuotasRequest, error: ErrorCode, message: str | None
) -> Building[AlterClientQuotasResponse]:
    """There is no error of the whole request: each entity carries it, with the code's own text."""
    text, data = error.message, AlterClientQuotasResponse.EntryData
    entries = yield from each_group(
        request.entries,
        lambda entry: entry.entity,
        lambda part: data.EntityData(entity_type=part.entity_type, entity_name=part.entity_name),
        lambda entry, rows: data(error_code=error, error_message=text, entity=rows),
    )
    return AlterClientQuotasResponse(entries=entries)


def _empty(request: AlterClientQuotasRequest) -> AlterClientQuotasResponse | None:
    return None if request.entries else AlterClientQuotasResponse(entries=[])


ALTER_CLIENT_QUOTAS: Final = WriteOperation("AlterClientQuotas", _decide, _failed, _empty)


def _alteration(entry: AlterClientQuotasRequest.EntryData) -> Alteration:
    # Of a type that is there twice the last name counts, as in Kafka's map.
    return Alteration(
        tuple({part.entity_type: part.entity_name for part in entry.entity}.items()),
        tuple((op.key, None if op.remove else op.value) for op in entry.ops),
    )


def _entry(result: EntityResult) -> AlterClientQuotasResponse.EntryData:
    data = AlterClientQuotasResponse.EntryData
    return data(
        error_code=result.error,
        error_message=result.message,
        entity=[
            data.EntityData(entity_type=kind, entity_name=name) for kind, name in result.entity
        ],
    )


def alter(
    quotas: Quotas, alterations: Iterable[Alteration]
) -> Generator[None, None, tuple[list[ClientQuotaRecord], list[EntityResult]]]:
    """The records to write, atomically, and one result per entity. Pauses after PAUSE_EVERY of them.

    An entity that fails adds no record and does not affect the others. More than MAX_RECORDS
    records fail all entities, as Kafka's bounded list of records does.
    """
    records: list[ClientQuotaRecord] = []
    results: dict[QuotaEntity, EntityResult] = {}
    for number, alteration in enumerate(alterations, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        entity = quota_entity(dict(alteration.entity))
        try:
            if entity in results or _names_a_key_twice(alteration):
                raise _InvalidError(f"Ignoring duplicate entity {_text(entity)}")
            records += _alter_one(quotas, entity, alteration)
        except _InvalidError as refusal:
            results[entity] = EntityResult(
                alteration.entity, ErrorCode.INVALID_REQUEST, str(refusal)
            )
        else:
            results[entity] = EntityResult(alteration.entity)
    if len(records) > MAX_RECORDS:
        error = ErrorCode.POLICY_VIOLATION
        return [], [EntityResult(item.entity, error, error.message) for item in results.values()]
    return records, list(results.values())


def _alter_one(
    quotas: Quotas, entity: QuotaEntity, alteration: Alteration
) -> list[ClientQuotaRecord]:
    _check_entity(alteration.entity)
    current = quotas.get(entity)
    keys = _keys_for(dict(entity), known=current is not None)
    records: list[ClientQuotaRecord] = []
    ops = dict(alteration.ops)
    for key in hash_map_order(ops, len(ops)):
        value = ops[key]
        if value is not None:
            _check_value(keys, key, value)
        before = None if current is None else current.get(key)
        if value != before:
            records.append(_record(entity, key, value))
    return records


def _names_a_key_twice(alteration: Alteration) -> bool:
    """Kafka answers this as if the entity was there twice."""
    return len({key for key, _ in alteration.ops}) < len(alteration.ops)


def _record(entity: QuotaEntity, key: str, value: float | None) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        key=key,
        value=value or 0.0,
        remove=value is None,
    )


def _check_entity(entity: Sequence[tuple[str, str | None]]) -> None:
    if not entity:
        raise _InvalidError("Invalid empty client quota entity")
    names = dict(entity)
    for kind in hash_map_order(names, len(names)):
        name = names[kind]
        if kind not in (USER, CLIENT_ID, IP):
            raise _InvalidError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _InvalidError(f"Empty {kind} not supported")


def _keys_for(names: dict[str, str | None], known: bool) -> frozenset[str]:
    """The quota keys that the entity may have. `known`: it has quotas already, so its address is not
    checked again: a Kafka controller has resolved the host name."""
    if IP not in names:
        return _USER_KEYS
    if len(names) > 1:
        raise _InvalidError(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    address = names[IP]
    if address is not None and not known and not _is_address(address):
        raise _InvalidError(f"{address} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    """An IP address that Java parses, without a scope id: that depends on the machine's interfaces.

    A host name is refused: Quorate asks no name server, and a Java node that cannot resolve it
    stops reading the quotas there, at each start.
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _check_value(keys: frozenset[str], key: str, value: float) -> None:
    if key not in keys:
        raise _InvalidError(f"Invalid configuration key {key}")
    if not math.isfinite(value):
        raise _InvalidError(f"Quota {key} must be a finite number")
    if value <= 0.0:
        raise _InvalidError(f"Quota {key} must be greater than 0")
    if key in _INTEGRAL_MAX:
        largest, type_name = _INTEGRAL_MAX[key]
        if value > largest:
            raise _InvalidError(f"Proposed value for {key} is too large for {type_name}.")
        if abs(value % 1.0) > 1e-6:
            raise _InvalidError(f"{key} cannot be a fractional value.")


def _text(entity: QuotaEntity) -> str:
    found = dict(entity)
    order = hash_map_order(found, len(found))
    names = ", ".join(f"{kind}={'null' if found[kind] is None else found[kind]}" for kind in order)
    return f"ClientQuotaEntity(entries={{{names}}})"
