"""Plans a read: paths and options become ranges of files, and ranges become partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql.datasource import Filter, InputPartition

from quorate.formats.files import META_PROPERTIES
from quorate.spark.decode.rows import Origin
from quorate.spark.files.archives import CorruptArchiveError, FileReaders, archive_members
from quorate.spark.files.layout import (
    UNKNOWN_CLUSTER,
    UNKNOWN_NODE,
    LogDirectory,
    log_directories,
    nested_archives,
    single_file,
    without_log,
)
from quorate.spark.files.naming import check_given
from quorate.spark.files.paths import (
    NoLogError,
    SourceError,
    SourceFile,
    expand,
    file_path,
    is_archive,
    list_files,
    parent,
    split,
)
from quorate.spark.source.clusters import Clusters, Identified, Identity, identify
from quorate.spark.source.filters import ValueRange, may_match
from quorate.spark.source.options import SourceOptions

_OPEN_COST: Final = 64 * 1024
"""The cost of opening a file, in bytes, so that a partition does not get too many files."""
_HIGHEST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class FileRange:
    """The batches of a file that begin in the bytes [start, end)."""

    origin: Origin
    file: SourceFile
    start: int
    end: int
    next_base: int | None = None
    """The base offset of the next segment, where this one should end; None: not known."""
    note: str | None = None
    """A problem of the file as a whole; it gets a row at position 0."""
    unreadable: bool = False
    """Whether the note is all that there is: no bytes are read."""

    @property
    def spans(self) -> dict[str, ValueRange]:
        """The known range of values of columns, before any byte is read."""
        known = {name: (value, value) for name, value in self.origin.constants().items()}
        if self.origin.segment is not None:
            last = _HIGHEST if self.next_base is None else self.next_base - 1
            known["offset"] = (self.origin.segment, max(last, self.origin.segment))
        return known


@dataclass(frozen=True, slots=True)
class ReadPartition(InputPartition):
    """The ranges that one task reads, or an archive that one task must read as a whole."""

    ranges: tuple[FileRange, ...] = ()
    archive: SourceFile | None = None
    clusters: Clusters | None = None
    """Of the logs in the archive; None where the task finds out."""


def partitions(options: SourceOptions, filters: Sequence[Filter] = ()) -> list[ReadPartition]:
    """The partitions of a read. Raises SourceError.

    The driver lists directories and plain archives. Tasks open compressed tar archives, which must
    be unpacked to list them, and damaged ones, so that their problem becomes a row. Where there is
    more than one archive alone, the driver lists those too: logs of one cluster id may be of
    several clusters, wherever they are.
    """
    with FileReaders() as readers:
        logs, archives = logs_of(options, readers)
        clusters, packed = identify_all(logs, archives, options, readers)
        ranges = list(file_ranges(logs, clusters.by_path, options))
    chosen = [file_range for file_range in ranges if may_match(filters, file_range.spans)]
    return [
        *(ReadPartition(archive=one, clusters=packed.get(one)) for one in archives),
        *map(ReadPartition, _grouped(chosen, options.partition_bytes)),
    ]


def logs_of(
    options: SourceOptions, readers: FileReaders
) -> tuple[list[LogDirectory], list[SourceFile]]:
    """The logs at the paths, and the archives that tasks open; each once.

    A directory without a log gets a row with its problem, so that one of many does not stop a job.
    Raises SourceError where no path has a log, and for a path that does not exist.
    """
    logs: list[LogDirectory] = []
    archives: list[SourceFile] = []
    refused: list[tuple[str, NoLogError]] = []
    for pattern in options.paths:
        try:
            found, packed = _logs_of_pattern(pattern, readers)
        except NoLogError as error:
            refused.append((pattern, error))
        else:
            logs += found
            archives += packed
    if refused and not (logs or archives):
        raise refused[0][1]
    logs += [without_log(file_path(path), str(error)) for path, error in refused]
    return _merged(logs), list(dict.fromkeys(archives))


def identify_all(
    logs: Sequence[LogDirectory],
    archives: Sequence[SourceFile],
    options: SourceOptions,
    readers: FileReaders,
    *,
    every_archive: bool = False,
) -> tuple[Identified, dict[SourceFile, Clusters]]:
    """Whose the logs are, and by archive whose its logs are.

    An archive alone is left out, since the task that opens it finds out; not with `every_archive`.
    Raises SourceError.
    """
    if len(archives) == 1 and not (logs or options.clusters or every_archive):
        return Identified({}), {}
    inside = {archive: _peek(archive, options, readers) for archive in archives}
    every = [*logs, *(log for packed in inside.values() for log in packed)]
    check_given(every, options.clusters)
    found = identify(every, options, readers)
    return found, {
        archive: {log.path: found.by_path[log.path] for log in packed}
        for archive, packed in inside.items()
    }


def _peek(archive: SourceFile, options: SourceOptions, readers: FileReaders) -> list[LogDirectory]:
    """The logs that the task will read from an archive; it reports what is wrong with it."""
    try:
        return _logs_in_archive(archive, readers)
    except CorruptArchiveError as error:
        logs, _ = log_directories(error.found, readers.read_small)
        return [] if not options.cluster_id and _without_cluster(logs) else logs
    except SourceError:
        return []


def archive_ranges(
    archive: SourceFile,
    options: SourceOptions,
    readers: FileReaders,
    clusters: Clusters | None = None,
) -> list[FileRange]:
    """The ranges of an archive; of a damaged one its problem, and the ranges of its good part.

    Raises SourceError when it holds no metadata log.
    """

    def ranges_of(logs: Sequence[LogDirectory]) -> list[FileRange]:
        known = identify(logs, options, readers).by_path if clusters is None else clusters
        return list(file_ranges(logs, known, options))

    try:
        return ranges_of(_logs_in_archive(archive, readers))
    except CorruptArchiveError as error:
        ranges, note = [], str(error)
        try:
            logs, _ = log_directories(error.found, readers.read_small)
            logs += nested_archives(error.found) if logs else []
            lost = None if options.cluster_id else _without_cluster(logs)
            if lost is not None:
                note += (
                    f"; {lost.path}: the file that names its cluster is behind the damage: give the "
                    "option clusterId"
                )
            else:
                ranges = ranges_of(logs)
        except SourceError as refusal:
            note += f"; {refusal}"
        origin = Origin(
            options.cluster_id or UNKNOWN_CLUSTER,
            UNKNOWN_NODE if options.node_id is None else options.node_id,
            archive.name,
            segment=0,
        )
        if ranges:
            first = ranges[0].origin  # a log comes before nested archives
            origin = replace(origin, cluster_id=first.cluster_id, node_id=first.node_id)
        return [FileRange(origin, archive, 0, 0, note=note, unreadable=True), *ranges]


def _without_cluster(logs: Iterable[LogDirectory]) -> LogDirectory | None:
    """A log without meta.properties, which may be of any cluster; None when there is none."""
    unnamed = (log for log in logs if log.cluster_id == UNKNOWN_CLUSTER and log.problem is None)
    return next(unnamed, None)


def _logs_of_pattern(
    pattern: str, readers: FileReaders
) -> tuple[list[LogDirectory], list[SourceFile]]:
    """Do as `_logs_of` for all paths that match a pattern; at least one must hold a log."""
    logs: list[LogDirectory] = []
    archives: list[SourceFile] = []
    refusal: SourceError | None = None
    for path in expand(pattern):
        try:
            found, packed = _logs_of(path, readers)
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


def _logs_of(path: str, readers: FileReaders) -> tuple[list[LogDirectory], list[SourceFile]]:
    """The logs below a path, and the archives that tasks open."""
    is_directory, files = list_files(path)
    packed = [file for file in files.values() if is_archive(file.path)]
    found: list[LogDirectory] = []
    left: list[SourceFile] = []
    for file in packed:
        if not file.path.lower().endswith((".tar", ".zip")):
            left.append(file)
            continue
        try:
            found += _logs_in_archive(file, readers)
        except CorruptArchiveError:
            left.append(file)  # the task that opens it reports the reason
    if not is_directory:
        if not packed:
            (file,) = files.values()
            found.append(single_file(file, _meta_above(split(file.path)[0]), readers.read_small))
        return found, left
    above = _meta_above(path)
    beside = {} if above is None else {above.path: above}
    logs, refusals = log_directories(files | beside, readers.read_small)
    if not (logs or packed):
        raise NoLogError(_nothing(path, len(files), refusals))
    return found + logs, left


def _logs_in_archive(archive: SourceFile, readers: FileReaders) -> list[LogDirectory]:
    """The logs in an archive, and its nested archives.

    Raises CorruptArchiveError, and SourceError when it holds no metadata log.
    """
    files = archive_members(archive)
    logs, refusals = log_directories(files, readers.read_small)
    inner = nested_archives(files)
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


def _meta_above(folder: str) -> SourceFile | None:
    """meta.properties in the directory above: a partition directory lies in a log directory."""
    path = f"{parent(file_path(folder)).rstrip('/')}/{META_PROPERTIES}"
    try:
        _, found = list_files(path)
    except SourceError:
        return None
    return next(iter(found.values()), None)


def _merged(logs: Iterable[LogDirectory]) -> list[LogDirectory]:
    """Each log once, although several paths may lead to it."""
    by_path: dict[str, LogDirectory] = {}
    single = []
    for log in logs:
        if log.complete:
            by_path[log.path] = log
        else:
            single.append(log)
    unique = {(log.segments, log.snapshots): log for log in single if log.path not in by_path}
    return [*by_path.values(), *unique.values()]


def file_ranges(
    logs: Sequence[LogDirectory], clusters: Clusters, options: SourceOptions
) -> Iterator[FileRange]:
    """The ranges of these logs."""
    for log in logs:
        if options.node_id is not None:
            log = replace(log, node_id=options.node_id)
        yield from _ranges_of_log(log, clusters[log.path], options)


def _ranges_of_log(
    log: LogDirectory, identity: Identity, options: SourceOptions
) -> Iterator[FileRange]:
    origin = Origin(identity.cluster_id, log.node_id, "")
    problem = identity.problem
    if problem is not None and (identity.unreadable or not log.segments):
        file = (*log.segments, *log.snapshots)[0][1]
        here = replace(origin, file=file.name, segment=0)
        yield FileRange(here, file, 0, 0, note=problem, unreadable=True)
        problem = None
    if identity.unreadable:
        return
    if "snapshot" in options.kinds:
        for snapshot_id, file in log.snapshots:
            here = replace(origin, file=file.name, snapshot_id=snapshot_id)
            yield from _split(FileRange(here, file, 0, file.size), options.partition_bytes)
    if "log" in options.kinds:
        bases: list[int | None] = [base for base, _ in log.segments[1:]]
        note = problem or log.unknown_start
        for (base, file), next_base in zip(log.segments, [*bases, None], strict=False):
            here = replace(origin, file=file.name, segment=base)
            if next_base is None:
                note = "; ".join(filter(None, (note, log.lost_end))) or None
            file_range = FileRange(here, file, 0, file.size, next_base, note)
            note = None
            yield from _split(file_range, options.partition_bytes)


def _split(file_range: FileRange, most: int) -> Iterator[FileRange]:
    size = file_range.file.size
    if size <= most or not file_range.file.seekable:
        yield file_range
        return
    for start in range(0, size, most):
        note = file_range.note if start == 0 else None
        yield replace(file_range, start=start, end=min(start + most, size), note=note)


def _grouped(ranges: Sequence[FileRange], most: int) -> Iterator[tuple[FileRange, ...]]:
    """Ranges in partitions: neighbours together until a partition is full."""
    waiting: list[FileRange] = []
    size = 0
    for file_range in ranges:
        cost = file_range.end - file_range.start + _OPEN_COST
        if waiting and size + cost > most + _OPEN_COST:
            yield tuple(waiting)
            waiting, size = [], 0
        waiting.append(file_range)
        size += cost
    if waiting:
        yield tuple(waiting)
