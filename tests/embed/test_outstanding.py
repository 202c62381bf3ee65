"""The limit on outstanding entries: proposals wait, or are refused."""

import asyncio

import pytest

from embed.test_propose_all import Journal, run
from quorate.embed import InDoubtError, MemberStoppedError, OverloadedError, local_cluster
from quorate.embed.outstanding import Outstanding


def ignore(outcome):
    pass


def test_room_is_granted_in_order():
    async def scenario():
        room, order = Outstanding(10), []

        async def enter(name, size):
            await room.wait_for(size)
            order.append(name)
            return room.add(ignore, size)

        first = await enter("first", 8)
        rest = [asyncio.ensure_future(enter(name, size)) for name, size in (("a", 9), ("b", 1))]
        await asyncio.sleep(0)
        assert order == ["first"], "b would fit, but a was there before it"
        with pytest.raises(OverloadedError, match="8 bytes of entries are outstanding"):
            room.take(1)
        assert room.settle(first) is ignore
        await asyncio.gather(*rest)
        assert order == ["first", "a", "b"]
        assert room.settle(first) is None

    run(scenario)


def test_an_entry_larger_than_the_limit_is_sent_alone():
    room = Outstanding(10)
    room.take(50)
    token = room.add(ignore, 50)
    with pytest.raises(OverloadedError):
        room.take(1)
    room.settle(token)
    room.take(1)


@pytest.mark.parametrize("let_in", [False, True])
def test_a_cancelled_waiter_frees_its_bytes(let_in):
    async def scenario():
        room = Outstanding(10)
        room.take(10)
        first = room.add(ignore, 10)
        waiting = [asyncio.ensure_future(room.wait_for(10)) for _ in range(2)]
        await asyncio.sleep(0)
        if let_in:  # cancelled between being let in and hearing of it
            room.settle(first)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        assert waiting[0].cancelled()
        if not let_in:
            room.settle(first)
        await waiting[1]
        with pytest.raises(OverloadedError):
            room.take(1)

    run(scenario)


def test_the_end_fails_all_waiters():
    async def scenario():
        room = Outstanding(10)
        room.take(10)
        room.add(ignore, 10)
        waiting = asyncio.ensure_future(room.wait_for(1))
        await asyncio.sleep(0)
        assert room.end("it is over") == [ignore]
        with pytest.raises(MemberStoppedError, match="it is over"):
            await waiting

    run(scenario)


def test_closing_fails_waiters_and_waits_for_outstanding_proposals():
    async def scenario():
        room = Outstanding(10)
        room.take(10)
        token = room.add(ignore, 10)
        waiting = asyncio.ensure_future(room.wait_for(1))
        await asyncio.sleep(0)
        emptied = room.close("it closes")
        with pytest.raises(MemberStoppedError, match="it closes"):
            await waiting
        assert not emptied.done()
        assert room.settle(token) is ignore
        await emptied
        await Outstanding(10).close("nobody is there")

    run(scenario)


def flooded(leader):
    """Fifty proposals of a leader that has room for ten."""
    leader._outstanding.limit = 100
    return [asyncio.ensure_future(leader.propose(b"%09d" % n)) for n in range(50)]


def test_a_flood_of_proposals_waits_or_is_refused_without_loss():
    async def scenario():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            flood = flooded(leader)
            at_once = [leader.propose_nowait(b"x" * 30) for _ in range(4)]
            refused = await asyncio.gather(*at_once, return_exceptions=True)
            assert [type(one) for one in refused[-1:]] == [OverloadedError]
            offsets = await asyncio.gather(*flood)
            assert len(set(offsets)) == 50
            assert await leader.propose_nowait(b"after") > max(offsets)

    run(scenario)


def test_a_flood_of_proposals_ends_when_the_leader_is_lost():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            flood = flooded(leader)
            await asyncio.sleep(0)
            cluster.crash(leader.node_id)
            ends = {type(one) for one in await asyncio.gather(*flood, return_exceptions=True)}
            assert ends == {InDoubtError, MemberStoppedError}

    run(scenario)
