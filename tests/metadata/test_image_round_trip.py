"""`records` and `replay` are each other's inverse."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from conformance.marker import kafka_scenario
from metadata.image_strategies import calm, images, metadata_versions
from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats import records as r
from quorate.formats.records import decode_record, encode_record
from quorate.formats.versions import MetadataVersion
from quorate.metadata import replay as rules
from quorate.metadata.image import (  # type: ignore[attr-defined]
    ELR_FEATURE,
    Broker,
    Cluster,
    Controller,
    DelegationToken,
    Features,
    Image,
    Map,
    Partition,
    ScramCredential,
    ScramKey,
    Topic,
    Topics,
)
from quorate.metadata.loader import SnapshotBuilder
from quorate.metadata.replay import UnwritableMetadataError, records

ID = Uuid(bytes(15) + b"\x07")
DIRECTORY = Uuid(bytes(15) + b"\x09")


@kafka_scenario("ClusterControlManagerTest", "registrationsToRecords")
@calm
@given(images())
def test_replaying_the_records_of_an_image_gives_it_again(image):
    again = functools.reduce(rules.replay, (record for record, _ in records(image)), Image())
    assert again == image


@calm
@given(images())
def test_a_snapshot_of_an_image_gives_it_again(image):
    values = [encode_record(record, version) for record, version in records(image)]
    builder = SnapshotBuilder(OffsetAndEpoch(10, 2), 5)
    builder.feed(values)
    published = builder.finish()

    assert published.image == image
    assert published.provenance == (9, 2, 5, True)


@calm
@given(images())
def test_every_writer_writes_the_same_order(image):
    found = [record for record, _ in records(image)]

    def of(cls, *names):
        return [tuple(getattr(it, name) for name in names) for it in found if type(it) is cls]

    keys = [
        of(r.FeatureLevelRecord, "name")[1:],
        of(r.RegisterBrokerRecord, "broker_id"),
        of(r.RegisterControllerRecord, "controller_id"),
        of(r.TopicRecord, "name"),
        of(r.ConfigRecord, "resource_type", "resource_name", "name"),
        of(r.AccessControlEntryRecord, "id"),
        of(r.UserScramCredentialRecord, "mechanism", "name"),
        of(r.DelegationTokenRecord, "token_id"),
    ]
    assert keys == [sorted(set(part)) for part in keys]
    assert found[0].name == "metadata.version"  # type: ignore[attr-defined]
    indexes: dict[Uuid, list[int]] = {}
    for topic_id, index in of(r.PartitionRecord, "topic_id", "partition_id"):
        indexes.setdefault(topic_id, []).append(index)
    assert all(part == sorted(part) for part in indexes.values())
    assert len(of(r.ProducerIdsRecord)) == (image.next_producer_id >= 0)


@calm
@given(images(), metadata_versions)
def test_at_another_level_nothing_is_lost_without_a_word(image, level):
    losses: list[Any] = []
    written = list(records(image, metadata_version=level, on_loss=losses.append))
    # Every record can be encoded at the version that goes with it.
    decoded = [decode_record(encode_record(record, version))[0] for record, version in written]
    again = functools.reduce(rules.replay, decoded, Image())

    assert again.features.metadata_version == level
    moved = replace(image, features=replace(image.features, metadata_version=level))
    assert (again == moved) == (not losses)
    assert all(loss.metadata_version == level for loss in losses)


def broker(**fields):
    return Image(cluster=Cluster(brokers=Map({1: Broker(1, 5, ID, **fields)})))


def partition(**fields):
    plain = Partition((1,), (Uuid(bytes(16)),), (1,), (), (), 1, 0, 0, 0)
    topic = Topic(ID, "t", Map({0: plain._replace(**fields)}))
    return Topics(Map({ID: topic}), Map({"t": ID}))


@pytest.mark.parametrize(
    ("image", "level", "loss"),
    [
        (broker(is_migrating_zk_broker=True), 7, "the isMigratingZkBroker state"),
        (broker(directories=(DIRECTORY,)), 16, "the online log directories"),
        (broker(cordoned_directories=()), 29, "the cordoned log directories"),
        (
            Image(cluster=Cluster(controllers=Map({1: Controller(1, ID)}))),
            14,
            "controller registration data",
        ),
        (Image(topics=partition(directories=(DIRECTORY,))), 16, "the directory assignment state"),
        (
            Image(Features(levels=Map({ELR_FEATURE: 1})), topics=partition(elr=(1,))),
            22,
            "the eligible leader replicas",
        ),
        (
            Image(scram=Map({ScramKey(1, "alice"): ScramCredential(b"", b"", b"", 1)})),
            10,
            "the SCRAM credentials of alice",
        ),
        (
            Image(delegation_tokens=Map({"t1": DelegationToken("a:b", "a:b", (), 0, 0, 0)})),
            13,
            "the delegation tokens t1",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_a_level_cannot_say_is_refused(image, level, loss):
    with pytest.raises(UnwritableMetadataError, match=loss):
        list(records(image, metadata_version=MetadataVersion(level)))
    # One level up it can be said.
    list(records(image, metadata_version=MetadataVersion(level + 1)))


def test_elr_sets_are_left_out_while_the_feature_is_off():
    image = Image(Features(MetadataVersion(30)), topics=partition(elr=(1,), last_known_elr=(2,)))
    record = next(record for record, _ in records(image) if hasattr(record, "isr"))
    assert record.eligible_leader_replicas is None  # type: ignore[attr-defined]
    assert record.last_known_elr is None  # type: ignore[attr-defined]


def test_an_image_without_a_metadata_version_cannot_be_written():
    with pytest.raises(UnwritableMetadataError, match=r"has no metadata\.version yet"):
        list(records(Image()))
    assert Image().is_empty


def test_secrets_are_not_printed():
    credential = ScramCredential(b"salt", b"stored", b"server", 4096)
    assert repr(Image(scram=Map({ScramKey(1, "alice"): credential}))).count("[hidden]") == 1
    assert "stored" not in repr(credential)
