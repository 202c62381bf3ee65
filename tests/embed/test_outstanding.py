"""No more is on the way than a member keeps in memory: who can wait waits, who cannot is told."""

import asyncio

import pytest

from quorate.embed import InDoubt, MemberStopped, Overloaded, local_cluster
from quorate.embed.outstanding import Outstanding

from .test_propose_all import Journal, run


def ignore(outcome):
    pass


def test_room_is_given_in_turn():
    async def story():
        room, order = Outstanding(10), []

        async def enter(name, size):
            await room.wait_for(size)
            order.append(name)
            return room.add(ignore, size)

        first = await enter("first", 8)
        rest = [asyncio.ensure_future(enter(name, size)) for name, size in (("a", 9), ("b", 1))]
        await asyncio.sleep(0)
        assert order == ["first"], "b would fit, but a was there before it"
        with pytest.raises(Overloaded, match="8 bytes of entries are on the way"):
            room.take(1)
        assert room.settle(first) is ignore
        await asyncio.gather(*rest)
        assert order == ["first", "a", "b"]
        assert room.settle(first) is None

    run(story)


def test_one_that_is_larger_than_all_room_goes_alone():
    room = Outstanding(10)
    room.take(50)
    token = room.add(ignore, 50)
    with pytest.raises(Overloaded):
        room.take(1)
    room.settle(token)
    room.take(1)


@pytest.mark.parametrize("let_in", [False, True])
def test_who_gives_up_waiting_leaves_no_hole(let_in):
    async def story():
        room = Outstanding(10)
        room.take(10)
        first = room.add(ignore, 10)
        patient = [asyncio.ensure_future(room.wait_for(10)) for _ in range(2)]
        await asyncio.sleep(0)
        if let_in:  # cancelled between being let in and hearing of it
            room.settle(first)
        patient[0].cancel()
        await asyncio.wait(patient[:1])
        assert patient[0].cancelled()
        if not let_in:
            room.settle(first)
        await patient[1]
        with pytest.raises(Overloaded):
            room.take(1)

    run(story)


def test_the_end_is_told_to_all_who_wait():
    async def story():
        room = Outstanding(10)
        room.take(10)
        room.add(ignore, 10)
        waiting = asyncio.ensure_future(room.wait_for(1))
        await asyncio.sleep(0)
        assert room.end("it is over") == [ignore]
        with pytest.raises(MemberStopped, match="it is over"):
            await waiting

    run(story)


def test_who_waits_for_room_when_it_is_closed_is_told_and_the_others_are_waited_for():
    async def story():
        room = Outstanding(10)
        room.take(10)
        token = room.add(ignore, 10)
        waiting = asyncio.ensure_future(room.wait_for(1))
        await asyncio.sleep(0)
        emptied = room.close("it closes")
        with pytest.raises(MemberStopped, match="it closes"):
            await waiting
        assert not emptied.done()
        assert room.settle(token) is ignore
        await emptied
        await Outstanding(10).close("nobody is there")

    run(story)


def flooded(leader):
    """Fifty proposals of a leader that has room for ten."""
    leader._outstanding.limit = 100
    return [asyncio.ensure_future(leader.propose(b"%09d" % n)) for n in range(50)]


def test_a_flood_waits_or_is_refused_and_nothing_of_it_is_lost():
    async def story():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            flood = flooded(leader)
            at_once = [leader.propose_nowait(b"x" * 30) for _ in range(4)]
            refused = await asyncio.gather(*at_once, return_exceptions=True)
            assert [type(one) for one in refused[-1:]] == [Overloaded]
            offsets = await asyncio.gather(*flood)
            assert len(set(offsets)) == 50
            assert await leader.propose_nowait(b"after") > max(offsets)

    run(story)


def test_a_flood_on_a_leader_that_is_lost_ends():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            flood = flooded(leader)
            await asyncio.sleep(0)
            cluster.crash(leader.node_id)
            ends = {type(one) for one in await asyncio.gather(*flood, return_exceptions=True)}
            assert ends == {InDoubt, MemberStopped}

    run(story)
