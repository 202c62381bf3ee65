"""Entries proposed together: all are committed in order, or none."""

import asyncio
from typing import Any

import pytest

from quorate.embed import EntryTooLargeError, InDoubtError, NotLeaderError, local_cluster


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


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_each_entry_has_its_own_result_in_order():
    async def scenario():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            one, two = leader.propose_all([b"a", b"b", b"c"]), leader.propose_nowait(b"d")
            assert await one == [1, 2, 3]
            assert await two == 4
            assert await leader.propose_all([b"e"]) == [5]

    run(scenario)


def test_an_empty_proposal_is_answered_at_once():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            future = (await cluster.leader()).propose_all([])
            assert future.done() and future.result() == []

    run(scenario)


def test_a_follower_refuses_all_of_them():
    async def scenario():
        async with local_cluster(3, Journal) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            with pytest.raises(NotLeaderError):
                await follower.propose_all([b"a", b"b"])

    run(scenario)


def test_entries_that_do_not_fit_one_batch_are_all_refused():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            half = bytes(5 * 1024 * 1024)
            with pytest.raises(EntryTooLargeError, match="cannot be proposed as one batch"):
                await leader.propose_all([half, half])
            assert await leader.propose_all([half]) == [1]

    run(scenario)


def test_a_stopped_member_fails_outstanding_proposals():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            future = leader.propose_all([b"a", b"b"])
            cluster.crash(leader.node_id)
            with pytest.raises(InDoubtError):
                await future

    run(scenario)


def test_a_failing_callback_does_not_affect_other_outcomes():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader, complaints = await cluster.leader(), []
            outcomes: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(
                lambda _, what: complaints.append(what)
            )

            def clumsy(outcome):
                raise ValueError("not today")

            leader.submit([b"a"], clumsy)
            leader.submit([b"b", b"c"], outcomes.append)
            assert await leader.propose(b"d") == 4
            assert outcomes == [[2, 3]]
            assert [str(what["exception"]) for what in complaints] == ["not today"]

    run(scenario)
