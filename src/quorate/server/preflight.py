"""Everything that would keep a node from starting, found without a start and without a change.

The rules are those of the start (`app.run`), each asked of its owner. The start ends at the first
problem; here each rule is asked that the problems before it leave something to ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.garbage import without_collections
from quorate.base.ids import OffsetAndEpoch
from quorate.config.collecting import CollectingSettings
from quorate.config.node_config import (
    ALTER_CONFIG_POLICY,
    CREATE_TOPIC_POLICY,
    PRINCIPAL_FUNCTION,
    NodeConfig,
)
from quorate.config.node_file import config_of
from quorate.config.unsupported import unsupported
from quorate.formats.batch import values
from quorate.formats.files import PARTITION_DIRECTORY, snapshot_name
from quorate.formats.supported_levels import UnsupportedLevelError
from quorate.log_dirs.meta_properties import directory_problems, load_ensemble
from quorate.metadata.loader import Loader, Published, SnapshotBuilder, log_batch
from quorate.node.feature_guard import check_log
from quorate.server.bootstrap import read_bootstrap
from quorate.server.node_security import NodeSecurity, page_security, tls_problems
from quorate.server.policies import alter_config_policy, create_topic_policy
from quorate.server.principals import principal_builder
from quorate.server.sasl import sasl_problems
from quorate.storage.batches import log_parts, snapshot_batches
from quorate.storage.disk import OsDisk
from quorate.storage.inspection import InspectedStorage, read_beside_writer
from quorate.storage.log import LogOptions


class PreflightError(QuorateError):
    """A snapshot cannot be loaded: which one and why."""


class StartFinding(NamedTuple):
    """One thing to know before a node starts."""

    blocks: bool
    """False: the node starts, and something of the file has no effect there."""
    about: str
    """The key of the file, the directory, or what else the rule is about."""
    reason: str


def findings(settings: CollectingSettings) -> list[StartFinding]:
    """What keeps a node with these settings from starting, then what it would warn of.

    Policies are loaded, so the code of an operator's module runs. Raises nothing that a rule refuses.
    """
    config = config_of(settings)
    found = [
        *(_blocks(fault, settings.source) for fault in settings.faults),
        *_config_problems(config),
        *_security_problems(config, settings),
        *_directory_problems(config, settings),
        *_log_problems(config),
        *(StartFinding(False, "keys", warning) for warning in config.warnings),
    ]
    return list(dict.fromkeys(found))  # a rule may be asked twice, as of two listeners


def _blocks(error: QuorateError, about: str) -> StartFinding:
    return StartFinding(True, getattr(error, "key", None) or about, str(error))


def _config_problems(config: NodeConfig) -> Iterator[StartFinding]:
    for reason in unsupported(config):
        yield _blocks(reason, config.source)
    rules: list[tuple[str, Callable[[NodeConfig], Any]]] = [
        (CREATE_TOPIC_POLICY, create_topic_policy),
        (ALTER_CONFIG_POLICY, alter_config_policy),
        (PRINCIPAL_FUNCTION, principal_builder),
    ]
    for about, rule in rules:
        try:
            rule(config)
        except QuorateError as error:
            yield _blocks(error, about)


def _security_problems(config: NodeConfig, settings: CollectingSettings) -> Iterator[StartFinding]:
    """What is wrong with stores and logins, without the keys that have a fault already."""
    bare = replace(config, principal_function="")
    found = [_blocks(problem, "listeners") for problem in tls_problems(config)]
    found += [_blocks(problem, key) for key, problem in sasl_problems(config)]
    for part in (page_security, NodeSecurity):  # the second has all, and stops at the first
        try:
            part(replace(bare, pages=replace(bare.pages, tls=None)))
        except QuorateError as error:
            found.append(_blocks(error, "listeners"))
    yield from (each for each in found if not settings.has_fault_of(each.about))


def _directory_problems(config: NodeConfig, settings: CollectingSettings) -> Iterator[StartFinding]:
    if not config.metadata_log_dir:
        return
    node_id = None if settings.is_unknown("node.id") else config.node_id
    ensemble = load_ensemble(config.directories, config.metadata_log_dir)
    for problem in directory_problems(config, ensemble, node_id):
        yield _blocks(problem, "log.dirs")


def _log_problems(config: NodeConfig) -> Iterator[StartFinding]:
    """The log is read also where another directory is the trouble."""
    if not config.metadata_log_dir:
        return
    home = Path(config.metadata_log_dir)
    unstable = config.unstable_feature_versions_enable
    partition = home / PARTITION_DIRECTORY
    has_levels = [partition.is_dir()]  # also where the log cannot be read: its levels are open then
    levels: list[UnsupportedLevelError] = []

    def read_log() -> None:
        if has_levels[0]:
            has_levels[0], levels[:] = read_beside_writer(
                partition, lambda: _read_log(config, unstable)
            )

    for read in (read_log, lambda: read_bootstrap(home, not has_levels[0], unstable)):
        try:
            read()
        except QuorateError as error:
            yield StartFinding(True, str(home), str(error))
        except OSError as error:
            reason = f"{error.filename or home}: {error.strerror or error}"
            yield StartFinding(True, str(home), reason)
    yield from (StartFinding(True, str(home), str(level)) for level in levels)


@without_collections()
def _read_log(config: NodeConfig, unstable: bool) -> tuple[bool, list[UnsupportedLevelError]]:
    """Read the whole log as a node that starts. Raises QuorateError.

    Returns whether it has feature levels, and the first record of each that is not supported.
    """
    options = LogOptions(
        segment_bytes=config.segment_bytes,
        needs_vote=True,
        node_id=config.node_id,
        static_voter_ids=tuple(voter.key.id for voter in config.static_voters),
    )
    storage = InspectedStorage(OsDisk(Path(config.metadata_log_dir)), options)
    log = storage.recovered.log
    levels: dict[tuple[str, int], UnsupportedLevelError] = {}
    has_levels = check_log(
        storage, log, unstable, lambda error: levels.setdefault(error.feature, error)
    )
    if levels:  # what follows may be of the same release: nothing can be said of it
        return has_levels, list(levels.values())
    loader = Loader()
    if log.snapshots and log.snapshots[-1].offset > 0:
        loader.install(_snapshot(storage, log.snapshots[-1]))
    for _, views in log_parts(storage, loader.next_offset, log.end_offset):
        for view in views:
            if view.last_offset >= loader.next_offset:
                loader.feed(log_batch(view))
    return has_levels, []


def _snapshot(storage: InspectedStorage, snapshot_id: OffsetAndEpoch) -> Published:
    builder = SnapshotBuilder(snapshot_id, -1)
    try:
        for view in snapshot_batches(storage, snapshot_id):
            builder.feed([] if view.is_control else values(view))
        return builder.finish()
    except QuorateError as error:
        raise PreflightError(f"snapshot {snapshot_name(snapshot_id)}: {error}") from error
