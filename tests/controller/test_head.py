"""The head image: applied, committed, reverted; the committed image is taken from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from narrow import not_none
from quorate.controller.head import Head
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RegisterControllerRecord,
    UnregisterControllerRecord,
    encode_record,
)
from quorate.metadata.errors import ReplayError
from quorate.node.metadata_machine import MetadataMachine
from quorate.replica.state_machine import CommittedBatch


def config(name, value="x"):
    return ConfigRecord(resource_type=16, resource_name="r", name=name, value=value)


def encoded(records):
    return [encode_record(record, type(record).schema.versions[1]) for record in records]


def names(image):
    return sorted(name for configs in image.configs.values() for name in configs)


class Log:
    """A state machine fed batch by batch."""

    def __init__(self):
        self.machine = MetadataMachine()
        self.end = 0

    @property
    def head(self) -> Head:
        return self.machine.head

    def decide(self, *records):
        values = encoded(records)
        self.head.apply(list(records), values)
        return values

    def commit(self, *values, epoch=1):
        batch = CommittedBatch(self.end, self.end + len(values) - 1, epoch, 1, list(values))
        assert self.machine.apply(batch) == len(values)
        self.end += len(values)


@kafka_scenario("OffsetControlManagerTest", "handleScheduleAtomicAppend")
def test_what_is_decided_is_in_the_head_and_not_committed():
    log = Log()
    log.decide(config("a"))
    assert (names(log.head.image), names(log.head.committed)) == (["a"], [])
    assert log.head.outstanding == 1


@kafka_scenario("OffsetControlManagerTest", "handleScheduleAtomicAppend")
def test_the_committed_image_is_the_one_of_the_head():
    log = Log()
    one = log.decide(config("a"))
    after_one = log.head.image
    two = log.decide(config("b"))
    log.commit(*one)
    assert log.machine.image is after_one
    log.commit(*two)
    assert log.machine.image is log.head.image
    assert (log.machine.provenance.offset, log.head.outstanding) == (1, 0)


def test_several_decisions_may_commit_as_one_batch():
    log = Log()
    values = [*log.decide(config("a"), config("b")), *log.decide(config("c"))]
    log.commit(*values)
    assert names(log.machine.image) == ["a", "b", "c"]
    assert log.machine.image is log.head.image


def test_a_lost_leadership_takes_the_head_back():
    log = Log()
    log.commit(*log.decide(config("a")))
    log.decide(config("b"))
    log.head.revert()
    assert log.head.image is log.head.committed
    assert names(log.head.image) == ["a"]


def test_another_leaders_records_take_the_head_back():
    log = Log()
    log.decide(config("a"))
    log.decide(config("b"))
    log.commit(*encoded([config("c")]), epoch=2)
    assert names(log.head.image) == names(log.machine.image) == ["c"]
    assert log.head.outstanding == 0


def test_more_than_was_decided_is_replayed():
    log = Log()
    values = log.decide(config("a"))
    log.commit(*values, *encoded([config("b")]))
    assert names(log.head.image) == names(log.machine.image) == ["a", "b"]


@kafka_scenario("OffsetControlManagerTest", "replayTransaction")
def test_a_transaction_is_in_the_head_and_committed_at_its_end():
    log = Log()
    begin = log.decide(BeginTransactionRecord(name="t"), config("a"))
    assert names(log.head.image) == ["a"] and not_none(log.head.transaction).name == "t"
    log.commit(*begin)
    assert (names(log.head.image), names(log.machine.image)) == (["a"], [])
    log.commit(*log.decide(EndTransactionRecord()))
    assert names(log.head.image) == names(log.machine.image) == ["a"]
    assert log.head.transaction is None


@kafka_scenario("OffsetControlManagerTest", "replayTransaction")
def test_an_aborted_transaction_leaves_nothing_in_the_head():
    log = Log()
    log.commit(*encoded([config("z"), BeginTransactionRecord(name="t"), config("a")]))
    assert names(log.head.image) == ["a", "z"] and not_none(log.head.transaction).offset == 1
    values = log.decide(AbortTransactionRecord(reason="r"), config("b"))
    assert names(log.head.image) == ["b", "z"]
    log.commit(*values)
    assert names(log.head.image) == names(log.machine.image) == ["b", "z"]


@pytest.mark.parametrize(
    "records",
    [
        [EndTransactionRecord()],
        [AbortTransactionRecord()],
        [BeginTransactionRecord(), BeginTransactionRecord()],
    ],
)
def test_transaction_markers_out_of_place_change_nothing(records):
    log = Log()
    with pytest.raises(ReplayError):
        log.decide(config("a"), *records)
    assert (names(log.head.image), log.head.outstanding) == ([], 0)


def test_only_a_registered_controller_is_unregistered():
    """Nobody else writes the record: `ClusterControlManager` cannot replay it, which is fatal."""
    log = Log()
    log.commit(*log.decide(RegisterControllerRecord(controller_id=2)))
    log.decide(UnregisterControllerRecord(controller_id=2))
    assert not log.head.image.cluster.controllers
    with pytest.raises(ReplayError, match=r"^UnregisterControllerRecord: controller 2 is not"):
        log.decide(config("a"), UnregisterControllerRecord(controller_id=2))
    assert (names(log.head.image), log.head.outstanding) == ([], 1)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)),
        st.tuples(st.just("commit"), st.integers(1, 3)),
        st.tuples(st.just("foreign"), st.sampled_from("abcd")),
        st.tuples(st.just("lose"), st.none()),
    ),
    max_size=30,
)


@given(actions)
def test_the_image_is_that_of_a_replay_of_the_log(actions):
    """Whatever is decided, committed in one batch or several, lost, or written by another leader."""
    log, replayed, outstanding, epoch = Log(), Log(), [], 1
    for number, (action, argument) in enumerate(actions):
        if action == "decide":
            outstanding.append(log.decide(*[config(name, str(number)) for name in argument]))
        elif action == "commit" and outstanding:
            taken, outstanding = outstanding[:argument], outstanding[argument:]
            values = [value for part in taken for value in part]
            log.commit(*values, epoch=epoch)
            replayed.commit(*values, epoch=epoch)
        elif action == "foreign":
            values, epoch, outstanding = encoded([config(argument, "other")]), epoch + 1, []
            log.commit(*values, epoch=epoch)
            replayed.commit(*values, epoch=epoch)
        elif action == "lose":
            epoch, outstanding = epoch + 2, []
            log.head.revert()
        assert log.machine.image == replayed.machine.image
        assert log.machine.provenance == replayed.machine.provenance
        expected = MetadataMachine().head
        expected.set_committed(log.machine.image, log.machine.image, None, None)
        for values in outstanding:
            expected.apply([_decoded(value) for value in values], values)
        assert log.head.image == expected.image


def _decoded(value):
    from quorate.formats.records import decode_record

    return decode_record(value)[0]
