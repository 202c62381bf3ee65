"""AlterClientQuotas: which records a change of client quotas takes.

Rules and error texts: `org.apache.kafka.controller.ClientQuotaControlManager` and `QuotaConfig`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.formats.records import ClientQuotaRecord
from quorate.metadata.image import QuotaEntity
from quorate.metadata.settings import Quotas, quota_entity

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
MAX_RECORDS: Final = 10_000
"""What one request may write at once (`QuorumController.MAX_RECORDS_PER_USER_OP`)."""

_INTEGRAL_MAX: Final = {
    "producer_byte_rate": (2**63 - 1, "LONG"),
    "consumer_byte_rate": (2**63 - 1, "LONG"),
    "connection_creation_rate": (2**31 - 1, "INT"),
}
_USER_KEYS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_IP_KEYS: Final = frozenset({"connection_creation_rate"})


@dataclass(frozen=True, slots=True)
class Alteration:
    """What one entity is to get: (type, name) pairs, and (key, value) with None to remove."""

    entity: tuple[tuple[str, str | None], ...]
    ops: tuple[tuple[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for one entity; `message` is None without an error."""

    entity: tuple[tuple[str, str | None], ...]
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class _Invalid(Exception):
    """Why an entity's change is refused (INVALID_REQUEST)."""


def alter(
    quotas: Quotas, alterations: Sequence[Alteration]
) -> tuple[list[ClientQuotaRecord], list[Outcome]]:
    """The records to append, atomically, and one outcome per entity.

    An entity that fails adds no record and harms no other. Too many records fail all of them.
    """
    records: list[ClientQuotaRecord] = []
    outcomes: dict[QuotaEntity, Outcome] = {}
    for alteration in alterations:
        entity = quota_entity(dict(alteration.entity))
        try:
            if entity in outcomes:
                raise _Invalid(f"Ignoring duplicate entity {_text(entity)}")
            records += _alter_one(quotas, entity, alteration)
        except _Invalid as refusal:
            outcomes[entity] = Outcome(alteration.entity, ErrorCode.INVALID_REQUEST, str(refusal))
        else:
            outcomes[entity] = Outcome(alteration.entity)
    if len(records) > MAX_RECORDS:
        error = ErrorCode.POLICY_VIOLATION
        return [], [Outcome(item.entity, error, error.message) for item in outcomes.values()]
    return records, list(outcomes.values())


def _alter_one(
    quotas: Quotas, entity: QuotaEntity, alteration: Alteration
) -> list[ClientQuotaRecord]:
    _check_entity(alteration.entity)
    current = quotas.get(entity)
    keys = _keys_for(dict(entity), known=current is not None)
    records: list[ClientQuotaRecord] = []
    seen: set[str] = set()
    for key, value in alteration.ops:
        if key in seen:
            raise _Invalid(
                f"Duplicate quota key {key} not updating quota for this entity {_text(entity)}"
            )
        seen.add(key)
        if value is not None:
            _check_value(keys, key, value)
        before = None if current is None else current.get(key)
        if value != before:
            records.append(_record(entity, key, value))
    return records


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
        raise _Invalid("Invalid empty client quota entity")
    seen: set[str] = set()
    for kind, name in entity:
        if kind in seen:
            raise _Invalid(f"Invalid client quota entity, duplicate entity entry {kind}")
        if kind not in (USER, CLIENT_ID, IP):
            raise _Invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _Invalid(f"Empty {kind} not supported")
        seen.add(kind)


def _keys_for(names: dict[str, str | None], known: bool) -> frozenset[str]:
    """`known`: the entity has quotas already, so a host among them was found by Kafka."""
    if IP not in names:
        return _USER_KEYS
    if len(names) > 1:
        raise _Invalid(
            "Invalid quota entity combination, IP entity should"
            "not be combined with User or ClientId"
        )
    address = names[IP]
    if address is not None and not known and not _is_address(address):
        raise _Invalid(f"{address} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _is_address(text: str) -> bool:
    """An address, in words that Java understands without the interfaces of this machine.

    No host name: we ask no name server, and one that a Java node cannot find ends its reading of
    the quotas half way, at each start.
    """
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _check_value(keys: frozenset[str], key: str, value: float) -> None:
    if key not in keys:
        raise _Invalid(f"Invalid configuration key {key}")
    if not value > 0.0:
        raise _Invalid(f"Quota {key} must be greater than 0")
    if key in _INTEGRAL_MAX:
        largest, type_name = _INTEGRAL_MAX[key]
        if value > largest:
            raise _Invalid(f"Proposed value for {key} is too large for a {type_name}.")
        if abs(value % 1.0) > 1e-6:
            raise _Invalid(f"{key} cannot be a fractional value.")


def _text(entity: QuotaEntity) -> str:
    names = ", ".join(f"{kind}={name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{names}}})"
