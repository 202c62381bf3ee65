"""The values of formatting a node's log directories: what is asked for, and what will be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid
from quorate.config.dynamic_voters import DynamicVoter
from quorate.formats.records import FeatureLevelRecord, UserScramCredentialRecord
from quorate.formats.versions import MetadataVersion

BootstrapRecord = FeatureLevelRecord | UserScramCredentialRecord


class FormatterError(QuorateError):
    """Formatting is refused, or a file cannot be written."""


class NoDirectoriesError(FormatterError):
    """No directory can be read."""

    def __init__(self, text: str, unreadable: tuple[str, ...]) -> None:
        super().__init__(text)
        self.unreadable = unreadable


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """The options of a format, in addition to the node's configuration."""

    cluster_id: str
    release_version: MetadataVersion | None = None
    feature_levels: Mapping[str, int] = field(default_factory=dict)
    initial_controllers: tuple[DynamicVoter, ...] = ()
    scram: Sequence[str] = ()
    ignore_formatted: bool = False
    member: bool = False
    """Format the directory for a member of quorate.embed."""


@dataclass(frozen=True, slots=True)
class PlannedDirectory:
    """A directory that `write` will format."""

    path: str
    kind: str
    """data, metadata, dynamic metadata, or dynamic metadata voter."""
    directory_id: Uuid

    @property
    def description(self) -> str:
        """The words that Kafka's tool prints for the directory."""
        return f"{self.kind} directory"


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """Everything that `write` will write."""

    cluster_id: str
    node_id: int
    metadata_version: MetadataVersion
    feature_levels: Mapping[str, int]
    records: tuple[BootstrapRecord, ...]
    voters: tuple[DynamicVoter, ...]
    listener_name: str
    directories: tuple[PlannedDirectory, ...]
    """The directories without meta.properties; empty when all are formatted."""
    unreadable: tuple[str, ...]
    member: bool = False
    is_controller: bool = True

    @property
    def is_4_4_layout(self) -> bool:
        """The bootstrap records are in the snapshot 0-0, and there is no bootstrap.checkpoint.

        Kafka 4.4 reads both layouts, Kafka 4.3 only the old one (KAFKA-19648). So the layout is that
        of the release that is asked for (decision 16).
        """
        return self.metadata_version >= MetadataVersion.IBP_4_4_IV0
