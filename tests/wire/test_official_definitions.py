"""Our declarations are Kafka's: each compared, field by field, with the JSON in Kafka's jars."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from quorate.cli.kafka_apis import KafkaApi, kafka_apis
from quorate.wire.registry import APIS, BEYOND_KAFKA, CONTROLLER_API_VERSIONS
from quorate.wire.schema import Message
from wire.message_strategies import all_messages
from wire.official_definitions import (
    CLIENTS,
    LIBS,
    declared_rows,
    definition,
    flexible_of,
    official_rows,
)

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)
def test_declaration_is_the_official_one(cls: type[Message]) -> None:
    official, schema = definition(cls.__name__), cls.schema
    low, high = schema.versions
    assert schema.name == official["name"]
    assert schema.kind == official["type"]
    assert schema.key == official.get("apiKey")
    assert (f"{low}-{high}" if high > low else str(low)) == official["validVersions"]
    flexible = schema.flexible
    assert (None if flexible is None else max(flexible, low)) == flexible_of(official)
    assert declared_rows(cls) == official_rows(official)


def test_a_controller_advertises_the_apis_with_its_listener_and_one_more() -> None:
    jar, folder = CLIENTS
    definition("VoteRequest")  # fails with a hint when there are no jars
    with ZipFile(LIBS / jar) as archive:
        names = [name for name in archive.namelist() if name.startswith(folder)]
    requests = [
        name.split("/")[-1].removesuffix(".json") for name in names if "Request.json" in name
    ]
    offered = {
        found["apiKey"]: found["validVersions"]
        for found in map(definition, requests)
        if "controller" in found.get("listeners", ()) or found["apiKey"] in BEYOND_KAFKA
    }
    ours = {
        key: f"{low}-{high}" if high > low else str(low)
        for key, (low, high) in CONTROLLER_API_VERSIONS.items()
    }
    assert ours == offered
    assert all(APIS[key].name + "Request" in requests for key in APIS)


def test_the_table_of_all_apis_is_kafkas() -> None:
    jar, folder = CLIENTS
    with ZipFile(LIBS / jar) as archive:
        names = [Path(name) for name in archive.namelist() if name.startswith(f"{folder}/")]
    found = {}
    for name in (path.stem for path in names if path.name.endswith("Request.json")):
        one = definition(name)
        low, _, high = one["validVersions"].partition("-")
        versions = None if low == "none" else (int(low), int(high or low))
        on_brokers = "broker" in one.get("listeners", ())
        key = one["apiKey"]
        found[key] = KafkaApi(key, name.removesuffix("Request"), versions, on_brokers)
    assert kafka_apis() == found
