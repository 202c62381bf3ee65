"""Our record declarations are Kafka's: each compared, field by field, with the JSON in its jars."""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from quorate.formats.control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quorate.formats.records import RECORD_TYPES
from quorate.formats.topics.coordinator import GROUP_RECORDS, SHARE_RECORDS, TRANSACTION_RECORDS
from quorate.formats.topics.groups import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from quorate.formats.topics.remote_log_text import REMOTE_LOG_RECORDS
from quorate.wire.schema import Message
from wire.official_definitions import (
    CLIENTS,
    LIBS,
    METADATA,
    declared_rows,
    definition,
    flexible_of,
    official_rows,
)

pytestmark = pytest.mark.interop

CONTROL = [
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
]
FILE_NAMES = {"ZkMigrationStateRecord": "ZkMigrationRecord"}
"""Where the file is not named after its record."""


GROUPS = ("kafka-group-coordinator-4.4.0.jar", "common/message")
TRANSACTIONS = ("kafka-transaction-coordinator-4.4.0.jar", "common/message")
SHARES = ("kafka-share-coordinator-4.4.0.jar", "common/message")
REMOTE_LOG = ("kafka-storage-4.4.0.jar", "message")
TOPICS = [
    (source, cls)
    for source, types in (
        (GROUPS, GROUP_RECORDS),
        (TRANSACTIONS, TRANSACTION_RECORDS),
        (SHARES, SHARE_RECORDS),
    )
    for pair in types.values()
    for cls in (pair.key, pair.value)
]
TOPICS += [(REMOTE_LOG, cls) for cls in REMOTE_LOG_RECORDS.values()]
CONSUMER_PROTOCOL = [ConsumerProtocolAssignment, ConsumerProtocolSubscription]


def check(cls: type[Message], source: tuple[str, str]) -> None:
    official = definition(FILE_NAMES.get(cls.__name__, cls.__name__), source)
    schema = cls.schema
    low, high = schema.versions
    assert schema.name == official["name"]
    assert schema.kind == official["type"]
    assert schema.key == official.get("apiKey")
    assert (f"{low}-{high}" if high > low else str(low)) == official["validVersions"]
    assert schema.flexible == flexible_of(official)
    assert declared_rows(cls) == official_rows(official)


@pytest.mark.parametrize("cls", RECORD_TYPES.values(), ids=lambda cls: cls.__name__)
def test_metadata_record_is_declared_as_kafka_does(cls: type[Message]) -> None:
    check(cls, METADATA)


@pytest.mark.parametrize("cls", CONTROL, ids=lambda cls: cls.__name__)
def test_control_record_is_declared_as_kafka_does(cls: type[Message]) -> None:
    check(cls, CLIENTS)


@pytest.mark.parametrize(
    ("source", "cls"), TOPICS, ids=lambda value: getattr(value, "__name__", "")
)
def test_record_of_an_internal_topic_is_declared_as_kafka_does(
    source: tuple[str, str], cls: type[Message]
) -> None:
    check(cls, source)


@pytest.mark.parametrize("cls", CONSUMER_PROTOCOL, ids=lambda cls: cls.__name__)
def test_what_consumers_write_is_declared_as_kafka_does(cls: type[Message]) -> None:
    check(cls, CLIENTS)


@pytest.mark.parametrize("source", [GROUPS, TRANSACTIONS, SHARES, REMOTE_LOG], ids=lambda s: s[0])
def test_no_record_of_an_internal_topic_is_missing(source: tuple[str, str]) -> None:
    ours = {cls.__name__ for found, cls in TOPICS if found == source}
    assert ours == files_of(source) - {"ProducerSnapshot"}


def test_no_record_type_of_kafka_is_missing() -> None:
    ours = {FILE_NAMES.get(cls.__name__, cls.__name__) for cls in RECORD_TYPES.values()}
    assert ours == files_of(METADATA) and len(ours) == 27


def files_of(source: tuple[str, str]) -> set[str]:
    """The names of all definitions in a folder of a jar."""
    jar, folder = source
    definition("TopicRecord", METADATA)  # fails with a hint when there are no jars
    with ZipFile(LIBS / jar) as archive:
        return {
            name.split("/")[-1].removesuffix(".json")
            for name in archive.namelist()
            if name.startswith(folder) and name.endswith(".json")
        }
