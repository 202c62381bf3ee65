"""A call from another thread or loop is refused and has no effect."""

import asyncio
import threading

import pytest

from embed.test_propose_all import Journal, run
from quorate.base.errors import QuorateError
from quorate.embed import local_cluster

CALLS = {
    "propose": lambda member: member.propose(b"debit"),
    "propose_nowait": lambda member: member.propose_nowait(b"debit"),
    "propose_all": lambda member: member.propose_all([b"debit"]),
    "submit": lambda member: member.submit([b"debit"], print),
    "barrier": lambda member: member.barrier(),
    "add_member": lambda member: member.add_member(member.key, "h:1"),
    "remove_member": lambda member: member.remove_member(member.key),
    "resign": lambda member: member.resign(),
    "stop": lambda member: member.stop(),
    "wait_stopped": lambda member: member.wait_stopped(),
}


def on_another_loop(call):
    async def awaited():
        done = call()
        if done is not None:
            await done

    asyncio.run(awaited())


@pytest.mark.parametrize("name", CALLS)
def test_a_call_from_another_loop_is_refused_before_anything_is_done(name):
    """It raised asyncio's RuntimeError when the entry was on its way, and a retry doubled it."""

    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            call = CALLS[name]
            with pytest.raises(QuorateError, match="run_coroutine_threadsafe"):
                await asyncio.to_thread(on_another_loop, lambda: call(leader))
            assert leader.leads
            assert await leader.propose(b"x") == 1

    run(scenario)


def test_a_call_from_a_thread_without_a_loop_is_refused_too():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            with pytest.raises(QuorateError, match="call_soon_threadsafe"):
                await asyncio.to_thread(leader.propose_nowait, b"debit")
            assert await leader.propose(b"x") == 1

    run(scenario)


def test_the_message_says_what_to_do():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader, loop = await cluster.leader(), asyncio.get_running_loop()
            results = []

            def elsewhere():
                asked = asyncio.run_coroutine_threadsafe(leader.propose(b"x"), loop)
                results.append(asked.result())
                loop.call_soon_threadsafe(done.set)

            done = asyncio.Event()
            threading.Thread(target=elsewhere).start()
            await done.wait()
            assert results == [1]

    run(scenario)
