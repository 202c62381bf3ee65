"""Entries that are proposed together: one answer for all, in order; all of them or none."""

import asyncio

import pytest

from quorate.embed import EntryTooLarge, InDoubt, NotLeader, local_cluster


class Journal:
    """Keeps every entry; answers with how many there are."""

    def __init__(self):
        self.entries = []

    def apply(self, offset, entry):
        self.entries.append(entry)
        return len(self.entries)

    def snapshot(self):
        return [b"%d:" % len(entry) + entry for entry in self.entries]

    def restore(self, chunks):
        self.entries = [chunk.partition(b":")[2] for chunk in chunks]


def run(story):
    asyncio.run(asyncio.wait_for(story(), 30))


def test_each_entry_has_its_own_result_in_order():
    async def story():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            one, two = leader.propose_all([b"a", b"b", b"c"]), leader.propose_nowait(b"d")
            assert await one == [1, 2, 3]
            assert await two == 4
            assert await leader.propose_all([b"e"]) == [5]

    run(story)


def test_nothing_to_propose_is_answered_at_once():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            future = (await cluster.leader()).propose_all([])
            assert future.done() and future.result() == []

    run(story)


def test_a_follower_refuses_all_of_them():
    async def story():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            with pytest.raises(NotLeader):
                await follower.propose_all([b"a", b"b"])

    run(story)


def test_what_fits_no_batch_is_refused_whole():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            half = bytes(5 * 1024 * 1024)
            with pytest.raises(EntryTooLarge, match="cannot be proposed at once"):
                await leader.propose_all([half, half])
            assert await leader.propose_all([half]) == [1]

    run(story)


def test_a_stopped_member_answers_whoever_still_waits():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            future = leader.propose_all([b"a", b"b"])
            cluster.crash(leader.node_id)
            with pytest.raises(InDoubt):
                await future

    run(story)


def test_outcomes_are_told_to_whoever_submitted_even_when_another_fails_to_take_his():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader, told, complaints = await cluster.leader(), [], []
            asyncio.get_running_loop().set_exception_handler(
                lambda _, what: complaints.append(what)
            )

            def clumsy(outcome):
                raise ValueError("not today")

            leader.submit([b"a"], clumsy)
            leader.submit([b"b", b"c"], told.append)
            assert await leader.propose(b"d") == 4
            assert told == [[2, 3]]
            assert [str(what["exception"]) for what in complaints] == ["not today"]

    run(story)
