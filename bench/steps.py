"""What a commit costs in processor time: three nodes stepped by direct calls, no socket, no disk.

Frames are encoded and decoded as between processes, and syncs go to memory. Processor time does not
depend on what else the machine does, so two runs can be compared.

    python -m bench.steps [seconds]
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable

from bench.load import VALUE

from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.embed.machine import OpaqueMachine, encode_entry
from quorate.embed.node import EmbeddedNode
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.node_io import NodeInput
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.node.requests import Call
from quorate.raft.inputs import Answered
from quorate.raft.ready import Refused
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.replica.disk_jobs import WriteSnapshot
from quorate.replica.disk_worker import DiskWriter
from quorate.replica.replica import Committed, Replica, Submit
from quorate.replica.state_machine import Now
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import decode_request, decode_response, encode_request
from quorate.wire.registry import APIS

_LENGTH = 4
ENTRY = encode_entry(b"S7:key-0-0" + VALUE)


class Nothing:
    """A state machine that keeps nothing."""

    def apply(self, offset: int, entry: bytes) -> object:
        return entry

    def snapshot(self) -> Iterable[bytes]:
        return ()

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Nothing was kept."""


class One:
    """A node with its disk in memory, and what came for it since its last step."""

    def __init__(self, voters: tuple[Voter, ...], voter: Voter) -> None:
        storage = MemoryStorage()
        storage.open()
        writer = storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
        for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), 0):
            writer.append(data)
        writer.freeze()
        storage.close()
        config = RaftConfig(
            cluster_id="bench",
            node_id=voter.key.id,
            directory_id=voter.key.directory_id,
            listeners=voter.listeners,
        )
        machine = OpaqueMachine(Nothing())
        replica = Replica(config, storage.open(), machine, random.Random(voter.key.id).random)
        self.node = EmbeddedNode(replica, machine, self.settle, lambda token, response: None)
        self.disk = DiskWriter(storage)
        self.inbox: list[NodeInput] = []
        self.outcomes: list[Committed | Refused] = []
        self.machine = machine

    def settle(self, outcome: Committed | Refused) -> None:
        self.outcomes.append(outcome)


class Trio:
    """Three nodes and their clock, ms."""

    def __init__(self) -> None:
        voters = tuple(
            Voter(
                ReplicaKey(i, Uuid(b"bench-node--" + i.to_bytes(4, "big"))),
                (Listener("CONTROLLER", "bench", i),),
                0,
                1,
            )
            for i in (1, 2, 3)
        )
        self.nodes = {voter.key.id: One(voters, voter) for voter in voters}
        self.now_ms = 1
        self.tokens = 0
        self.calls: dict[int, Callable[[bytes], None]] = {}
        while not any(one.node.is_active for one in self.nodes.values()):
            self.pass_time()
        self.leader = next(one for one in self.nodes.values() if one.node.is_active)
        self.pass_time()

    def commit(self, count: int) -> None:
        """Propose that many entries at once, and go on until all are committed everywhere."""
        self.now_ms += 1
        self.leader.outcomes.clear()
        self.leader.inbox.extend(Submit(i, (ENTRY,)) for i in range(count))
        self.settle()
        assert len(self.leader.outcomes) == count
        assert all(isinstance(outcome, Committed) for outcome in self.leader.outcomes)
        self.leader.machine.results.clear()

    def pass_time(self) -> None:
        self.now_ms += 100
        for one in self.nodes.values():
            self.step(one)
        self.settle()

    def settle(self) -> None:
        """Step every node that has something to do, until none has."""
        while any(one.inbox for one in self.nodes.values()):
            for one in self.nodes.values():
                if one.inbox:
                    self.step(one)

    def step(self, one: One) -> None:
        happened, one.inbox = one.inbox, []
        effects = one.node.step(happened, Now(self.now_ms, self.now_ms))
        jobs = [job for job in effects.jobs if not isinstance(job, WriteSnapshot)]
        one.inbox.extend(one.disk.perform(jobs))
        for send in effects.sends:
            self.carry(one, send.correlation, send.address.port, send.request)
        for token, frame in effects.answers:
            self.calls.pop(token)(frame[_LENGTH:])

    def carry(self, sender: One, correlation: int, to: int, request: object) -> None:
        """A request to a node, its answer back."""
        key = api_key_of(request)  # type: ignore[arg-type]
        version = APIS[key].max_version
        message = request_to_wire(request, version)  # type: ignore[arg-type]
        frame = encode_request(message, version, correlation, "bench")[_LENGTH:]

        def answered(answer: bytes) -> None:
            _, response = decode_response(answer, key, version)
            sender.inbox.append(Answered(correlation, response_from_wire(response, "CONTROLLER")))

        self.tokens += 1
        self.calls[self.tokens] = answered
        self.nodes[to].inbox.append(Call(self.tokens, decode_request(frame), "CONTROLLER"))


def cost_us(trio: Trio, count: int, seconds: float) -> float:
    """Processor time of one commit on all three nodes, us, with `count` proposed at once."""
    for _ in range(20):
        trio.commit(count)
    best = float("inf")
    end = time.process_time() + seconds
    while (start := time.process_time()) < end:
        for _ in range(10):
            trio.commit(count)
        best = min(best, (time.process_time() - start) / (10 * count))
    return best * 1e6


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    trio = Trio()
    for count in (1, 16, 128):
        print(f"{count:4} at once: {cost_us(trio, count, seconds):8.1f} us a commit")


if __name__ == "__main__":
    main()
