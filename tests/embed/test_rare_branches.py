"""What a member does that `make guards` found neither tested nor reached by a world."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from embed.test_guarantees import Trio, run, until
from embed.test_local_cluster import Counter
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import ReplicaKey, Uuid
from quorate.embed import MemberStoppedError, create, local_cluster
from quorate.embed.founding import node_id_of
from quorate.embed.local import MemoryDriver
from quorate.embed.outstanding import Outstanding
from quorate.formats.files import META_PROPERTIES
from quorate.node.requests import Call
from quorate.server.driver import Driver, present
from quorate.wire.header import WireRequest, decode_response
from quorate.wire.messages import DescribeClusterRequest, ListPartitionReassignmentsRequest
from quorate.wire.registry import APIS

UNKNOWN = ReplicaKey(9, Uuid(b"nobody-knows-it!"))


# -- a member that has stopped -----------------------------------------------------------------
def test_a_stopped_member_takes_nothing():
    async def scenario():
        async with local_cluster(1, Counter) as cluster:
            leader = await cluster.leader()
            await leader.stop()
            await leader.wait_stopped()
            leader.resign()
            with pytest.raises(MemberStoppedError):
                await leader.propose_nowait(b"1")
            with pytest.raises(MemberStoppedError):
                await leader.remove_member(UNKNOWN)

    run(scenario)


def test_a_disk_that_hangs_keeps_its_directory_locked(tmp_path, monkeypatch, caplog):
    close = Driver.close

    async def hangs(driver):
        await close(driver)
        return False

    monkeypatch.setattr(Driver, "close", hangs)

    async def scenario():
        async with Trio(tmp_path, count=1) as trio:
            member = await trio.leader()
            await member.stop()
            with pytest.raises(QuorateError, match="another node uses this directory"):
                await trio.start(1)

    run(scenario)
    assert "The disk of member 1 hangs" in caplog.text


# -- callers that wait no more -----------------------------------------------------------------
def test_a_proposal_whose_caller_waits_no_more_is_applied():
    async def scenario():
        async with local_cluster(1, Counter) as cluster:
            leader = await cluster.leader()
            assert leader.propose_nowait(b"1").cancel()
            assert await leader.propose(b"2") == 3

    run(scenario)


@pytest.mark.parametrize("stops", [False, True])
def test_a_change_whose_caller_waits_no_more(stops):
    async def scenario():
        async with local_cluster(1, Counter) as cluster:
            leader = await cluster.leader()
            change = asyncio.ensure_future(leader.remove_member(UNKNOWN))
            await asyncio.sleep(0)
            change.cancel()
            if stops:
                cluster.crash(leader.node_id)
            else:
                assert await leader.propose(b"2") == 2
            await asyncio.wait([change])
            assert change.cancelled()

    run(scenario)


def test_a_cancelled_waiter_is_not_refused_room():
    async def scenario():
        room = Outstanding(10)
        room.take(10)
        room.add(lambda outcome: None, 10)
        waiter = asyncio.ensure_future(room.wait_for(10))
        await asyncio.sleep(0)
        waiter.cancel()
        assert len(room.end("it ends")) == 1
        await asyncio.wait([waiter])
        assert waiter.cancelled()

    run(scenario)


# -- a cluster in memory -----------------------------------------------------------------------
def test_a_machine_may_stop_its_member_within_a_step():
    class Bomb(Counter):
        def apply(self, offset, entry):
            if entry == b"7":
                clusters[0].crash(1)
            return super().apply(offset, entry)

    async def scenario():
        async with local_cluster(1, Bomb) as cluster:
            clusters.append(cluster)
            leader = await cluster.leader()
            with pytest.raises(QuorateError):
                await leader.propose(b"7")

    clusters: list[Any] = []
    run(scenario)


def test_a_member_behind_a_cut_link_does_not_learn_of_a_crash(monkeypatch):
    """Its Fetch waits at the leader when that crashes."""
    closed, machines = [], []

    def make():
        machines.append(Counter())
        return machines[-1]

    halt = MemoryDriver.halt

    def halts(driver):
        closed.append(driver)
        halt(driver)

    monkeypatch.setattr(MemoryDriver, "halt", halts)

    async def scenario():
        async with local_cluster(3, make) as cluster:
            leader = await cluster.leader()
            others = [i for i in cluster.members if i != leader.node_id]
            await leader.propose(b"1")
            await until(lambda: all(machine.total for machine in machines))
            for other in others:
                cluster.cut(leader.node_id, other)
            cluster.crash(leader.node_id)
            assert await cluster.propose(b"2") == 3

    run(scenario)
    assert closed


# -- what a member serves ----------------------------------------------------------------------
def served(message, listener):
    """(response, reasons why the connection is closed) of the only member of a cluster."""

    async def scenario():
        async with local_cluster(1, Counter) as cluster:
            member = await cluster.leader()
            version = APIS[type(message).schema.key].max_version
            request = WireRequest(type(message).schema.key, version, 1, "tool", message)
            effects = member.node.step([Call(1, request, listener)], present())
            answers = [
                decode_response(frame[4:], request.api_key, version)[1]
                for _, frame in effects.answers
            ]
            found.append((answers, [each.reason for each in effects.closed]))

    found: list[tuple[list[Any], list[str]]] = []
    run(scenario)
    return found[0]


def test_an_api_that_a_member_does_not_serve_closes_the_connection():
    message = ListPartitionReassignmentsRequest()
    assert served(message, "X") == ([], [f"api key {type(message).schema.key} is not served here"])


def test_members_are_described_as_controllers_of_the_listener_asked():
    [answer], _ = served(DescribeClusterRequest(endpoint_type=2), "ANOTHER")
    assert answer.error_code == ErrorCode.NONE and not answer.brokers


def test_members_are_no_brokers():
    [answer], _ = served(DescribeClusterRequest(), "X")
    assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


# -- directories -------------------------------------------------------------------------------
def test_a_directory_without_a_member_has_no_node_id(tmp_path):
    with pytest.raises(QuorateError, match="is not a member's directory"):
        node_id_of(tmp_path)
    (tmp_path / META_PROPERTIES).write_text("version=0\ncluster.id=c\n")
    with pytest.raises(QuorateError, match=r"has no node\.id"):
        node_id_of(tmp_path)


def test_no_derived_id_is_one_that_kafka_reserves(tmp_path: Path):
    """Kafka's own ids never begin with '-': its tools would take such a one for an option."""
    for n in range(200):
        home = tmp_path / str(n)
        create(home, 1, f"cluster {n}", {1: "localhost:9000", 2: "localhost:9001"})
        text = (home / META_PROPERTIES).read_text()
        assert "cluster.id=" in text and "cluster.id=-" not in text
