"""Peers with invalid requests, or valid ones at the wrong time, do not disturb the quorum."""

import socket
import struct
import threading
import uuid
from datetime import timedelta

import pytest
from kio.schema.add_raft_voter.v1 import request as add_voter
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId, TopicName
from kio.schema.vote.v2 import request as vote
from kio.static.primitive import i32, i32Timedelta, i64

from interop.kafka import Quorum, new_uuid, wait_for
from interop.probe import Connection
from interop.process import HOST, QuorateNode, free_port
from quorate.wire.header import encode_request
from quorate.wire.messages import DescribeQuorumRequest

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("peers")]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A lone voter that works, for what comes over the network."""
    with Quorum(tmp_path_factory.mktemp("running"), {1: "quorate"}) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def assert_still_works(quorum):
    quorum.write(3)
    assert "Traceback" not in quorum.nodes[1].log


def closes(peer, timeout=10.0):
    """True when the node closes this connection within `timeout` seconds."""
    peer.settimeout(timeout)
    try:
        while peer.recv(4096):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def test_more_connections_than_the_process_may_have_files(tmp_path, monkeypatch):
    """They are refused before the node lacks one for its own log: it rolls segments meanwhile."""
    monkeypatch.setattr(QuorateNode, "server_command", with_files(200))
    # A segment is an open file, too: some each second, far from what is kept for them.
    config = {"internal.metadata.log.segment.bytes": 1000, "metadata.max.idle.interval.ms": 20}
    with Quorum(tmp_path, {1: "quorate"}, config=config) as quorum:
        quorum.format()
        quorum.start()
        node = quorum.leader()
        flood = [socket.create_connection((HOST, node.port)) for _ in range(300)]
        segments = len(list(node.partition.glob("*.log")))
        wait_for(lambda: len(list(node.partition.glob("*.log"))) > segments + 2, "more segments")
        wait_for(lambda: "Refused the connection from" in node.log, "a word of it")
        for peer in flood:
            peer.close()
        assert_still_works(quorum)


def with_files(most):
    """The command of a node that may have so many files open."""
    command = QuorateNode.server_command

    def server_command(self, *args):
        limited = f'ulimit -n {most}; exec "$@"'
        return ["bash", "-c", limited, "bash", *command(self, *args)]

    return server_command


GARBAGE = {
    "text": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "two gibibytes": struct.pack(">i", 2**31 - 1) + b"\0" * 64,
    "a negative length": struct.pack(">i", -5) + b"\0" * 64,
    "an empty frame": struct.pack(">i", 0),
    "an unknown api": struct.pack(">ihhih", 10, 9999, 0, 1, -1),
    "half a header": struct.pack(">ih", 2, 1),
    "a million topics": struct.pack(">ihhih", 3_000_010, 55, 2, 1, -1) + b"\0" * 3_000_000,
    "a body of noise": struct.pack(">ihhih", 10 + 64, 1, 17, 1, -1) + b"\xff" * 64,
}


@pytest.mark.parametrize("name", GARBAGE)
def test_a_peer_that_sends_garbage(running, name):
    with socket.create_connection((HOST, running.nodes[1].port)) as peer:
        peer.sendall(GARBAGE[name])
        assert closes(peer)
    assert_still_works(running)


def test_an_incomplete_frame_does_not_disturb_the_quorum(running):
    with socket.create_connection((HOST, running.nodes[1].port)) as peer:
        peer.sendall(struct.pack(">i", 1000) + b"\0" * 500)
        assert_still_works(running)


def test_many_silent_connections(running):
    peers = [socket.create_connection((HOST, running.nodes[1].port)) for _ in range(200)]
    assert_still_works(running)
    for peer in peers:
        peer.close()


def test_a_flood_of_requests_does_not_cause_an_election(tmp_path):
    """Sixty clients that pipeline without end are served in turn with the followers' Fetch."""
    topic = DescribeQuorumRequest.TopicData
    question = DescribeQuorumRequest(
        topics=[
            topic(
                topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)]
            )
        ]
    )
    frames = encode_request(question, 2, 1, "flood") * 100
    over = threading.Event()
    answers = [0] * 60

    def flood(number, port):
        with socket.create_connection((HOST, port)) as client:
            client.settimeout(0.2)
            unsent = b""
            while not over.is_set():
                unsent = unsent or frames
                try:
                    unsent = unsent[client.send(unsent) :]
                    answers[number] += len(client.recv(1 << 20))
                except TimeoutError:
                    continue

    with Quorum(tmp_path, dict.fromkeys((1, 2, 3), "quorate")) as quorum:
        quorum.format()
        quorum.start()
        before = quorum.wait_until(lambda v: v.high_watermark > 0 and v.lag <= 0, "a quiet leader")
        ports = [node.port for node in quorum.controllers]
        threads = [
            threading.Thread(target=flood, args=(n, ports[n % 3])) for n in range(len(answers))
        ]
        for thread in threads:
            thread.start()
        try:
            # three times the fetch timeout of 2 s, for it writes a NoOpRecord each half second
            later = before.high_watermark + 12
            after = quorum.wait_until(lambda v: v.high_watermark >= later, "six seconds")
            quorum.write(5)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert after.epoch == before.epoch
        assert all(answers), "all clients are served"


def ask(running, request):
    with Connection(HOST, running.nodes[1].port, 10.0) as connection:
        return connection.ask(request)


def vote_request(cluster_id, directory_id, epoch):
    partition = vote.PartitionData(
        partition_index=i32(0),
        replica_epoch=epoch,
        replica_id=BrokerId(2),
        replica_directory_id=uuid.uuid4(),
        voter_directory_id=directory_id,
        last_offset_epoch=epoch,
        last_offset=i64(10**6),
        pre_vote=True,
    )
    topic = vote.TopicData(topic_name=TopicName("__cluster_metadata"), partitions=(partition,))
    return vote.VoteRequest(cluster_id=cluster_id, voter_id=BrokerId(1), topics=(topic,))


def test_a_request_for_another_cluster(running):
    answer = ask(running, vote_request(new_uuid(), None, 9))
    assert answer.error_code == ErrorCode.inconsistent_cluster_id
    assert_still_works(running)


def test_a_request_for_another_directory(running):
    answer = ask(running, vote_request(running.cluster_id, uuid.uuid4(), 9))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.invalid_voter_key
    assert_still_works(running)


def add_request(cluster_id, node_id, port):
    listener = add_voter.Listener(name="CONTROLLER", host=HOST, port=port)
    return add_voter.AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout=i32Timedelta.parse(timedelta(seconds=1)),
        voter_id=node_id,
        voter_directory_id=uuid.uuid4(),
        listeners=(listener,),
        ack_when_committed=True,
    )


def test_a_voter_change_while_another_is_pending(running):
    """The first change waits for a silent new voter; the second is refused as pending."""
    with socket.socket() as silent:
        port = free_port()
        silent.bind((HOST, port))
        silent.listen()
        first = Connection(HOST, running.nodes[1].port, 10.0)
        first.send(add_request(running.cluster_id, 7, port))
        silent.settimeout(10)
        newcomer, _ = silent.accept()
        answer = ask(running, add_request(running.cluster_id, 8, free_port()))
        assert answer.error_code == ErrorCode.request_timed_out
        assert answer.error_message
        assert first.receive().error_code == ErrorCode.request_timed_out
        newcomer.close()
    assert_still_works(running)


def test_a_node_of_another_cluster_is_refused(running, tmp_path):
    """The node logs the reason; the quorum is not disturbed."""
    before = running.wait_for_commit_by_all()
    foreign_node = QuorateNode(5, tmp_path / "node5")
    foreign_node.config["controller.quorum.bootstrap.servers"] = running.nodes[1].address
    foreign_node.format(new_uuid(), "--no-initial-controllers")
    try:
        foreign_node.start()
        wait_for(lambda: "of another cluster than" in foreign_node.log, "the refusal")
        view = running.wait_for_commit_by_all()
        assert view.epoch == before.epoch
        assert 5 not in view.observers
        assert "Traceback" not in foreign_node.log
    finally:
        foreign_node.stop()
