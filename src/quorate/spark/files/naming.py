"""The names of clusters: the cluster id, and where several histories have it, the origin of each.

A name that is given for a path counts there, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.spark.files.archives import FileReaders
from quorate.spark.files.evidence import LogFiles, evidence_of
from quorate.spark.files.histories import History, are_apart, histories, named, split_name
from quorate.spark.files.paths import SourceError, expand, file_path

ClusterPaths = tuple[tuple[str, tuple[str, ...]], ...]
"""(name, paths): the logs at and below the paths are of the cluster of this name."""

HOW_TO_NAME: Final = "name it (--cluster NAME=PATH, option clusters)"


@dataclass(frozen=True, slots=True)
class ClusterName:
    """The cluster that a log is of."""

    name: str
    others: tuple[str, ...] = ()
    """The names of the other clusters with its id; undecided: those that it may be of."""
    undecided: bool = False
    """Whether the log may be of one of these instead."""

    @property
    def why_undecided(self) -> str | None:
        """Why the log may be of another cluster; None where it is decided."""
        return undecided_text(split_name(self.name)[0], self.others) if self.undecided else None


@dataclass(frozen=True, slots=True)
class NamedHistory:
    """Logs with a common history, and the name of their cluster."""

    cluster_id: str
    """As the logs have it, or as it was given."""
    cluster: ClusterName
    history: History


def undecided_text(cluster_id: str, others: Iterable[str]) -> str:
    """Why a log may be of one of these clusters, as text."""
    return (
        f"several clusters have the id {cluster_id}, and nothing shows whether this log is one of "
        f"{', '.join(sorted(others))}: {HOW_TO_NAME}"
    )


def named_histories(
    logs: Iterable[LogFiles], readers: FileReaders, given: Collection[str] = ()
) -> list[NamedHistory]:
    """The histories of these logs; a log alone under its id is not read.

    given: ids that are names which the user gave

    Raises SourceError where one name is given to logs of two histories.
    """
    by_id: dict[str, list[LogFiles]] = {}
    for log in logs:
        by_id.setdefault(log.cluster_id, []).append(log)
    found: list[NamedHistory] = []
    for cluster_id, replicas in by_id.items():
        evidence = evidence_of(replicas, readers)
        groups = [History(evidence)] if len(evidence) == 1 else histories(evidence)
        if len(groups) == 1:
            name = _name_alone(cluster_id, groups[0], given)
            found.append(NamedHistory(cluster_id, ClusterName(name), groups[0]))
        elif cluster_id in given:
            raise SourceError(_two_histories(cluster_id, groups))
        else:
            found += _named_apart(cluster_id, groups)
    return found


def _name_alone(cluster_id: str, history: History, given: Collection[str]) -> str:
    """The id; with its origin where a log that it does not decide was given that name."""
    if any(split_name(name)[0] == cluster_id != name for name in given):
        name = named(cluster_id, history.origin)
        return name if name in given else cluster_id
    return cluster_id


def by_path(found: Iterable[NamedHistory]) -> dict[str, ClusterName]:
    """Return, by path of a log, the cluster that it is of."""
    return {log.path: one.cluster for one in found for log in one.history.logs}


def given_names(logs: Iterable[LogFiles], given: ClusterPaths) -> dict[str, str]:
    """Return, by path, the name that is given for the log; the longest path counts."""
    places = [(place, name) for name, paths in given for path in paths for place in _at(path)]
    places.sort(key=lambda one: -len(one[0]))
    found: dict[str, str] = {}
    for log in logs if places else ():
        name = next((name for place, name in places if _is_at(log, place)), None)
        if name is not None:
            found[log.path] = name
    return found


def check_given(logs: Collection[LogFiles], given: ClusterPaths) -> None:
    """Raise SourceError for a path, given with a name, at which there is no log."""
    for name, paths in given:
        for path in paths:
            places = _at(path)
            if not any(_is_at(log, place) for log in logs for place in places):
                raise SourceError(f"cluster {name}: no metadata log is at {path}")


def _at(path: str) -> list[str]:
    return [file_path(one).rstrip("/") for one in expand(path)]


def _is_at(log: LogFiles, place: str) -> bool:
    """Whether a log is at a path or below it, or is of the file at it."""
    if log.path == place or log.path.startswith((f"{place}/", f"{place}!")):
        return True
    return any(file.name == place for _, file in (*log.segments, *log.snapshots))


def _named_apart(cluster_id: str, groups: Sequence[History]) -> list[NamedHistory]:
    names = [named(cluster_id, group.origin) for group in groups]
    found = []
    for name, group in zip(names, groups, strict=True):
        # what nothing decides is no further cluster to one that is decided
        others = tuple(
            other_name
            for other_name, other in zip(names, groups, strict=True)
            if other is not group and are_apart(group, other) != group.undecided
        ) or tuple(other for other in names if other != name)
        found.append(NamedHistory(cluster_id, ClusterName(name, others, group.undecided), group))
    return found


def _two_histories(name: str, groups: Sequence[History]) -> str:
    first, second = (group.logs[0].path for group in groups[:2])
    return f"cluster {name}: the logs of {first} and {second} have no common history: name two clusters"
