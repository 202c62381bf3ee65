"""The guarantees of propose, barrier and voter changes, on members with sockets and files."""

import asyncio

import pytest

from interop.process import free_port
from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid
from quorate.embed import (
    InDoubtError,
    Member,
    MembershipChangeError,
    MemberStoppedError,
    NotLeaderError,
    create,
)
from quorate.formats.files import snapshot_name
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID
from quorate.server.app import open_storage


class Journal:
    """Remembers every entry; its state is the list of them."""

    def __init__(self):
        self.entries = []

    def apply(self, offset, entry):
        self.entries.append(entry)
        return len(self.entries)

    def snapshot(self):
        return list(self.entries)

    def restore(self, chunks):
        self.entries = list(chunks)


def free_address():
    return f"127.0.0.1:{free_port()}"


class Trio:
    """Three founders in one process, each with its own disk and sockets."""

    def __init__(self, path, count=3, settings=None, machine=Journal, opened=None, late=()):
        """machine: makes the state machines; opened: makes the storage of some members, by id;
        late: those that are not started."""
        self.path, self.settings = path, settings
        self.machine, self.opened, self.late = machine, opened or {}, late
        self.addresses = {i: free_address() for i in range(1, count + 1)}
        self.journals = {}
        self.members = {}

    async def __aenter__(self):
        for i in self.addresses:
            create(self.path / str(i), i, "trio", self.addresses)
        for i in set(self.addresses) - set(self.late):
            await self.start(i)
        return self

    async def start(self, i):
        self.journals[i] = self.machine()
        self.members[i] = await Member.start(
            self.path / str(i),
            self.journals[i],
            self.addresses[i],
            settings=self.settings,
            open_storage=self.opened.get(i, open_storage),
        )

    async def leader(self):
        while True:
            for member in self.members.values():
                if member.leads:
                    return member
            await asyncio.sleep(0.005)

    async def leader_but(self, i):
        """As `leader`, and another one than member i."""
        while (leader := await self.leader()).node_id == i:
            leader.resign()
            await until(lambda: not leader.leads)
        return leader

    async def __aexit__(self, *_):
        await asyncio.gather(*(m.stop(1.0) for m in self.members.values()))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.005)


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 40))


def test_an_empty_entry_is_an_entry_like_any_other(tmp_path):
    async def scenario():
        async with Trio(tmp_path) as trio:
            leader = await trio.leader()
            assert await leader.propose(b"") == 1
            assert await leader.propose(b"x") == 2
            await until(lambda: all(j.entries == [b"", b"x"] for j in trio.journals.values()))

    run(scenario)


def test_the_machine_does_not_see_a_barrier(tmp_path):
    async def scenario():
        async with Trio(tmp_path) as trio:
            leader = await trio.leader()
            slow = leader.propose_nowait(b"x")
            await leader.barrier()
            assert slow.done()
            assert trio.journals[leader.node_id].entries == [b"x"]

    run(scenario)


def test_a_refused_voter_change_has_a_reason_and_no_effect(tmp_path):
    async def scenario():
        async with Trio(tmp_path) as trio:
            leader = await trio.leader()
            await leader.propose(b"x")
            unknown = ReplicaKey(9, Uuid(b"nobody-knows-me!"))
            for _ in range(3):
                with pytest.raises(MembershipChangeError, match="VOTER_NOT_FOUND") as refusal:
                    await leader.remove_member(unknown)
                assert not refusal.value.retriable
                with pytest.raises(MembershipChangeError, match="REQUEST_TIMED_OUT") as refusal:
                    await leader.add_member(unknown, free_address(), timeout_s=0)
                assert refusal.value.retriable
            assert await leader.propose(b"y") == 2

    run(scenario)


def test_an_appended_entry_is_in_doubt_when_leadership_is_lost(tmp_path):
    async def scenario():
        async with Trio(tmp_path) as trio:
            leader = await trio.leader()
            futures = [leader.propose_nowait(b"%d" % n) for n in range(5)]
            await asyncio.sleep(0)
            leader.resign()
            outcomes = await asyncio.gather(*futures, return_exceptions=True)
            new = await trio.leader()
            await new.barrier()
            written = trio.journals[new.node_id].entries
            for n, outcome in enumerate(outcomes):
                if isinstance(outcome, NotLeaderError):
                    assert b"%d" % n not in written
                else:
                    assert isinstance(outcome, int | InDoubtError)

    run(scenario)


@pytest.mark.parametrize("count", [1, 3])
def test_outstanding_entries_are_answered_during_a_stop(tmp_path, count):
    async def scenario():
        async with Trio(tmp_path, count=count) as trio:
            member = await trio.leader()
            futures = [member.propose_nowait(b"%d" % n) for n in range(50)]
            stopping = asyncio.ensure_future(member.stop())
            await asyncio.sleep(0)
            assert not member.leads
            with pytest.raises(MemberStoppedError):
                await member.propose(b"late")
            await stopping
            assert await asyncio.gather(*futures) == list(range(1, 51))

    run(scenario)


def test_entries_not_answered_during_a_stop_are_in_doubt(tmp_path):
    async def scenario():
        async with Trio(tmp_path, count=2) as trio:
            member = await trio.leader()
            other = next(m for m in trio.members.values() if m is not member)
            await other.stop(0.1)
            lost = member.propose_nowait(b"x")
            await member.stop(0.1)
            with pytest.raises(InDoubtError):
                await lost

    run(scenario)


@pytest.mark.parametrize("entry", ["text", None, 5, bytearray(b"x")])
def test_an_entry_that_is_not_bytes_is_a_type_error(tmp_path, entry):
    async def scenario():
        async with Trio(tmp_path, count=1) as trio:
            member = await trio.leader()
            with pytest.raises(TypeError, match="must be bytes, not"):
                await member.propose(entry)
            with pytest.raises(TypeError, match="must be bytes, not"):
                member.propose_all([b"good", entry])
            assert await member.propose(b"good") == 1

    run(scenario)


def test_a_snapshot_may_have_empty_chunks(tmp_path):
    async def scenario():
        settings = {"metadata.log.max.record.bytes.between.snapshots": "200"}
        async with Trio(tmp_path, count=1, settings=settings) as trio:
            member = await trio.leader()
            for n in range(20):
                await member.propose(b"" if n % 2 else b"x" * 50)
            partition = tmp_path / "1" / "__cluster_metadata-0"
            initial = partition / snapshot_name(BOOTSTRAP_SNAPSHOT_ID)
            await until(lambda: set(partition.glob("*.checkpoint")) > {initial})
            before = list(trio.journals[1].entries)
            await member.stop()
            await trio.start(1)
            await (await trio.leader()).barrier()
            assert trio.journals[1].entries == before

    run(scenario)


def test_a_failed_start_releases_port_and_directory(tmp_path):
    async def scenario():
        async with Trio(tmp_path, count=1) as trio:
            await trio.members[1].stop()
            with pytest.raises(QuorateError):
                await Member.start(
                    tmp_path / "1", Journal(), trio.addresses[1], contacts=("nonsense",)
                )
            await trio.start(1)
            assert await (await trio.leader()).propose(b"x") == 1

    run(scenario)


@pytest.mark.parametrize(
    ("listen", "settings", "said"),
    [
        (
            "127.0.0.1:0",
            {"controller.quorum.fetch.timeout": "1"},
            "unknown keys: controller.quorum",
        ),
        ("18001", {}, "'18001' is not an address: write host:port"),
    ],
)
def test_an_impossible_start_is_refused(tmp_path, listen, settings, said):
    async def scenario():
        create(tmp_path / "1", 1, "alone", {1: "127.0.0.1:9093"})
        with pytest.raises(QuorateError, match=said):
            await Member.start(tmp_path / "1", Journal(), listen, settings=settings)

    run(scenario)


@pytest.mark.parametrize("other", ["h:1", "[h]:01"])
def test_two_founders_cannot_share_an_address(tmp_path, other):
    with pytest.raises(QuorateError, match="Two founders have the address h:1"):
        create(tmp_path / "1", 1, "c", {1: "h:1", 2: other})
    assert not (tmp_path / "1").exists()


def test_a_directory_is_created_once(tmp_path):
    create(tmp_path / "4", 4, "c")
    with pytest.raises(QuorateError, match=r"4 is already the directory of a member$"):
        create(tmp_path / "4", 4, "c")


@pytest.mark.parametrize(
    ("node_id", "cluster", "founders", "said"),
    [
        (9, "", None, "The name of a cluster must not be empty"),
        (-1, "c", None, "-1 is not a member's id: the range is 0 to 2147483647"),
        (2**31, "c", None, "2147483648 is not a member's id"),
        (1, "c", {1: "h:1", -2: "h:2"}, "-2 is not a member's id"),
        (3, "c", {1: "h:1"}, "Member 3 is not among the founders"),
    ],
)
def test_invalid_names_are_refused_with_clear_messages(tmp_path, node_id, cluster, founders, said):
    with pytest.raises(QuorateError, match=said):
        create(tmp_path / "d", node_id, cluster, founders)
    assert not (tmp_path / "d").exists()
