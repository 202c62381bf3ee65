"""What damaged or foreign bytes at rest raise."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class FormatError(QuorateError):
    """A file or record is not what it should be; the message says what and where."""

    exit_code = 65


class BatchError(FormatError):
    """A record batch is damaged or is not one that a metadata log may hold.

    `position` is the byte where the batch begins (in the file or buffer that was read).
    """

    def __init__(self, what: str, position: int) -> None:
        super().__init__(f"{what} (batch at byte {position})")
        self.position = position


class IncompleteBatchError(BatchError):
    """The bytes end inside a batch: a torn tail, or an answer cut at its size limit."""


class NewerFileError(FormatError):
    """A file of a version that 4.4.0 lacks."""


class NewerBatchError(BatchError):
    """A batch with a control record that 4.4.0 lacks. Its checksum is right."""


class RecordError(FormatError):
    """A record's value is damaged, of an unknown type, or of a version that 4.4.0 lacks."""

    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(f"{what}: {detail}" if detail else what)
        self.summary = what
        """Without the detail: what Kafka's tools print."""


class NewerRecordError(RecordError):
    """A record of a type, version or frame version that 4.4.0 lacks. Its bytes are complete as far as
    known.
    """
