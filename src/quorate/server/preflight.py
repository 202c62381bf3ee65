"""Everything that would keep a node from starting, found without a start and without a change.

The rules are those of the start (`app.run`), each asked of its owner. The start ends at the first
problem; here each rule is asked, as far as the ones before it leave something to ask about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.garbage import without_collections
from quorate.base.ids import OffsetAndEpoch
from quorate.config.node_config import (
    ALTER_CONFIG_POLICY,
    CREATE_TOPIC_POLICY,
    NodeConfig,
)
from quorate.config.node_file import config_of
from quorate.config.settings import ConfigError, Settings
from quorate.config.unsupported import unsupported
from quorate.formats.batch import values
from quorate.formats.files import PARTITION_DIRECTORY, snapshot_name
from quorate.log_dirs.meta_properties import checked_ensemble
from quorate.metadata.loader import Loader, Published, SnapshotBuilder, log_batch
from quorate.node.feature_guard import check_log
from quorate.server.bootstrap import read_bootstrap
from quorate.server.node_security import NodeSecurity
from quorate.server.policies import alter_config_policy, create_topic_policy
from quorate.server.sasl import check_sasl
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


def findings(settings: Settings) -> list[StartFinding]:
    """What keeps a node with these settings from starting, then what it would warn of.

    Policies are loaded, so the code of an operator's module runs. Raises nothing that a rule refuses.
    """
    try:
        config = config_of(settings)
    except ConfigError as error:
        # Kafka refuses the file too, and the other values have no meaning without this one.
        return [StartFinding(True, error.key or settings.source, str(error))]
    found = [*_config_problems(config), *_disk_problems(config)]
    return found + [StartFinding(False, "keys", warning) for warning in config.warnings]


def _config_problems(config: NodeConfig) -> Iterator[StartFinding]:
    for reason in unsupported(config):
        yield StartFinding(True, reason.key or config.source, str(reason))
    rules: list[tuple[str, Callable[[NodeConfig], Any]]] = [
        (CREATE_TOPIC_POLICY, create_topic_policy),
        (ALTER_CONFIG_POLICY, alter_config_policy),
        ("listeners", NodeSecurity),
    ]
    if config.sasl.problem is None:
        rules.append(("sasl.jaas.config", check_sasl))
    for about, rule in rules:
        try:
            rule(config)
        except QuorateError as error:
            yield StartFinding(True, getattr(error, "key", None) or about, str(error))


def _disk_problems(config: NodeConfig) -> Iterator[StartFinding]:
    """The log is read also where another directory is the trouble."""
    try:
        checked_ensemble(config)
    except QuorateError as error:
        yield StartFinding(True, "log.dirs", str(error))
    home = Path(config.metadata_log_dir)
    unstable = config.unstable_feature_versions_enable
    has_levels = False
    try:
        if (home / PARTITION_DIRECTORY).is_dir():
            has_levels = read_beside_writer(
                home / PARTITION_DIRECTORY, lambda: _read_log(config, unstable)
            )
        read_bootstrap(home, not has_levels, unstable)
    except QuorateError as error:
        yield StartFinding(True, str(home), str(error))
    except OSError as error:
        yield StartFinding(True, str(home), f"{error.filename or home}: {error.strerror or error}")


@without_collections()
def _read_log(config: NodeConfig, unstable: bool) -> bool:
    """Read the whole log as a node that starts; whether it has feature levels. Raises QuorateError."""
    options = LogOptions(
        segment_bytes=config.segment_bytes,
        needs_vote=True,
        node_id=config.node_id,
        static_voter_ids=tuple(voter.key.id for voter in config.static_voters),
    )
    storage = InspectedStorage(OsDisk(Path(config.metadata_log_dir)), options)
    log = storage.recovered.log
    has_levels = check_log(storage, log, unstable)
    loader = Loader()
    if log.snapshots and log.snapshots[-1].offset > 0:
        loader.install(_snapshot(storage, log.snapshots[-1]))
    for _, views in log_parts(storage, loader.next_offset, log.end_offset):
        for view in views:
            if view.last_offset >= loader.next_offset:
                loader.feed(log_batch(view))
    return has_levels


def _snapshot(storage: InspectedStorage, snapshot_id: OffsetAndEpoch) -> Published:
    builder = SnapshotBuilder(snapshot_id, -1)
    try:
        for view in snapshot_batches(storage, snapshot_id):
            builder.feed([] if view.is_control else values(view))
        return builder.finish()
    except QuorateError as error:
        raise PreflightError(f"snapshot {snapshot_name(snapshot_id)}: {error}") from error
