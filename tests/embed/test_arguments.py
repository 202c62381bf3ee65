"""Arguments of a program: a mistake raises an error in the caller and has no other effect."""

import asyncio
import re

import pytest

from embed.test_guarantees import Journal, run
from narrow import as_any
from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid
from quorate.embed import Member, MembershipChangeError, create, local, local_cluster

UNKNOWN = "9-bm9ib2R5LWtub3dzLW1lIQ"


def test_a_key_is_accepted_as_text():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            joiner = await cluster.join(2)
            leader = await cluster.leader()
            for _ in range(2):  # the second time it is one already
                await leader.add_member(str(joiner.key), cluster.address(2))
            assert set(leader.members) == {leader.key, joiner.key}
            with pytest.raises(MembershipChangeError, match="VOTER_NOT_FOUND"):
                await leader.remove_member(UNKNOWN)
            await leader.remove_member(str(joiner.key))
            assert leader.members == (leader.key,)

    run(scenario)


@pytest.mark.parametrize(
    "key, error",
    [
        (1, TypeError),
        (None, TypeError),
        ((1, b"local-member\0\0\0\1"), TypeError),
        (ReplicaKey(2, as_any("bm9ib2R5LWtub3dzLW1lIQ")), TypeError),
        (ReplicaKey(as_any("2"), Uuid(b"nobody-knows-me!")), TypeError),
        (ReplicaKey(2**31, Uuid(b"nobody-knows-me!")), QuorateError),
        (ReplicaKey(-1, Uuid(b"nobody-knows-me!")), QuorateError),
        (ReplicaKey(2, Uuid(b"short")), QuorateError),
        ("2", QuorateError),
        ("nonsense", QuorateError),
    ],
)
def test_an_invalid_key_is_the_callers_error_and_the_leader_continues(key, error):
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            with pytest.raises(error, match=r"key|the id of a member|a member's id") as caught:
                await leader.add_member(key, "h:1", timeout_s=0)
            assert not isinstance(caught.value, MembershipChangeError)
            with pytest.raises(error, match=r"key|the id of a member|a member's id"):
                await leader.remove_member(key, timeout_s=0)
            assert await leader.propose(b"x") == 1

    run(scenario)


@pytest.mark.parametrize("address", ["0.0.0.0:5", "[::]:5", "0:0:0:0:0:0:0:0:5", "h:0"])
def test_an_address_that_is_not_connectable_is_refused_for_a_voter(tmp_path, address):
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            leader = await cluster.leader()
            with pytest.raises(QuorateError, match=said):
                await leader.add_member(UNKNOWN, address, timeout_s=0)

    said = re.escape(f"'{address}' is not an address to connect to: write one host and its port")
    with pytest.raises(QuorateError, match=said):
        create(tmp_path / "1", 1, "c", {1: address})
    assert not (tmp_path / "1").exists()
    run(scenario)


WRONG = {
    "an id from JSON": (("1", "c", {1: "h:1"}), "the id of a member must be an integer, not '1'"),
    "a flag": ((True, "c", {1: "h:1"}), "the id of a member must be an integer, not True"),
    "ids from JSON": ((1, "c", {"1": "h:1"}), "the id of a member must be an integer, not '1'"),
    "a list": ((1, "c", ["h:1"]), r"founders must be a mapping, not \['h:1'\]"),
    "a pair": ((1, "c", {1: ("h", 1)}), r"an address must be a string host:port, not \('h', 1\)"),
    "bytes": ((1, b"c", {1: "h:1"}), "the name of a cluster must be a string, not b'c'"),
}


@pytest.mark.parametrize("given, said", WRONG.values(), ids=WRONG)
def test_create_refuses_arguments_of_wrong_types(tmp_path, given, said):
    with pytest.raises(TypeError, match=said):
        create(tmp_path / "1", *given)
    assert not (tmp_path / "1").exists()


@pytest.mark.parametrize("directory", [None, 1, b"data"])
def test_a_directory_is_a_path_or_a_string(directory):
    for call in (lambda: create(directory, 1, "c"), lambda: started(directory)):
        with pytest.raises(TypeError, match="a directory must be a path or a string, not"):
            call()


@pytest.mark.parametrize("directory", ["", "a\0b", "a\ud800b", "a" * 300])
def test_invalid_directory_names_are_refused(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: create(directory, 1, "c"), lambda: started(directory)):
        with pytest.raises(QuorateError, match=r"cannot be the name of a directory|too long"):
            call()
    assert list(tmp_path.iterdir()) == []


def started(directory, listen="127.0.0.1:0", **given):
    asyncio.run(Member.start(directory, Journal(), listen, **given))


SLIPS = {
    "listen": ({"listen": 7001}, TypeError, "an address must be a string host:port, not 7001"),
    "label": ({"listen": "h" * 64 + ":1"}, QuorateError, "is not an address: write host:port"),
    "protocol": ({"listen": "X://h:1"}, QuorateError, "is not an address: write host:port"),
    "advertise": ({"advertise": ("h", 1)}, TypeError, "an address must be a string host:port"),
    "contacts": (
        {"contacts": "h:7001"},
        TypeError,
        "contacts must be a tuple of addresses, not 'h:70",
    ),
    "contact": ({"contacts": [7001]}, TypeError, "an address must be a string host:port, not 7001"),
    "two contacts": ({"contacts": ("h:1,i:2",)}, QuorateError, "'h:1,i:2' is not an address"),
    "metrics": ({"metrics": 9464}, TypeError, "metrics must be a string, not 9464"),
    "settings": ({"settings": ["a=b"]}, TypeError, r"settings must be a mapping, not \['a=b'\]"),
    "key": ({"settings": {1: "1"}}, TypeError, "a key of settings must be a string, not 1"),
    "value": (
        {"settings": {"controller.quorum.fetch.timeout.ms": 1000}},
        TypeError,
        r"settings: the value of controller\.quorum\.fetch\.timeout\.ms must be a string, not 1000",
    ),
}


@pytest.mark.parametrize("given, error, said", SLIPS.values(), ids=SLIPS)
def test_start_refuses_invalid_arguments(tmp_path, given, error, said):
    create(tmp_path / "1", 1, "c", {1: "127.0.0.1:9093"})
    with pytest.raises(error, match=said):
        started(tmp_path / "1", **given)


@pytest.mark.parametrize(
    "given, error, said",
    [
        ((0, Journal), QuorateError, "A cluster needs at least one member, not 0"),
        (("3", Journal), TypeError, "the number of members must be an integer, not '3'"),
        (
            (3, Journal()),
            TypeError,
            "machine must be a class or function that creates a state machine, not <",
        ),
    ],
)
def test_local_cluster_refuses_invalid_arguments(given, error, said):
    async def scenario():
        async with local_cluster(*given):
            pass

    with pytest.raises(error, match=said):
        run(scenario)


def test_join_refuses_an_invalid_id():
    async def scenario():
        async with local_cluster(1, Journal) as cluster:
            for node_id, error in (("4", TypeError), (-1, QuorateError)):
                with pytest.raises(error, match=r"the id of a member|a member's id"):
                    await cluster.join(as_any(node_id))

    run(scenario)


def test_a_failing_machine_factory_leaves_no_member_running(monkeypatch):
    drivers, machines = [], [Journal()]
    monkeypatch.setattr(local.MemoryDriver, "start", lambda driver: drivers.append(driver))

    async def scenario():
        with pytest.raises(IndexError):
            async with local_cluster(2, machines.pop):
                pass

    run(scenario)
    assert [driver.over for driver in drivers] == [True]
