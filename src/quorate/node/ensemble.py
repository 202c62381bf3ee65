"""The `meta.properties` files of all of a node's log directories, and what must hold among them.

The rules are those of Kafka's `MetaPropertiesEnsemble` and `KafkaRaftServer.initializeLogDirs`.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_to_text
from quorate.base.notes import Warn
from quorate.formats.errors import FormatError
from quorate.formats.files import META_PROPERTIES, PARTITION_DIRECTORY
from quorate.formats.meta_properties import (
    HOW_TO_MEND,
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from quorate.node.config import NodeConfig
from quorate.storage.disk import read_regular


class IdentityError(QuorateError):
    """A log directory is not formatted, or belongs to another node or cluster."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What the meta.properties of each log directory says; every mapping is sorted by path."""

    metadata_log_dir: str | None
    found: Mapping[str, MetaProperties]
    empty: tuple[str, ...]
    """Directories without the file, or that do not exist."""
    failed: Mapping[str, str]
    """Directories whose file cannot be read, and why."""


def load_ensemble(directories: Iterable[str], metadata_log_dir: str | None = None) -> Ensemble:
    """Read every directory's meta.properties; never raises for what a directory holds."""
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
    return Ensemble(metadata_log_dir, found, tuple(empty), failed)


def verify(
    ensemble: Ensemble,
    cluster_id: str | None = None,
    node_id: int | None = None,
    member: bool = False,
) -> None:
    """Check that all directories belong to one node of one cluster, none twice.

    `cluster_id` and `node_id` are what is expected; None takes the first that is found. `member`:
    of quorate.embed, and not a controller. Raises IdentityError.
    """
    seen: dict[Uuid, str] = {}
    for directory, meta in ensemble.found.items():
        if meta.member != member:
            raise IdentityError(whose_else(directory, meta))
        path = os.path.join(directory, META_PROPERTIES)
        cluster_id = cluster_id or meta.cluster_id
        if meta.cluster_id not in (None, cluster_id):
            raise IdentityError(
                f"Invalid cluster.id in: {path}. Expected {cluster_id}, but read {meta.cluster_id}"
            )
        node_id = meta.node_id if node_id is None else node_id
        if meta.node_id not in (None, node_id):
            raise IdentityError(
                f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in "
                f"{path}. If you moved your data, make sure your configured node id matches. If "
                "you intend to create a new node, you should remove all data in your data "
                f"directories. (node.id is {meta.node_id} there, {node_id} here)"
            )
        if meta.directory_id is not None:
            _check_directory_id(meta.directory_id, directory, seen)
            seen[meta.directory_id] = directory
    home = ensemble.metadata_log_dir
    if home is not None and home in ensemble.failed:
        raise IdentityError(
            f"Encountered I/O error in metadata log directory {home}. Cannot continue. "
            f"({ensemble.failed[home]})"
        )


def whose_else(directory: str, meta: MetaProperties) -> str:
    """What to say of a directory to whoever runs the other kind of node."""
    if meta.member:
        return (
            f"{directory} is the directory of a member (quorate.embed), and not a controller's: "
            "run it with the program that it belongs to; for a controller, format another one"
        )
    return (
        f"{directory} is a controller's directory: run it with `quorate server-start`; a member's "
        "is made with quorate.embed.create"
    )


def _check_directory_id(directory_id: Uuid, directory: str, seen: Mapping[Uuid, str]) -> None:
    text = uuid_to_text(directory_id)
    if is_reserved(directory_id):
        raise IdentityError(f"Invalid reserved directory ID {text} found in {directory}")
    if directory_id in seen:
        raise IdentityError(
            f"Duplicate directory ID {text} found. It was the ID of {seen[directory_id]}, but "
            f"also of {directory}"
        )


def is_reserved(directory_id: Uuid) -> bool:
    """True for the first hundred uuids, which Kafka keeps for special meanings (`DirectoryId`)."""
    return int.from_bytes(directory_id, "big") < 100


def new_directory_id(taken: Iterable[Uuid | None] = ()) -> Uuid:
    """A random directory id: not reserved, not in `taken`, its text does not begin with `-`."""
    while True:
        candidate = Uuid(secrets.token_bytes(16))
        text = uuid_to_text(candidate)
        if not text.startswith("-") and not is_reserved(candidate) and candidate not in taken:
            return candidate


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this node is, from its formatted directories."""

    cluster_id: str
    node_id: int
    directory_id: Uuid
    """Of the metadata log directory: the second half of the voter key."""
    notes: tuple[str, ...] = ()


def load_identity(config: NodeConfig, member: bool = False) -> Identity:
    """Read and verify all directories at start; a missing directory id is made up and written.

    `member` as for `verify`. Raises IdentityError when a directory is not formatted or belongs
    elsewhere, and when the metadata log lies in another directory than the configured one.
    """
    ensemble = load_ensemble(config.directories, config.metadata_log_dir)
    if not ensemble.found:
        where = ", ".join(config.directories)
        reasons = "; ".join(ensemble.failed.values())
        advice = f": {reasons}" if reasons else ": run 'quorate storage format' first"
        raise IdentityError(f"No readable meta.properties files found in {where}{advice}")
    verify(ensemble, node_id=config.node_id, member=member)
    for directory in ensemble.found:
        stray = os.path.join(directory, PARTITION_DIRECTORY)
        if directory != config.metadata_log_dir and os.path.exists(stray):
            raise IdentityError(
                f"Found unexpected metadata location in data directory `{stray}` (the configured "
                f"metadata directory is {config.metadata_log_dir})."
            )
    for directory in ensemble.empty:
        raise IdentityError(
            f"No `meta.properties` found in {directory} (have you run `quorate storage format` to "
            "format the directory?)"
        )
    return _identity(config, ensemble)


def _identity(config: NodeConfig, ensemble: Ensemble) -> Identity:
    taken = {meta.directory_id for meta in ensemble.found.values()}
    known = {}
    for directory, meta in ensemble.found.items():
        if meta.node_id is None or meta.cluster_id is None:
            what = "node ID" if meta.node_id is None else "cluster ID"
            raise IdentityError(f"Error: {what} not found in {directory}{HOW_TO_MEND}")
        if meta.directory_id is None:
            meta = replace(meta, directory_id=new_directory_id(taken))
            taken.add(meta.directory_id)
            write_meta_properties(directory, meta)
        known[directory] = meta
    own = known[config.metadata_log_dir]
    assert own.cluster_id is not None and own.directory_id is not None
    passed_over = (
        Warn(f"{reason}. The directory is passed over: the metadata log is in another one")
        for reason in ensemble.failed.values()
    )
    return Identity(own.cluster_id, config.node_id, own.directory_id, tuple(passed_over))


def write_meta_properties(directory: str, meta: MetaProperties) -> None:
    """Write a directory's meta.properties; durable on return. Raises OSError."""
    data = encode_meta_properties(meta, int(time.time() * 1000))
    write_durably(Path(directory, META_PROPERTIES), data)


def write_durably(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write to a temporary name, sync, rename, sync the directory. Raises OSError."""
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
    """Where `write_durably` writes; a process that is killed may leave it."""
    return path.with_name(path.name + ".tmp")


def sync_directory(directory: Path) -> None:
    """Make names created in, renamed in or removed from `directory` durable. Raises OSError."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_durable_directory(directory: Path) -> None:
    """Create `directory` and its parents; their names are durable on return. Raises OSError.

    Each is durable before the next is made in it: of those that a killed process left, only the
    last one's name may be lost.
    """
    levels = (directory, *directory.parents)
    missing = [level for level in levels if not level.is_dir()]
    home_of_the_last = levels[len(missing)].parent
    if os.access(home_of_the_last, os.W_OK):  # else no format made it
        sync_directory(home_of_the_last)
    for level in reversed(missing):
        level.mkdir(exist_ok=True)
        sync_directory(level.parent)
