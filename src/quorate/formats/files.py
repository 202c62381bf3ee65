"""Names and text of the small files in a metadata directory.

Everything here turns bytes into values and back; no file is opened. The text is exactly
Kafka's: `FileQuorumStateStore`, `LeaderEpochCheckpointFile`, `PartitionMetadataFile`, `Snapshots`.
Every decoder raises FormatError, and NewerFileError for a later version. It takes `where`, the
file's name for the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    ZERO_UUID,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
    uuid_from_text,
    uuid_to_text,
)
from quorate.formats.errors import FormatError, NewerFileError
from quorate.raft.values import ElectionState

PARTITION_DIRECTORY: Final = f"{METADATA_TOPIC}-0"
META_PROPERTIES: Final = "meta.properties"
BOOTSTRAP_CHECKPOINT: Final = "bootstrap.checkpoint"
QUORUM_STATE: Final = "quorum-state"
LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
LOCK: Final = ".lock"
LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
PRODUCERS_SUFFIX: Final = ".snapshot"
"""Of the snapshots of a broker's producers; those of metadata have the next."""
SNAPSHOT_SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".checkpoint.part"
DELETED_SUFFIX: Final = ".deleted"

_SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_SEGMENT_NAME: Final = re.compile(r"(\d{20})(\..+)")


def segment_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """File name of a segment, or of its index, whose first record is `base_offset`."""
    return str(base_offset).zfill(20) + suffix


def parse_segment_name(name: str, suffix: str = LOG_SUFFIX) -> int | None:
    """The base offset in the name of a `.log` file, or of its index; None when it is not one."""
    match = _SEGMENT_NAME.fullmatch(name)
    return int(match[1]) if match and match[2] == suffix else None


def snapshot_name(snapshot_id: OffsetAndEpoch) -> str:
    """File name of a snapshot: its end offset (exclusive) and epoch."""
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}{SNAPSHOT_SUFFIX}"


def parse_snapshot_name(name: str) -> OffsetAndEpoch | None:
    """The id in the name of a finished snapshot; None when it is not one."""
    match = _SNAPSHOT_NAME.fullmatch(name)
    return OffsetAndEpoch(int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What a quorum-state file says."""

    election: ElectionState
    data_version: int
    """0 or 1; chosen by the kraft.version in force when it was written."""
    voter_ids: tuple[int, ...] = ()
    """Only in data_version 0."""


def encode_quorum_state(
    state: ElectionState, kraft_version: int, voter_ids: Sequence[int] = ()
) -> bytes:
    """The bytes of quorum-state; data_version is 0 at kraft.version 0, else 1."""
    voted_id = -1 if state.voted is None else state.voted.id
    if kraft_version == 0:
        fields: dict[str, object] = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in sorted(voter_ids)],
            "data_version": 0,
        }
    else:
        voted_directory = ZERO_UUID if state.voted is None else state.voted.directory_id
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": voted_id,
            "votedDirectoryId": uuid_to_text(voted_directory),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_quorum_state(data: bytes, where: str = QUORUM_STATE) -> QuorumState:
    """Read quorum-state of data_version 0 or 1; raises FormatError for anything else."""
    try:
        fields = json.loads(data.decode().partition("\n")[0])
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where}: not a line of JSON: {error}") from None
    if not isinstance(fields, dict):
        raise FormatError(f"{where}: not a JSON object")
    version = _integer(fields, "data_version", where)
    if version not in (0, 1):
        raise (NewerFileError if version > 1 else FormatError)(
            f"{where}: data_version {version} is not supported, only 0 and 1: "
            "a newer Kafka may have written it"
        )
    return _quorum_state_of(fields, version, where)


def _quorum_state_of(fields: dict[str, object], version: int, where: str) -> QuorumState:
    epoch = _integer(fields, "leaderEpoch", where)
    leader_id = _integer(fields, "leaderId", where)
    voted_id = _integer(fields, "votedId", where)
    if epoch < 0 or leader_id < -1 or voted_id < -1:
        raise FormatError(
            f"{where}: leaderEpoch {epoch}, leaderId {leader_id} or votedId {voted_id} is negative"
        )
    voted_directory = ZERO_UUID
    voter_ids: tuple[int, ...] = ()
    if version == 0:
        voters = fields.get("currentVoters")
        if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
            raise FormatError(f"{where}: currentVoters is missing or no list of voters")
        voter_ids = tuple(_integer(voter, "voterId", where) for voter in voters)
    else:
        text = fields.get("votedDirectoryId")
        if not isinstance(text, str):
            raise FormatError(f"{where}: votedDirectoryId is missing or no string")
        voted_directory = _uuid(text, where)
    voted = None if voted_id == -1 else ReplicaKey(voted_id, voted_directory)
    return QuorumState(ElectionState(epoch, leader_id, voted), version, voter_ids)


def encode_leader_epochs(epochs: Sequence[tuple[int, int]]) -> bytes:
    """leader-epoch-checkpoint of (epoch, start offset) pairs, ascending."""
    lines = ["0", str(len(epochs))] + [f"{epoch} {start}" for epoch, start in epochs]
    return "".join(line + "\n" for line in lines).encode()


def decode_leader_epochs(
    data: bytes, where: str = LEADER_EPOCH_CHECKPOINT
) -> tuple[tuple[int, int], ...]:
    """(epoch, start offset) pairs; an empty file holds none, as for Kafka."""
    lines = _text(data, where).splitlines()
    if len(lines) < 2:
        return ()
    numbers = [[_number(word, line, where) for word in line.split(" ")] for line in lines]
    if numbers[0] != [0]:
        kind = NewerFileError if len(numbers[0]) == 1 and numbers[0][0] > 0 else FormatError
        raise kind(f"{where}: version {lines[0]} is not supported, only 0")
    entries = numbers[2:]
    if len(numbers[1]) != 1 or numbers[1][0] != len(entries):
        raise FormatError(f"{where}: says {lines[1]} entries, holds {len(entries)}")
    for entry, line in zip(entries, lines[2:], strict=True):
        if len(entry) != 2:
            raise FormatError(f"{where}: '{line}' is not an epoch and a start offset")
    return tuple((entry[0], entry[1]) for entry in entries)


def encode_partition_metadata(topic_id: Uuid = METADATA_TOPIC_ID) -> bytes:
    """partition.metadata (no newline at its end, as Kafka's)."""
    return f"version: 0\ntopic_id: {uuid_to_text(topic_id)}".encode()


def decode_partition_metadata(data: bytes, where: str = PARTITION_METADATA) -> Uuid:
    """The topic id; later versions are read as version 0, as by Kafka."""
    lines = _text(data, where).splitlines()
    words = [re.split(r":\s+", line) for line in lines[:2]]
    if len(words) < 2 or any(len(word) != 2 for word in words):
        raise FormatError(f"{where}: must say 'version: 0' and 'topic_id: <uuid>'")
    if _number(words[0][1], lines[0], where) < 0:
        raise FormatError(f"{where}: version {words[0][1]} is not supported")
    topic_id = _uuid(words[1][1], where)
    if topic_id == ZERO_UUID:
        raise FormatError(f"{where}: the topic id is all zeroes")
    return topic_id


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{where}: not UTF-8 text: {error}") from None


def _number(word: str, line: str, where: str) -> int:
    if not re.fullmatch(r"[-+]?[0-9]{1,19}", word):
        raise FormatError(f"{where}: '{word}' in line '{line}' is not a number")
    return int(word)


def _uuid(text: str, where: str) -> Uuid:
    try:
        return uuid_from_text(text)
    except QuorateError as error:
        raise FormatError(f"{where}: {error}") from None


def _integer(fields: dict[str, object], name: str, where: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 31:
        raise FormatError(f"{where}: {name} is missing or not a whole number of 32 bits")
    return value
