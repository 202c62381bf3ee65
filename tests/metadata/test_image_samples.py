"""Kafka's own logs and snapshots are the oracle of what records mean."""

from __future__ import annotations

from typing import Any

import pytest

from metadata.samples import SNAPSHOTS, label, load, log_beside, read, snapshot_id
from quorate.formats import records as r
from quorate.formats.records import decode_record, encode_record
from quorate.metadata.loader import Loader
from quorate.metadata.replay import records

PARTS: list[set[type]] = [
    {r.FeatureLevelRecord},
    {r.RegisterBrokerRecord},
    {r.RegisterControllerRecord},
    {r.TopicRecord, r.PartitionRecord},
    {r.ConfigRecord},
    {r.ClientQuotaRecord},
    {r.ProducerIdsRecord},
    {r.AccessControlEntryRecord},
    {r.UserScramCredentialRecord},
    {r.DelegationTokenRecord},
]

every_snapshot = pytest.mark.parametrize("path", SNAPSHOTS, ids=label)


def walks():
    """(from, to): every snapshot, from the log's begin and from each snapshot before it."""
    for path in SNAPSHOTS:
        begin = next(log_beside(path)).base_offset
        if begin == 0:
            yield pytest.param(None, path, id=label(path))
        for other in SNAPSHOTS:
            offset = snapshot_id(other).offset
            if other.parent == path.parent and begin <= offset < snapshot_id(path).offset:
                yield pytest.param(other, path, id=f"{label(path)}-from-{offset}")


def test_there_are_samples():
    assert len(SNAPSHOTS) > 20
    assert len(list(walks())) > len(SNAPSHOTS)


@pytest.mark.parametrize(("start", "path"), list(walks()))
def test_the_log_up_to_a_snapshot_gives_its_image(start, path):
    loader = Loader()
    if start is not None:
        loader.install(load(start))
    for batch in log_beside(path):
        if loader.next_offset <= batch.base_offset and batch.last_offset < snapshot_id(path).offset:
            loader.feed(batch)

    assert loader.published == load(path)
    assert loader.published.provenance.snapshot_id == snapshot_id(path)


@every_snapshot
def test_an_image_is_written_as_kafka_writes_it(path):
    theirs = [decode_record(value) for value in read(path).values]
    ours = list(records(load(path).image))

    assert canonical(ours) == canonical(theirs)
    assert parts_in_order(ours) == parts_in_order(theirs)
    assert partitions_by_topic(ours) == partitions_by_topic(theirs)


def canonical(found):
    """Encoded records, sorted: between and inside records Kafka's order is that of hash maps."""
    out = []
    for record, version in found:
        match record:
            case r.RegisterBrokerRecord() | r.RegisterControllerRecord():
                record.end_points.sort(key=lambda endpoint: endpoint.name)
                record.features.sort(key=lambda feature: feature.name)
            case r.ClientQuotaRecord():
                record.entity.sort(key=lambda part: part.entity_type)
        out.append(encode_record(record, version))
    return sorted(out)


def parts_in_order(found):
    """The number of the part that each record belongs to."""
    return [
        next(number for number, types in enumerate(PARTS) if type(record) in types)
        for record, _ in found
    ]


def partitions_by_topic(found):
    """Topic id -> indexes of the partition records that directly follow its TopicRecord."""
    out: dict[Any, list[int]] = {}
    for record, _ in found:
        match record:
            case r.TopicRecord():
                current = out[record.topic_id] = []
            case r.PartitionRecord():
                current.append(record.partition_id)
    return out
