"""The adapter around a program's state machine."""

import asyncio
import time
from collections import Counter

import pytest

from embed.test_directories import files
from embed.test_guarantees import free_address, run, until
from narrow import as_any
from quorate.base.errors import QuorateError
from quorate.base.ids import OffsetAndEpoch
from quorate.embed import InDoubtError, Member, MemberStoppedError, create, local_cluster
from quorate.embed.machine import BARRIER, STEP_S, OpaqueMachine, encode_entry
from quorate.formats.records import FeatureLevelRecord, RecordError, decode_record, encode_record  # type: ignore[attr-defined]
from quorate.replica.state_machine import CommittedBatch, Now


class Echo:
    def __init__(self):
        self.applied = []

    def apply(self, offset, entry):
        self.applied.append(entry)
        return entry

    def snapshot(self):
        return ()

    def restore(self, chunks):
        """Nothing was kept."""


def test_unclaimed_results_are_dropped_when_leadership_ends():
    machine = OpaqueMachine(Echo(), Clock())
    machine.lead(1, Now(0, 0))
    machine.apply(CommittedBatch(5, 5, 1, 0, [encode_entry(b"x")]))
    assert machine.results == {5: b"x"}
    machine.follow(2, 2)
    assert machine.results == {}
    machine.apply(CommittedBatch(6, 6, 2, 0, [encode_entry(b"y")]))
    assert machine.results == {}


class Clock:
    """A clock that a test advances."""

    now = 0.0

    def __call__(self):
        return self.now


def entries(base_offset, count):
    return CommittedBatch(base_offset, base_offset + count - 1, 1, 0, [encode_entry(b"x")] * count)


class Slow(Echo):
    """Takes its time for each entry."""

    def __init__(self, clock, cost_s):
        super().__init__()
        self.clock, self.cost_s = clock, cost_s

    def apply(self, offset, entry):
        self.clock.now += self.cost_s
        return super().apply(offset, entry)


def test_applying_entries_is_limited_in_time_across_batches():
    clock = Clock()
    machine = OpaqueMachine(Slow(clock, 0.4 * STEP_S), clock)
    assert machine.apply(entries(0, 100)) == 3
    assert machine.apply(entries(3, 97)) == 0
    machine.begin_step()
    assert [machine.apply(entries(at, 1)) for at in range(3, 8)] == [1, 1, 1, 0, 0]


def test_an_entry_that_takes_longer_than_a_step_is_applied_alone():
    clock = Clock()
    machine = OpaqueMachine(Slow(clock, 2 * STEP_S), clock)
    for offset in range(3):
        assert machine.apply(entries(offset, 3 - offset)) == 1
        machine.begin_step()


def test_the_clock_is_read_rarely_for_fast_entries():
    clock = Clock()
    slow = Slow(clock, 0.01 * STEP_S)
    assert OpaqueMachine(slow, clock).apply(entries(0, 1000)) == pytest.approx(100, abs=8)


def test_a_long_batch_does_not_block_the_loop():
    """They came in one batch, and each member was unresponsive until it had applied all of them."""
    turns, seen = 0, []

    class Busy(Echo):
        def apply(self, offset, entry):
            seen.append(turns)
            until = time.monotonic() + 0.4 * STEP_S
            while time.monotonic() < until:
                pass

        def snapshot(self):
            return []

    async def ticks():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def scenario():
        async with local_cluster(1, Busy) as cluster:
            leader = await cluster.leader()
            ticking = asyncio.ensure_future(ticks())
            await leader.propose_all([b"x"] * 60)
            ticking.cancel()
        assert len(seen) == 60
        assert max(Counter(seen).values()) <= 3

    run(scenario)


KAFKAS = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)


def test_an_entrys_first_byte_differs_from_kafkas_records():
    assert encode_entry(b"")[:1] != KAFKAS[:1]
    with pytest.raises(RecordError, match="unknown frame version"):
        decode_record(encode_entry(KAFKAS[1:]))


@pytest.mark.parametrize("value", [KAFKAS, b"", BARRIER + b"x"])
def test_a_foreign_record_does_not_reach_the_machine(value):
    echo = Echo()
    machine = OpaqueMachine(echo, Clock())
    said = "is not an entry of a member: .* of a Kafka controller"
    with pytest.raises(QuorateError, match=f"^the record at offset 6 {said}"):
        machine.apply(CommittedBatch(5, 6, 1, 0, [encode_entry(b"x"), value]))
    with pytest.raises(QuorateError, match=f"^a record of the snapshot {said}"):
        machine.begin_load(OffsetAndEpoch(6, 1), 0)
        machine.load([encode_entry(b"x"), value])
    assert echo.applied == [b"x"]


async def coroutine(self, *given):
    """What a program that is asynchronous throughout may have for a method."""


async def asynchronous_generator(self):
    yield b""


def generator(self, *given):
    yield b""


LAZY = {
    "async apply": ("apply", coroutine),
    "async snapshot": ("snapshot", coroutine),
    "async restore": ("restore", coroutine),
    "async generator": ("snapshot", asynchronous_generator),
    "apply yields": ("apply", generator),
    "restore yields": ("restore", generator),
}


@pytest.mark.parametrize("name, method", LAZY.values(), ids=LAZY)
def test_a_machine_with_async_or_generator_methods_is_refused(tmp_path, name, method):
    lazy = type("Lazy", (Echo,), {name: method})
    said = rf"^Lazy\.{name} does nothing when it is called"

    async def scenario():
        create(tmp_path / "1", 1, "c", {1: "127.0.0.1:9093"})
        before = files(tmp_path)
        with pytest.raises(TypeError, match=said):
            await Member.start(tmp_path / "1", lazy(), "127.0.0.1:9093")
        assert files(tmp_path) == before
        with pytest.raises(TypeError, match=said):
            async with local_cluster(1, lazy):
                pass

    run(scenario)


def test_a_snapshot_may_be_a_generator():
    OpaqueMachine(type("Yields", (Echo,), {"snapshot": generator})())


def test_a_class_or_an_object_without_a_method_is_refused():
    with pytest.raises(
        TypeError, match=r"a state machine must be an object, Echo\(\), not the class"
    ):
        OpaqueMachine(as_any(Echo))
    for lame in (None, type("Lame", (Echo,), {"snapshot": None})()):
        with pytest.raises(TypeError, match=r"has no method (apply|snapshot)$"):
            OpaqueMachine(as_any(lame))


class Sometimes(Echo):
    """Returns a task from `apply`, if enabled."""

    hands_over = False

    def apply(self, offset, entry):
        if self.hands_over and entry == b"later":
            return asyncio.get_running_loop().create_future()
        return super().apply(offset, entry)

    def snapshot(self):
        return list(self.applied)

    def restore(self, chunks):
        self.applied = list(chunks)


def test_an_awaitable_from_apply_stops_the_member_without_losing_the_entry(tmp_path):
    """The member stops before the entry, and applies it after the program is fixed."""

    async def scenario():
        address = free_address()
        settings = {"metadata.log.max.record.bytes.between.snapshots": "1"}
        create(tmp_path / "1", 1, "c", {1: address})
        for hands_over in (True, False):
            machine = Sometimes()
            machine.hands_over = hands_over
            async with await Member.start(
                tmp_path / "1", machine, address, settings=settings
            ) as member:
                await until(lambda member=member: member.leads or member._ended.done())
                if hands_over:
                    await member.propose(b"now")
                    with pytest.raises(
                        InDoubtError, match="TypeError: apply returned an awaitable"
                    ):
                        await member.propose(b"later")
                    with pytest.raises(MemberStoppedError, match=r"offset \d+, which is committed"):
                        await member.wait_stopped()
                else:
                    await member.propose(b"again")
            assert machine.applied[:2] == [b"now", b"later"][: 2 - hands_over]
        assert machine.applied == [b"now", b"later", b"again"]

    run(scenario)


def test_an_awaitable_from_restore_stops_the_member():
    class Later(Echo):
        def restore(self, chunks):
            return loop.create_future()

    loop = asyncio.new_event_loop()
    machine = OpaqueMachine(Later())
    machine.begin_load(OffsetAndEpoch(6, 1), 0)
    with pytest.raises(QuorateError, match="TypeError: restore returned an awaitable"):
        machine.end_load()
    loop.close()
