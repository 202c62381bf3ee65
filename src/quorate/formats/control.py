"""The five control records of a metadata log and its snapshots.

A control record's key is int16 version 0 and int16 type; its value is one of the messages below
at version 0, without a version prefix (`ControlRecordUtils`, `ControlRecordType`; KIP-595, 630
and 853). Elsewhere they are the core's own values: LeaderChange, KRaftVersion, Voters.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.formats.errors import NewerRecordError, RecordError
from quorate.raft.values import ControlRecord as RaftControlRecord
from quorate.raft.values import KRaftVersion, LeaderChange, Voter, Voters
from quorate.wire import codec
from quorate.wire.errors import WireError
from quorate.wire.java_decoder import decode_prefix_as_java
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from quorate.wire.schema import struct as struct_of


class ControlType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class LeaderChangeMessage(Message, kind="data", versions=(0, 1), flexible=0):
    class Voter(Struct):
        voter_id: int = int32()
        voter_directory_id: Uuid = uuid(since=1)

    version: int = int16()
    leader_id: int = int32()
    voters: list[Voter] = array(Voter)
    granting_voters: list[Voter] = array(Voter)


class SnapshotHeaderRecord(Message, kind="data", versions=(0, 0), flexible=0):
    version: int = int16()
    last_contained_log_timestamp: int = int64()


class SnapshotFooterRecord(Message, kind="data", versions=(0, 0), flexible=0):
    version: int = int16()


class KRaftVersionRecord(Message, kind="data", versions=(0, 0), flexible=0):
    version: int = int16()
    kraft_version: int = int16(kafka_name="KRaftVersion")


class VotersRecord(Message, kind="data", versions=(0, 0), flexible=0):
    class Voter(Struct):
        class Endpoint(Struct):
            name: str = string(key=True)
            host: str = string()
            port: int = uint16()

        class KRaftVersionFeature(Struct):
            min_supported_version: int = int16()
            max_supported_version: int = int16()

        voter_id: int = int32()
        voter_directory_id: Uuid = uuid()
        endpoints: list[Endpoint] = array(Endpoint)
        kraft_version_feature: KRaftVersionFeature = struct_of(
            KRaftVersionFeature, kafka_name="KRaftVersionFeature"
        )

    version: int = int16()
    voters: list[Voter] = array(Voter)


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """First record of a snapshot; the time (ms) of the last batch that it covers."""

    last_contained_log_timestamp: int


@dataclass(frozen=True, slots=True)
class SnapshotFooter:
    """Last record of a snapshot: without it the file is not whole."""


ControlRecord = RaftControlRecord | SnapshotHeader | SnapshotFooter
ControlMessage = (
    LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)

_KEY: Final = struct.Struct(">hh")
_END_TRANSACTION: Final = struct.Struct(">hi")
_MESSAGES: Final[dict[int, type[ControlMessage]]] = {
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_REMEMBERED: Final = 256
"""The same few voter sets stand in the log, in snapshots and in what is recovered of both."""
_TYPES: Final = {message: type_id for type_id, message in _MESSAGES.items()}


def control_type(key: bytes | None) -> int:
    """The type in a control record's key; raises RecordError when there is none."""
    if key is None or len(key) < _KEY.size:
        raise RecordError("a control record's key must hold a version and a type")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise RecordError(f"a control record's key has the version {version}")
    return int(type_id)


def decode_message(
    key: bytes | None, value: bytes | None, *, as_java: bool = False
) -> ControlMessage:
    """The message of a control record, as it is written; raises RecordError.

    `as_java`: text may be malformed, as for Kafka's tools (`java_decoder`).
    """
    type_id = control_type(key)
    message = _MESSAGES.get(type_id)
    if message is None:
        kind = NewerRecordError if type_id > max(_MESSAGES) else RecordError
        raise kind(f"control record type {type_id} has no place in a metadata log")
    if not value:
        raise RecordError(f"the {message.__name__} has no value")
    try:
        if as_java:
            found, end = decode_prefix_as_java(message, 0, value, 0)
            if end == len(value):
                return found
        return codec.decode(message, 0, value)
    except WireError as error:
        version = int.from_bytes(value[:2], "big", signed=True)
        if version > message.schema.versions[1]:
            text = f"the {message.__name__} has version {version}, which 4.4.0 lacks: {error}"
            raise NewerRecordError(text) from None
        raise RecordError(str(error)) from None


def decode_end_transaction(value: bytes | None) -> int:
    """The coordinator's epoch in the value of an ABORT or COMMIT; raises RecordError.

    The value is an EndTxnMarker with its version before it; later versions are read as version 0.
    """
    if value is None or len(value) < _END_TRANSACTION.size:
        raise RecordError("the marker of a transaction's end must hold a version and an epoch")
    version, epoch = _END_TRANSACTION.unpack_from(value)
    if version < 0:
        raise RecordError(
            f"Invalid version found for end transaction marker: {version}. "
            "May indicate data corruption"
        )
    return int(epoch)


def encode_message(message: ControlMessage) -> tuple[bytes, bytes]:
    """(key, value) of a control record."""
    return _KEY.pack(0, _TYPES[type(message)]), codec.encode(message, 0)


@lru_cache(_REMEMBERED)
def decode_control(key: bytes | None, value: bytes | None) -> ControlRecord:
    """The control record as a value; raises RecordError."""
    message = decode_message(key, value)
    match message:
        case LeaderChangeMessage():
            return LeaderChange(
                message.leader_id,
                tuple(voter.voter_id for voter in message.voters),
                tuple(voter.voter_id for voter in message.granting_voters),
            )
        case KRaftVersionRecord():
            return KRaftVersion(message.kraft_version)
        case VotersRecord():
            return Voters(tuple(sorted(map(_voter, message.voters), key=lambda v: v.key.id)))
        case SnapshotHeaderRecord():
            return SnapshotHeader(message.last_contained_log_timestamp)
        case SnapshotFooterRecord():
            return SnapshotFooter()


@lru_cache(_REMEMBERED)
def encode_control(record: ControlRecord) -> tuple[bytes, bytes]:
    """(key, value) of a control record."""
    return encode_message(_message(record))


def _message(record: ControlRecord) -> ControlMessage:
    match record:
        case LeaderChange():
            return LeaderChangeMessage(
                leader_id=record.leader_id,
                voters=[LeaderChangeMessage.Voter(voter_id=id) for id in record.voters],
                granting_voters=[
                    LeaderChangeMessage.Voter(voter_id=id) for id in record.granting_voters
                ],
            )
        case KRaftVersion():
            return KRaftVersionRecord(kraft_version=record.version)
        case Voters():
            return VotersRecord(voters=[_voter_struct(voter) for voter in record.voters])
        case SnapshotHeader():
            return SnapshotHeaderRecord(
                last_contained_log_timestamp=record.last_contained_log_timestamp
            )
        case SnapshotFooter():
            return SnapshotFooterRecord()


def _voter(voter: VotersRecord.Voter) -> Voter:
    return Voter(
        ReplicaKey(voter.voter_id, voter.voter_directory_id),
        tuple(Listener(end.name, end.host, end.port) for end in voter.endpoints),
        voter.kraft_version_feature.min_supported_version,
        voter.kraft_version_feature.max_supported_version,
    )


def _voter_struct(voter: Voter) -> VotersRecord.Voter:
    return VotersRecord.Voter(
        voter_id=voter.key.id,
        voter_directory_id=voter.key.directory_id,
        endpoints=[
            VotersRecord.Voter.Endpoint(name=end.name, host=end.host, port=end.port)
            for end in voter.listeners
        ],
        kraft_version_feature=VotersRecord.Voter.KRaftVersionFeature(
            min_supported_version=voter.min_kraft_version,
            max_supported_version=voter.max_kraft_version,
        ),
    )
