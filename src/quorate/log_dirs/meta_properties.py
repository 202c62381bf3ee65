"""Load, verify and write the `meta.properties` files of a node's log directories.

The rules are those of Kafka's `MetaPropertiesEnsemble` and `KafkaRaftServer.initializeLogDirs`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, is_reserved_directory, uuid_to_text
from quorate.base.notes import Warn
from quorate.base.sentences import sentence
from quorate.config.node_config import NodeConfig
from quorate.formats.errors import FormatError
from quorate.formats.files import META_PROPERTIES, PARTITION_DIRECTORY
from quorate.formats.meta_properties import (
    HOW_TO_REPAIR,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
    wrong_kind_message,
)
from quorate.storage.disk import read_regular


class IdentityError(QuorateError):
    """A log directory is not formatted, or belongs to another node or cluster."""


@dataclass(frozen=True, slots=True)
class MetaPropertiesEnsemble:
    """The meta.properties of all log directories. Every mapping is sorted by path."""

    metadata_log_dir: str | None
    found: Mapping[str, MetaProperties]
    empty: tuple[str, ...]
    """Directories that have no such file or do not exist."""
    failed: Mapping[str, str]
    """Directories whose file cannot be read, with the reason."""


def load_ensemble(
    directories: Iterable[str], metadata_log_dir: str | None = None
) -> MetaPropertiesEnsemble:
    """Read the meta.properties of every directory. Errors go into the result, none is raised."""
    found, empty, failed = {}, [], {}
    for directory in sorted({*directories, *([metadata_log_dir] if metadata_log_dir else ())}):
        path = os.path.join(directory, META_PROPERTIES)
        try:
            found[directory] = decode_meta_properties(read_regular(path), path)
        except FileNotFoundError:
            empty.append(directory)
        except OSError as error:
            failed[directory] = f"{path}: {error.strerror or error}"
        except FormatError as error:
            failed[directory] = str(error)
    return MetaPropertiesEnsemble(metadata_log_dir, found, tuple(empty), failed)


def verify(
    ensemble: MetaPropertiesEnsemble,
    cluster_id: str | None = None,
    node_id: int | None = None,
    member: bool = False,
) -> None:
    """Raise the first of `mismatches` (IdentityError)."""
    for problem in mismatches(ensemble, cluster_id, node_id, member):
        raise problem


def mismatches(
    ensemble: MetaPropertiesEnsemble,
    cluster_id: str | None = None,
    node_id: int | None = None,
    member: bool = False,
) -> Iterator[IdentityError]:
    """What keeps the directories from being those of one node of one cluster, with distinct ids.

    `cluster_id` and `node_id` are the expected values; None expects the first value found. `member`:
    the directories belong to a member of quorate.embed instead of a controller. Source:
    `MetaPropertiesEnsemble.verify`; messages are Kafka's.
    """
    seen: dict[Uuid, str] = {}
    for directory, meta in ensemble.found.items():
        # A controller must not open a member's log: its records have another format.
        if meta.member != member:
            yield IdentityError(wrong_kind_message(directory, meta))
            continue
        path = os.path.join(directory, META_PROPERTIES)
        cluster_id = cluster_id or meta.cluster_id
        if meta.cluster_id not in (None, cluster_id):
            yield IdentityError(
                f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}"
            )
        node_id = meta.node_id if node_id is None else node_id
        if meta.node_id not in (None, node_id):
            yield IdentityError(
                f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in "
                f"{path}. If you moved your data, make sure your configured node id matches. If "
                "you intend to create a new node, you should remove all data in your data "
                f"directories. (node.id is {meta.node_id} there, {node_id} here)"
            )
        if meta.directory_id is not None:
            yield from _directory_id_problems(meta.directory_id, directory, seen)
            seen[meta.directory_id] = directory
    home = ensemble.metadata_log_dir
    if home is not None and home in ensemble.failed:
        yield IdentityError(
            f"Encountered I/O error in metadata log directory {home}. Cannot continue. "
            f"({ensemble.failed[home]})"
        )


def _directory_id_problems(
    directory_id: Uuid, directory: str, seen: Mapping[Uuid, str]
) -> Iterator[IdentityError]:
    text = uuid_to_text(directory_id)
    if is_reserved_directory(directory_id):
        yield IdentityError(f"Invalid reserved directory ID {text} found in {directory}")
    if directory_id in seen:
        yield IdentityError(
            f"Duplicate directory ID {text} found. It was the ID of {seen[directory_id]}, but "
            f"also of {directory}"
        )


def new_directory_id(taken: Iterable[Uuid | None] = ()) -> Uuid:
    """A random directory id: not reserved, not in `taken`, and its text has no `-` in front.

    A leading `-` would look like an option on the command line (`Uuid.randomUuid`).
    """
    while True:
        candidate = Uuid(secrets.token_bytes(16))
        text = uuid_to_text(candidate)
        if (
            not text.startswith("-")
            and not is_reserved_directory(candidate)
            and candidate not in taken
        ):
            return candidate


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A node's ids, from its formatted directories."""

    cluster_id: str
    node_id: int
    directory_id: Uuid
    """The directory id of the metadata log directory: the second half of the voter key."""
    notes: tuple[str, ...] = ()


def load_identity(config: NodeConfig, member: bool = False) -> NodeIdentity:
    """Read and verify all directories when a node starts; generate missing directory ids.

    `member`: see `verify`. Raises IdentityError when a directory is not formatted or belongs to
    another node. Raises it too when a directory other than the configured one holds the metadata log.
    Source: `KafkaRaftServer.initializeLogDirs`.
    """
    return _identity(config, checked_ensemble(config, member))


def checked_ensemble(config: NodeConfig, member: bool = False) -> MetaPropertiesEnsemble:
    """The files of `load_identity`, with all of its checks; only reads. Raises IdentityError."""
    ensemble = load_ensemble(config.directories, config.metadata_log_dir)
    for problem in directory_problems(config, ensemble, config.node_id, member):
        raise problem
    return ensemble


def directory_problems(
    config: NodeConfig,
    ensemble: MetaPropertiesEnsemble,
    node_id: int | None,
    member: bool = False,
) -> Iterator[IdentityError]:
    """Why the files of the directories keep a node from starting. `node_id`: None where it is unknown."""
    # 1. At least one directory must be formatted.
    if not ensemble.found:
        where = ", ".join(config.directories)
        reasons = "; ".join(ensemble.failed.values())
        advice = f": {reasons}" if reasons else ": run 'quorate storage format' first"
        yield IdentityError(f"No readable meta.properties files found in {where}{advice}")
        return
    # 2. All formatted ones must belong to this node.
    yield from mismatches(ensemble, node_id=node_id, member=member)
    # 3. A metadata log in another directory means that metadata.log.dir was changed: starting with an
    #    empty log would forget votes and acknowledged records.
    for directory in ensemble.found:
        stray = os.path.join(directory, PARTITION_DIRECTORY)
        if directory != config.metadata_log_dir and os.path.exists(stray):
            yield IdentityError(
                f"Found unexpected metadata location in data directory `{stray}` (the configured "
                f"metadata directory is {config.metadata_log_dir})."
            )
    # 4. A new directory beside formatted ones must be formatted first.
    for directory in ensemble.empty:
        yield IdentityError(
            f"No `meta.properties` found in {directory} (have you run `quorate storage format` to "
            "format the directory?)"
        )
    # 5. Each must name its cluster and node.
    for directory, meta in ensemble.found.items():
        if meta.node_id is None or meta.cluster_id is None:
            what = "node ID" if meta.node_id is None else "cluster ID"
            yield IdentityError(f"Error: {what} not found in {directory}{HOW_TO_REPAIR}")


def _identity(config: NodeConfig, ensemble: MetaPropertiesEnsemble) -> NodeIdentity:
    taken = {meta.directory_id for meta in ensemble.found.values()}
    known = {}
    for directory, meta in ensemble.found.items():
        if meta.directory_id is None:  # formatted before directory ids existed (KIP-858)
            meta = replace(meta, directory_id=new_directory_id(taken))
            taken.add(meta.directory_id)
            write_meta_properties(directory, meta)
        known[directory] = meta
    own = known[config.metadata_log_dir]
    assert own.cluster_id is not None and own.directory_id is not None
    ignored = (
        Warn(f"{sentence(reason)} The directory is ignored: the metadata log is in another one")
        for reason in ensemble.failed.values()
    )
    return NodeIdentity(own.cluster_id, config.node_id, own.directory_id, tuple(ignored))


def write_meta_properties(directory: str, meta: MetaProperties) -> None:
    """Write a directory's meta.properties. The file is durable on return. Raises OSError."""
    data = encode_meta_properties(meta, int(time.time() * 1000))
    write_durably(Path(directory, META_PROPERTIES), data)


def write_durably(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Replace `path` atomically; the new content is durable on return. Raises OSError.

    A crash leaves the old file or the new one, and perhaps the temporary file.
    """
    # Sync the data before the rename, or a power cut may leave an empty file under the final name.
    # Sync the directory after it, or the rename itself may be lost.
    temporary = temporary_of(path)
    temporary.unlink(missing_ok=True)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def temporary_of(path: Path) -> Path:
    """The temporary file of `write_durably`; a killed process may leave it behind."""
    return path.with_name(path.name + ".tmp")


def sync_directory(directory: Path) -> None:
    """Make created, renamed and removed names in `directory` durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durable_directory(directory: Path) -> None:
    """Create `directory` and its parents; their names are durable on return. Raises OSError."""
    # Each level is durable before the next is created in it. So of the levels that a killed process
    # left, only the name of the last may not be durable yet: sync the directory that holds it.
    levels = (directory, *directory.parents)
    missing = [level for level in levels if not level.is_dir()]
    parent_of_last = levels[len(missing)].parent
    if os.access(parent_of_last, os.W_OK):  # else no earlier format created the level
        sync_directory(parent_of_last)
    for level in reversed(missing):
        level.mkdir(exist_ok=True)
        sync_directory(level.parent)
