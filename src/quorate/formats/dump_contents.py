"""The key and value of a record as dump-log prints them: for each decoder, text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

from quorate.formats.errors import NewerRecordError, RecordError
from quorate.formats.json_text import record_json, text, to_json
from quorate.formats.loose_records import DumpError, LooseRecord, plain_text
from quorate.formats.quick_json import RecordPrinter
from quorate.formats.records import decode_record_as_java
from quorate.wire.schema import Message

_UNKNOWN_TYPE: Final = "Unknown metadata id"


class LogKind(Enum):
    """What the records of a log are, by the option of Kafka's tool."""

    TEXT = "print-data-log"
    OFFSETS = "offsets-decoder"
    TRANSACTIONS = "transaction-log-decoder"
    METADATA = "cluster-metadata-decoder"
    REMOTE_LOG = "remote-log-metadata-decoder"
    SHARE_STATE = "share-group-state-decoder"


class TextDecoder(Enum):
    """How keys and values become text, by the name of Kafka's class (`org.apache.kafka.tools.api`)."""

    STRING = "StringDecoder"
    INTEGER = "IntegerDecoder"
    LONG = "LongDecoder"
    DEFAULT = "DefaultDecoder"


_NUMBER_SIZES: Final = {TextDecoder.INTEGER: 4, TextDecoder.LONG: 8}
TEXT_DECODERS: Final = (TextDecoder.STRING, TextDecoder.STRING)
"""Of keys and of values, where nothing else is asked for."""


class UndecodableError(DumpError):
    """A record that its decoder cannot print: Kafka's tool ends there."""


class Contents(Protocol):
    """Prints the key and value of records."""

    def texts(self, record: LooseRecord) -> tuple[str | None, str | None]:
        """What stands behind `key:` and `payload:`; None where nothing does."""

    def members(self, record: LooseRecord) -> str:
        """Members of a JSON object."""


class TextContents:
    """Keys and values as text. `decoders`: of keys and of values."""

    def __init__(self, decoders: tuple[TextDecoder, TextDecoder]) -> None:
        self._key, self._value = decoders

    def texts(self, record: LooseRecord) -> tuple[str | None, str | None]:
        """Key and value, if the record has them. Raises UndecodableError."""
        return (
            None if record.key is None else _decoded(self._key, record, record.key),
            None if record.value is None else _decoded(self._value, record, record.value),
        )

    def members(self, record: LooseRecord) -> str:
        """The members `key` and `value`. Raises UndecodableError."""
        key, value = ("null" if word is None else text(word) for word in self.texts(record))
        return f'"key":{key},"value":{value}'


class MetadataContents:
    """Records of cluster metadata."""

    def __init__(self) -> None:
        self._printer = RecordPrinter()

    def texts(self, record: LooseRecord) -> tuple[str | None, str | None]:
        """The record as payload."""
        try:
            return None, self._printer.print(record.value or b"")
        except RecordError as error:
            return None, f"Error at {record.offset}, skipping. {_java_message(error)}"

    def members(self, record: LooseRecord) -> str:
        """The members `type`, `version` and `data`, or `error`."""
        try:
            return self._printer.print(record.value or b"")[1:-1]
        except RecordError as error:
            return _error_member(error)

    def payloads(self, offset: int, values: Sequence[bytes]) -> list[str]:
        """Return what `texts` returns of each value; the first has this offset."""
        try:
            return self._printer.print_all(values)
        except RecordError:
            records = (LooseRecord(offset + n, 0, None, value) for n, value in enumerate(values))
            return [self.texts(record)[1] or "" for record in records]


class CoordinatorContents:
    """Records of a coordinator of brokers."""

    def __init__(self, kind: LogKind) -> None:
        # Imported here: declaring these messages takes time that other dumps need not spend.
        from quorate.formats.topics import coordinator

        self._decode = coordinator.decode_coordinator_record
        self._unknown_type = coordinator.UnknownTypeError
        self._types = {
            LogKind.OFFSETS: coordinator.GROUP_RECORDS,
            LogKind.TRANSACTIONS: coordinator.TRANSACTION_RECORDS,
            LogKind.SHARE_STATE: coordinator.SHARE_RECORDS,
        }[kind]

    def texts(self, record: LooseRecord) -> tuple[str | None, str | None]:
        """Key and value as JSON. Raises UndecodableError for a record without a key."""
        if record.key is None:
            raise UndecodableError(
                f"Failed to decode message at offset {record.offset} using the specified decoder "
                "(message had a missing key)"
            )
        try:
            found = self._decode(record.key, record.value, self._types)
        except self._unknown_type as error:
            return (
                f"Unknown record type {error.type_id} at offset {record.offset}, skipping.",
                None,
            )
        except RecordError as error:
            return f"Error at offset {record.offset}, skipping. {error}", None
        key = f'{{"type":"{type(found.key).schema.key}","data":{to_json(found.key, 0)}}}'
        if found.value is None:
            return key, "<DELETE>"
        data = _value_json(found.value, found.version)
        return key, f'{{"version":"{found.version}","data":{data}}}'

    def members(self, record: LooseRecord) -> str:
        """The members `type`, `key`, `version` and `value`, or `error`."""
        if record.key is None:
            return '"error":"the record has no key"'
        try:
            found = self._decode(record.key, record.value, self._types)
        except RecordError as error:
            return _error_member(error)
        name = type(found.key).__name__.removesuffix("Key")
        head = f'"type":"{name}","key":{to_json(found.key, 0)}'
        if found.value is None:
            return f'{head},"version":null,"value":null'
        return f'{head},"version":{found.version},"value":{_value_json(found.value, found.version)}'


class RemoteLogContents:
    """Records about segments in a remote storage."""

    def __init__(self) -> None:
        # Imported here, as in CoordinatorContents.
        from quorate.formats.topics import remote_log_text

        self._types = remote_log_text.REMOTE_LOG_RECORDS
        self._text = remote_log_text.remote_log_text

    def texts(self, record: LooseRecord) -> tuple[str | None, str | None]:
        """The record as payload."""
        try:
            return None, self._text(decode_record_as_java(record.value or b"", self._types)[0])
        except RecordError as error:
            return None, f"Error at offset {record.offset}, skipping. {_java_message(error)}"

    def members(self, record: LooseRecord) -> str:
        """The members `type`, `version` and `data`, or `error`."""
        try:
            return record_json(*decode_record_as_java(record.value or b"", self._types))[1:-1]
        except RecordError as error:
            return _error_member(error)


def contents_of(kind: LogKind, decoders: tuple[TextDecoder, TextDecoder]) -> Contents:
    """What prints the records of a log; the decoders are those of keys and values as text."""
    match kind:
        case LogKind.TEXT:
            return TextContents(decoders)
        case LogKind.METADATA:
            return MetadataContents()
        case LogKind.REMOTE_LOG:
            return RemoteLogContents()
        case _:
            return CoordinatorContents(kind)


def _decoded(decoder: TextDecoder, record: LooseRecord, data: bytes) -> str:
    if decoder is TextDecoder.STRING:
        return plain_text(data)
    if decoder is TextDecoder.DEFAULT:
        return data.hex()
    size = _NUMBER_SIZES[decoder]
    if len(data) < size:
        raise UndecodableError(
            f"{decoder.value} needs {size} bytes, and the record at offset {record.offset} has "
            f"{len(data)}"
        )
    return str(int.from_bytes(data[:size], "big", signed=True))


def _value_json(value: Message, version: int) -> str:
    from quorate.formats.topics.group_json import group_json
    from quorate.formats.topics.groups import GroupMetadataValue

    return (
        group_json(value, version)
        if isinstance(value, GroupMetadataValue)
        else to_json(value, version)
    )


def _java_message(error: RecordError) -> str:
    """The message of the exception in Kafka's tool."""
    if isinstance(error, NewerRecordError) and error.summary.startswith(_UNKNOWN_TYPE):
        return f"org.apache.kafka.common.errors.UnsupportedVersionException: {error.summary}"
    return error.summary


def _error_member(error: RecordError) -> str:
    return f'"error":{text(str(error))}'
