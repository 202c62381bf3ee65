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


def test_no_record_type_of_kafka_is_missing() -> None:
    jar, folder = METADATA
    definition("TopicRecord", METADATA)  # fails with a hint when there are no jars
    with ZipFile(LIBS / jar) as archive:
        files = {
            name.split("/")[-1].removesuffix(".json")
            for name in archive.namelist()
            if name.startswith(folder) and name.endswith(".json")
        }
    ours = {FILE_NAMES.get(cls.__name__, cls.__name__) for cls in RECORD_TYPES.values()}
    assert ours == files and len(ours) == 27
