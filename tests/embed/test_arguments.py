"""What a program passes: a slip is told to whoever made it, and costs nobody anything."""

import asyncio
import re

import pytest

from embed.test_promises import Journal, run
from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid
from quorate.embed import ChangeFailed, Member, create, local, local_cluster

STRANGER = "9-bm9ib2R5LWtub3dzLW1lIQ"


def test_a_key_may_be_given_as_its_text():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            joiner = await cluster.join(2)
            leader = await cluster.leader()
            for _ in range(2):  # the second time it is one already
                await leader.add_member(str(joiner.key), cluster.address(2))
            assert set(leader.members) == {leader.key, joiner.key}
            with pytest.raises(ChangeFailed, match="VOTER_NOT_FOUND"):
                await leader.remove_member(STRANGER)
            await leader.remove_member(str(joiner.key))
            assert leader.members == (leader.key,)

    run(story)


@pytest.mark.parametrize(
    "key, error",
    [
        (1, TypeError),
        (None, TypeError),
        ((1, b"local-member\0\0\0\1"), TypeError),
        (ReplicaKey(2, "bm9ib2R5LWtub3dzLW1lIQ"), TypeError),
        (ReplicaKey("2", Uuid(b"nobody-knows-me!")), TypeError),
        (ReplicaKey(2**31, Uuid(b"nobody-knows-me!")), QuorateError),
        (ReplicaKey(-1, Uuid(b"nobody-knows-me!")), QuorateError),
        (ReplicaKey(2, Uuid(b"short")), QuorateError),
        ("2", QuorateError),
        ("nonsense", QuorateError),
    ],
)
def test_what_is_no_key_is_the_callers_error_and_the_leader_lives_on(key, error):
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            with pytest.raises(error, match=r"key|the id of a member") as caught:
                await leader.add_member(key, "h:1", timeout_s=0)
            assert not isinstance(caught.value, ChangeFailed)
            with pytest.raises(error, match=r"key|the id of a member"):
                await leader.remove_member(key, timeout_s=0)
            assert await leader.propose(b"x") == 1

    run(story)


@pytest.mark.parametrize("address", ["0.0.0.0:5", "[::]:5", "0:0:0:0:0:0:0:0:5", "h:0"])
def test_nobody_is_a_voter_at_an_address_that_nobody_can_connect_to(tmp_path, address):
    async def story():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            with pytest.raises(QuorateError, match=said):
                await leader.add_member(STRANGER, address, timeout_s=0)

    said = re.escape(f"'{address}' is not an address to connect to: name one host and its port")
    with pytest.raises(QuorateError, match=said):
        create(tmp_path / "1", 1, "c", {1: address})
    assert not (tmp_path / "1").exists()
    run(story)


WRONG = {
    "an id from JSON": (("1", "c", {1: "h:1"}), "the id of a member is a whole number, not '1'"),
    "a flag": ((True, "c", {1: "h:1"}), "the id of a member is a whole number, not True"),
    "ids from JSON": ((1, "c", {"1": "h:1"}), "the id of a member is a whole number, not '1'"),
    "a list": ((1, "c", ["h:1"]), r"founders is a mapping, not \['h:1'\]"),
    "a pair": ((1, "c", {1: ("h", 1)}), r"an address is the text host:port, not \('h', 1\)"),
    "bytes": ((1, b"c", {1: "h:1"}), "the name of a cluster is text, not b'c'"),
}


@pytest.mark.parametrize("given, said", WRONG.values(), ids=WRONG)
def test_nothing_is_founded_with_an_argument_of_a_wrong_type(tmp_path, given, said):
    with pytest.raises(TypeError, match=said):
        create(tmp_path / "1", *given)
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("directory", [None, 1, b"data"])
def test_a_directory_is_a_path_or_its_text(directory):
    for call in (lambda: create(directory, 1, "c"), lambda: started(directory)):
        with pytest.raises(TypeError, match="a directory is a path or its text, not"):
            call()


@pytest.mark.parametrize("directory", ["", "a\0b", "a\ud800b", "a" * 300])
def test_what_no_directory_can_be_called_is_refused(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: create(directory, 1, "c"), lambda: started(directory)):
        with pytest.raises(QuorateError, match=r"cannot be the name of a directory|too long"):
            call()
    assert list(tmp_path.iterdir()) == []


def started(directory, listen="127.0.0.1:0", **given):
    asyncio.run(Member.start(directory, Journal(), listen, **given))


SLIPS = {
    "listen": ({"listen": 7001}, TypeError, "an address is the text host:port, not 7001"),
    "label": ({"listen": "h" * 64 + ":1"}, QuorateError, "is not an address: write host:port"),
    "protocol": ({"listen": "X://h:1"}, QuorateError, "is not an address: write host:port"),
    "advertise": ({"advertise": ("h", 1)}, TypeError, "an address is the text host:port"),
    "contacts": ({"contacts": "h:7001"}, TypeError, "contacts is a tuple of addresses, not 'h:70"),
    "contact": ({"contacts": [7001]}, TypeError, "an address is the text host:port, not 7001"),
    "two contacts": ({"contacts": ("h:1,i:2",)}, QuorateError, "'h:1,i:2' is not an address"),
    "metrics": ({"metrics": 9464}, TypeError, "metrics is text, not 9464"),
    "settings": ({"settings": ["a=b"]}, TypeError, r"settings is a mapping, not \['a=b'\]"),
    "key": ({"settings": {1: "1"}}, TypeError, "a key of settings is text, not 1"),
    "value": (
        {"settings": {"controller.quorum.fetch.timeout.ms": 1000}},
        TypeError,
        r"settings: the value of controller\.quorum\.fetch\.timeout\.ms is text, not 1000",
    ),
}


@pytest.mark.parametrize("given, error, said", SLIPS.values(), ids=SLIPS)
def test_a_member_is_not_started_with_such_an_argument(tmp_path, given, error, said):
    create(tmp_path / "1", 1, "c", {1: "127.0.0.1:9093"})
    with pytest.raises(error, match=said):
        started(tmp_path / "1", **given)


@pytest.mark.parametrize(
    "given, error, said",
    [
        ((0, Journal), QuorateError, "A cluster has at least one member, not 0"),
        (("3", Journal), TypeError, "the number of members is a whole number, not '3'"),
        ((3, Journal()), TypeError, "a cluster is given what makes state machines, not one: <"),
    ],
)
def test_a_cluster_in_memory_is_refused_what_it_cannot_be(given, error, said):
    async def story():
        async with local_cluster(*given):
            pass

    with pytest.raises(error, match=said):
        run(story)


def test_an_id_that_is_none_does_not_join():
    async def story():
        async with local_cluster(1, Journal) as cluster:
            for node_id, error in (("4", TypeError), (-1, QuorateError)):
                with pytest.raises(error, match="the id of a member"):
                    await cluster.join(node_id)

    run(story)


def test_a_cluster_whose_machines_cannot_be_made_leaves_no_member_running(monkeypatch):
    drivers, machines = [], [Journal()]
    monkeypatch.setattr(local.MemoryDriver, "start", lambda driver: drivers.append(driver))

    async def story():
        with pytest.raises(IndexError):
            async with local_cluster(2, machines.pop):
                pass

    run(story)
    assert [driver.over for driver in drivers] == [True]
