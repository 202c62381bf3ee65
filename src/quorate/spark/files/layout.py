"""Which directories of a tree hold a metadata log, and of which node and cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quorate.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, OffsetAndEpoch, Uuid, uuid_to_text
from quorate.formats.errors import FormatError, NewerFileError
from quorate.formats.files import (
    LEADER_EPOCH_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    PARTITION_METADATA,
    QUORUM_STATE,
    decode_leader_epochs,
    decode_partition_metadata,
    parse_segment_name,
    parse_snapshot_name,
)
from quorate.formats.meta_properties import MetaProperties, decode_meta_properties
from quorate.spark.files.paths import (
    SourceError,
    SourceFile,
    by_directory,
    is_archive,
    parent,
    split,
)

ReadSmall = Callable[[SourceFile], bytes]

UNKNOWN_CLUSTER: Final = "unknown"
UNKNOWN_NODE: Final = -1
UNKNOWN_START: Final = "the log starts at offset"
"""How `LogDirectory.unknown_start` begins."""
NESTED_ARCHIVE: Final = (
    "an archive in an archive is not read: unpack the outer archive and give its directory"
)
_OTHER_TOPIC: Final = re.compile(r"(.+)-\d+(\.[0-9a-f]{32}-(delete|future|stray))?")


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """The `__cluster_metadata-0` directory of one replica, or a single file of it."""

    path: str
    cluster_id: str
    node_id: int
    segments: tuple[tuple[int, SourceFile], ...]
    """(base offset, file), ascending."""
    snapshots: tuple[tuple[OffsetAndEpoch, SourceFile], ...]
    """(end offset and epoch, file), ascending."""
    problem: str | None = None
    """Why meta.properties could not be read, so that the cluster is not known."""
    complete: bool = True
    """False for a single file: what else its directory holds is not known."""
    unreadable: bool = False
    """Only its problem is reported: an archive in an archive, or a directory without a log."""
    directory_id: Uuid | None = None
    lost_end: str | None = None
    """What shows that an empty newest segment once had records."""
    newer: bool = False
    """The problem is that a later release wrote meta.properties."""

    @property
    def unknown_start(self) -> str | None:
        """Why the state at the start of the log is not known; None when it is."""
        if not self.complete or not self.segments:
            return None
        start = self.segments[0][0]
        if start == 0 or any(found.offset >= start for found, _ in self.snapshots):
            return None
        return (
            f"{UNKNOWN_START} {start} and there is no snapshot of {start} or later: the state before "
            "it is not known. Copy the .checkpoint files too"
        )


def log_directories(
    files: Mapping[str, SourceFile], read_small: ReadSmall, *, include_empty: bool = False
) -> tuple[list[LogDirectory], list[str]]:
    """The metadata logs among these files, and why other directories with segments are none.

    include_empty: also directories that should hold a metadata log but have neither segment nor
        snapshot, or whose partition.metadata is of another topic
    """
    folders = by_directory(files)
    logs, refusals = [], []
    for path, names in folders.items():
        if not any(_is_data(name) for name in names) and not (
            include_empty and _should_hold_log(path, names)
        ):
            continue
        claims = include_empty and _should_hold_log(
            path, names
        )  # whatever partition.metadata says: audited too
        refusal = None if claims else _refusal(path, names, read_small)
        if refusal is not None:
            refusals.append(refusal)
            continue
        beside = folders.get(parent(path), {}).get(META_PROPERTIES) or names.get(META_PROPERTIES)
        logs.append(_directory(path, names, beside, read_small))
    return logs, refusals


def is_input_name(path: str) -> bool:
    """Whether a file of this name can be read alone: a segment, a snapshot or an archive."""
    return is_archive(path) or _is_data(split(path)[1])


def single_file(file: SourceFile, beside: SourceFile | None, read_small: ReadSmall) -> LogDirectory:
    """A single segment or snapshot. Raises SourceError when its name is of neither."""
    folder, name = split(file.name)
    if not _is_data(name):
        raise SourceError(
            f"{file.name}: not the name of a segment (00000000000000000000.log), of a snapshot "
            "(00000000000000000000-0000000000.checkpoint) or of an archive"
        )
    log = _directory(folder, {name: file}, beside, read_small)
    return replace(log, complete=False)


def nested_archives(files: Mapping[str, SourceFile]) -> list[LogDirectory]:
    """A LogDirectory with a problem for each archive among the members of an archive."""
    return [
        replace(without_log(name, f"{name}: {NESTED_ARCHIVE}"), segments=((0, file),))
        for name, file in files.items()
        if file.member is not None and is_archive(name)
    ]


def without_log(path: str, problem: str) -> LogDirectory:
    """A path at which there is no log, for a row with the problem."""
    return LogDirectory(
        *(path, UNKNOWN_CLUSTER, UNKNOWN_NODE, ((0, SourceFile(path, 0)),), ()),
        problem=problem,
        complete=False,
        unreadable=True,
    )


def _directory(
    path: str, names: Mapping[str, SourceFile], beside: SourceFile | None, read_small: ReadSmall
) -> LogDirectory:
    meta, problem, newer = MetaProperties(version=0), None, False
    if beside is not None:
        try:
            meta = decode_meta_properties(read_small(beside), beside.name)
        except FormatError as error:
            problem, newer = str(error), isinstance(error, NewerFileError)
    segments, snapshots = [], []
    for name, file in names.items():
        if (base := parse_segment_name(name)) is not None:
            segments.append((base, file))
        elif (snapshot_id := parse_snapshot_name(name)) is not None:
            snapshots.append((snapshot_id, file))
    return LogDirectory(
        path,
        meta.cluster_id or UNKNOWN_CLUSTER,
        UNKNOWN_NODE if meta.node_id is None else meta.node_id,
        tuple(sorted(segments, key=lambda found: found[0])),
        tuple(sorted(snapshots, key=lambda found: found[0])),
        problem,
        directory_id=meta.directory_id,
        lost_end=_lost_end(segments, [found for found, _ in snapshots], names, read_small),
        newer=newer,
    )


def _lost_end(
    segments: Sequence[tuple[int, SourceFile]],
    snapshots: Sequence[OffsetAndEpoch],
    names: Mapping[str, SourceFile],
    read_small: ReadSmall,
) -> str | None:
    """What shows that the newest segment, a file of 0 bytes, once had records.

    A segment is empty until its first batch: a new one alone shows nothing.
    """
    base, file = max(segments, key=lambda found: found[0], default=(0, None))
    if file is None or file.size:
        return None
    said = [
        f"a snapshot of {found.offset} is beside it" for found in snapshots if found.offset > base
    ]
    if LEADER_EPOCH_CHECKPOINT in names:
        beside = names[LEADER_EPOCH_CHECKPOINT]
        try:
            epochs = decode_leader_epochs(read_small(beside), beside.name)
        except FormatError:
            epochs = ()  # the audit reports a damaged one
        said += [
            f"{LEADER_EPOCH_CHECKPOINT} says that epoch {epoch} begins at offset {start}"
            for epoch, start in epochs
            if start >= base
        ]
    if not said:
        return None
    return (
        f"the newest segment is empty, so the log ends before offset {base}, but {said[-1]}: its end "
        "is lost, or was not copied. `quorate pipeline audit` says what to do"
    )


def _is_data(name: str) -> bool:
    return parse_segment_name(name) is not None or parse_snapshot_name(name) is not None


def _should_hold_log(path: str, names: Mapping[str, SourceFile]) -> bool:
    return QUORUM_STATE in names or split(path.rstrip("/"))[1] == PARTITION_DIRECTORY


def _refusal(path: str, names: Mapping[str, SourceFile], read_small: ReadSmall) -> str | None:
    """Why a directory with segments is no metadata log; None when it is one."""
    folder = split(path.rstrip("/"))[1]
    if PARTITION_METADATA in names:
        file = names[PARTITION_METADATA]
        try:
            topic_id: Uuid | None = decode_partition_metadata(read_small(file), file.name)
        except FormatError:
            topic_id = None  # damaged: the name of the directory decides
        if topic_id == METADATA_TOPIC_ID:
            return None
        if topic_id is not None:
            return f"{path}: a directory of the topic {uuid_to_text(topic_id)}, not a metadata log"
    if folder == PARTITION_DIRECTORY or QUORUM_STATE in names:
        return None
    match = _OTHER_TOPIC.fullmatch(folder)
    whose = f" of the topic {match[1]}" if match and match[1] != METADATA_TOPIC else ""
    return (
        f"{path}: a directory{whose}, not a metadata log: that is named {PARTITION_DIRECTORY} "
        f"or holds {QUORUM_STATE}"
    )
