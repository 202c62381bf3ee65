"""What the image raises: records that do not fit it, and images that cannot be written."""

from __future__ import annotations

from quorate.base.errors import QuorateError
from quorate.formats.versions import MetadataVersion


class ReplayError(QuorateError):
    """A record cannot be applied: it contradicts the image, or holds a value without a meaning.

    Kafka treats the same as a fatal fault. The message names the record and the facts; the
    Loader puts the offset before it.
    """

    exit_code = 65


class UnknownLevelError(ReplayError):
    """A metadata.version that this release does not have: another release of Kafka wrote it."""


class UnwritableMetadataError(QuorateError):
    """The image holds something that its metadata.version has no record for.

    `loss` says what would be lost (`UnwritableMetadataException`).
    """

    def __init__(self, metadata_version: MetadataVersion | None, loss: str) -> None:
        super().__init__(
            "the image cannot be written: it has no metadata.version yet"
            if metadata_version is None
            else f"the image cannot be written: {loss} would be lost at metadata.version "
            f"{metadata_version}; raise metadata.version, or remove it"
        )
        self.metadata_version = metadata_version
        self.loss = loss
