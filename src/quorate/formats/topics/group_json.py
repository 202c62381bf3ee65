"""A classic group's record as JSON text, with what its consumers wrote into it decoded."""

from __future__ import annotations

from typing import Final

from quorate.formats.json_text import base64, json_writer, to_json
from quorate.formats.topics.groups import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    GroupMetadataValue,
)
from quorate.wire.errors import WireError
from quorate.wire.java_decoder import decode_prefix_as_java
from quorate.wire.schema import Message

_CONSUMER: Final = "consumer"
"""The protocol type of consumers; other clients have other contents."""
_VERSION_SIZE: Final = 2
_LAST_FIELDS: Final = '"subscription":"","assignment":""}'
"""How the JSON of a member without contents ends."""


def group_json(group: GroupMetadataValue, version: int) -> str:
    """The record as Kafka's dump-log prints it.

    Subscription and assignment of a consumer are objects where they can be decoded, else base64.
    """
    if group.protocol_type != _CONSUMER or not group.members:
        return to_json(group, version)
    members = [_member_json(member, version) for member in group.members]
    head = to_json(group.replace(members=[]), version)
    # The members are the last field, so the empty list ends the text.
    return f"{head.removesuffix('[]}')}[{','.join(members)}]}}"


def _member_json(member: GroupMetadataValue.MemberMetadata, version: int) -> str:
    subscription = _embedded(ConsumerProtocolSubscription, member.subscription)
    assignment = _embedded(ConsumerProtocolAssignment, member.assignment)
    write = json_writer(GroupMetadataValue.MemberMetadata, version)
    head = write(member.replace(subscription=b"", assignment=b"")).removesuffix(_LAST_FIELDS)
    return f'{head}"subscription":{subscription},"assignment":{assignment}}}'


def _embedded(cls: type[Message], data: bytes) -> str:
    """JSON of a message with its version before it, or base64 where Kafka cannot decode it.

    Kafka reads a later version as the last known one, except structs in it (`MessageDataGenerator`).
    """
    low, high = cls.schema.versions
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    known = min(max(version, low), high)
    try:
        message, _ = decode_prefix_as_java(cls, known, data, _VERSION_SIZE)
    except WireError:
        return base64(data)
    if version > high and any(
        getattr(message, field.name) for field in cls.schema.fields if field.holds_structs
    ):
        return base64(data)
    return to_json(message, known)
