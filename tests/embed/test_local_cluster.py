"""A cluster in memory: elections, commits, crashes, membership changes."""

import asyncio
import re
import selectors
from typing import Any

import pytest

from conformance.marker import kafka_guarantee
from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid
from quorate.embed import (
    MAX_ENTRY_BYTES,
    InDoubtError,
    MembershipChangeError,
    MemberStoppedError,
    NotLeaderError,
    local,
    local_cluster,
)
from quorate.replica.state_machine import Now


class Counter:
    """Adds numbers up, remembers what it saw."""

    def __init__(self):
        self.total = 0
        self.seen = []

    def apply(self, offset, entry):
        self.seen.append(entry)
        self.total += int(entry or b"0")
        return self.total

    def snapshot(self):
        return [str(self.total).encode()]

    def restore(self, chunks):
        [text] = chunks
        self.total = int(text)


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.fixture
def machines():
    made = []

    def make():
        made.append(Counter())
        return made[-1]

    make.made = made  # type: ignore[attr-defined]
    return make


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


def test_entries_are_applied_on_all_members_in_one_order(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            totals = [await cluster.propose(str(n).encode()) for n in range(1, 6)]
            assert totals == [1, 3, 6, 10, 15]
            await until(lambda: all(m.total == 15 for m in machines.made))
            assert len({tuple(m.seen) for m in machines.made}) == 1

    run(scenario)


@kafka_guarantee("BatchAccumulatorTest", "drainDoesNotBlockWithConcurrentAppend")
def test_concurrent_proposals_share_batches_and_keep_their_order(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            futures = [leader.propose_nowait(b"1") for _ in range(1000)]
            assert await asyncio.gather(*futures) == list(range(1, 1001))

    run(scenario)


def test_a_crashed_leader_loses_no_acknowledged_entry(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            for _ in range(20):
                await cluster.propose(b"1")
            old = await cluster.leader()
            cluster.crash(old.node_id)
            assert await cluster.propose(b"1") == 21
            cluster.restart(old.node_id)
            await until(lambda: machines.made[-1].total == 21)

    run(scenario)


def test_a_follower_refuses_and_names_the_leader(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            await until(lambda: follower.leader_id == leader.node_id)
            with pytest.raises(NotLeaderError) as refusal:
                await follower.propose(b"1")
            assert refusal.value.leader_id == leader.node_id

    run(scenario)


def test_an_elected_leader_that_takes_no_proposals_yet_names_no_leader(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            members = cluster.members.values()
            while not any(m.leader_id == m.node_id for m in members):
                await asyncio.sleep(0)  # see every step
            elected = next(m for m in members if m.leader_id == m.node_id)
            for other in cluster.members:
                if other != elected.node_id:
                    cluster.cut(elected.node_id, other)
            assert not elected.leads
            with pytest.raises(NotLeaderError) as refusal:
                await elected.propose(b"1")
            assert (refusal.value.leader_id, refusal.value.address) == (-1, None)

    run(scenario)


def test_a_partitioned_leader_commits_nothing_and_the_others_continue(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            old = await cluster.leader()
            others = [i for i in cluster.members if i != old.node_id]
            for other in others:
                cluster.cut(old.node_id, other)
            lost = old.propose_nowait(b"100")
            await until(lambda: any(cluster.members[i].leads for i in others))
            new = next(cluster.members[i] for i in others if cluster.members[i].leads)
            assert await new.propose(b"1") == 1
            cluster.heal()
            with pytest.raises(Exception, match=r"may or may not commit|does not lead"):
                await lost
            await until(lambda: all(m.total == 1 for m in machines.made))

    run(scenario)


def test_members_join_and_leave_under_load(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            await cluster.propose(b"1")
            fourth = await cluster.join(4)
            leader = await cluster.leader()
            await leader.add_member(fourth.key, cluster.address(4))
            first = leader.key
            await leader.remove_member(first)
            await until(lambda: len(fourth.members) == 3 and first not in fourth.members)
            assert await cluster.propose(b"1") == 2

    run(scenario)


def test_members_join_two_at_a_time(machines):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            joiners = [await cluster.join(i) for i in (2, 3)]
            leader = await cluster.leader()
            await asyncio.gather(
                *(leader.add_member(m.key, cluster.address(m.node_id)) for m in joiners)
            )
            assert set(leader.members) == {m.key for m in cluster.members.values()}
            await leader.add_member(joiners[0].key, cluster.address(2))  # again: it is one
            other = ReplicaKey(2, Uuid(b"another-directory"[:16]))
            with pytest.raises(MembershipChangeError, match="DUPLICATE_VOTER") as refusal:
                await leader.add_member(other, cluster.address(2))
            assert not refusal.value.retriable

    run(scenario)


def test_add_member_waits_for_the_new_member_until_the_timeout(machines):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            joiner = await cluster.join(2)
            cluster.cut(1, 2)
            leader = await cluster.leader()
            with pytest.raises(MembershipChangeError) as refusal:
                await leader.add_member(joiner.key, cluster.address(2), timeout_s=0.2)
            assert refusal.value.retriable
            adding = asyncio.ensure_future(leader.add_member(joiner.key, cluster.address(2)))
            await asyncio.sleep(0)
            cluster.heal()
            await adding
            assert joiner.key in leader.members

    run(scenario)


def test_only_the_leader_changes_members(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            await until(lambda: follower.leader_id == leader.node_id)
            for change in (
                follower.remove_member(leader.key),
                follower.add_member(leader.key, cluster.address(1)),
            ):
                with pytest.raises(NotLeaderError) as refusal:
                    await change
                assert refusal.value.leader_id == leader.node_id
            assert len(leader.members) == 3

    run(scenario)


@pytest.mark.parametrize("end", ["resign", "crash"])
def test_a_pending_change_is_in_doubt_when_leadership_is_lost(machines, end):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            await leader.propose(b"1")
            others = [m for m in cluster.members.values() if m is not leader]
            for other in others:
                cluster.cut(leader.node_id, other.node_id)
            changing = asyncio.ensure_future(leader.remove_member(others[0].key))
            await until(lambda: others[0].key not in leader.members)
            leader.resign() if end == "resign" else cluster.crash(leader.node_id)
            with pytest.raises(InDoubtError, match="may or may not commit"):
                await changing

    run(scenario)


def test_a_stopped_member_raises_member_stopped(machines):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            leader = await cluster.leader()
        with pytest.raises(MemberStoppedError):
            await leader.propose(b"1")

    run(scenario)


def test_a_stopped_cluster_raises_member_stopped(machines):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            assert await cluster.propose(b"1") == 1
        for call in (cluster.leader(), cluster.propose(b"1")):
            with pytest.raises(MemberStoppedError, match="The cluster was stopped"):
                await asyncio.wait_for(call, 1)

    run(scenario)


def test_an_entry_in_doubt_is_not_proposed_again(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            old = await cluster.leader()
            for other in cluster.members:
                if other != old.node_id:
                    cluster.cut(old.node_id, other)
            end = old.node.replica.core.log_end
            lost = asyncio.ensure_future(cluster.propose(b"100"))
            await until(lambda: old.node.replica.core.log_end > end)
            cluster.crash(old.node_id)
            with pytest.raises((InDoubtError, MemberStoppedError)):
                await lost
            cluster.heal()
            assert await cluster.propose(b"1") == 1

    run(scenario)


def test_an_entry_that_was_not_appended_is_proposed_to_the_next_leader(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            (await cluster.leader()).resign()
            assert await cluster.propose(b"1") == 1

    run(scenario)


class SkippingSelector(selectors.DefaultSelector):
    """Nothing is waited for: the loop's time leaps to its next timer."""

    now = 1000.0

    def select(self, timeout=None):
        self.now += timeout or 0
        return super().select(0)


@pytest.fixture
def in_leaps(monkeypatch):
    """Runs a scenario on a loop whose clock jumps to the next timer."""

    def run(scenario):
        selector = SkippingSelector()
        loop = asyncio.SelectorEventLoop(selector)
        monkeypatch.setattr(loop, "time", lambda: selector.now)
        monkeypatch.setattr(local, "present", lambda: Now(int(selector.now * 1000), 0))
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(asyncio.wait_for(scenario(), 600))

    return run


def test_an_idle_cluster_keeps_its_leader(machines, in_leaps):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            epoch = leader.node.replica.core.epoch
            await asyncio.sleep(60)
            assert leader.leads
            assert {m.node.replica.core.epoch for m in cluster.members.values()} == {epoch}

    in_leaps(scenario)


def test_a_machine_that_raises_stops_its_member(machines, caplog):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            leader = await cluster.leader()
            with pytest.raises(
                (InDoubtError, MemberStoppedError), match="ValueError: invalid literal"
            ):
                await leader.propose(b"not a number")
            with pytest.raises(MemberStoppedError, match="ValueError: invalid literal"):
                await leader.propose(b"1")
            with pytest.raises(MemberStoppedError) as end:
                await leader.wait_stopped()
            said = r"the state machine's apply failed at offset \d+, which is committed: ValueError"
            assert re.match(said, str(end.value)) and "report" not in str(end.value)
            assert not leader.leads

    run(scenario)
    assert any(record.exc_info for record in caplog.records)


def test_a_stopped_member_restarts(machines):
    async def scenario():
        async with local_cluster(3, machines) as cluster:
            assert await cluster.propose(b"1") == 1
            old = await cluster.leader()
            await old.stop()
            assert await cluster.propose(b"1") == 2
            again = cluster.restart(old.node_id)
            await until(lambda: machines.made[-1].total == 2)
            assert again is cluster.members[old.node_id] and again is not old

    run(scenario)


def test_calls_on_the_wrong_member_are_refused(machines):
    async def scenario():
        async with local_cluster(1, machines) as cluster:
            with pytest.raises(QuorateError, match="member 1 is running: stop or crash it first"):
                cluster.restart(1)
            with pytest.raises(QuorateError, match="member 1 exists already"):
                await cluster.join(1)
            with pytest.raises(QuorateError, match=r"there is no member 7; members: 1"):
                cluster.restart(7)
            with pytest.raises(QuorateError, match="there is no member 7"):
                cluster.crash(7)
            with pytest.raises(QuorateError, match="there is no member 7"):
                cluster.cut(1, 7)
            cluster.crash(1)
            with pytest.raises(QuorateError, match="member 1 does not run"):
                cluster.crash(1)
            cluster.restart(1)
            assert await cluster.propose(b"1") == 1

    run(scenario)


def test_followers_notice_a_crash_at_once(machines, in_leaps):
    """As sockets would: not one timeout of a fetch, or of a request (2 s), later."""

    async def scenario():
        async with local_cluster(
            3, machines, election_timeout_ms=100, fetch_timeout_ms=600_000
        ) as cluster:
            await cluster.propose(b"1")
            old = await cluster.leader()
            await until(lambda: all(m.total == 1 for m in machines.made))
            parked = cluster._drivers[old.node_id]._callers
            await until(lambda: len(parked) == 2)
            cluster.crash(old.node_id)
            assert await asyncio.wait_for(cluster.propose(b"1"), 1.5) == 2

    in_leaps(scenario)


def cancelled():
    raise asyncio.CancelledError
    yield b""


@pytest.mark.parametrize(
    "state, reason",
    [
        (lambda: (int(word) for word in ["x"]), "ValueError: invalid literal"),
        (lambda: ["text"], "TypeError: .*not str"),
        (
            lambda: [bytes(MAX_ENTRY_BYTES + 1)],
            rf"snapshot\(\) returned a chunk of {MAX_ENTRY_BYTES + 1} bytes; the limit is "
            rf"MAX_ENTRY_BYTES, {MAX_ENTRY_BYTES}",
        ),
        (cancelled, r"snapshot\(\) was interrupted by CancelledError"),
    ],
)
def test_a_failed_snapshot_is_logged_and_retried(caplog, state, reason):
    class Large(Counter):
        def apply(self, offset, entry):
            self.total += 1
            return self.total

        def snapshot(self):
            attempts.append(self.total)
            return state() if len(attempts) == 1 else [str(self.total).encode()]

    attempts: list[Any] = []

    async def scenario():
        async with local_cluster(1, Large) as cluster:
            entry = bytes(7 << 20)
            for total in range(1, 7):
                assert await cluster.propose(entry) == total
            names = cluster._drivers[1].storage.disk.names()
            assert len(attempts) == 2 and not [n for n in names if n.endswith(".part")]
            assert len([n for n in names if n.endswith(".checkpoint")]) == 2

    run(scenario)
    messages = "\n".join(caplog.messages)
    assert re.search(f"Could not write snapshot .*{reason}", messages)


def test_empty_chunks_survive_a_snapshot():
    class Large(Counter):
        def apply(self, offset, entry):
            self.total += 1
            return self.total

        def snapshot(self):
            return [b"", str(self.total).encode(), b""]

        def restore(self, chunks):
            restored.append(chunks)

    restored: list[list[bytes]] = []

    async def scenario():
        async with local_cluster(1, Large) as cluster:
            for total in range(1, 4):
                assert await cluster.propose(bytes(7 << 20)) == total
            await until(lambda: len(cluster._drivers[1].storage.snapshots()) == 2)
            cluster.crash(1)
            cluster.restart(1)
            await until(lambda: restored)
            assert restored == [[b"", b"3", b""]]

    run(scenario)
