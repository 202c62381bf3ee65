"""The small files of a replica: read, and held against the log beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from quorate.base.ids import METADATA_TOPIC_ID, ZERO_UUID, uuid_to_text
from quorate.formats.errors import FormatError
from quorate.formats.files import (
    QuorumState,
    decode_leader_epochs,
    decode_partition_metadata,
    decode_quorum_state,
)
from quorate.formats.snapshot import read_snapshot
from quorate.spark.audit.commit import Chain
from quorate.spark.audit.model import DAMAGE, WARNING, Finding, Spot
from quorate.spark.files.scan import Garbled

_ANEW = (
    "if it still says so, let the node come back as a new one (an empty directory with a new "
    "directory id)"
)
_VOTE = (
    "A vote of that epoch may be forgotten, and given a second time. Copy the directory again "
    f"with the node stopped; {_ANEW}"
)
_STRANGER = (
    "No harm where a voter was being added then and that was taken back. Otherwise the true vote "
    "of that epoch may be forgotten, and given a second time: copy the directory again with the "
    f"node stopped, and {_ANEW}"
)
_REBUILT = "Delete the file while the node is stopped: it is rebuilt from the log"
_TOPIC = (
    "Kafka refuses the log beside it: take the directory of the metadata log, or delete the file "
    "while the node is stopped (it is written anew)"
)
_BOOTSTRAP = (
    "The node reads it when it starts, whatever its log holds. Copy the file again; if it still "
    "says so, put one of another controller of this cluster in its place while the node is stopped"
)


def judge_topic(data: bytes | Garbled | None, name: str) -> list[Finding]:
    """What is wrong with partition.metadata."""
    try:
        topic_id = decode_partition_metadata(_unpacked(data or b""), name)
    except FormatError as error:
        return [Finding("topic-id", DAMAGE, str(error), _TOPIC, Spot(name))]
    if topic_id == METADATA_TOPIC_ID:
        return []
    what = (
        f"it says topic id {uuid_to_text(topic_id)}, but that of the metadata log is "
        f"{uuid_to_text(METADATA_TOPIC_ID)}"
    )
    return [Finding("topic-id", DAMAGE, what, _TOPIC, Spot(name))]


def judge_bootstrap(data: bytes | Garbled | None, name: str) -> list[Finding]:
    """What is wrong with bootstrap.checkpoint."""
    try:
        read_snapshot(_unpacked(data or b""))
    except FormatError as error:
        return [Finding("bootstrap", DAMAGE, str(error), _BOOTSTRAP, Spot(name))]
    return []


def judge_quorum_state(
    data: bytes | Garbled | None, name: str, chain: Chain
) -> tuple[QuorumState | None, list[Finding]]:
    """What the file says, and what is wrong with it; `data` None: there is no file."""
    spot = Spot(name)
    if data is None:
        what = "there is no quorum-state beside the log: its votes are not known"
        return None, [Finding("quorum-state", WARNING, what, _VOTE, spot)]
    try:
        state = decode_quorum_state(_unpacked(data), name)
    except FormatError as error:
        return None, [Finding("quorum-state", DAMAGE, str(error), _VOTE, spot)]
    last = chain.last_epoch
    if last is not None and state.election.epoch < last:
        what = (
            f"quorum-state is of epoch {state.election.epoch}, but the log has records of epoch "
            f"{last}: it is behind the log"
        )
        return state, [Finding("quorum-state", DAMAGE, what, _VOTE, spot)]
    return state, []


def judge_vote(state: QuorumState, name: str, chains: Iterable[Chain]) -> list[Finding]:
    """A vote for a directory that was never a voter, as far as the logs of the cluster tell.

    They do where one has both the epoch of the vote and the voters in force when it began: a
    candidate may have been a voter by records that came later, or were cleaned away since.
    """
    voted, epoch = state.election.voted, state.election.epoch
    if voted is None or voted.directory_id == ZERO_UUID:
        return []
    logs = list(chains)
    known = {
        voter.directory_id
        for chain in logs
        for _, voters in chain.voter_sets
        for voter in voters
        if voter.id == voted.id
    }
    if not known.isdisjoint((voted.directory_id, ZERO_UUID)) or not any(
        span.epoch == epoch and chain.voters_written(span.start)
        for chain in logs
        for span in chain.spans
    ):
        return []
    its = ", ".join(sorted(map(uuid_to_text, known)))
    what = (
        f"quorum-state has a vote of epoch {epoch} for {voted}, but "
        + (f"the voter sets have had {voted.id} only with {its}" if its else "that was no voter")
        + " in any log at hand"
    )
    return [Finding("quorum-state", WARNING, what, _STRANGER, Spot(name, epoch=epoch))]


def judge_epochs(
    data: bytes | Garbled | None, name: str, chain: Chain, *, whole: bool
) -> tuple[Sequence[tuple[int, int]], list[Finding]]:
    """What leader-epoch-checkpoint says, and what is wrong with it.

    `whole`: the log was sound to its end. What the file says of offsets behind that is a matter of
    the log: it may be all that is left to tell of them.
    """
    spot = Spot(name)
    if data is None:
        return (), []
    try:
        entries = decode_leader_epochs(_unpacked(data), name)
    except FormatError as error:
        return (), [Finding("epochs", DAMAGE, str(error), _REBUILT, spot)]
    wrong = _disagreement(entries, chain, whole=whole)
    return entries, [Finding("epochs", DAMAGE, wrong, _REBUILT, spot)] if wrong else []


def _unpacked(data: bytes | Garbled) -> bytes:
    if isinstance(data, Garbled):
        raise data
    return data


def _disagreement(entries: Sequence[tuple[int, int]], chain: Chain, *, whole: bool) -> str | None:
    if any(a >= c or b > d for (a, b), (c, d) in pairwise(entries)):
        return "its epochs or offsets do not ascend"
    log_start = _log_start(entries, chain)
    if log_start > chain.end:
        return None  # behind the log, or its damage
    starts = dict(entries)
    begun = [span for span in chain.spans if span.start <= log_start]
    for span in (*begun[-1:], *chain.spans[len(begun) :]):
        start = starts.pop(span.epoch, None)
        if start is None:
            return f"it lacks epoch {span.epoch}, which begins at offset {span.start} in the log"
        before = span.start <= log_start and start < chain.start
        if start != max(span.start, log_start) and not before:
            return (
                f"it says that epoch {span.epoch} begins at offset {start}, "
                f"but in the log it begins at {span.start}"
            )
    for epoch, start in starts.items() if whole else ():
        if start >= chain.end or start < chain.start:
            continue  # behind the log, or before its start has moved
        return (
            f"it says that epoch {epoch} begins at offset {start}, of which the log "
            f"({chain.start} to {chain.end}) has no record"
        )
    return None


def _log_start(entries: Sequence[tuple[int, int]], chain: Chain) -> int:
    """Where the log begins for its node, by the first of the entries if that can be.

    Kafka lets it begin where its oldest snapshot ends, and deletes whole segments only. A copy of a
    running node may have the entries of before, or snapshots that were about to go.
    """
    first = entries[0][1] if entries else chain.start
    ends = [one.offset for one, _ in chain.replica.snapshots]
    return max(first, chain.start) if first in ends or first < min(ends, default=0) else chain.start
