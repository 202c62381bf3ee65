"""A cluster in memory behaves as one: it elects, commits, survives crashes, changes members."""

import asyncio

import pytest

from quorate.embed import MemberStopped, NotLeader, local_cluster


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


def run(story):
    asyncio.run(asyncio.wait_for(story(), 30))


@pytest.fixture
def machines():
    made = []

    def make():
        made.append(Counter())
        return made[-1]

    make.made = made
    return make


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


def test_what_is_proposed_is_applied_everywhere_in_one_order(machines):
    async def story():
        async with local_cluster(3, machines) as cluster:
            totals = [await cluster.propose(str(n).encode()) for n in range(1, 6)]
            assert totals == [1, 3, 6, 10, 15]
            await until(lambda: all(m.total == 15 for m in machines.made))
            assert len({tuple(m.seen) for m in machines.made}) == 1

    run(story)


def test_many_proposals_at_once_share_batches_and_keep_their_order(machines):
    async def story():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            futures = [leader.propose_nowait(b"1") for _ in range(1000)]
            assert await asyncio.gather(*futures) == list(range(1, 1001))

    run(story)


def test_a_crashed_leader_loses_nothing_that_was_acknowledged(machines):
    async def story():
        async with local_cluster(3, machines) as cluster:
            for _ in range(20):
                await cluster.propose(b"1")
            old = await cluster.leader()
            cluster.crash(old.node_id)
            assert await cluster.propose(b"1") == 21
            cluster.restart(old.node_id)
            await until(lambda: machines.made[-1].total == 21)

    run(story)


def test_a_follower_refuses_and_names_the_leader(machines):
    async def story():
        async with local_cluster(3, machines) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            await until(lambda: follower.leader_id == leader.node_id)
            with pytest.raises(NotLeader) as refusal:
                await follower.propose(b"1")
            assert refusal.value.leader_id == leader.node_id

    run(story)


def test_a_cut_off_leader_commits_nothing_and_the_others_go_on(machines):
    async def story():
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

    run(story)


def test_members_join_and_leave_while_it_works(machines):
    async def story():
        async with local_cluster(3, machines) as cluster:
            await cluster.propose(b"1")
            fourth = await cluster.join(4)
            await until(lambda: fourth.applied_offset > 0)
            leader = await cluster.leader()
            await leader.add_member(fourth.key, cluster.address(4))
            first = leader.key
            await leader.remove_member(first)
            await until(lambda: len(fourth.members) == 3 and first not in fourth.members)
            assert await cluster.propose(b"1") == 2

    run(story)


def test_a_stopped_member_says_so(machines):
    async def story():
        async with local_cluster(1, machines) as cluster:
            leader = await cluster.leader()
        with pytest.raises(MemberStopped):
            await leader.propose(b"1")

    run(story)
