"""A change costs the same at any size: what it does not concern stays the same object."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields

import pytest
from immutables import Map

from narrow import not_none
from quorate.base.ids import Uuid
from quorate.formats import records as r
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.interning import Interner
from quorate.metadata.replay import ImageDelta, replay


def uuid_of(number):
    return Uuid(number.to_bytes(16, "big"))


def image_with(topics, partitions_each):
    delta = ImageDelta(Image())
    delta.replay(r.FeatureLevelRecord(name="metadata.version", feature_level=30))
    delta.replay(r.ConfigRecord(resource_type=2, resource_name="t1", name="a", value="b"))
    delta.replay(r.RegisterBrokerRecord(broker_id=1))
    for number in range(topics):
        delta.replay(r.TopicRecord(name=f"t{number}", topic_id=uuid_of(number)))
        for index in range(partitions_each):
            replicas = [index % 3, 3, 4]
            delta.replay(
                r.PartitionRecord(
                    partition_id=index,
                    topic_id=uuid_of(number),
                    replicas=replicas,
                    isr=replicas,
                    directories=[uuid_of(index % 3), uuid_of(3), uuid_of(4)],
                )
            )
    return delta.apply()


CHANGE = r.PartitionChangeRecord(partition_id=7, topic_id=uuid_of(1), leader=3)


@pytest.mark.parametrize("shape", [(100, 10), (2, 5000), (5000, 8)])
def test_one_change_leaves_all_else_the_same_objects(shape):
    before = image_with(*shape)
    after = replay(before, CHANGE)

    assert not_none(after.topics.partition(uuid_of(1), 7)).leader == 3
    for name in {each.name for each in fields(Image)} - {"topics"}:
        assert getattr(after, name) is getattr(before, name)
    assert after.topics.ids is before.topics.ids
    changed = [topic.id for topic in after.topics if topic is not before.topics.by_id[topic.id]]
    assert changed == [uuid_of(1)]
    new, old = (image.topics.by_id[uuid_of(1)].partitions for image in (after, before))
    assert [index for index in new if new[index] is not old[index]] == [7]
    kept = ("replicas", "directories", "isr")
    assert all(getattr(new[7], name) is getattr(old[7], name) for name in kept)


class CountedKey(str):
    """A name that counts how often it is compared."""

    compared = 0

    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedKey.compared += 1
        return str.__eq__(self, other)


def comparisons_of_a_change(size):
    """How many of `size` resources one more config looks at."""
    configs: Map[ConfigResource, Map[str, str]]
    configs = Map((ConfigResource(4, CountedKey(n)), Map({"a": "b"})) for n in range(size))
    image = Image(configs=configs)
    CountedKey.compared = 0
    replay(image, r.ConfigRecord(resource_type=4, resource_name="5", name="a", value="c"))
    return CountedKey.compared


@pytest.mark.slow
def test_a_change_looks_at_as_many_others_in_a_large_image_as_in_a_small_one():
    assert comparisons_of_a_change(10) <= 4
    assert comparisons_of_a_change(100_000) <= 4


def test_a_change_builds_as_few_objects_in_a_large_image_as_in_a_small_one():
    small, large = image_with(2, 50), image_with(2, 20_000)
    assert new_bytes(large) <= 3 * new_bytes(small)


def new_bytes(image):
    """Bytes that one change adds."""
    tracemalloc.start()
    try:
        kept = [replay(image, CHANGE) for _ in range(20)]
        return tracemalloc.get_traced_memory()[0] / len(kept)
    finally:
        tracemalloc.stop()


def test_equal_tuples_are_one_object():
    image = image_with(3, 6)
    tuples = [p.replicas for topic in image.topics for p in topic.partitions.values()]
    tuples += [p.isr for topic in image.topics for p in topic.partitions.values()]
    assert len(tuples) == 36
    assert len({id(found) for found in tuples}) == 3
    directories = [p.directories for topic in image.topics for p in topic.partitions.values()]
    assert len({id(uuid) for found in directories for uuid in found}) == 5


def test_packed_and_listed_tuples_are_the_same_object():
    interner = Interner()
    assert interner.packed_ids(b"\0\0\0\x01\xff\xff\xff\xff") is interner.ids([1, -1])
    assert interner.packed_uuids(uuid_of(1) + uuid_of(2)) is interner.uuids(
        [uuid_of(1), uuid_of(2)]
    )


def test_a_full_interner_starts_anew():
    interner = Interner()
    first = interner.ids([-1])
    for number in range(1 << 16):
        interner.ids([number])
    assert interner.ids([-1]) == first
    assert interner.ids([-1]) is not first
