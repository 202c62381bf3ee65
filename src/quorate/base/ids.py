"""Identities: directory ids, replica keys, log positions, listeners.

A uuid is its 16 raw bytes, big-endian, as on the wire and on disk. The text form is URL-safe
base64 without padding, 22 characters (`org.apache.kafka.common.Uuid`).
"""

from __future__ import annotations

import binascii
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NamedTuple, NewType

from quorate.base.errors import QuorateError

Uuid = NewType("Uuid", bytes)

ZERO_UUID: Final = Uuid(bytes(16))
METADATA_TOPIC_ID: Final = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC: Final = "__cluster_metadata"
_RESERVED_DIRECTORIES: Final = 100
_SIGNED_HALVES: Final = struct.Struct(">qq")


def is_reserved_directory(directory_id: Uuid) -> bool:
    """Whether Kafka reserves the id (`DirectoryId.reserved`): its halves are signed, as Java's."""
    halves: tuple[int, int] = _SIGNED_HALVES.unpack(directory_id)
    high, low = halves
    return high == 0 and low < _RESERVED_DIRECTORIES


def uuid_to_text(value: Uuid) -> str:
    """The 22-character text of a 16-byte uuid."""
    return urlsafe_b64encode(value).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> Uuid:
    """The uuid of a 22-character text.

    Raises QuorateError when the text is not one.
    """
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raw = b""  # what the library says of it helps nobody
    if len(raw) != 16 or len(text) != 22:
        raise QuorateError(
            f"'{text}' is not a uuid: it must be 22 characters of URL-safe base64 (16 bytes)"
        )
    return Uuid(raw)


class ReplicaKey(NamedTuple):
    """A replica's identity: node id and directory id; ZERO_UUID means unknown."""

    id: int
    directory_id: Uuid = ZERO_UUID

    @classmethod
    def from_text(cls, text: str) -> ReplicaKey:
        """The key of a text that `str` made, `4-07R5amHmR32VDA6jHkGbTA`; raises QuorateError."""
        node_id, dash, directory_id = text.partition("-")
        if not (node_id.isascii() and node_id.isdecimal()):
            raise QuorateError(
                f"'{text}' is not a replica's key: write its id, a dash and its directory id"
            )
        return cls(int(node_id), uuid_from_text(directory_id) if dash else ZERO_UUID)

    def __str__(self) -> str:
        if self.directory_id == ZERO_UUID:
            return str(self.id)
        return f"{self.id}-{uuid_to_text(self.directory_id)}"

    def __repr__(self) -> str:
        return f"ReplicaKey({self})"


class OffsetAndEpoch(NamedTuple):
    """A place in the log: an end offset (exclusive) and the epoch of the record before it.

    Also the id of a snapshot.
    """

    offset: int
    epoch: int


class Address(NamedTuple):
    """Where to connect: host and TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Listener(NamedTuple):
    """A named endpoint; the name is upper case, as in VotersRecord."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


Listeners = tuple[Listener, ...]


class LeaderAndEpoch(NamedTuple):
    """The leader of an epoch; `leader_id` is -1 while it is not known."""

    leader_id: int
    epoch: int
