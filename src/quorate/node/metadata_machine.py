"""The state machine of a controller: the metadata image, and what an active node owes the others.

Until a whole controller decides here, an active node writes what Kafka's nodes need to follow it in
peace: bootstrap records when the log has none, an AbortTransactionRecord for a transaction that its
predecessor left open, a NoOpRecord now and then, and registrations of controllers.
Sources: `ActivationRecordsGenerator`, `QuorumController`, `ClusterControlManager`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Listeners, OffsetAndEpoch, Uuid
from quorate.base.notes import Warn
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterControllerRecord,
    decode_record,
    encode_record,
)
from quorate.formats.versions import (
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MetadataVersion,
    metadata_version_of,
    supported_features,
)
from quorate.metadata.image import ELR_FEATURE, Image
from quorate.metadata.loader import Loader, LogBatch, Provenance, SnapshotBuilder
from quorate.metadata.replay import record_values
from quorate.node.features import min_insync_record
from quorate.node.machine import Entry, Now
from quorate.raft.values import ControlState
from quorate.wire.schema import Message

FAILOVER: Final = "Controller failover"
BOOTSTRAP_TRANSACTION: Final = "Bootstrap records"
PLAINTEXT: Final = 0
REGISTERED_WITHIN_MS: Final = 5_000
"""How long a node's own registration may take to be applied before it is asked for again."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The records that a new cluster begins with, from `bootstrap.checkpoint`."""

    values: tuple[bytes, ...] = ()
    """Without any: metadata.version at the latest production level and nothing else."""

    def records(self) -> tuple[Message, ...]:
        """Decoded. Raises RecordError when one is damaged."""
        if not self.values:
            return (
                FeatureLevelRecord(name=METADATA_VERSION, feature_level=int(LATEST_PRODUCTION)),
            )
        return tuple(decode_record(value)[0] for value in self.values)


@dataclass(frozen=True, slots=True)
class Registrant:
    """What this controller says of itself."""

    node_id: int
    incarnation_id: Uuid
    listeners: Listeners
    unstable_features: bool = False

    def record(self) -> RegisterControllerRecord:
        features = supported_features(self.unstable_features)
        return RegisterControllerRecord(
            controller_id=self.node_id,
            incarnation_id=self.incarnation_id,
            end_points=[
                RegisterControllerRecord.ControllerEndpoint(
                    name=name, host=host, port=port, security_protocol=PLAINTEXT
                )
                for name, host, port in self.listeners
            ],
            features=[
                RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, (low, high) in features.items()
            ],
        )

    def is_registered_in(self, image: Image) -> bool:
        known = image.cluster.controllers.get(self.node_id)
        return known is not None and known.incarnation_id == self.incarnation_id


class MetadataMachine:
    """`quorate.node.machine.Machine` of a controller."""

    def __init__(
        self,
        registrant: Registrant,
        bootstrap: Bootstrap,
        max_idle_ms: int = 500,
        min_insync_replicas: int = 1,
    ) -> None:
        """max_idle_ms: `metadata.max.idle.interval.ms`, 0 for no NoOpRecords."""
        self._registrant = registrant
        self._bootstrap = bootstrap
        self._max_idle_ms = max_idle_ms
        self.min_insync_replicas = min_insync_replicas
        self._loader = Loader()
        self._builder: SnapshotBuilder | None = None
        self._queue: list[Sequence[bytes]] = []
        self._noop_at: int | None = None
        self._register_at: int | None = None
        self.notes: list[str] = []
        self.snapshots_loaded = 0
        """`HandleLoadSnapshotCount`."""

    @property
    def image(self) -> Image:
        """Everything that is committed, without the records of an open transaction."""
        return self._loader.published.image

    @property
    def provenance(self) -> Provenance:
        """Up to where `image` holds the log."""
        return self._loader.published.provenance

    # -- what is committed --------------------------------------------------------------------
    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        gc.disable()
        self._builder = SnapshotBuilder(snapshot_id, timestamp_ms)

    def load(self, values: Sequence[bytes]) -> None:
        assert self._builder is not None
        self._builder.feed(values)

    def end_load(self) -> None:
        assert self._builder is not None
        self._loader.install(self._builder.finish())
        self._builder = None
        self.snapshots_loaded += 1
        gc.freeze()
        gc.enable()

    def apply(self, entry: Entry) -> int:
        self._loader.feed(
            LogBatch(
                entry.base_offset,
                entry.last_offset,
                entry.epoch,
                entry.timestamp_ms,
                entry.values,
            )
        )
        return len(entry.values)

    def freeze(self) -> Iterable[bytes] | None:
        image = self.image
        if self._loader.transaction is not None or image.features.metadata_version is None:
            return None
        gc.freeze()  # the collector need not walk through the image as it has grown since
        return record_values(image)

    # -- what an active node owes -------------------------------------------------------------
    def lead(self, epoch: int, now: Now) -> None:
        self._queue = []
        activation = self._activation()
        if activation:
            self._queue.append([encode_record(record, 0) for record in activation])
        self._noop_at = now.monotonic_ms + self._max_idle_ms if self._max_idle_ms else None
        self._register_at = now.monotonic_ms

    def follow(self, leader_id: int, epoch: int) -> None:
        self._queue = []
        self._noop_at = None
        self._register_at = None

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        batches, self._queue = self._queue, []
        if self._is_to_register(now):
            self._register_at = now.monotonic_ms + REGISTERED_WITHIN_MS
            batches.append([encode_record(self._registrant.record(), 0)])
        if self._noop_at is not None and now.monotonic_ms >= self._noop_at:
            self._noop_at = now.monotonic_ms + self._max_idle_ms
            batches.append([encode_record(NoOpRecord(), 0)])
        return batches

    def _is_to_register(self, now: Now) -> bool:
        """Does the image lack this incarnation? Another node of this id may have taken its place,
        and then every tool would take that one for the active controller, or find none."""
        if self._register_at is None or now.monotonic_ms < self._register_at:
            return False
        version = self.image.features.metadata_version
        knows = version is not None and version.controller_registration
        return knows and not self._registrant.is_registered_in(self.image)

    def wake_at_ms(self) -> int | None:
        return self._noop_at

    def _activation(self) -> list[Message]:
        transaction = self._loader.transaction
        version = self.image.features.metadata_version
        is_empty = version is None
        found: list[Message] = []
        if is_empty:
            found = list(self._bootstrap.records())
            version = metadata_version_in(found)
            if _level(found, ELR_FEATURE):
                found.append(min_insync_record(self.min_insync_replicas))
            self.notes.append(
                f"The metadata log is empty: writing {len(found)} bootstrap record(s) at "
                f"metadata.version {version}"
            )
            if version.transactions:
                found.insert(0, BeginTransactionRecord(name=BOOTSTRAP_TRANSACTION))
                found.append(EndTransactionRecord())
        if transaction is not None:
            assert version is not None
            if not version.transactions:
                raise QuorateError(
                    f"A metadata transaction is open at offset {transaction.offset}, but "
                    f"metadata.version {version} knows no transactions: the log was damaged"
                )
            text = f"Aborting the transaction open at offset {transaction.offset}"
            self.notes.append(Warn(text))
            found.insert(0, AbortTransactionRecord(reason=FAILOVER))
        return found


def metadata_version_in(found: Sequence[Message]) -> MetadataVersion:
    """At which a cluster begins that begins so. Raises FeatureError for an unknown one."""
    return metadata_version_of(_level(found, METADATA_VERSION))


def _level(found: Sequence[Message], name: str) -> int:
    level = 0
    for record in found:
        if isinstance(record, FeatureLevelRecord) and record.name == name:
            level = record.feature_level
    return level
