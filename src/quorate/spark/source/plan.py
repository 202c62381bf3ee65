"""What to read: options and paths become pieces of files, and pieces become partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.datasource import Filter, InputPartition

from quorate.formats.batch import BatchView
from quorate.formats.files import META_PROPERTIES
from quorate.spark.decode.rows import Origin
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
    expand,
    file_path,
    is_archive,
    list_files,
    parent,
    split,
)
from quorate.spark.files.scan import scan
from quorate.spark.source.filters import Span, may_hold
from quorate.spark.source.options import Options

_OPEN_COST: Final = 64 * 1024
"""What opening a file is worth in bytes, so that a partition does not get too many."""
_HIGHEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """The batches of a file that begin in the range [start, end) of its bytes."""

    origin: Origin
    file: File
    start: int
    end: int
    next_base: int | None = None
    """Base offset of the next segment: where this one should end. None: not known."""
    note: str | None = None
    """What is wrong with the file as such; told at position 0."""
    unreadable: bool = False
    """Only the note is to be told."""

    @property
    def spans(self) -> dict[str, Span]:
        """What is known of the rows before anything is read; of offsets, where they are known."""
        known = {name: (value, value) for name, value in self.origin.constants().items()}
        if self.origin.segment is not None:
            last = _HIGHEST if self.next_base is None else self.next_base - 1
            known["offset"] = (self.origin.segment, max(last, self.origin.segment))
        return known


@dataclass(frozen=True, slots=True)
class Pieces(InputPartition):
    """A partition: pieces that one task reads, or an archive that must be read in one go."""

    pieces: tuple[Piece, ...] = ()
    archive: File | None = None


def partitions(options: Options, filters: Sequence[Filter] = ()) -> list[Pieces]:
    """The partitions of everything that is to be read; raises SourceError.

    Directories are listed here; the workers look into compressed tar archives, and into those that
    are not sound.
    """
    with Shelf() as shelf:
        logs, archives = logs_of(options, shelf)
        pieces = list(pieces_of(logs, options, shelf))
    chosen = [piece for piece in pieces if may_hold(filters, piece.spans)]
    return [
        *(Pieces(archive=archive) for archive in archives),
        *map(Pieces, _packed(chosen, options.partition_bytes)),
    ]


def logs_of(options: Options, shelf: Shelf) -> tuple[list[LogDirectory], list[File]]:
    """The logs at the paths, and the archives that are left to the workers, each once.

    Raises SourceError.
    """
    logs: list[LogDirectory] = []
    archives: list[File] = []
    for pattern in options.paths:
        found, packed = _logs_of_pattern(pattern, shelf)
        logs += found
        archives += packed
    return _merged(logs), list(dict.fromkeys(archives))


def archive_pieces(archive: File, options: Options, shelf: Shelf) -> list[Piece]:
    """The pieces of an archive; of one that is not sound what is wrong with it, and its good part.

    Raises SourceError when it holds no metadata log.
    """
    try:
        return list(pieces_of(_logs_in_archive(archive, shelf), options, shelf))
    except UnsoundArchive as error:
        pieces, note = [], str(error)
        try:
            logs, _ = log_directories(error.found, shelf.read_small)
            logs += packed_twice(error.found) if logs else []
            lost = None if options.cluster_id else _without_cluster(logs)
            if lost is not None:
                note += (
                    f"; {lost.path}: what says of which cluster it is stands behind the damage: "
                    "name it by the option clusterId"
                )
            else:
                pieces = list(pieces_of(logs, options, shelf))
        except SourceError as refusal:
            note += f"; {refusal}"
        origin = Origin(
            options.cluster_id or UNKNOWN_CLUSTER,
            UNKNOWN_NODE if options.node_id is None else options.node_id,
            archive.name,
            segment=0,
        )
        if pieces:
            first = pieces[0].origin  # a log stands before what is packed twice
            origin = replace(origin, cluster_id=first.cluster_id, node_id=first.node_id)
        return [Piece(origin, archive, 0, 0, note=note, unreadable=True), *pieces]


def _without_cluster(logs: Iterable[LogDirectory]) -> LogDirectory | None:
    """A log beside which no meta.properties was found: it may be of any cluster."""
    unnamed = (log for log in logs if log.cluster_id == UNKNOWN_CLUSTER and log.problem is None)
    return next(unnamed, None)


def _logs_of_pattern(pattern: str, shelf: Shelf) -> tuple[list[LogDirectory], list[File]]:
    """As _logs_of; of the paths that match a pattern, one must hold a log."""
    logs: list[LogDirectory] = []
    archives: list[File] = []
    refusal: SourceError | None = None
    for path in expand(pattern):
        try:
            found, packed = _logs_of(path, shelf)
        except SourceError as error:
            if path == pattern:
                raise
            refusal = refusal or error
        else:
            logs += found
            archives += packed
    if refusal is not None and not (logs or archives):
        raise refusal
    return logs, archives


def _logs_of(path: str, shelf: Shelf) -> tuple[list[LogDirectory], list[File]]:
    """The logs below a path, and the archives that are left to the workers."""
    is_directory, files = list_files(path)
    packed = [file for file in files.values() if is_archive(file.path)]
    found: list[LogDirectory] = []
    left: list[File] = []
    for file in packed:
        if not file.path.lower().endswith((".tar", ".zip")):
            left.append(file)
            continue
        try:
            found += _logs_in_archive(file, shelf)
        except UnsoundArchive:
            left.append(file)  # the worker that opens it tells why
    if not is_directory:
        if not packed:
            (file,) = files.values()
            found.append(single_file(file, _meta_above(split(file.path)[0]), shelf.read_small))
        return found, left
    above = _meta_above(path)
    beside = {} if above is None else {above.path: above}
    logs, refusals = log_directories(files | beside, shelf.read_small)
    if not (logs or packed):
        raise SourceError(_nothing(path, len(files), refusals))
    return found + logs, left


def _logs_in_archive(archive: File, shelf: Shelf) -> list[LogDirectory]:
    """Raises UnsoundArchive, and SourceError when it holds no metadata log."""
    files = members(archive)
    logs, refusals = log_directories(files, shelf.read_small)
    inner = packed_twice(files)
    if not logs:
        refusals = refusals or [str(one.problem) for one in inner]
        raise SourceError(_nothing(archive.path, len(files), refusals))
    return logs + inner


def _nothing(path: str, count: int, refusals: Sequence[str]) -> str:
    if refusals:
        more = f" (and {len(refusals) - 1} more like it)" if len(refusals) > 1 else ""
        return refusals[0] + more
    if not count:
        return f"{path}: the directory is empty"
    return (
        f"{path}: holds no metadata log: no directory __cluster_metadata-0 with .log or "
        f".checkpoint files among {count} files"
    )


def _meta_above(folder: str) -> File | None:
    """meta.properties of the log directory that this may be a partition directory of."""
    path = f"{parent(file_path(folder)).rstrip('/')}/{META_PROPERTIES}"
    try:
        _, found = list_files(path)
    except SourceError:
        return None
    return next(iter(found.values()), None)


def _merged(logs: Iterable[LogDirectory]) -> list[LogDirectory]:
    """The logs, each once, although two paths may have led to it."""
    by_path: dict[str, LogDirectory] = {}
    single = []
    for log in logs:
        if log.complete:
            by_path[log.path] = log
        else:
            single.append(log)
    unique = {(log.segments, log.snapshots): log for log in single if log.path not in by_path}
    return [*by_path.values(), *unique.values()]


def pieces_of(logs: Sequence[LogDirectory], options: Options, shelf: Shelf) -> Iterator[Piece]:
    """The pieces of these logs; raises SourceError where clusters would be mixed."""
    logs = [_overridden(log, options) for log in _identified(logs, options)]
    found = strangers(logs, shelf)
    for log in logs:
        yield from _pieces_of_log(log, options, found.get(log.path))


def _identified(logs: Sequence[LogDirectory], options: Options) -> Sequence[LogDirectory]:
    """The logs, when it is clear which clusters they are of; else raises SourceError."""
    unknown = [log for log in logs if log.cluster_id == UNKNOWN_CLUSTER and log.problem is None]
    known = {log.cluster_id: log.path for log in logs if log.cluster_id != UNKNOWN_CLUSTER}
    if options.cluster_id is None:
        paths = sorted({log.path for log in unknown})
        if paths and len(paths) + len(known) > 1:
            others = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            raise SourceError(
                f"{paths[0]}{others}: no meta.properties beside it says of which cluster it is. "
                "Copy it too, or read one cluster at a time with the option clusterId"
            )
    elif len(known) > 1:
        named = ", ".join(f"{cluster} in {path}" for cluster, path in sorted(known.items()))
        raise SourceError(
            f"option clusterId={options.cluster_id} would mix {len(known)} clusters under one "
            f"id: {named}"
        )
    return logs


def _overridden(log: LogDirectory, options: Options) -> LogDirectory:
    if options.cluster_id is not None:
        problem = log.problem if log.packed else None
        log = replace(log, cluster_id=options.cluster_id, problem=problem)
    return log if options.node_id is None else replace(log, node_id=options.node_id)


def strangers(logs: Sequence[LogDirectory], shelf: Shelf) -> dict[str, str]:
    """By path: why a log is not of the cluster that its meta.properties names.

    Replicas of one cluster have the same bytes at the same offset and epoch, so the first batches
    of their logs, where they are sound, give away a foreign one.
    """
    clusters: dict[str, list[LogDirectory]] = {}
    for log in logs:
        if log.segments and log.complete:
            clusters.setdefault(log.cluster_id, []).append(log)
    found: dict[str, str] = {}
    for cluster, replicas in clusters.items():
        first_seen: dict[tuple[int, int], tuple[BatchView, LogDirectory]] = {}
        for log in replicas if len(replicas) > 1 else ():
            file = log.segments[0][1]
            first = next(iter(scan(shelf.reader(file), file.size, 0, 1)), None)
            if not isinstance(first, BatchView):
                continue
            same, other = first_seen.setdefault((first.base_offset, first.epoch), (first, log))
            if same.crc != first.crc:
                found[log.path] = (
                    f"the first batch differs from that of {other.path} at the same offset and "
                    f"epoch: two clusters under the one id {cluster}"
                )
    return found


def _pieces_of_log(log: LogDirectory, options: Options, stranger: str | None) -> Iterator[Piece]:
    origin = Origin(log.cluster_id, log.node_id, "")
    if log.problem is not None:
        file = (*log.segments, *log.snapshots)[0][1]
        origin = replace(origin, file=file.name, segment=0)
        yield Piece(origin, file, 0, 0, note=log.problem, unreadable=True)
        return
    if "snapshot" in options.kinds:
        for snapshot_id, file in log.snapshots:
            here = replace(origin, file=file.name, snapshot_id=snapshot_id)
            yield from _ranges(Piece(here, file, 0, file.size), options.partition_bytes)
    if "log" in options.kinds:
        bases: list[int | None] = [base for base, _ in log.segments[1:]]
        note = log.unfounded or stranger
        for (base, file), next_base in zip(log.segments, [*bases, None], strict=False):
            here = replace(origin, file=file.name, segment=base)
            piece = Piece(here, file, 0, file.size, next_base, note)
            note = None
            yield from _ranges(piece, options.partition_bytes)


def _ranges(piece: Piece, most: int) -> Iterator[Piece]:
    size = piece.file.size
    if size <= most or not piece.file.seekable:
        yield piece
        return
    for start in range(0, size, most):
        note = piece.note if start == 0 else None
        yield replace(piece, start=start, end=min(start + most, size), note=note)


def _packed(pieces: Sequence[Piece], most: int) -> Iterator[tuple[Piece, ...]]:
    """Neighbours together until a partition is full."""
    waiting: list[Piece] = []
    size = 0
    for piece in pieces:
        cost = piece.end - piece.start + _OPEN_COST
        if waiting and size + cost > most + _OPEN_COST:
            yield tuple(waiting)
            waiting, size = [], 0
        waiting.append(piece)
        size += cost
    if waiting:
        yield tuple(waiting)
