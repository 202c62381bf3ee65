"""Which cluster of the warehouse the logs of the input are of.

A cluster id does not identify a cluster (`files.histories`). Within the input the source finds out
which logs have a common history. Here these histories are compared with those of the warehouse, by
the first and the last record of each epoch in the table `epochs`:

- An equal batch at the same offset and epoch proves the same history (Raft, log matching). Where
  only other batches are found, or what is committed is contradicted, it is another one.
- What an older release took has no checksums: there the time of the batch counts.
- A history that the warehouse knows keeps its name, also when the beginning of its logs is deleted.
  The first history under an id has the id as its name; others have their origin as a suffix.
- Where nothing decides, the id counts as long as only one history has it. Otherwise the log gets a
  name of its own, and is reported.

An older release took the logs of all clusters with one id for one. Such a cluster of the warehouse
shows when two histories of the input have records in it (`Resolution.mixed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.spark.files.archives import FileReaders
from quorate.spark.files.histories import (
    BatchMark,
    History,
    LogEvidence,
    Relation,
    are_apart,
    named,
    split_name,
)
from quorate.spark.files.naming import NamedHistory, undecided_text
from quorate.spark.source.clusters import refuse_unnamed
from quorate.spark.source.options import SourceOptions
from quorate.spark.source.plan import identify_all, logs_of
from quorate.spark.tables.control import ClusterProgress, load_progress
from quorate.spark.tables.lineage import EpochSpan
from quorate.spark.tables.proof import proven_spans
from quorate.spark.tables.store import TableStore

_FIRST: Final = 4
_LAST: Final = 28
"""How many spans of a cluster are compared, from its beginning and from its end."""


@dataclass(frozen=True, slots=True)
class MixedLog:
    """A log of the warehouse that an older release made of the logs of several clusters."""

    start: int
    """The first offset from which on it is not known to be of one cluster."""
    others: tuple[str, ...]
    """The paths of the other clusters' logs in the input."""


@dataclass(slots=True)
class Resolution:
    """The names that the warehouse has for the histories of the input."""

    names: dict[str, str] = field(default_factory=dict)
    """By path of a log."""
    undecided: dict[str, str] = field(default_factory=dict)
    """By name, why the logs may be of another cluster."""
    mixed: dict[str, MixedLog] = field(default_factory=dict)
    """By cluster of the warehouse."""
    given: dict[str, list[str]] = field(default_factory=dict)
    """By name, the paths of logs, where the source alone would name them otherwise."""
    known: dict[str, frozenset[str]] = field(default_factory=dict)
    """By cluster id, the names that the warehouse has."""
    unreadable: list[str] = field(default_factory=list)
    """Why logs are not read at all, each text with the path."""

    def outdated(self, progress: Mapping[str, ClusterProgress]) -> str | None:
        """The id with which another job has added a cluster meanwhile; None: there is none."""
        changed = (
            id for id, names in self.known.items() if clusters_with_id(id, progress) != names
        )
        return next(changed, None)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A history of the input beside a cluster of the warehouse."""

    relation: Relation
    equal: tuple[int, ...] = ()
    """Offsets at which both have the same batch, ascending."""
    unequal: tuple[int, ...] = ()


def names_in(store: TableStore, options: SourceOptions) -> Resolution:
    """The names in the warehouse of the logs at the paths of these options. Raises SourceError."""
    with FileReaders() as readers:
        logs, archives = logs_of(options, readers)
        found, _ = identify_all(logs, archives, options, readers, every_archive=True)
        if options.cluster_id is None:
            refuse_unnamed(found)
        unnamed = [one for one in found.histories if one.cluster_id not in found.given]
        resolved = resolve(unnamed, load_progress(store.version()))
    resolved.unreadable = [
        one.problem for one in found.by_path.values() if one.unreadable and one.problem
    ]
    return resolved


def resolve(found: Sequence[NamedHistory], progress: Mapping[str, ClusterProgress]) -> Resolution:
    """The names of these histories in the warehouse."""
    resolved = Resolution()
    for cluster_id in dict.fromkeys(one.cluster_id for one in found):
        mine = [one for one in found if one.cluster_id == cluster_id]
        known = {name: progress[name] for name in sorted(clusters_with_id(cluster_id, progress))}
        _resolve_id(cluster_id, mine, known, resolved)
        resolved.known[cluster_id] = frozenset(known)
        paths = [(log.path, one) for one in mine for log in one.history.logs]
        if any(
            one.history.undecided or resolved.names[path] != one.cluster.name for path, one in paths
        ):
            for path, _ in paths:
                resolved.given.setdefault(resolved.names[path], []).append(path)
    return resolved


def clusters_with_id(cluster_id: str, progress: Iterable[str]) -> frozenset[str]:
    """The names of the clusters of the warehouse that have this id."""
    return frozenset(name for name in progress if split_name(name)[0] == cluster_id)


def _resolve_id(
    cluster_id: str,
    found: Sequence[NamedHistory],
    known: Mapping[str, ClusterProgress],
    resolved: Resolution,
) -> None:
    """Resolve the histories under one id.

    1. Compare each with each cluster of the warehouse.
    2. A history that has records of a cluster is that cluster. Where two have that are apart, the
       cluster is mixed, and the one with the first common record keeps its name.
    3. The others are new, but for a single one of which nothing decides beside a single cluster.
    """
    compared = {
        (number, name): _compared(one.history, progress)
        for number, one in enumerate(found)
        for name, progress in known.items()
    }
    owned: dict[int, list[str]] = {number: [] for number in range(len(found))}
    for name in known:  # 2
        same = [n for n in range(len(found)) if compared[n, name].relation is Relation.SAME]
        same.sort(key=lambda n: compared[n, name].equal)
        apart = [n for n in same[1:] if are_apart(found[same[0]].history, found[n].history)]
        for number in same:
            owned[number] += [] if number in apart else [name]
        if apart:
            others = [log.path for n in apart for log in found[n].history.logs]
            start = _mixed_from(compared[same[0], name], [compared[n, name] for n in apart])
            resolved.mixed[name] = MixedLog(start, tuple(others))
    for number, one in enumerate(found):  # 3
        own = sorted(owned[number], key=lambda name: compared[number, name].equal)
        new = named(cluster_id, one.history.origin) if known else one.cluster.name
        own += [new] if new in known else []
        unknown = [n for n in known if compared[number, n].relation is Relation.UNKNOWN]
        if not own and len(found) == len(known) == len(unknown) == 1:
            own = unknown
        if not own and (unknown or one.history.undecided):
            resolved.undecided[new] = undecided_text(cluster_id, [*unknown, *one.cluster.others])
        name = own[0] if own else new
        resolved.names |= {log.path: name for log in one.history.logs}


def _mixed_from(owner: _Comparison, others: Iterable[_Comparison]) -> int:
    """The first offset of a cluster's log that is not known to be the owner's."""
    foreign = [offset for other in others for offset in other.equal]
    wrong = min([*foreign, *owner.unequal])
    return max((offset + 1 for offset in owner.equal if offset < wrong), default=0)


def _compared(history: History, known: ClusterProgress) -> _Comparison:
    equal: set[int] = set()
    unequal: set[int] = set()
    refuted = False
    proven = proven_spans(known.spans, known.unproven)
    for log in history.logs:
        refuted = refuted or _is_refuted(log, proven)
        for span, offset, crc, time in _places(known.spans):
            mark = _batch_at(log, offset)
            if mark is not None and mark.epoch == span.epoch:
                same = mark.crc == crc if crc is not None else mark.time_ms == time // 1000
                (equal if same else unequal).add(offset)
        if len(equal) > 1:
            break
    if equal:
        return _Comparison(Relation.SAME, tuple(sorted(equal)), tuple(sorted(unequal)))
    return _Comparison(Relation.DIFFERENT if unequal or refuted else Relation.UNKNOWN)


def _places(spans: Sequence[EpochSpan]) -> Iterator[tuple[EpochSpan, int, int | None, int]]:
    """(span, offset, checksum or None, time in microseconds) of the records that are compared."""
    chosen = spans if len(spans) <= _FIRST + _LAST else (*spans[:_FIRST], *spans[-_LAST:])
    for span in chosen:
        yield span, span.start, span.first_crc, span.first_time
        yield span, span.end - 1, span.last_crc, span.last_time


def _batch_at(log: LogEvidence, offset: int) -> BatchMark | None:
    """The batch that holds the offset; None where the log does not have it, or not whole."""
    if log.start is None or offset < log.start:
        return None
    found = log.marks_from(offset)
    return found[0] if found and found[0].offset <= offset else None


def _is_refuted(log: LogEvidence, proven: Iterable[EpochSpan]) -> bool:
    """Whether a log contradicts what is known to be committed.

    - It has a committed offset from a later epoch: a leader of that epoch would have had the record.
    - It begins at offset 0, and with another epoch.
    - It is committed before its first offset, or up to a snapshot, with earlier epochs than here.
    """
    ends = [(end.offset, end.epoch) for end in log.snapshots]
    if log.start and log.first is not None:
        ends.append((log.start, log.first.epoch))
    for span in proven:
        if any(span.start < offset and span.epoch > epoch for offset, epoch in ends):
            return True
        for offset in {span.start, max(span.start, log.start or 0), span.end - 1}:
            mark = _batch_at(log, offset) if offset < span.end else None
            if mark is not None and _is_other(offset, mark.epoch, span.epoch):
                return True
    return False


def _is_other(offset: int, epoch: int, committed: int) -> bool:
    return epoch > committed or (offset == 0 and epoch != committed)
