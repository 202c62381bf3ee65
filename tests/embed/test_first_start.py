"""A founder that ran before does not start with a new directory, if another founder answers."""

import asyncio
import shutil
import socket
import sys
import threading
import time

import pytest

from embed.test_guarantees import Journal, Trio, free_address, run, until
from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.embed import (
    InDoubtError,
    Member,
    MemberStoppedError,
    NotLeaderError,
    create,
    first_start,
)
from quorate.embed.first_start import is_unconfirmed
from quorate.raft.inputs import SendFailure
from quorate.wire.messages import DescribeClusterResponse
from server.hosts import name_of, silent_host

QUICK = {
    "controller.quorum.fetch.timeout.ms": "200",
    "controller.quorum.election.timeout.ms": "100",
}


async def proven(trio, *ids):
    """Until all these know that all of them have been there."""

    def reported(i):
        voters = trio.members[i].node.control.voters
        return not any(is_unconfirmed(voter) for voter in voters if voter.key.id in ids)

    await until(lambda: all(reported(i) for i in ids))


def found_anew(trio, i):
    shutil.rmtree(trio.path / str(i))
    create(trio.path / str(i), i, "trio", trio.addresses)


def test_a_founder_that_lost_its_disk_is_not_founded_again(tmp_path):
    async def scenario():
        async with Trio(tmp_path, settings=QUICK) as trio:
            await (await trio.leader()).propose(b"x")
            await proven(trio, 1, 2, 3)
            await trio.members[2].stop()
            found_anew(trio, 2)
            for _ in range(2):
                with pytest.raises(QuorateError, match="Member 2 has run before"):
                    await trio.start(2)

    run(scenario)


def test_a_founder_that_just_acknowledged_is_not_founded_again(tmp_path):
    """Its entry in the voter set does not say yet that it has been there; its leader knows."""
    slow = {"controller.quorum.fetch.timeout.ms": "20000"}

    async def scenario():
        async with Trio(tmp_path, settings=slow) as trio:
            leader = await trio.leader()
            await leader.propose(b"x")
            core = leader.node.replica.core
            await until(lambda: len(core.voters_of_epoch) == 3)
            lost = next(i for i in trio.members if i != leader.node_id)
            voters = leader.node.control.voters
            assert any(is_unconfirmed(voter) for voter in voters if voter.key.id == lost)
            await trio.members[lost].stop()
            found_anew(trio, lost)
            with pytest.raises(QuorateError, match=f"Member {lost} has run before"):
                await trio.start(lost)

    run(scenario)


def test_a_founder_without_a_leader_also_detects_it(tmp_path):
    async def scenario():
        async with Trio(tmp_path, settings=QUICK) as trio:
            await proven(trio, 1, 2, 3)
            await asyncio.gather(*(member.stop() for member in trio.members.values()))
            await trio.start(1)
            found_anew(trio, 2)
            with pytest.raises(QuorateError, match=r"according to member 1 at 127\.0\.0\.1"):
                await trio.start(2)

    run(scenario)


def test_a_refused_founder_joins_as_a_new_member(tmp_path):
    async def scenario():
        async with Trio(tmp_path, settings=QUICK) as trio:
            await proven(trio, 1, 2, 3)
            old = trio.members.pop(2)
            await old.stop()
            found_anew(trio, 2)
            leader = await trio.leader()
            await leader.remove_member(old.key)
            with pytest.raises(
                QuorateError, match="Member 2 is not in the cluster, or was removed"
            ):
                await trio.start(2)
            shutil.rmtree(tmp_path / "2")
            create(tmp_path / "2", 2, "trio")
            trio.members[2] = joiner = await Member.start(
                tmp_path / "2", Journal(), trio.addresses[2], contacts=(trio.addresses[1],)
            )
            leader = await trio.leader()
            await leader.add_member(joiner.key, trio.addresses[2])
            assert joiner.key in leader.members and joiner.key != old.key

    run(scenario)


async def grown(path, ids):
    """A cluster that member 1 formed and that others joined; addresses by id, members."""
    places = {i: free_address() for i in ids}
    create(path / "1", 1, "grown", {1: places[1]})
    members = {1: await Member.start(path / "1", Journal(), places[1], settings=QUICK)}
    await until(lambda: members[1].leads)
    for i in ids[1:]:
        create(path / str(i), i, "grown")
        members[i] = await Member.start(
            path / str(i), Journal(), places[i], contacts=(places[1],), settings=QUICK
        )
        await add(members, i, places[i])
    return places, members


async def add(members, added_id, place):
    """Add a member to its cluster, by the next leader where a busy machine ends a leadership."""
    key = members[added_id].key

    def leaders():
        return [member for member in members.values() if member.leads]

    while True:
        await until(leaders)
        try:
            await leaders()[0].add_member(key, place)
        except (InDoubtError, NotLeaderError):
            await until(leaders)
            if key not in leaders()[0].members:
                continue
        return


async def found_alone_anew(path, places, contacts):
    """Member 1 on an empty disk, as its start script founds it."""
    shutil.rmtree(path / "1")
    create(path / "1", 1, "grown", {1: places[1]})
    return await Member.start(path / "1", Journal(), places[1], contacts=contacts, settings=QUICK)


@pytest.mark.parametrize("removed", [False, True])
def test_a_lone_founder_that_lost_its_disk_learns_of_its_cluster_from_a_contact(tmp_path, removed):
    """It knows no other founder, and would lead a quorum of its own beside the living one."""

    async def scenario():
        places, members = await grown(tmp_path, (1, 2, 3))
        others = [members[2], members[3]]
        await members[1].propose(b"x")
        if removed:
            await members[1].remove_member(members[1].key)
            await until(lambda: all(len(member.members) == 2 for member in others))
        await members[1].stop(0)
        said = "is not in the cluster, or was removed from it" if removed else "has run before"
        for contacts in [(places[2],), (free_address(), places[3])]:
            with pytest.raises(QuorateError, match=f"Member 1 {said}, according to contact"):
                await found_alone_anew(tmp_path, places, contacts)
        for member in others:
            await member.stop(0)

    run(scenario)


def test_a_lone_founder_whose_contacts_are_all_away_does_not_start(tmp_path):
    """The cluster may live: nobody can say whether the founder has run before."""

    async def scenario():
        places, members = await grown(tmp_path, (1, 2))
        for member in members.values():
            await member.stop(0)
        with pytest.raises(
            QuorateError, match=f"no contact can say (?s:.)*{places[2]}: there is no"
        ):
            await found_alone_anew(tmp_path, places, (places[1], places[2]))

    run(scenario)


def test_a_lone_founder_that_is_founded_again_is_another_replica(tmp_path, caplog):
    """It leads a quorum of its own. No entry of it ever stands in a log of the living one."""

    async def scenario():
        places, members = await grown(tmp_path, (1, 2, 3))
        for i in range(3):
            await members[1].propose(b"before %d" % i)
        old = members[1].key
        for member in members.values():
            await member.stop(0)
        lost = await found_alone_anew(tmp_path, places, ())
        await until(lambda: lost.leads)
        await lost.propose(b"in a quorum of its own")
        assert lost.key != old
        journals = {i: Journal() for i in (2, 3)}
        living = [
            await Member.start(tmp_path / str(i), journals[i], places[i], settings=QUICK)
            for i in journals
        ]
        await until(lambda: any(member.leads for member in living))
        leader = next(member for member in living if member.leads)
        await leader.propose(b"after")
        expected = [b"before 0", b"before 1", b"before 2", b"after"]
        await until(lambda: all(journal.entries == expected for journal in journals.values()))
        named = f"the node at {places[1]} has another directory id than voter {old}"
        await until(lambda: any(named in record.message for record in caplog.records))
        with pytest.raises(MemberStoppedError, match="founded again on an empty disk"):
            await lost.wait_stopped()
        for member in living:
            await member.stop(0)

    run(scenario)


def test_a_founder_is_refused_the_address_of_another_member(tmp_path):
    async def scenario():
        places, members = await grown(tmp_path, (1, 2))
        create(tmp_path / "9", 9, "grown", {9: places[1]})
        await members[1].remove_member(members[1].key)
        await members[1].stop(0)
        create(tmp_path / "5", 5, "grown")
        joiner = await Member.start(
            tmp_path / "5", Journal(), places[1], contacts=(places[2],), settings=QUICK
        )
        await until(lambda: members[2].leads)
        await members[2].add_member(joiner.key, places[1])
        await joiner.stop(0)
        with pytest.raises(QuorateError, match="Member 9 has the address of member 5"):
            await Member.start(tmp_path / "9", Journal(), places[1], contacts=(places[2],))
        await members[2].stop(0)

    run(scenario)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::ffff:127.0.0.1"])
def test_a_contact_that_is_the_founder_itself_does_not_stop_it(tmp_path, host):
    """Whatever name it has: the founder of a new cluster is started with the contacts of all."""

    async def scenario():
        own = free_address()
        port = own.rpartition(":")[2]
        contact = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        create(tmp_path / "1", 1, "grown", {1: own})
        founder = await Member.start(
            tmp_path / "1", Journal(), own, contacts=(own, contact), settings=QUICK
        )
        await until(lambda: founder.leads)
        await founder.stop()

    run(scenario)


def test_a_lone_founder_hears_what_each_contact_answered(tmp_path):
    """A closed port, a member of another cluster, and a joiner that knows no member."""

    async def scenario():
        own, closed, other, waiting = (free_address() for _ in range(4))
        create(tmp_path / "9", 9, "others", {9: other})
        create(tmp_path / "4", 4, "grown")
        create(tmp_path / "1", 1, "grown", {1: own})
        foreign = await Member.start(tmp_path / "9", Journal(), other, settings=QUICK)
        joiner = await Member.start(tmp_path / "4", Journal(), waiting, contacts=(own,))
        await until(lambda: foreign.leads)
        said = {
            closed: "there is no connection to it, or it closed it; start it",
            other: f"it belongs to another cluster, {foreign.node.cluster_id}, and this one is "
            f"{joiner.node.cluster_id}; correct its address",
            waiting: "it knows no member yet; name one that has been in the cluster",
        }
        for contacts in ((closed,), (other,), (waiting,), (own, closed, other, waiting)):
            with pytest.raises(QuorateError) as refused:
                await Member.start(tmp_path / "1", Journal(), own, contacts=contacts)
            first, *each, last = str(refused.value).splitlines()
            assert first.startswith("Founder 1 is alone, and no contact can say")
            assert each == [f"  contact {at}: {said[at]}" for at in contacts if at != own]
            assert last == "If the cluster is new, leave out the contacts"
        for member in (joiner, foreign):
            await member.stop()

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (SendFailure.TIMED_OUT, "it did not answer in time; start it, or let packets"),
        (SendFailure.UNSUPPORTED_VERSION, "it does not know DescribeCluster; correct its address"),
        (
            DescribeClusterResponse(error_code=114, error_message="not a controller"),
            "it refuses to answer: error 114, not a controller; correct its address, or allow",
        ),
        (DescribeClusterResponse(error_code=31), "error 31, without a text; "),
    ],
)
def test_other_answers_of_a_contact_have_their_text(tmp_path, monkeypatch, answer, said):
    async def scenario():
        own, contact = free_address(), free_address()
        create(tmp_path / "1", 1, "grown", {1: own})
        with pytest.raises(QuorateError) as refused:
            await Member.start(tmp_path / "1", Journal(), own, contacts=(contact,))
        assert f"  contact {contact}: " in str(refused.value) and said in str(refused.value)

    async def answered(*_):
        return answer

    monkeypatch.setattr(first_start, "_ask", answered)
    run(scenario)


def test_a_founder_that_starts_late_for_the_first_time_is_accepted(tmp_path):
    async def scenario():
        async with Trio(tmp_path, settings=QUICK, late=(3,)) as trio:
            leader = await trio.leader()
            for n in range(5):
                await leader.propose(b"%d" % n)
            await proven(trio, 1, 2)
            await trio.start(3)
            await until(lambda: len(trio.journals[3].entries) == 5)

    run(scenario)


def test_a_founder_killed_before_it_followed_starts_again(tmp_path):
    async def scenario():
        async with Trio(tmp_path, late=(2, 3)) as trio:
            await until(lambda: trio.members[1].node.replica.core.epoch >= 0)
            await trio.members[1].stop(0)
            for i in (1, 2, 3):
                await trio.start(i)
            assert await (await trio.leader()).propose(b"x") == 1

    run(scenario)


def test_a_member_of_another_cluster_is_ignored(tmp_path):
    async def scenario():
        own, other = free_address(), free_address()
        create(tmp_path / "9", 9, "others", {9: other})
        create(tmp_path / "1", 1, "lonely", {1: own, 2: other})
        async with await Member.start(tmp_path / "9", Journal(), other) as member:
            await until(lambda: member.leads)
            founder = await Member.start(tmp_path / "1", Journal(), own)
            await founder.stop(0)  # no majority takes the hand-over

    run(scenario)


def test_missing_or_invalid_answers_do_not_block_a_founder(tmp_path, monkeypatch):
    monkeypatch.setattr(first_start, "_PATIENCE_S", 0.05)

    async def scenario():
        async def babble(reader, writer):
            writer.write(b"\0\0\0\x05hello")

        babbler = await asyncio.start_server(babble, "127.0.0.1", 0)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            own = free_address()
            others = [s.getsockname()[1] for s in (silent, babbler.sockets[0])]
            founders = {1: own} | {i: f"127.0.0.1:{port}" for i, port in enumerate(others, 2)}
            create(tmp_path / "1", 1, "lonely", founders)
            founder = await Member.start(tmp_path / "1", Journal(), own)
            await founder.stop(0)
        babbler.close()

    run(scenario)


def test_an_unresolvable_name_does_not_block_the_exit(tmp_path, monkeypatch):
    real, answered = socket.getaddrinfo, threading.Event()

    def look_up(host, *args, **more):
        if host == "silent.test":
            answered.wait(20)
        return real("127.0.0.1" if host == "silent.test" else host, *args, **more)

    async def scenario():
        own = free_address()
        create(tmp_path / "1", 1, "trio", {1: own, 2: "silent.test:7001", 3: free_address()})
        member = await Member.start(tmp_path / "1", Journal(), own, settings=QUICK)
        await member.stop(0)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(first_start, "_PATIENCE_S", 0.5)
    began = time.monotonic()
    try:
        asyncio.run(scenario())
        assert time.monotonic() - began < 10
    finally:
        answered.set()


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2, and what a full backlog does")
def test_an_unresponsive_address_of_a_founder_does_not_block_the_others(tmp_path, monkeypatch):
    async def scenario():
        async with Trio(tmp_path) as trio:
            await trio.leader()
            port = int(trio.addresses[1].rpartition(":")[2])
            with silent_host(port) as silent:
                monkeypatch.setattr(socket, "getaddrinfo", name_of(silent, "127.0.0.1"))
                reported = await first_start._ask(Address("several.test", port))
        assert isinstance(reported, DescribeClusterResponse)

    run(scenario)
