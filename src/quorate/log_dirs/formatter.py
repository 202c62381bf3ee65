"""Format a node's log directories (`kafka-storage format`, Kafka's `Formatter`).

`plan` makes all decisions and only reads. `write` carries them out, durably. It writes the
meta.properties of a directory last: after a crash the directory counts as not formatted, and the
next format replaces whatever the first one left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Final

from quorate.base.ids import Uuid, is_reserved_directory, uuid_to_text
from quorate.config.node_config import NodeConfig
from quorate.formats.files import BOOTSTRAP_CHECKPOINT, PARTITION_DIRECTORY, snapshot_name
from quorate.formats.meta_properties import HOW_TO_REPAIR, MetaProperties
from quorate.formats.records import (
    FeatureLevelRecord,
    encode_record,
)
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.formats.versions import (
    DEFAULT,
    FEATURES,
    KRAFT_VERSION,
    LATEST,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_of,
)
from quorate.log_dirs.format_plan import (
    BootstrapRecord,
    FormatPlan,
    FormatRequest,
    FormatterError,
    NoDirectoriesError,
    PlannedDirectory,
)
from quorate.log_dirs.meta_properties import (
    MetaPropertiesEnsemble,
    load_ensemble,
    make_durable_directory,
    new_directory_id,
    sync_directory,
    temporary_of,
    verify,
    write_durably,
    write_meta_properties,
)
from quorate.raft.values import ControlState
from quorate.security.scram import parse_scram

_READ_ONLY: Final = 0o400


def plan(config: NodeConfig, request: FormatRequest) -> FormatPlan:
    """Decide what to format; writes nothing.

    Raises FormatterError, FeatureError, ScramError or IdentityError.
    """
    if not request.cluster_id.strip():
        raise FormatterError(
            "The cluster id is empty: give one ('quorate storage random-uuid'). A variable of the "
            "script may not be set"
        )
    version = _metadata_version(config, request)
    levels = _feature_levels(config, request, version)
    if request.scram and not version.scram:
        raise FormatterError(
            f"SCRAM is only supported in {METADATA_VERSION} {MetadataVersion.IBP_3_5_IV2} or later."
        )
    records: tuple[BootstrapRecord, ...] = feature_records(version, levels)
    records += tuple(map(parse_scram, request.scram))
    _refuse_aliases(config.directories)
    _refuse_nested(config)
    ensemble = load_ensemble(config.directories)
    verify(ensemble, request.cluster_id, config.node_id, request.member)
    _refuse_voter_ids(config, request, ensemble)
    _refuse_formatted(ensemble, request)
    if config.metadata_log_dir in ensemble.empty:
        _refuse_a_log(Path(config.metadata_log_dir))
    return FormatPlan(
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
        is_controller=config.is_controller,
    )


def _metadata_version(config: NodeConfig, request: FormatRequest) -> MetadataVersion:
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
        return LATEST if unstable else DEFAULT
    if not unstable and not version.in_production:
        raise FormatterError(f"{METADATA_VERSION} {version} is not yet stable.")
    return version


def _feature_levels(
    config: NodeConfig, request: FormatRequest, version: MetadataVersion
) -> dict[str, int]:
    """The level of every feature, sorted by name; includes features at level 0."""
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
    """The first records of a new cluster's log: metadata.version, then the other features.

    kraft.version and features at level 0 have no record (`BootstrapMetadata.fromVersions`).
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


def _refuse_aliases(directories: Sequence[str]) -> None:
    """Refuse two names of one directory: the second format would replace the first one's ids.

    Kafka's tool formats the directory twice, and the node refuses to start with a duplicate id.
    """
    names: dict[object, str] = {}
    for directory in directories:
        real = os.path.realpath(directory)
        try:
            found = os.stat(real)
        except OSError:
            keys: tuple[object, ...] = (real,)
        else:
            keys = (real, (found.st_dev, found.st_ino))
        other = next((names[key] for key in keys if key in names), None)
        if other is not None:
            raise FormatterError(
                f"{other} and {directory} are the same directory ({real}): name each directory once "
                "in log.dirs and metadata.log.dir"
            )
        names |= dict.fromkeys(keys, directory)


def _refuse_nested(config: NodeConfig) -> None:
    """Refuse a directory inside another one with which no node starts.

    A broker takes each directory in a log directory for a partition's, and stops at a name that is
    none (`LogManager.loadLogs`). A controller lists none, but its log has a name there.
    """
    for outer, inner in permutations(config.directories, 2):
        real = Path(os.path.realpath(inner))
        home = Path(os.path.realpath(outer))
        if not real.is_relative_to(home):
            continue
        if "broker" in config.roles or real.relative_to(home).parts[0] == PARTITION_DIRECTORY:
            raise FormatterError(
                f"{inner} ({real}) is inside {outer}, where a node takes it for the directory of a "
                "partition: name directories in log.dirs and metadata.log.dir that are apart"
            )


def _refuse_voter_ids(
    config: NodeConfig, request: FormatRequest, ensemble: MetaPropertiesEnsemble
) -> None:
    """Refuse directory ids of initial voters with which their nodes would not start.

    Kafka formats two voters of one directory id. A copied directory is then taken for its original.
    """
    owners: dict[Uuid, int] = {}
    for voter in request.initial_controllers:
        directory_id = voter.key.directory_id
        text = uuid_to_text(directory_id)
        owner = owners.setdefault(directory_id, voter.key.id)
        if owner != voter.key.id:
            raise FormatterError(
                f"Duplicate directory ID {text}: voters {owner} and {voter.key.id} cannot both have it"
            )
        if is_reserved_directory(directory_id):
            raise FormatterError(
                f"Invalid reserved directory ID {text} of voter {voter.key.id}: choose another one "
                "('quorate storage random-uuid')"
            )
        if voter.key.id != config.node_id or config.metadata_log_dir in ensemble.found:
            continue
        for directory, meta in ensemble.found.items():
            if meta.directory_id == directory_id:
                raise FormatterError(
                    f"Duplicate directory ID {text}: voter {voter.key.id} cannot have the ID of "
                    f"{directory}"
                )


def _refuse_formatted(ensemble: MetaPropertiesEnsemble, request: FormatRequest) -> None:
    if ensemble.found and not request.ignore_formatted:
        raise FormatterError(
            f"Log directory {next(iter(ensemble.found))} is already formatted. Use "
            "--ignore-formatted to ignore this directory and format the others."
        )
    if ensemble.failed and not ensemble.empty and not ensemble.found:
        reasons = "; ".join(ensemble.failed.values())
        raise NoDirectoriesError(
            f"No available log directories to format. ({reasons})", tuple(ensemble.failed)
        )


def _refuse_a_log(directory: Path) -> None:
    """Refuse to format a directory that holds a log but no meta.properties.

    Nothing says which cluster the log belongs to. Kafka's tool formats the directory and keeps the
    log; its records would enter another cluster.
    """
    try:
        found = _holds_a_log(directory / PARTITION_DIRECTORY)
    except OSError as error:
        why = error.strerror or error
        raise FormatterError(f"Cannot read {directory / PARTITION_DIRECTORY}: {why}") from None
    if found:
        raise FormatterError(
            f"{directory} holds a metadata log ({PARTITION_DIRECTORY}) but no meta.properties: "
            f"formatting it could give one quorum's records to another{HOW_TO_REPAIR}. Or move "
            f"{PARTITION_DIRECTORY} away, to begin without them"
        )


def _holds_a_log(partition: Path) -> bool:
    """Whether it holds files that an interrupted format cannot have left. Raises OSError."""
    return partition.exists() and not _leftovers(partition).issuperset(partition.iterdir())


def _leftovers(partition: Path) -> set[Path]:
    """The files that an interrupted format may leave: the snapshot 0-0, whole or in part."""
    checkpoint = partition / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
    return {checkpoint, temporary_of(checkpoint)}


def _directories(
    config: NodeConfig, request: FormatRequest, ensemble: MetaPropertiesEnsemble
) -> tuple[PlannedDirectory, ...]:
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
        chosen.append(PlannedDirectory(path, kind, directory_id))
    return tuple(chosen)


def write(plan: FormatPlan, report: Callable[[PlannedDirectory], None] = lambda _: None) -> None:
    """Format the planned directories; `report` is called before each.

    Durable on return. Raises FormatterError, which names the file that could not be written.
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


def _write_directory(plan: FormatPlan, directory: PlannedDirectory) -> None:
    path = Path(directory.path)
    # 1. The directory itself.
    make_durable_directory(path)
    # 2. The records that a new cluster's log begins with. Remove those that an interrupted format of
    #    the other layout left: the node would take them for its own.
    now_ms = int(time.time() * 1000)
    legacy = path / BOOTSTRAP_CHECKPOINT
    if not plan.is_4_4_layout:
        write_durably(legacy, bootstrap_checkpoint(plan.records, now_ms))
    elif legacy.exists():
        legacy.unlink()
        sync_directory(path)
    # 3. The snapshot 0-0: the voter set of a dynamic quorum (KIP-853), and in the layout of 4.4 the
    #    records. Else remove one that an interrupted format left.
    if _has_first_snapshot(plan, directory):
        partition = path / PARTITION_DIRECTORY
        make_durable_directory(partition)
        checkpoint = partition / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
        write_durably(checkpoint, first_snapshot(plan, now_ms), _READ_ONLY)
    else:
        _remove_leftover_snapshot(path)
    # 4. The mark of a formatted directory. It comes last: see the module's docstring.
    write_meta_properties(
        directory.path,
        MetaProperties(1, plan.cluster_id, plan.node_id, directory.directory_id, plan.member),
    )


def _has_first_snapshot(plan: FormatPlan, directory: PlannedDirectory) -> bool:
    if plan.is_4_4_layout:
        return directory.kind != "data" and plan.is_controller
    return directory.kind.startswith("dynamic")


def _remove_leftover_snapshot(directory: Path) -> None:
    """Remove, durably, the snapshot 0-0 that an interrupted format may have left.

    A snapshot beside a log stays; `plan` refuses such a metadata directory. Raises OSError.
    """
    partition = directory / PARTITION_DIRECTORY
    if not partition.exists() or _holds_a_log(partition):
        return
    for file in _leftovers(partition):
        file.unlink(missing_ok=True)
    partition.rmdir()
    sync_directory(directory)


def bootstrap_checkpoint(records: Sequence[BootstrapRecord], now_ms: int) -> bytes:
    """The bytes of bootstrap.checkpoint: a snapshot of these records with timestamp 0."""
    values = [encode_record(record, 0) for record in records]
    state = ControlState(kraft_version=0, voters=None)
    return b"".join(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, state, 0, values, now_ms))


def first_snapshot(plan: FormatPlan, now_ms: int) -> bytes:
    """The bytes of the snapshot 0-0.

    kraft.version and the initial voters, where the quorum is dynamic and they are known; the
    bootstrap records in the layout of 4.4.
    """
    voters = tuple(voter.to_voter(plan.listener_name) for voter in plan.voters) or None
    state = ControlState(plan.feature_levels[KRAFT_VERSION], voters)
    values = [encode_record(record, 0) for record in plan.records] if plan.is_4_4_layout else []
    return b"".join(encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, state, now_ms, values, now_ms))
