"""The replicas below the given paths, with the files beside their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_segment_name,
)
from quorate.spark.audit.model import DAMAGE, WARNING, Finding, ReplicaFiles, Spot
from quorate.spark.files.archives import CorruptArchiveError, FileReaders, archive_members
from quorate.spark.files.layout import (
    UNKNOWN_CLUSTER,
    UNKNOWN_NODE,
    LogDirectory,
    log_directories,
    nested_archives,
    single_file,
)
from quorate.spark.files.naming import (
    ClusterName,
    ClusterPaths,
    by_path,
    check_given,
    given_names,
    named_histories,
)
from quorate.spark.files.paths import (
    SourceError,
    SourceFile,
    by_directory,
    expand,
    file_path,
    is_archive,
    list_files,
    parent,
)

_NO_META: Final = (
    "no meta.properties beside it says of which cluster it is, so it cannot be compared with the "
    "others"
)
_META: Final = (
    "Copy the file again, or restore it: without it the node does not start, and the cluster of its "
    "log is unknown (for a log that is audited alone, --cluster-id names it)"
)
_NEWER: Final = (
    "A newer Kafka may have written the file: audit with a newer release. Keep the file. The log was "
    "compared with no other, as its cluster is unknown (for a log that is audited alone, --cluster-id "
    "names it)"
)
_ARCHIVE: Final = (
    "What follows in the archive was not audited. Copy the archive again, or make a new one from the "
    "directories of the nodes"
)
_PACKED: Final = "Its logs were not audited. Unpack the outer archive, and audit the directory"
Folders = Mapping[str, Mapping[str, SourceFile]]


def find_replicas(
    paths: Iterable[str], cluster_id: str | None = None, clusters: ClusterPaths = ()
) -> list[ReplicaFiles]:
    """Every replica below the paths (directories, archives, single files; patterns), each once.

    cluster_id: for logs without a meta.properties beside them; clusters: names for logs by their
    paths. Logs of one id whose histories differ are of several clusters (`histories`).

    Raises SourceError when a path holds no metadata log, or the cluster of every log is unknown.
    """
    found: dict[tuple[str, bool], ReplicaFiles] = {}
    with FileReaders() as readers:
        for pattern in paths:
            refusals: list[SourceError] = []
            replicas: list[ReplicaFiles] = []
            for path in expand(pattern):
                try:
                    replicas += _below(path, readers)
                except SourceError as error:
                    refusals.append(error)
            if not replicas:
                raise refusals[0]
            for replica in replicas:
                found[replica.path, replica.complete] = replica
        check_given(found.values(), clusters)
        given = given_names(found.values(), clusters)
        replicas = [_given(one, given.get(one.path)) for one in found.values()]
        known = [_named(replica, cluster_id) for replica in _known(replicas, cluster_id)]
        sound = [one for one in known if one.problem is None]
        names = by_path(named_histories(sound, readers, set(given.values())))
    return [_of_cluster(one, names.get(one.path)) for one in known]


def _given(replica: ReplicaFiles, name: str | None) -> ReplicaFiles:
    """The replica under the name that was given for it, which a meta.properties need not confirm."""
    if name is None:
        return replica
    problem = None if replica.complete else replica.problem
    return replace(replica, cluster_id=name, problem=problem)


def _of_cluster(replica: ReplicaFiles, cluster: ClusterName | None) -> ReplicaFiles:
    if cluster is None or not cluster.others:
        return replica
    return replace(replica, cluster_id=cluster.name, cluster=cluster)


def _known(replicas: list[ReplicaFiles], cluster_id: str | None) -> list[ReplicaFiles]:
    """The replicas, where each one of unknown cluster gets a cluster (and a finding) of its own.

    So none is compared with a log of another cluster. Raises SourceError where all are unknown.
    """
    if cluster_id is not None or len(replicas) == 1:
        return replicas
    unknown = [one for one in replicas if one.cluster_id == UNKNOWN_CLUSTER]
    if len(unknown) == len(replicas) and not any(one.problem for one in unknown):
        raise SourceError(
            f"{unknown[0].path} and {len(unknown) - 1} more: {_NO_META}. Copy it too, or audit one "
            "cluster at a time and name it (--cluster-id)"
        )
    return [
        replace(
            one,
            cluster_id=f"{UNKNOWN_CLUSTER} ({one.path})" if len(unknown) > 1 else UNKNOWN_CLUSTER,
            problem=one.problem or _of_meta(f"{one.path}: {_NO_META}"),
        )
        if one.cluster_id == UNKNOWN_CLUSTER
        else one
        for one in replicas
    ]


def _named(replica: ReplicaFiles, cluster_id: str | None) -> ReplicaFiles:
    if cluster_id is None or replica.cluster_id != UNKNOWN_CLUSTER:
        return replica
    return replace(replica, cluster_id=cluster_id)


def _below(path: str, readers: FileReaders) -> list[ReplicaFiles]:
    """The replicas at one path, without a pattern. Raises SourceError where it has none."""
    is_directory, files = list_files(path)
    packed = [file for file in files.values() if is_archive(file.path)]
    if not is_directory and not packed:
        (file,) = files.values()
        above = _meta(f"{parent(parent(file.path))}/{META_PROPERTIES}")
        log = single_file(file, next(iter(above.values()), None), readers.read_small)
        return [_replica(log, {})]
    files = dict(files)
    damaged: list[ReplicaFiles] = []
    for archive in packed:
        try:
            files |= archive_members(archive)
        except CorruptArchiveError as error:
            damaged.append(_damaged_archive(error))
            files |= error.found
    if is_directory:
        files |= _meta(f"{parent(file_path(path)).rstrip('/')}/{META_PROPERTIES}")
    logs, refusals = log_directories(files, readers.read_small, include_empty=True)
    if not (logs or damaged):
        refusals += [str(log.problem) for log in nested_archives(files)]
        nothing = f"{path}: holds no metadata log: no .log or .checkpoint files of one"
        raise SourceError(refusals[0] if refusals else nothing)
    folders = by_directory(files)
    inner = [_packed(log) for log in nested_archives(files)]
    return [*damaged, *inner, *(_replica(log, folders) for log in logs)]


def _meta(path: str) -> dict[str, SourceFile]:
    try:
        _, found = list_files(path)
    except SourceError:
        return {}
    return found


def _of_meta(what: str, *, newer: bool = False) -> Finding:
    if newer:
        return Finding("meta.properties", WARNING, what, _NEWER)
    return Finding("meta.properties", DAMAGE, what, _META)


def _damaged_archive(error: CorruptArchiveError) -> ReplicaFiles:
    """A stand-in for the replicas in the unreadable part of an archive."""
    path = error.archive.path
    spot = Spot(path, position=error.position)
    wrong = Finding("archive", DAMAGE, str(error), _ARCHIVE, spot)
    return ReplicaFiles(UNKNOWN_CLUSTER, UNKNOWN_NODE, path, problem=wrong, complete=False)


def _packed(log: LogDirectory) -> ReplicaFiles:
    """A stand-in for the replicas in an archive within an archive."""
    wrong = Finding("archive", DAMAGE, str(log.problem), _PACKED, Spot(log.path, position=0))
    return ReplicaFiles(log.cluster_id, log.node_id, log.path, problem=wrong, complete=False)


def _replica(log: LogDirectory, folders: Folders) -> ReplicaFiles:
    beside = folders.get(log.path, {})
    indexes = (parse_segment_name(name, INDEX_SUFFIX) for name in beside)
    return ReplicaFiles(
        log.cluster_id,
        log.node_id,
        log.path,
        log.directory_id,
        log.segments,
        log.snapshots,
        beside.get(QUORUM_STATE),
        beside.get(LEADER_EPOCH_CHECKPOINT),
        tuple(sorted(base for base in indexes if base is not None)),
        None if log.problem is None else _of_meta(log.problem, newer=log.newer),
        beside.get(PARTITION_METADATA),
        folders.get(parent(log.path), {}).get(BOOTSTRAP_CHECKPOINT),
        log.complete,
    )
