"""An exception of any kind that interrupts a step stops the member."""

import asyncio
from typing import Any

import pytest

from embed.test_guarantees import Journal, Trio, free_address, run, until
from quorate.embed import InDoubtError, Member, MemberStoppedError, create, local_cluster

ENDS = [asyncio.CancelledError, SystemExit, KeyboardInterrupt]


class Bomb(Journal):
    """Ends at the entry b"bomb", each time, in a way that is no Exception."""

    end = None

    def apply(self, offset, entry):
        if entry == b"bomb" and self.end is not None:
            raise self.end
        return super().apply(offset, entry)


def bombs(end):
    return type("Bomb", (Bomb,), {"end": end})


def finished(scenario):
    """Run it to its end: what it returned, and what left the loop meanwhile."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(asyncio.wait_for(scenario(), 30))
    left = []
    while not task.done():
        try:
            loop.run_until_complete(asyncio.shield(task))
        except (SystemExit, KeyboardInterrupt) as end:
            left.append(type(end))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    return task.result(), left


async def stream_with_a_bomb(leader, journal):
    """How the proposals of one turn ended, and what was applied."""
    entries = (b"a", b"b", b"bomb", b"c")
    waiting = [leader.propose_nowait(entry) for entry in entries]
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    with pytest.raises(MemberStoppedError, match=r"apply failed at offset \d+, which is committed"):
        await leader.wait_stopped()
    with pytest.raises(MemberStoppedError):
        await leader.propose(b"d")
    assert not leader.leads
    assert journal.entries == [b"a", b"b"]
    return {type(end) for end in ends}


@pytest.mark.parametrize("end", ENDS)
def test_any_exception_of_apply_stops_the_member(tmp_path, end):
    """It went on as leader, applied entries again, and left others without an answer."""
    address = free_address()

    async def scenario():
        create(tmp_path / "1", 1, "c", {1: address})
        machine = bombs(end)()
        async with await Member.start(tmp_path / "1", machine, address) as member:
            await until(lambda: member.leads)
            return await stream_with_a_bomb(member, machine)

    assert finished(scenario) == ({InDoubtError}, [end] * (end is not asyncio.CancelledError))


@pytest.mark.parametrize("end", ENDS)
def test_any_exception_of_apply_stops_a_member_in_memory(end):
    async def scenario():
        machines = []

        def make():
            machines.append(bombs(end)())
            return machines[-1]

        async with local_cluster(1, make) as cluster:
            return await stream_with_a_bomb(await cluster.leader(), machines[0])

    assert finished(scenario) == ({InDoubtError}, [end] * (end is not asyncio.CancelledError))


@pytest.mark.parametrize("end", ENDS[1:])
def test_an_exit_exception_ends_the_program(end):
    async def scenario():
        async with local_cluster(1, bombs(end)) as cluster:
            await cluster.propose(b"bomb")

    with pytest.raises(end):
        asyncio.run(scenario())


def test_an_interrupted_follower_logs_it_and_closes_its_connections(tmp_path):
    """The writes of its step were lost, and it waited for them without end."""

    async def scenario():
        async with Trio(tmp_path, machine=bombs(None)) as trio:
            leader = await trio.leader()
            await leader.propose(b"a")
            follower = next(m for m in trio.members.values() if m is not leader)
            trio.journals[follower.node_id].end = asyncio.CancelledError
            await leader.propose(b"bomb")
            with pytest.raises(MemberStoppedError, match="CancelledError"):
                await follower.wait_stopped()
            await follower.stop()
            await trio.start(follower.node_id)
            again = trio.journals[follower.node_id]
            assert await leader.propose(b"b") == 3
            await until(lambda: again.entries == [b"a", b"bomb", b"b"])

    run(scenario)


@pytest.mark.parametrize("method", ["snapshot", "restore"])
def test_an_interruption_in_any_machine_method_stops_the_member(tmp_path, method):
    def interrupted(self, *given):
        raise asyncio.CancelledError

    async def scenario():
        address = free_address()
        settings = {"metadata.log.max.record.bytes.between.snapshots": "1"}
        create(tmp_path / "1", 1, "c", {1: address})
        if method == "restore":
            async with await Member.start(
                tmp_path / "1", Journal(), address, settings=settings
            ) as member:
                await until(lambda: member.leads)
                await member.propose(b"x")
                partition = tmp_path / "1" / "__cluster_metadata-0"
                await until(lambda: len(list(partition.glob("*.checkpoint"))) > 1)
        machine = type("Interrupted", (Journal,), {method: interrupted})()
        async with await Member.start(
            tmp_path / "1", machine, address, settings=settings
        ) as member:
            with pytest.raises(MemberStoppedError, match=f"{method} failed: CancelledError"):
                await member.wait_stopped()

    run(scenario)


@pytest.mark.parametrize("end", ENDS[1:])
def test_a_callback_may_end_the_program_after_the_others_are_called(end):
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            outcomes: list[Any] = []

            def ends(outcome):
                raise end

            leader.submit([b"a"], ends)
            leader.submit([b"b"], outcomes.append)
            await until(lambda: outcomes)
            assert await leader.propose(b"c") == 3
            return outcomes

    assert finished(scenario) == ([[2]], [end])


def test_an_interrupted_callback_does_not_affect_others():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            outcomes: list[Any] = []

            def cancelled(outcome):
                raise asyncio.CancelledError

            asyncio.get_running_loop().set_exception_handler(lambda *_: None)
            leader.submit([b"a"], cancelled)
            leader.submit([b"b"], outcomes.append)
            assert await leader.propose(b"c") == 3
            assert outcomes == [[2]]

    run(scenario)
