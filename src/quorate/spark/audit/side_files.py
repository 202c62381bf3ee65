"""The files beside a replica's log, each checked against the log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from quorate.base.ids import METADATA_TOPIC_ID, ZERO_UUID, uuid_to_text
from quorate.formats.errors import FormatError, NewerBatchError, NewerFileError
from quorate.formats.files import (
    QuorumState,
    decode_leader_epochs,
    decode_partition_metadata,
    decode_quorum_state,
)
from quorate.formats.snapshot import read_snapshot
from quorate.spark.audit.committed import ReplicaLog
from quorate.spark.audit.model import DAMAGE, WARNING, Finding, Spot
from quorate.spark.files.scan import GarbledFileError

_REPLACE_NODE = (
    "if the finding remains, replace the node: start it with an empty directory and a new "
    "directory id"
)
_VOTE = (
    "The node may have lost a vote of that epoch, and vote a second time. Copy the directory again "
    f"with the node stopped; {_REPLACE_NODE}"
)
_UNKNOWN_CANDIDATE = (
    "Harmless if a voter was being added at that time and the change was not committed. Otherwise "
    "the node may have lost its true vote of that epoch, and vote a second time: copy the directory "
    f"again with the node stopped, and {_REPLACE_NODE}"
)
_REBUILT = "Delete the file while the node is stopped: the next start rebuilds it from the log"
_TOPIC = (
    "Kafka refuses the log beside it: give the directory of the metadata log, or delete the file "
    "while the node is stopped (the next start writes it)"
)
_BOOTSTRAP = (
    "The node reads it at every start. Copy the file again; if the finding remains, replace it with "
    "that of another controller of this cluster while the node is stopped"
)
_NEWER = (
    "A newer Kafka may have written the file, and it was not checked: audit with a newer release. "
    "Keep the file"
)


def _unreadable(check: str, error: FormatError, advice: str, spot: Spot) -> Finding:
    """What cannot be read is damaged, unless a later release may have written it."""
    if isinstance(error, NewerFileError | NewerBatchError):
        return Finding(check, WARNING, str(error), _NEWER, spot)
    return Finding(check, DAMAGE, str(error), advice, spot)


def check_topic_id(data: bytes | GarbledFileError | None, name: str) -> list[Finding]:
    """What is wrong with partition.metadata."""
    try:
        topic_id = decode_partition_metadata(_unpacked(data or b""), name)
    except FormatError as error:
        return [Finding("topic-id", DAMAGE, str(error), _TOPIC, Spot(name))]
    if topic_id == METADATA_TOPIC_ID:
        return []
    what = (
        f"it has topic id {uuid_to_text(topic_id)}, but that of the metadata log is "
        f"{uuid_to_text(METADATA_TOPIC_ID)}"
    )
    return [Finding("topic-id", DAMAGE, what, _TOPIC, Spot(name))]


def check_bootstrap(data: bytes | GarbledFileError | None, name: str) -> list[Finding]:
    """What is wrong with bootstrap.checkpoint."""
    try:
        read_snapshot(_unpacked(data or b""))
    except FormatError as error:
        return [_unreadable("bootstrap", error, _BOOTSTRAP, Spot(name))]
    return []


def check_quorum_state(
    data: bytes | GarbledFileError | None, name: str, log: ReplicaLog
) -> tuple[QuorumState | None, list[Finding]]:
    """The content of quorum-state, and what is wrong with it; `data` None: there is no file."""
    spot = Spot(name)
    if data is None:
        what = "there is no quorum-state beside the log: the node's votes are unknown"
        return None, [Finding("quorum-state", WARNING, what, _VOTE, spot)]
    try:
        state = decode_quorum_state(_unpacked(data), name)
    except FormatError as error:
        return None, [_unreadable("quorum-state", error, _VOTE, spot)]
    last = log.last_epoch
    if last is not None and state.election.epoch < last:
        what = (
            f"quorum-state has epoch {state.election.epoch}, but the log has records of epoch {last}: "
            "a node saves the epoch before it writes records of it"
        )
        return state, [Finding("quorum-state", DAMAGE, what, _VOTE, spot)]
    return state, []


def check_vote(state: QuorumState, name: str, logs: Sequence[ReplicaLog]) -> list[Finding]:
    """A vote for a directory that was never a voter according to the logs of the cluster.

    The logs show that only where one holds both the epoch of the vote and the voters in force when
    that epoch began: the candidate may have been a voter by records that came later, or that a
    snapshot has replaced since.
    """
    voted, epoch = state.election.voted, state.election.epoch
    if voted is None or voted.directory_id == ZERO_UUID:
        return []
    if any(voters is None for log in logs for _, voters in log.voter_sets):
        return []  # a later release wrote a voter set, which may have this voter
    known = {
        voter.directory_id
        for log in logs
        for _, voters in log.voter_sets
        for voter in voters or ()
        if voter.id == voted.id
    }
    if not known.isdisjoint((voted.directory_id, ZERO_UUID)) or not any(
        span.epoch == epoch and log.voters_written(span.start) for log in logs for span in log.spans
    ):
        return []
    its = ", ".join(sorted(map(uuid_to_text, known)))
    what = (
        f"quorum-state has a vote of epoch {epoch} for {voted}, but "
        + (f"the voter sets have {voted.id} only with {its}" if its else "that was no voter")
        + " in any of the given logs"
    )
    return [Finding("quorum-state", WARNING, what, _UNKNOWN_CANDIDATE, Spot(name, epoch=epoch))]


def check_leader_epochs(
    data: bytes | GarbledFileError | None, name: str, log: ReplicaLog, *, whole: bool
) -> tuple[Sequence[tuple[int, int]], list[Finding]]:
    """The (epoch, first offset) entries of leader-epoch-checkpoint, and what is wrong with them.

    whole: the log was sound to its end. Entries at or after its end are not checked here: they may
    be the only evidence of a lost part (`lost_log`).
    """
    spot = Spot(name)
    if data is None:
        return (), []
    try:
        entries = decode_leader_epochs(_unpacked(data), name)
    except FormatError as error:
        return (), [_unreadable("epochs", error, _REBUILT, spot)]
    wrong = _disagreement(entries, log, whole=whole)
    return entries, [Finding("epochs", DAMAGE, wrong, _REBUILT, spot)] if wrong else []


def _unpacked(data: bytes | GarbledFileError) -> bytes:
    """The bytes; raises the error where an archive did not give them."""
    if isinstance(data, GarbledFileError):
        raise data
    return data


def _disagreement(
    entries: Sequence[tuple[int, int]], log: ReplicaLog, *, whole: bool
) -> str | None:
    if any(a >= c or b > d for (a, b), (c, d) in pairwise(entries)):
        return "its epochs or offsets do not ascend"
    log_start = _log_start(entries, log)
    if log_start > log.end:
        return None  # beyond the log, or beyond its damage
    starts = dict(entries)
    begun = [span for span in log.spans if span.start <= log_start]
    for span in (*begun[-1:], *log.spans[len(begun) :]):
        start = starts.pop(span.epoch, None)
        if start is None:
            return f"it lacks epoch {span.epoch}, which begins at offset {span.start} in the log"
        before = span.start <= log_start and start < log.start
        if start != max(span.start, log_start) and not before:
            return (
                f"it says that epoch {span.epoch} begins at offset {start}, "
                f"but in the log it begins at {span.start}"
            )
    for epoch, start in starts.items() if whole else ():
        if start >= log.end or start < log.start:
            continue  # beyond the log, or from before the log start moved
        return (
            f"it says that epoch {epoch} begins at offset {start}, of which the log "
            f"(offsets {log.start} to {log.end - 1}, inclusive) has no record"
        )
    return None


def _log_start(entries: Sequence[tuple[int, int]], log: ReplicaLog) -> int:
    """The log start offset of the node: the first entry, where that is plausible.

    Kafka moves the log start to the end of the oldest snapshot, but deletes whole segments only. A
    copy of a running node may have older entries, or snapshots that were about to be deleted.
    """
    first = entries[0][1] if entries else log.start
    ends = [one.offset for one, _ in log.replica.snapshots]
    return max(first, log.start) if first in ends or first < min(ends, default=0) else log.start
