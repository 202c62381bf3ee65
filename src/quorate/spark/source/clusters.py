"""Whose the logs of a read are: by meta.properties, by options, by their histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quorate.spark.files.archives import FileReaders
from quorate.spark.files.layout import UNKNOWN_CLUSTER, LogDirectory
from quorate.spark.files.naming import (
    HOW_TO_NAME,
    NamedHistory,
    by_path,
    given_names,
    named_histories,
)
from quorate.spark.files.paths import SourceError
from quorate.spark.source.options import SourceOptions


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose a log is."""

    cluster_id: str
    problem: str | None = None
    """What is doubtful about that; it gets a row."""
    unreadable: bool = False
    """Whether no record is read, since nothing says of which cluster the log is."""


Clusters = Mapping[str, Identity]
"""By path of the log."""


@dataclass(frozen=True, slots=True)
class Identified:
    """Whose the logs of a read are."""

    by_path: Clusters
    histories: Sequence[NamedHistory] = ()
    """Of the logs that are read; those with a name that was given are in `given`."""
    given: frozenset[str] = frozenset()


def identify(
    logs: Sequence[LogDirectory], options: SourceOptions, readers: FileReaders
) -> Identified:
    """Whose the logs are.

    1. The option `clusters` names logs by their paths, the option `clusterId` all others.
    2. Logs without a meta.properties are of no cluster. One alone is read all the same, as
       `unknown` (not by a job: `refuse_unnamed`); beside others it only gets a row with its problem.
       Raises SourceError where there are only such.
    3. Logs under one id whose histories differ are of several clusters (`histories`).
    """
    given = given_names(logs, options.clusters)
    if options.cluster_id is not None:
        _refuse_mixed([log for log in logs if log.path not in given], options.cluster_id)
    found: dict[str, Identity] = {}
    known: list[LogDirectory] = []
    unknown: list[LogDirectory] = []
    for log in logs:
        id = given.get(log.path) or options.cluster_id or log.cluster_id
        found[log.path] = Identity(id, log.problem, log.problem is not None)
        if log.problem is not None and (log.unreadable or id == log.cluster_id):
            continue  # its row says why it is not read
        if id == UNKNOWN_CLUSTER:
            unknown.append(log)
        else:
            known.append(replace(log, cluster_id=id))
    for path in _unknown_paths(unknown, known):
        found[path] = Identity(UNKNOWN_CLUSTER, f"{path}: {NO_META}", True)
    names = frozenset(given.values())
    histories = named_histories(known, readers, names)
    for path, cluster in by_path(histories).items():
        found[path] = Identity(cluster.name, cluster.why_undecided)
    return Identified(found, histories, names)


NO_META: Final = (
    "no meta.properties beside it says of which cluster it is: copy it too, or " + HOW_TO_NAME
)
"""Of a log that may be of any cluster."""


def _unknown_paths(unknown: Sequence[LogDirectory], known: Sequence[LogDirectory]) -> list[str]:
    """The paths of the logs that are not read, since they may be of any cluster.

    Raises SourceError where several logs were given and none has a cluster.
    """
    paths = sorted({log.path for log in unknown})
    if paths and known:
        return paths
    if len(paths) > 1:
        raise SourceError(f"{paths[0]} and {len(paths) - 1} more: {NO_META}")
    return []


def refuse_unnamed(found: Identified) -> None:
    """Raise SourceError where a log is read of which nothing says whose it is.

    A warehouse would take the next such log for another replica of the same cluster.
    """
    for path, identity in found.by_path.items():
        is_unnamed = identity.cluster_id == UNKNOWN_CLUSTER and not identity.unreadable
        if is_unnamed and UNKNOWN_CLUSTER not in found.given:
            raise SourceError(f"{path}: {NO_META}")


def _refuse_mixed(logs: Iterable[LogDirectory], cluster_id: str) -> None:
    """Raise SourceError where the option clusterId would replace several cluster ids."""
    ids = {log.cluster_id: log.path for log in logs if log.cluster_id != UNKNOWN_CLUSTER}
    if len(ids) > 1:
        named = ", ".join(f"{cluster} in {path}" for cluster, path in sorted(ids.items()))
        raise SourceError(
            f"option clusterId={cluster_id} would mix {len(ids)} clusters under one id: {named}"
        )
