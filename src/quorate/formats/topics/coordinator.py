"""The records that the coordinators of brokers write: a key with a type, a value with a version.

A key begins with the int16 type of the record, a value with the int16 version of its message
(`CoordinatorRecordSerde`). A record without a value deletes the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from quorate.formats.errors import NewerRecordError, RecordError
from quorate.formats.topics import groups, other_groups, share_state, transactions
from quorate.wire.errors import WireError
from quorate.wire.java_decoder import decode_prefix_as_java
from quorate.wire.schema import Message

_PREFIX_SIZE: Final = 2


class UnknownTypeError(NewerRecordError):
    """A key of a type that 4.4.0 lacks; `type_id` is its number."""

    def __init__(self, type_id: int) -> None:
        super().__init__(f"Found an unknown record type {type_id}")
        self.type_id = type_id


@dataclass(frozen=True, slots=True)
class RecordType:
    """The messages of one type of record."""

    key: type[Message]
    value: type[Message]


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """A decoded record; `value` is None where it deletes its key."""

    key: Message
    value: Message | None
    version: int
    """Of the value."""


RecordTypes = Mapping[int, RecordType]


def _declared(*modules: ModuleType) -> RecordTypes:
    messages = [
        item
        for module in modules
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Message)
    ]
    keys, values = (
        {cls.schema.key or 0: cls for cls in messages if cls.schema.kind == kind}
        for kind in ("coordinator-key", "coordinator-value")
    )
    return {type_id: RecordType(keys[type_id], values[type_id]) for type_id in sorted(keys)}


GROUP_RECORDS: Final = _declared(groups, other_groups)
"""Of `__consumer_offsets`."""
TRANSACTION_RECORDS: Final = _declared(transactions)
"""Of `__transaction_state`."""
SHARE_RECORDS: Final = _declared(share_state)
"""Of `__share_group_state`."""


def decode_coordinator_record(
    key: bytes, value: bytes | None, types: RecordTypes
) -> CoordinatorRecord:
    """The record in a key and a value. Bytes after a message are ignored, as Kafka does.

    Raises UnknownTypeError for an unknown type, and RecordError for an unknown version or for bytes
    that are not such a record.
    """
    type_id = _int16(key, "key")
    found = types.get(type_id)
    if found is None:
        raise UnknownTypeError(type_id)
    # Kafka takes the type for the key's version; every key has the version 0 only.
    key_message = _message(found.key, 0, key, f"with version {type_id} from key's buffer")
    if value is None:
        return CoordinatorRecord(key_message, None, -1)
    version = _int16(value, "value")
    low, high = found.value.schema.versions
    if not low <= version <= high:
        raise NewerRecordError(f"Found an unknown record version {version} for {type_id} type")
    where = f"with version {version} from value's buffer"
    return CoordinatorRecord(key_message, _message(found.value, version, value, where), version)


def _int16(data: bytes, what: str) -> int:
    if len(data) < _PREFIX_SIZE:
        raise RecordError(f"Could not read version from {what}'s buffer.")
    return int.from_bytes(data[:_PREFIX_SIZE], "big", signed=True)


def _message(cls: type[Message], version: int, data: bytes, where: str) -> Message:
    try:
        return decode_prefix_as_java(cls, version, data, _PREFIX_SIZE)[0]
    except WireError as error:
        raise RecordError(f"Could not read record {where} due to: {error}.") from None
