"""Formatting a node's log directories (`kafka-storage format`, Kafka's `Formatter`).

Two halves: `plan` decides everything and touches nothing, `write` makes it so, durably: a
directory's meta.properties comes last, so one that was cut short counts as not formatted, and
nothing of it is left in what the next one makes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid
from quorate.formats.files import BOOTSTRAP_CHECKPOINT, PARTITION_DIRECTORY, snapshot_name
from quorate.formats.meta_properties import HOW_TO_MEND, MetaProperties
from quorate.formats.records import (
    FeatureLevelRecord,
    UserScramCredentialRecord,
    encode_record,
)
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.formats.versions import (
    FEATURES,
    KRAFT_VERSION,
    LATEST,
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_of,
)
from quorate.node.config import NodeConfig
from quorate.node.dynamic_voters import DynamicVoter
from quorate.node.ensemble import (
    Ensemble,
    load_ensemble,
    make_durable_directory,
    new_directory_id,
    sync_directory,
    temporary_of,
    verify,
    write_durably,
    write_meta_properties,
)
from quorate.node.scram import parse_scram
from quorate.raft.values import ControlState

BootstrapRecord = FeatureLevelRecord | UserScramCredentialRecord
_READ_ONLY: Final = 0o400


class FormatterError(QuorateError):
    """Formatting is refused; nothing was written."""


class NoDirectories(FormatterError):
    """None of the directories can be read."""

    def __init__(self, text: str, unreadable: tuple[str, ...]) -> None:
        super().__init__(text)
        self.unreadable = unreadable


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants beside what the configuration says."""

    cluster_id: str
    release_version: MetadataVersion | None = None
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    initial_controllers: tuple[DynamicVoter, ...] = ()
    scram: Sequence[str] = ()
    ignore_formatted: bool = False
    member: bool = False
    """The directory is for a member of quorate.embed."""


@dataclass(frozen=True, slots=True)
class Directory:
    """One directory that will be formatted."""

    path: str
    kind: str
    """data, metadata, dynamic metadata, or dynamic metadata voter."""
    directory_id: Uuid

    @property
    def description(self) -> str:
        return f"{self.kind} directory"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that formatting will write."""

    cluster_id: str
    node_id: int
    metadata_version: MetadataVersion
    feature_levels: Mapping[str, int]
    records: tuple[BootstrapRecord, ...]
    voters: tuple[DynamicVoter, ...]
    listener_name: str
    directories: tuple[Directory, ...]
    """Those without meta.properties; empty when all are formatted."""
    unreadable: tuple[str, ...]
    member: bool = False


def plan(config: NodeConfig, request: Request) -> Plan:
    """What formatting would do; raises FormatterError, FeatureError, ScramError, IdentityError."""
    version = _metadata_version(config, request)
    levels = _feature_levels(config, request, version)
    if request.scram and not version.scram:
        raise FormatterError(
            f"SCRAM is only supported in {METADATA_VERSION} {MetadataVersion.IBP_3_5_IV2} or later."
        )
    records: tuple[BootstrapRecord, ...] = feature_records(version, levels)
    records += tuple(map(parse_scram, request.scram))
    ensemble = load_ensemble(config.directories)
    verify(ensemble, request.cluster_id, config.node_id, request.member)
    _refuse_formatted(ensemble, request)
    if config.metadata_log_dir in ensemble.empty:
        _refuse_a_log(Path(config.metadata_log_dir))
    return Plan(
        cluster_id=request.cluster_id,
        node_id=config.node_id,
        metadata_version=version,
        feature_levels=levels,
        records=records,
        voters=request.initial_controllers,
        listener_name=config.controller_listener_names[0],
        directories=_directories(config, request, ensemble),
        unreadable=tuple(ensemble.failed),
        member=request.member,
    )


def _metadata_version(config: NodeConfig, request: Request) -> MetadataVersion:
    unstable = config.unstable_feature_versions_enable
    version = request.release_version
    if METADATA_VERSION in request.feature_levels:
        if version is not None:
            raise FormatterError(
                f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid "
                "ambiguity."
            )
        version = metadata_version_of(request.feature_levels[METADATA_VERSION])
    if version is None:
        return LATEST if unstable else LATEST_PRODUCTION
    if not unstable and not version.in_production:
        raise FormatterError(f"{METADATA_VERSION} {version} is not yet stable.")
    return version


def _feature_levels(
    config: NodeConfig, request: Request, version: MetadataVersion
) -> dict[str, int]:
    """The level of every feature, those at 0 included, sorted by name."""
    asked = {n: level for n, level in request.feature_levels.items() if n != METADATA_VERSION}
    for name in sorted(asked):
        if name not in FEATURES:
            raise FormatterError(
                f"Unsupported feature: {name}. Supported features are: "
                f"{', '.join(sorted(FEATURES))}"
            )
    levels = {name: feature.default_level(version) for name, feature in FEATURES.items()}
    levels |= asked
    levels[KRAFT_VERSION] = _kraft_version(config, asked.get(KRAFT_VERSION))
    levels[METADATA_VERSION] = int(version)
    for name in sorted(FEATURES):
        FEATURES[name].check(levels[name], levels)
    return dict(sorted(levels.items()))


def _kraft_version(config: NodeConfig, asked: int | None) -> int:
    dynamic = not config.static_voters
    if asked is None:
        return int(dynamic)
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if asked == 0 and dynamic:
        raise FormatterError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the "
            f"flags {flags} is used. For dynamic controllers support, try removing the --feature "
            "flag for kraft.version."
        )
    if asked != 0 and not dynamic:
        raise FormatterError(
            f"Cannot set kraft.version to {asked} unless controller.quorum.voters is empty and "
            f"one of the flags {flags} is used. For dynamic controllers support, try using one of "
            f"{flags} and removing controller.quorum.voters."
        )
    return asked


def feature_records(
    version: MetadataVersion, levels: Mapping[str, int]
) -> tuple[FeatureLevelRecord, ...]:
    """The records that a new cluster's log begins with: metadata.version, then the others.

    Features at level 0 and kraft.version have none (`BootstrapMetadata.fromVersions`).
    """
    others = sorted(set(levels) - {METADATA_VERSION, KRAFT_VERSION})
    return (
        FeatureLevelRecord(name=METADATA_VERSION, feature_level=int(version)),
        *(
            FeatureLevelRecord(name=name, feature_level=levels[name])
            for name in others
            if levels[name] > 0
        ),
    )


def _refuse_formatted(ensemble: Ensemble, request: Request) -> None:
    if ensemble.found and not request.ignore_formatted:
        raise FormatterError(
            f"Log directory {next(iter(ensemble.found))} is already formatted. Use "
            "--ignore-formatted to ignore this directory and format the others."
        )
    if ensemble.failed and not ensemble.empty and not ensemble.found:
        reasons = "; ".join(ensemble.failed.values())
        raise NoDirectories(
            f"No available log directories to format. ({reasons})", tuple(ensemble.failed)
        )


def _refuse_a_log(directory: Path) -> None:
    """A log without meta.properties is some quorum's, and cannot tell of which; unlike Kafka's."""
    try:
        found = _holds_a_log(directory / PARTITION_DIRECTORY)
    except OSError as error:
        why = error.strerror or error
        raise FormatterError(f"Cannot read {directory / PARTITION_DIRECTORY}: {why}") from None
    if found:
        raise FormatterError(
            f"{directory} holds a metadata log ({PARTITION_DIRECTORY}) but no meta.properties: "
            f"formatting it could give one quorum's records to another{HOW_TO_MEND}. Or move "
            f"{PARTITION_DIRECTORY} away, to begin without them"
        )


def _holds_a_log(partition: Path) -> bool:
    """Is there more than what a format that was cut short may have left? Raises OSError."""
    return partition.exists() and not _leftovers(partition).issuperset(partition.iterdir())


def _leftovers(partition: Path) -> set[Path]:
    """The snapshot 0-0, or a part of it."""
    checkpoint = partition / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
    return {checkpoint, temporary_of(checkpoint)}


def _directories(config: NodeConfig, request: Request, ensemble: Ensemble) -> tuple[Directory, ...]:
    voters = {voter.key.id: voter for voter in request.initial_controllers}
    taken = {meta.directory_id for meta in ensemble.found.values()}
    chosen = []
    for path in ensemble.empty:
        own = voters.get(config.node_id)
        if path != config.metadata_log_dir:
            kind = "data"
        elif not voters:
            kind = "metadata"
        else:
            kind = "dynamic metadata voter" if own else "dynamic metadata"
        if kind == "dynamic metadata voter" and own is not None:
            directory_id = own.key.directory_id
        else:
            directory_id = new_directory_id(taken)
        taken.add(directory_id)
        chosen.append(Directory(path, kind, directory_id))
    return tuple(chosen)


def write(plan: Plan, report: Callable[[Directory], None] = lambda _: None) -> None:
    """Format the planned directories; `report` is told of each before it is begun.

    Durable on return. Raises FormatterError with the file that could not be written.
    """
    for directory in plan.directories:
        report(directory)
        try:
            _write_directory(plan, directory)
        except OSError as error:
            where = error.filename or directory.path
            raise FormatterError(
                f"Error while writing {where}: {error.strerror or error}"
            ) from None


def _write_directory(plan: Plan, directory: Directory) -> None:
    path = Path(directory.path)
    make_durable_directory(path)
    now_ms = int(time.time() * 1000)
    write_durably(path / BOOTSTRAP_CHECKPOINT, bootstrap_checkpoint(plan.records, now_ms))
    if directory.kind.startswith("dynamic"):
        partition = path / PARTITION_DIRECTORY
        make_durable_directory(partition)
        checkpoint = partition / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
        write_durably(checkpoint, dynamic_quorum_checkpoint(plan, now_ms), _READ_ONLY)
    else:
        _remove_leftover_voters(path)
    write_meta_properties(
        directory.path,
        MetaProperties(1, plan.cluster_id, plan.node_id, directory.directory_id, plan.member),
    )


def _remove_leftover_voters(directory: Path) -> None:
    """Remove, durably, the snapshot 0-0 that a format which was cut short may have left.

    Where it stands beside a log, which `plan` refuses in a metadata directory, it stays. Raises
    OSError.
    """
    partition = directory / PARTITION_DIRECTORY
    if not partition.exists() or _holds_a_log(partition):
        return
    for file in _leftovers(partition):
        file.unlink(missing_ok=True)
    partition.rmdir()
    sync_directory(directory)


def bootstrap_checkpoint(records: Sequence[BootstrapRecord], now_ms: int) -> bytes:
    """The bytes of bootstrap.checkpoint: a snapshot of these records, its own time 0."""
    values = [encode_record(record, 0) for record in records]
    state = ControlState(kraft_version=0, voters=None)
    return b"".join(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, state, 0, values, now_ms))


def dynamic_quorum_checkpoint(plan: Plan, now_ms: int) -> bytes:
    """The bytes of the snapshot 0-0: kraft.version and the first voters, no records."""
    voters = tuple(voter.to_voter(plan.listener_name) for voter in plan.voters)
    state = ControlState(plan.feature_levels[KRAFT_VERSION], voters)
    return b"".join(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, state, now_ms, (), now_ms))
