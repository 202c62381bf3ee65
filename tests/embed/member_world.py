"""A deterministic world of members: a seed gives the faults, the times and every event.

It runs what a program's member runs (EmbeddedNode, OpaqueMachine, Replica, storage, frames) without
asyncio. Members crash within loads and writes, links are cut, and a foreign member asks for the log.
Invariants, checked at each event:

- Every member applies the same entries at the same offsets, each once, and restores such a prefix.
- An acknowledged entry is never lost, a refused one never applied, a result that of its own entry.
- A read after a barrier has all that was acknowledged before the barrier began.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.embed.founding import LISTENER
from quorate.embed.machine import BARRIER, OpaqueMachine, encode_entry
from quorate.embed.node import EmbeddedNode
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.node.requests import Call
from quorate.raft import inputs
from quorate.raft.ready import Refused, Send
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.replica.disk_jobs import Job, WriteSnapshot
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.replica.proposals import Committed, Submit
from quorate.replica.replica import MemoryLimits, Replica
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import Now
from quorate.sim.prng import Prng
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryStorage
from quorate.wire.header import decode_request, decode_response, encode_request
from quorate.wire.registry import APIS

HOST: Final = "member"
FOREIGN: Final = 9
"""The id of the foreign member."""
_LENGTH: Final = 4
_SLOW: Final = 30
_CHUNK: Final = 4
"""Entries in a chunk of a snapshot."""


class MemberViolationError(Exception):
    """An invariant is violated."""


class EntryHistory:
    """The program's state machine: all entries with their offsets."""

    def __init__(self, world: MemberWorld, node_id: int) -> None:
        self.world, self.node_id = world, node_id
        self.entries: list[tuple[int, str]] = []

    def apply(self, offset: int, entry: bytes) -> int:
        text = entry.decode()
        last = self.entries[-1][0] if self.entries else -1
        if offset <= last:
            self.world.violated(f"{self.node_id} applies {offset} after {last}")
        known = self.world.applied.setdefault(offset, text)
        if known != text:
            self.world.violated(f"{self.node_id} applies {text} at {offset}, another one {known}")
        self.entries.append((offset, text))
        self.check_prefix("applies")
        return len(self.entries)

    def snapshot(self) -> Iterable[bytes]:
        held = list(self.entries)
        parts = [held[at : at + _CHUNK] for at in range(0, len(held), _CHUNK)]
        return iter([json.dumps(part).encode() for part in parts])

    def restore(self, chunks: Iterable[bytes]) -> None:
        self.entries = [(at, text) for chunk in chunks for at, text in json.loads(chunk)]
        self.check_prefix("restores")

    def check_prefix(self, verb: str) -> None:
        """It has exactly what was applied anywhere up to its last offset."""
        last = self.entries[-1][0] if self.entries else -1
        wanted = [(at, text) for at, text in sorted(self.world.applied.items()) if at <= last]
        if self.entries != wanted:
            self.world.violated(f"{self.node_id} {verb} {self.entries[-3:]}, not {wanted[-3:]}")


@dataclass(slots=True)
class SimulatedMember:
    """One member; `node` is None while it is down."""

    id: int
    cluster: str
    key: ReplicaKey
    storage: MemoryStorage
    history: EntryHistory
    node: EmbeddedNode | None = None
    disk: DiskWriter | None = None
    turn: int = 0
    inbox: list[Any] = field(default_factory=list)
    callers: dict[int, Callable[[bytes | None], None]] = field(default_factory=dict)
    operations: dict[int, Operation] = field(default_factory=dict)
    disk_free_us: int = 0
    slow_until_us: int = 0
    """Until then its disk takes _SLOW times as long."""
    scheduled: bool = False
    fault: str | None = None


@dataclass(slots=True)
class Operation:
    """A proposal of an entry; a barrier where there is none."""

    entry: str | None
    acknowledged: int
    """How many entries were acknowledged when it began."""


class MemberWorld:
    """`run` ends with healed members that all have everything, or raises MemberViolationError."""

    def __init__(self, seed: int, members: int = 3, *, foreign_record: bool = False) -> None:
        self.rng = Prng(seed, "members")
        self.now_us = 0
        self.coverage: Counter[str] = Counter()
        self.applied: dict[int, str] = {}
        """By offset: the entry that was applied first."""
        self.acknowledged: list[str] = []
        self.refused: set[str] = set()
        self.trace: list[tuple[int, int, str]] = []
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = count()
        self._tokens = count(1)
        self._names = count(1)
        self._cut: set[frozenset[int]] = set()
        self.healed = False
        self.foreign_record = foreign_record
        self.members: dict[int, SimulatedMember] = {}
        voters = tuple(
            Voter(_key(i), (Listener(LISTENER, HOST, i),), 0, 1) for i in range(1, members + 1)
        )
        for voter in voters:
            self._add(voter.key.id, "ours", voters)
        self._add(
            FOREIGN, "theirs", (Voter(_key(FOREIGN), (Listener(LISTENER, HOST, FOREIGN),), 0, 1),)
        )

    # -- events -------------------------------------------------------------------------------
    def push(self, after_us: int, act: Callable[..., None], *args: Any) -> None:
        heapq.heappush(self._events, (self.now_us + after_us, next(self._number), act, args))

    def violated(self, what: str) -> None:
        raise MemberViolationError(f"at {self.now_us // 1000} ms: {what}")

    def run_until(self, at_us: int) -> None:
        while self._events and self._events[0][0] <= at_us:
            self.now_us, _, act, args = heapq.heappop(self._events)
            act(*args)
        self.now_us = at_us

    def run(self, duration_ms: int = 8000) -> None:
        for member in self.members.values():
            self.start(member)
        for _ in range(3):
            self.push(self.rng.between(0, 100_000), self._client)
        self.push(500_000, self._fault)
        self.run_until(duration_ms * 1000)
        self._heal()
        for _ in range(100):
            self.run_until(self.now_us + 200_000)
            if self._is_done():
                break
        else:
            self.violated("the healed members do not agree in 20 s")
        self._check_end()

    # -- members ------------------------------------------------------------------------------
    def _add(self, node_id: int, cluster: str, voters: tuple[Voter, ...]) -> None:
        storage = MemoryStorage(options=LogOptions(segment_bytes=600, needs_vote=True))
        storage.open()
        writer = storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
        for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), 0):
            writer.append(data)
        writer.freeze()
        storage.close()
        history = EntryHistory(self, node_id)
        self.members[node_id] = SimulatedMember(node_id, cluster, _key(node_id), storage, history)

    def start(self, member: SimulatedMember) -> None:
        if member.node is not None or member.fault is not None:
            return
        ours = [i for i in self.members if i != FOREIGN]
        config = RaftConfig(
            cluster_id=member.cluster,
            node_id=member.id,
            directory_id=member.key.directory_id,
            listeners=(Listener(LISTENER, HOST, member.id),),
            bootstrap_servers=tuple(Address(HOST, i) for i in ours),
            election_timeout_ms=150,
            fetch_timeout_ms=300,
            election_backoff_max_ms=100,
            request_timeout_ms=400,
            fetch_max_wait_ms=60,
            snapshot_max_bytes=1000,
        )
        member.history = EntryHistory(self, member.id)
        clock_rng = Prng(self.rng.below(1 << 30), "clock")
        # Some entries seem slow: a step then stops within a batch.
        machine = OpaqueMachine(member.history, lambda: clock_rng.below(3) * 0.006)
        policy = SnapshotPolicy(700, 1 << 40, 700, 1 << 40, 300)
        random = Prng(self.rng.below(1 << 30), "replica").random
        limits = MemoryLimits(tail=200, slice=6, reads=4000)
        replica = Replica(config, member.storage.open(), machine, random, policy, limits)
        member.turn += 1
        settled = partial(self._settled, member)
        member.node = EmbeddedNode(replica, machine, settled, lambda *_: None)
        member.disk = DiskWriter(member.storage)
        member.disk_free_us = self.now_us
        self._schedule(member)

    def crash(self, member: SimulatedMember, down_us: int) -> None:
        """Lose the power: unsynced writes are lost in part, and all that is in memory."""
        assert member.node is not None
        if member.node.replica.is_loading:
            self.coverage["a load was interrupted by a crash"] += 1
        self._end(member)
        member.storage = member.storage.crash(self.rng.random)
        self.push(down_us, self.start, member)

    def _end(self, member: SimulatedMember) -> None:
        member.node, member.disk = None, None
        member.turn += 1
        member.inbox, member.scheduled = [], False
        member.operations.clear()  # their clients never learn the outcome
        callers, member.callers = member.callers, {}
        for answered in callers.values():
            answered(None)

    def post(self, member: SimulatedMember, turn: int, *items: Any) -> None:
        if member.turn == turn and member.node is not None:
            member.inbox.extend(items)
            self._schedule(member)

    def _schedule(self, member: SimulatedMember) -> None:
        if not member.scheduled:
            member.scheduled = True
            self.push(20, self._step, member, member.turn)

    def _step(self, member: SimulatedMember, turn: int) -> None:
        if member.turn != turn or member.node is None:
            return
        member.scheduled = False
        happened, member.inbox = member.inbox, []
        ms = self.now_us // 1000
        loaded, was_loading = member.node.snapshots_loaded, member.node.replica.is_loading
        try:
            effects = member.node.step(happened, Now(ms, 1_700_000_000_000 + ms))
        except QuorateError as error:
            member.fault = str(error)
            if not self.foreign_record or "is not an entry of a member" not in member.fault:
                self.violated(f"{member.id} stops: {error}")
            self._end(member)
            return
        if effects.faulted is not None or effects.stopped:
            self.violated(f"{member.id} stops: {effects.faulted}")
        self._count(member, happened, loaded, was_loading=was_loading)
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                self.push(self.rng.between(200, 20_000), self._snapshot, member, turn, job)
        self._submit(member, [job for job in effects.jobs if not isinstance(job, WriteSnapshot)])
        for send in effects.sends:
            self._send(member, send)
        for token, frame in effects.answers:
            answered = member.callers.pop(token)
            answered(frame[_LENGTH:])
        if effects.wake_at_ms is not None:
            delay = max(effects.wake_at_ms * 1000 - self.now_us, 20)
            self.push(delay, self.post, member, turn)
        loading = member.node.replica.is_loading and member.id != FOREIGN
        if loading and not self.healed and self.rng.happens(0.005):
            self.crash(member, self.rng.between(1000, 300_000))

    def _count(
        self, member: SimulatedMember, happened: Sequence[Any], loaded: int, *, was_loading: bool
    ) -> None:
        """Extend trace and coverage by a step; `loaded`: the snapshots that were loaded before it."""
        assert member.node is not None
        replica = member.node.replica
        self.trace.append((self.now_us, member.id, f"{replica.core.role} {replica.applied}"))
        if member.node.snapshots_loaded > loaded and self.now_us > 0:
            self.coverage["a snapshot was loaded"] += 1
        if was_loading and any(type(item).__name__ == "Installed" for item in happened):
            self.coverage["a load was interrupted by a newer snapshot"] += 1
        if member.id == FOREIGN and member.history.entries:
            self.violated("the foreign member applies our entries")

    # -- disks --------------------------------------------------------------------------------
    def _submit(self, member: SimulatedMember, jobs: Sequence[Job]) -> None:
        if jobs:
            took = self.rng.between(30, 3000)
            if self.now_us < member.slow_until_us:
                took *= _SLOW
            member.disk_free_us = max(member.disk_free_us, self.now_us) + took
            self.push(member.disk_free_us - self.now_us, self._perform, member, member.turn, jobs)

    def _perform(self, member: SimulatedMember, turn: int, jobs: Sequence[Job]) -> None:
        if member.turn == turn and member.disk is not None:
            self.post(member, turn, *member.disk.perform(jobs))

    def _snapshot(self, member: SimulatedMember, turn: int, job: WriteSnapshot) -> None:
        if member.turn == turn and member.node is not None:
            self.post(member, turn, write_snapshot(member.storage, job))

    # -- the network --------------------------------------------------------------------------
    def _delay(self) -> int:
        return self.rng.between(100, 4000)

    def _send(self, sender: SimulatedMember, send: Send) -> None:
        turn, key, to = sender.turn, api_key_of(send.request), send.address.port
        version = APIS[key].max_version
        message = request_to_wire(send.request, version)
        frame = encode_request(message, version, send.correlation, "world")[_LENGTH:]
        link = frozenset((sender.id, to))

        def failed(failure: inputs.SendFailure) -> None:
            self.post(sender, turn, inputs.SendFailed(send.correlation, failure))

        def answered(data: bytes | None) -> None:
            if self._is_lost(link):
                return
            if data is None:
                self.push(self._delay(), failed, inputs.SendFailure.DISCONNECTED)
                return
            _, response = decode_response(data, key, version)
            found = inputs.Answered(send.correlation, response_from_wire(response, LISTENER))
            self.push(self._delay(), self.post, sender, turn, found)

        def arrive() -> None:
            receiver = self.members[to]
            if receiver.node is None:
                answered(None)
                return
            token = next(self._tokens)
            receiver.callers[token] = answered
            self.post(receiver, receiver.turn, Call(token, decode_request(frame), LISTENER))

        self.push(send.timeout_ms * 1000, failed, inputs.SendFailure.TIMED_OUT)
        if not self._is_lost(link):
            self.push(self._delay(), arrive)

    def _is_lost(self, link: frozenset[int]) -> bool:
        return link in self._cut or (not self.healed and self.rng.happens(0.01))

    # -- clients ------------------------------------------------------------------------------
    def _client(self) -> None:
        self.push(self.rng.between(2000, 60_000), self._client)
        leaders = [m for m in self.members.values() if m.node is not None and m.id != FOREIGN]
        leaders = [
            m for m in leaders if m.node is not None and m.node.replica.core.role == "leader"
        ]
        if not leaders:
            return
        member = leaders[self.rng.below(len(leaders))]
        token = next(self._tokens)
        if self.rng.happens(0.3):
            operation, value = Operation(None, len(self.acknowledged)), BARRIER
        else:
            entry = f"entry {next(self._names)}"
            operation, value = (
                Operation(entry, len(self.acknowledged)),
                encode_entry(entry.encode()),
            )
        member.operations[token] = operation
        self.post(member, member.turn, Submit(token, (value,)))

    def _settled(self, member: SimulatedMember, outcome: Committed | Refused) -> None:
        operation = member.operations.pop(outcome.token, None)
        if isinstance(outcome, Refused):
            if operation is not None and operation.entry is not None and not outcome.in_doubt:
                self.refused.add(operation.entry)
            return
        assert member.node is not None
        results = member.node.machine.results
        result = results.pop(outcome.base_offset, None)
        if operation is None:
            return
        if operation.entry is None:
            have = {text for _, text in member.history.entries}
            if not have.issuperset(self.acknowledged[: operation.acknowledged]):
                self.violated(f"{member.id} reads without an entry that was acknowledged before")
            self.coverage["a read after a barrier"] += 1
            return
        mine = (outcome.base_offset, operation.entry)
        if result is None or member.history.entries[int(str(result)) - 1] != mine:
            self.violated(f"{member.id} answers {operation.entry} with the result {result}")
        self.acknowledged.append(operation.entry)

    def propose_foreign_record(self) -> None:
        """A program that is no member writes to the log, through the leader, until that has worked."""
        ours = [member for member in self.members.values() if member.id != FOREIGN]
        if any(member.fault is not None for member in ours):
            return
        for member in ours:
            if member.node is not None and member.node.replica.core.role == "leader":
                record = Submit(next(self._tokens), (b"\x01\x00metadata",))
                self.post(member, member.turn, record)
        self.push(100_000, self.propose_foreign_record)

    # -- faults -------------------------------------------------------------------------------
    def _fault(self) -> None:
        if self.healed:
            return
        self.push(self.rng.between(50_000, 500_000), self._fault)
        ours = [m for m in self.members.values() if m.id != FOREIGN]
        member = ours[self.rng.below(len(ours))]
        kind = self.rng.pick(("crash", "away", "cut", "heal"))
        if kind in ("crash", "away") and member.node is not None:
            down = self.rng.between(1000, 50_000)
            if self.rng.happens(0.5):  # it loads and catches up slowly once it is back
                member.slow_until_us = self.now_us + 4_000_000
            self.crash(member, down if kind == "crash" else down + 1_500_000)
        elif kind == "cut":
            other = ours[self.rng.below(len(ours))]
            self._cut.add(frozenset((member.id, other.id)))
        else:
            self._cut.clear()

    def _heal(self) -> None:
        self.healed = True
        self._cut.clear()
        for member in self.members.values():
            member.slow_until_us = 0
            self.start(member)

    def _is_done(self) -> bool:
        """Whether all members have applied everything that was acknowledged."""
        ours = [m for m in self.members.values() if m.id != FOREIGN]
        if self.foreign_record:
            # A majority stops. The last one may never learn that the record is committed.
            return 2 * sum(m.fault is not None for m in ours) > len(ours)
        return all(
            m.node is not None
            and {text for _, text in m.history.entries}.issuperset(self.acknowledged)
            for m in ours
        )

    def _check_end(self) -> None:
        texts = Counter(self.applied.values())
        lost = [entry for entry in self.acknowledged if texts[entry] != 1]
        if lost:
            self.violated(f"acknowledged and not applied once: {lost[:3]}")
        wrong = self.refused.intersection(texts)
        if wrong:
            self.violated(f"refused and applied: {sorted(wrong)[:3]}")


def _key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(b"member-world" + node_id.to_bytes(4, "big")))
