"""Feature levels that a node does not support are refused before they matter."""

import pytest

from node.world import World
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch, encode_control_batch
from quorate.formats.records import FeatureLevelRecord, NoOpRecord, encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.formats.supported_levels import UnsupportedLevelError, check_level
from quorate.node.feature_guard import FeatureGuard, check_log
from quorate.node.metadata_machine import MetadataMachine
from quorate.raft.values import Batch, ControlState, KRaftVersion, Voters
from quorate.replica.proposals import Submit
from quorate.replica.state_machine import CommittedBatch
from quorate.storage.api import AppendedBatch
from quorate.storage.memory import MemoryStorage

NO_OP = encode_record(NoOpRecord(), 0)


def level(value, name="metadata.version"):
    return encode_record(FeatureLevelRecord(name=name, feature_level=value), 0)


TEXTS = {
    ("metadata.version", 34): (
        "feature metadata.version has level 34 (4.5-IV0), and this node supports levels 7 to 33 "
        "(3.3-IV3 to 4.4-IV2). Kafka 4.5 has it: run this node with a release that supports it"
    ),
    ("metadata.version", 40): "level 40, and this node supports levels 7 to 33 (3.3-IV3 to 4.4-",
    ("metadata.version", 6): "Kafka before 3.3 has it: upgrade the cluster to metadata.version 7",
    ("share.version", 3): (
        "feature share.version has level 3, and this node supports levels 0 to 2. A release after "
        "Kafka 4.4 has it"
    ),
    ("kraft.version", 2): "feature kraft.version has level 2, and this node supports levels 0 to 1",
    ("odd.version", 1): "feature odd.version has level 1, and this node supports no level of it.",
}


@pytest.mark.parametrize(("name", "value"), TEXTS)
def test_the_text_names_feature_level_range_release_and_remedy(name, value):
    with pytest.raises(UnsupportedLevelError) as refused:
        check_level(name, value, False, "here")
    assert TEXTS[name, value] in str(refused.value)
    assert str(refused.value).startswith("here: ")


@pytest.mark.parametrize(
    ("name", "value", "unstable"),
    [("metadata.version", 33, False), ("metadata.version", 34, True), ("odd.version", 0, False)],
)
def test_supported_levels_pass(name, value, unstable):
    check_level(name, value, unstable, "here")


# -- at the start ----------------------------------------------------------------------------------
def disk(*batches, snapshot=None, kraft_version=1):
    """A storage with a log of these batches: lists of values, or a control record."""
    storage = MemoryStorage()
    storage.open()
    offset = 0
    for batch in batches:
        if isinstance(batch, KRaftVersion | Voters):
            data, last = encode_control_batch(offset, 1, 1, [batch]), offset
        else:
            data, last = encode_batch(offset, 1, 1, batch), offset + len(batch) - 1
        storage.append([AppendedBatch(offset, last, 1, data)])
        offset = last + 1
    storage.sync()
    if snapshot is not None:
        snapshot_id, values = snapshot
        control = ControlState(kraft_version, None)
        writer = storage.create_snapshot(snapshot_id)
        for data in encode_snapshot(snapshot_id, control, 1, values, 1):
            writer.append(data)
        writer.freeze()
    storage.close()
    return storage


def check(storage, unstable=False):
    recovered = storage.open()
    try:
        return check_log(storage, recovered.log, unstable)
    finally:
        storage.close()


def test_a_log_without_levels_may_begin_with_the_bootstrap_records():
    assert not check(disk())
    assert not check(disk([NO_OP], KRaftVersion(1)))
    first = OffsetAndEpoch(0, 0)
    assert not check(disk(snapshot=(first, [level(99)])))


def test_a_log_of_supported_levels_is_accepted():
    assert check(disk([level(30)], [NO_OP], [level(33), level(2, "share.version")]))
    snapshot = (OffsetAndEpoch(2, 1), [level(33), NO_OP])
    assert check(disk([NO_OP], [NO_OP], [NO_OP], snapshot=snapshot))
    assert check(disk([level(30)], KRaftVersion(1), Voters(())))


@pytest.mark.parametrize(
    ("batches", "where"),
    [
        (
            ([level(30)], [NO_OP, level(34)]),
            "offsets 1 to 2: feature metadata.version has level 34",
        ),
        (([level(30), level(3, "share.version")],), "offsets 0 to 1: feature share.version"),
        (([level(30)], KRaftVersion(2)), "offset 1: feature kraft.version has level 2"),
    ],
)
def test_a_log_with_another_level_is_refused_committed_or_not(batches, where):
    with pytest.raises(UnsupportedLevelError, match=where):
        check(disk(*batches))


def test_a_snapshot_with_another_level_is_refused():
    snapshot = (OffsetAndEpoch(1, 1), [level(33), level(1, "odd.version"), NO_OP])
    with pytest.raises(UnsupportedLevelError, match=r"snapshot 0+1-0+1\.checkpoint: feature odd"):
        check(disk([NO_OP], snapshot=snapshot))
    snapshot = (OffsetAndEpoch(1, 1), [level(33)])
    with pytest.raises(UnsupportedLevelError, match=r"feature kraft\.version has level 2"):
        check(disk([NO_OP], snapshot=snapshot, kraft_version=2))


def test_what_the_snapshot_has_superseded_does_not_count():
    snapshot = (OffsetAndEpoch(1, 1), [level(33)])
    with pytest.raises(UnsupportedLevelError):
        check(disk([level(34)], [NO_OP]))
    assert check(disk([level(34)], [NO_OP], snapshot=snapshot))


def test_unstable_levels_are_accepted_on_request():
    assert check(disk([level(34)]), unstable=True)


# -- while it runs ---------------------------------------------------------------------------------
def test_a_batch_is_checked_before_it_is_appended():
    guard = FeatureGuard()
    guard.check_batch(Batch(0, 0, 1, 0, payload=encode_batch(0, 1, 1, [level(33)])))
    with pytest.raises(UnsupportedLevelError, match="offsets 5 to 6: feature odd"):
        values = [NO_OP, level(1, "odd.version")]
        guard.check_batch(Batch(5, 6, 1, 0, payload=encode_batch(5, 1, 1, values)))
    with pytest.raises(UnsupportedLevelError, match="has level 2, and"):
        guard.check_batch(Batch(7, 7, 1, 0, control=(KRaftVersion(2),)))


def test_what_is_applied_is_checked():
    machine = MetadataMachine()
    with pytest.raises(UnsupportedLevelError, match="offsets 0 to 0"):
        machine.apply(CommittedBatch(0, 0, 1, 1, [level(34)]))
    machine.begin_load(OffsetAndEpoch(1, 1), 1)
    with pytest.raises(UnsupportedLevelError, match=r"^snapshot 0{19}1-0{9}1.checkpoint: feature"):
        machine.load([level(34)])
    machine = MetadataMachine(FeatureGuard(unstable=True))
    machine.apply(CommittedBatch(0, 0, 1, 1, [level(34)]))
    assert machine.image.features.metadata_version == 34


def test_a_follower_ends_before_it_acknowledges_a_level_that_it_cannot_serve():
    """It neither writes the record, which may be taken back, nor stands for election with it."""
    first = World()
    leader = first.run_until(lambda: first.active).node_id
    world = World(unstable=(leader,))  # the same seed, so the same leader
    node = world.nodes[leader]
    world.run_until(lambda: world.active is node and node.image.features.metadata_version)
    world.give(leader, Submit(77, (level(34),)))
    with pytest.raises(UnsupportedLevelError, match="has level 34 "):
        world.run(5_000)
    end = node.core.log_end.offset
    assert node.image.features.metadata_version == 30
    for other in world.nodes.values():
        if other is not node:
            assert other.storage.crash().open().log.end_offset < end
