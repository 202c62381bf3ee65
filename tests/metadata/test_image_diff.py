"""What differs between two images, against sets worked out the plain way."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from metadata.image_strategies import any_records, calm, images, uuid_of
from quorate.formats import records as r
from quorate.metadata.diff import KeyDiff, diff
from quorate.metadata.image import Image
from quorate.metadata.replay import ImageDelta, ReplayError, replay


def plain(before, after):
    both = before.keys() & after.keys()
    return KeyDiff(
        frozenset(after.keys() - before.keys()),
        frozenset(before.keys() - after.keys()),
        frozenset(key for key in both if before[key] != after[key]),
    )


def assert_right(before, after):
    found = diff(before, after)
    assert bool(found) == (before != after)
    for name in ("configs", "client_quotas", "acls", "scram", "delegation_tokens"):
        assert getattr(found, name) == plain(
            dict(getattr(before, name)), dict(getattr(after, name))
        )
    for name in ("brokers", "controllers"):
        assert getattr(found, name) == plain(
            dict(getattr(before.cluster, name)), dict(getattr(after.cluster, name))
        )
    old, new = dict(before.topics.by_id), dict(after.topics.by_id)
    assert found.topics == plain(old, new)
    assert found.partitions == {
        id: plain(dict(old[id].partitions), dict(new[id].partitions)) for id in found.topics.changed
    }
    assert found.next_producer_id == (before.next_producer_id != after.next_producer_id)


@calm
@given(images(), images())
def test_two_unrelated_images(before, after):
    assert_right(before, after)


@calm
@given(images(), st.lists(any_records, max_size=8))
def test_an_image_and_what_became_of_it(before, found):
    after = before
    for record in found:
        try:
            after = replay(after, record)
        except ReplayError:
            continue
    assert_right(before, after)
    assert_right(after, before)


def test_equal_images_do_not_differ():
    found = [
        r.FeatureLevelRecord(name="metadata.version", feature_level=30),
        r.TopicRecord(name="t", topic_id=uuid_of(1)),
        r.PartitionRecord(partition_id=0, topic_id=uuid_of(1)),
    ]
    one, other = ImageDelta(Image()), ImageDelta(Image())
    for record in found:
        one.replay(record)
        other.replay(record)
    assert not diff(one.apply(), other.apply())


def test_metadata_version_is_a_feature():
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=30)
    found = diff(Image(), replay(Image(), level))
    assert found.features == KeyDiff(added=frozenset({"metadata.version"}))
    assert [f.name for f in fields(found) if getattr(found, f.name)] == ["features"]
