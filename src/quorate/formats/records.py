"""Metadata records and the frame that each of them has in a record's value.

Frame: unsigned varint frame version 1, record type, record version, then the message
(`AbstractApiMessageSerde`, `MetadataRecordSerde`). The texts of errors about the frame are
Kafka's, so that tools print the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from quorate.formats import metadata_records
from quorate.formats.errors import NewerRecordError, RecordError
from quorate.formats.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from quorate.formats.varint import encode_unsigned, read_unsigned
from quorate.wire import codec
from quorate.wire.errors import WireError
from quorate.wire.java_decoder import decode_prefix_as_java
from quorate.wire.schema import Message

__all__ = [
    "RECORD_TYPES",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationStateRecord",
    "change_version",
    "decode_record",
    "encode_record",
    "read_frame",
]

FRAME_VERSION: Final = 1


def _declared() -> dict[int, type[Message]]:
    found = {}
    for item in vars(metadata_records).values():
        if isinstance(item, type) and issubclass(item, Message) and item.schema.key is not None:
            found[item.schema.key] = item
    return found


RECORD_TYPES: Final = _declared()
"""The class of each record type, by its number."""

_PREFIXES: Final = {
    (cls, version): encode_unsigned(FRAME_VERSION) + encode_unsigned(key) + encode_unsigned(version)
    for key, cls in RECORD_TYPES.items()
    for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1)
}
_DecodePrefix = Callable[[type[Message], int, bytes, int], tuple[Message, int]]
_QUICK: Final = {prefix: (cls, version) for (cls, version), prefix in _PREFIXES.items()}
"""By the three bytes that every frame of a known type begins with."""


def encode_record(record: Message, version: int) -> bytes:
    """The value of a data record; raises EncodeError as the codec does."""
    prefix = _PREFIXES.get((type(record), version))
    if prefix is None:
        raise RecordError(f"{type(record).__name__} has no version {version} in a metadata log")
    return prefix + codec.encode(record, version)


def decode_record(value: bytes) -> tuple[Message, int]:
    """The record in a data record's value, and its version; raises RecordError."""
    known = _QUICK.get(value[:3])
    if known is None:
        cls, version, position = read_frame(value)
        return _decode_message(cls, version, value, position, codec.decode_prefix)
    return _decode_message(*known, value, 3, codec.decode_prefix)


def decode_record_as_java(
    value: bytes, types: Mapping[int, type[Message]] = RECORD_TYPES
) -> tuple[Message, int]:
    """The record, and its version, as Kafka's tools read it (`java_decoder`); raises RecordError."""
    cls, version, position = read_frame(value, types)
    return _decode_message(cls, version, value, position, decode_prefix_as_java)


def _decode_message(
    cls: type[Message], version: int, value: bytes, position: int, decode: _DecodePrefix
) -> tuple[Message, int]:
    try:
        record, position = decode(cls, version, value, position)
    except WireError as error:
        raise RecordError(
            f"Failed to deserialize record with type {cls.schema.key}", str(error)
        ) from None
    if position != len(value):
        raise RecordError(
            f"Found {len(value) - position} byte(s) of garbage after {cls.schema.key}"
        )
    return record, version


def read_frame(
    value: bytes, types: Mapping[int, type[Message]] = RECORD_TYPES
) -> tuple[type[Message], int, int]:
    """(class, version, position of the message) of a frame; raises RecordError."""
    frame_version, position = _read_short(value, 0, "frame version")
    if frame_version == 0:
        raise RecordError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from "
            "the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise NewerRecordError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    key, position = _read_short(value, position, "type")
    version, position = _read_short(value, position, "version")
    cls = types.get(key)
    if cls is None:
        raise NewerRecordError(f"Unknown metadata id {key}")
    low, high = cls.schema.versions
    if not low <= version <= high:
        raise NewerRecordError(
            f"{cls.__name__} version {version} is not supported, only {low} to {high}: "
            "a newer Kafka may have written it"
        )
    return cls, version, position


def change_version(record: BrokerRegistrationChangeRecord) -> int:
    """The lowest version that can say what the record changes (as `ClusterControlManager`)."""
    if record.cordoned_log_dirs is not None:
        return 3
    if record.log_dirs:
        return 2
    if record.in_controlled_shutdown:
        return 1
    # What changes nothing else says that no log directory is left.
    return 0 if record.fenced else 2


def _read_short(value: bytes, position: int, what: str) -> tuple[int, int]:
    try:
        number, position = read_unsigned(value, position)
    except (IndexError, ValueError):
        raise RecordError(f"Error while reading {what}") from None
    if number > 0x7FFF:
        raise RecordError(f"Value for {what} was too large.")
    return number, position
