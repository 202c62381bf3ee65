"""Which replicas there are below the given paths, with the small files beside their logs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from quorate.base.ids import Uuid
from quorate.formats.errors import FormatError
from quorate.formats.files import (
    BOOTSTRAP_CHECKPOINT,
    INDEX_SUFFIX,
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    QUORUM_STATE,
    parse_segment_name,
)
from quorate.formats.meta_properties import decode_meta_properties
from quorate.spark.audit.model import DAMAGE, Finding, Replica, Spot
from quorate.spark.files.archives import Shelf, UnsoundArchive, members
from quorate.spark.files.layout import (
    UNKNOWN_CLUSTER,
    UNKNOWN_NODE,
    LogDirectory,
    log_directories,
    packed_twice,
    single_file,
)
from quorate.spark.files.paths import (
    File,
    SourceError,
    by_directory,
    expand,
    file_path,
    is_archive,
    list_files,
    parent,
)

_NO_META: Final = (
    "no meta.properties beside it says of which cluster it is, so it cannot be held against the "
    "others"
)
_META: Final = (
    "Copy the file again, or put it back: without it the node does not start, and nobody can say "
    "of which cluster its log is (of one that is audited alone --cluster-id can)"
)
_ARCHIVE: Final = (
    "Nothing is known of what stands behind that. Copy the archive again, or pack the directories "
    "anew from the nodes"
)
_PACKED: Final = "Nothing is known of the logs in it. Unpack the outer one, and audit the directory"
Folders = Mapping[str, Mapping[str, File]]


def find_replicas(paths: Iterable[str], cluster_id: str | None = None) -> list[Replica]:
    """Every replica below the paths (directories, archives, single files; patterns), each once.

    `cluster_id` is taken for logs without a meta.properties beside them. Raises SourceError when a
    path holds no metadata log, or it is of no log clear to which cluster it belongs.
    """
    found: dict[tuple[str, bool], Replica] = {}
    with Shelf() as shelf:
        for pattern in paths:
            refusals: list[SourceError] = []
            replicas: list[Replica] = []
            for path in expand(pattern):
                try:
                    replicas += _below(path, shelf)
                except SourceError as error:
                    refusals.append(error)
            if not replicas:
                raise refusals[0]
            for replica in replicas:
                found[replica.path, replica.complete] = replica
    return [_named(replica, cluster_id) for replica in _known(list(found.values()), cluster_id)]


def _known(replicas: list[Replica], cluster_id: str | None) -> list[Replica]:
    """Each with its cluster: one of which that is not known is held against no other.

    Raises SourceError where it is known of none of them.
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


def _named(replica: Replica, cluster_id: str | None) -> Replica:
    if cluster_id is None or replica.cluster_id != UNKNOWN_CLUSTER:
        return replica
    return replace(replica, cluster_id=cluster_id)


def _below(path: str, shelf: Shelf) -> list[Replica]:
    is_directory, files = list_files(path)
    packed = [file for file in files.values() if is_archive(file.path)]
    if not is_directory and not packed:
        (file,) = files.values()
        above = _meta(f"{parent(parent(file.path))}/{META_PROPERTIES}")
        log = single_file(file, next(iter(above.values()), None), shelf.read_small)
        return [_replica(log, {}, shelf)]
    files = dict(files)
    unsound: list[Replica] = []
    for archive in packed:
        try:
            files |= members(archive)
        except UnsoundArchive as error:
            unsound.append(_unsound(error))
            files |= error.found
    if is_directory:
        files |= _meta(f"{parent(file_path(path)).rstrip('/')}/{META_PROPERTIES}")
    logs, refusals = log_directories(files, shelf.read_small, bare=True)
    if not (logs or unsound):
        refusals += [str(log.problem) for log in packed_twice(files)]
        nothing = f"{path}: holds no metadata log: no .log or .checkpoint files of one"
        raise SourceError(refusals[0] if refusals else nothing)
    folders = by_directory(files)
    inner = [_packed(log) for log in packed_twice(files)]
    return [*unsound, *inner, *(_replica(log, folders, shelf) for log in logs)]


def _meta(path: str) -> dict[str, File]:
    try:
        _, found = list_files(path)
    except SourceError:
        return {}
    return found


def _of_meta(what: str) -> Finding:
    return Finding("meta.properties", DAMAGE, what, _META)


def _unsound(error: UnsoundArchive) -> Replica:
    """What stands for the replicas in the part of an archive that cannot be read."""
    path = error.archive.path
    spot = Spot(path, position=error.position)
    wrong = Finding("archive", DAMAGE, str(error), _ARCHIVE, spot)
    return Replica(UNKNOWN_CLUSTER, UNKNOWN_NODE, path, problem=wrong, complete=False)


def _packed(log: LogDirectory) -> Replica:
    """What stands for the replicas in an archive that is in an archive."""
    wrong = Finding("archive", DAMAGE, str(log.problem), _PACKED, Spot(log.path, position=0))
    return Replica(log.cluster_id, log.node_id, log.path, problem=wrong, complete=False)


def _replica(log: LogDirectory, folders: Folders, shelf: Shelf) -> Replica:
    beside = folders.get(log.path, {})
    meta = folders.get(parent(log.path), {}).get(META_PROPERTIES) or beside.get(META_PROPERTIES)
    indexes = (parse_segment_name(name, INDEX_SUFFIX) for name in beside)
    return Replica(
        log.cluster_id,
        log.node_id,
        log.path,
        _directory_id(meta, shelf),
        log.segments,
        log.snapshots,
        beside.get(QUORUM_STATE),
        beside.get(LEADER_EPOCH_CHECKPOINT),
        tuple(sorted(base for base in indexes if base is not None)),
        None if log.problem is None else _of_meta(log.problem),
        beside.get(PARTITION_METADATA),
        folders.get(parent(log.path), {}).get(BOOTSTRAP_CHECKPOINT),
        log.complete,
    )


def _directory_id(meta: File | None, shelf: Shelf) -> Uuid | None:
    if meta is None:
        return None
    try:
        return decode_meta_properties(shelf.read_small(meta), meta.name).directory_id
    except FormatError:
        return None  # told as the replica's problem
