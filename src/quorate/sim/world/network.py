"""The links between nodes, and the faults of messages in flight.

A link keeps its order, as TCP does, except for messages that are drawn to overtake. A request
without a response is reported as `server.peers` reports it: DISCONNECTED when the connection breaks
or is refused, TIMED_OUT after silence, and ConnectionLost when a peer that had answered refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.formats.batch import iter_batches, to_raft_batch
from quorate.formats.errors import FormatError
from quorate.raft.inputs import Answered, ConnectionLost, Received, SendFailed, SendFailure
from quorate.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    ReadChunk,
    Request,
    Response,
)
from quorate.raft.ready import Send
from quorate.raft.values import Batch
from quorate.replica.replica import Answer
from quorate.sim.prng import Prng
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.observable import OUTSIDE
from quorate.sim.world.process import NEVER, NetworkCall, Process
from quorate.sim.world.wire import Wire
from quorate.wire.errors import UnsupportedFieldError, WireError

_HELD_OVER: Final = 0.3
"""The part of the messages into a short partition that arrive at its end."""
_MOST_HELD_US: Final = 20_000_000
_PARSED: Final = 256
_CHECKED: Final = 21
"""Position in a batch from which its checksum covers the bytes."""


class Link:
    """One direction between two nodes."""

    __slots__ = ("cut_us", "last_us", "random", "slow_until_us", "slow_us")

    def __init__(self, seed: int, source: int, to: int) -> None:
        self.random = Prng(seed, "link", source, to).random
        self.last_us = 0
        self.cut_us = 0
        """No message passes before this time."""
        self.slow_us = 0
        self.slow_until_us = 0


class Network:
    """All links of a world, and the requests in flight."""

    def __init__(self, world: SimulatedCluster) -> None:
        plan = world.plan
        self.world = world
        self._plan = plan.network
        count = plan.voters + plan.observers + 1
        self._links = [[Link(plan.seed, a, b) for b in range(count)] for a in range(count)]
        self._token = 0
        self._rng = Prng(plan.seed, "network")
        self._delay_us, self._jitter_us = self._plan.delay_us, self._plan.jitter_us
        self._fates = (
            ("lost", self._plan.loss),
            ("duplicated", self._plan.duplicate),
            ("held", self._plan.hold),
            ("reordered", self._plan.reorder),
        )
        self._wire = Wire(plan) if plan.wire else None
        self._parsed: dict[bytes, tuple[Batch, ...]] = {}
        self.heal()
        rates = (self._plan.loss, self._plan.duplicate, self._plan.hold, self._plan.reorder)
        self._wild = sum(rates) + self._plan.reset + self._plan.corrupt > 0

    def heal(self) -> None:
        """End all faults. Delayed messages may still arrive."""
        for row in self._links:
            for link in row:
                link.cut_us = link.slow_until_us = 0
        self._wild = False

    def cut(self, source: int, to: int, until_us: int) -> None:
        """Block this direction until this time."""
        link = self._links[source][to]
        link.cut_us = max(link.cut_us, until_us)

    def join(self, source: int, to: int) -> None:
        """Unblock this direction."""
        self._links[source][to].cut_us = 0

    def slow(self, source: int, to: int, extra_us: int, until_us: int) -> None:
        link = self._links[source][to]
        link.slow_us, link.slow_until_us = extra_us, until_us

    def is_cut(self, source: int, to: int) -> bool:
        return self._links[source][to].cut_us > self.world.now_us

    # -- one message --------------------------------------------------------------------------
    def carry(self, source: int, to: int, deliver: Callable[..., None], *args: object) -> int:
        """Schedule `deliver(*args)` for the arrival. Returns that time; NEVER: the message is lost."""
        world = self.world
        now = world.now_us
        link = self._links[source][to]
        drawn = link.random()
        at = now + self._delay_us + int(drawn * self._jitter_us)
        if link.slow_until_us > now:
            at += int(drawn * link.slow_us)
        if link.cut_us > now:
            if drawn > _HELD_OVER or link.cut_us - now > _MOST_HELD_US:
                return NEVER
            world.fault("held by a partition", (source, to))
            at = max(at, link.cut_us + int(drawn * 10_000))
        if self._wild:
            fate = self._fate(link.random())
            if fate is not None:
                world.fault(fate, (source, to))
                if fate == "lost":
                    return NEVER
                if fate == "reordered":
                    at = now + 1 + int(drawn * self._delay_us)
                    world.push(at, deliver, *args)
                    return at
                if fate == "held":
                    at += int(link.random() * self._plan.hold_ms * 1000)
                    world.push(at, deliver, *args)
                    return at
                spread = 20 * (self._delay_us + self._jitter_us)
                later = at + 1 + int(link.random() * spread)
                world.push(later, deliver, *args)
        if at <= link.last_us:
            at = link.last_us + 1
        link.last_us = at
        world.push(at, deliver, *args)
        return at

    def _fate(self, drawn: float) -> str | None:
        for fate, rate in self._fates:
            if drawn < rate:
                return fate
            drawn -= rate
        return None

    # -- requests -----------------------------------------------------------------------------
    def send(self, process: Process, send: Send) -> None:
        """Send a request of a replica to a peer."""
        world = self.world
        world.sent(process, send)
        to = world.addresses.get(send.address)
        deadline = world.now_us + send.timeout_ms * 1000
        if to is None:
            world.push(
                world.now_us + self._plan.delay_us, self._refuse, process, process.turn, send
            )
            return
        call = NetworkCall(process, to, send.request, deadline)
        call.correlation, call.send_to = send.correlation, send.to
        if self._wire is not None and not self._encode(call, self._wire):
            return
        if self._wild and self._plan.reset and self._rng.random() < self._plan.reset:
            world.fault("reset at random", (process.id, to))
            world.push(world.now_us + self._plan.delay_us, self._connection_lost, call, False)
            return
        if self.carry(process.id, to, self._arrive, call) > deadline:
            world.push(deadline, self._time_out, call)

    def _encode(self, call: NetworkCall, wire: Wire) -> bool:
        """Encode and decode the request; False when the common version lacks one of its fields."""
        asker, world = call.asker, self.world
        assert asker is not None
        call.version = wire.version(asker, world.processes[call.to], call.request)
        try:
            call.request = wire.request(call.request, call.version)
        except UnsupportedFieldError:
            world.push(world.now_us + 1, self._fail, call, SendFailure.UNSUPPORTED_VERSION)
            return False
        return True

    def renew_software(self) -> None:
        """Upgrade all nodes to the newest versions."""
        if self._wire is not None:
            self._wire.renew()

    def can_say(self, asker: Process, to: Process, request: Request) -> bool:
        """Whether the common version of these two nodes has all fields of the request."""
        wire = self._wire
        if wire is None:
            return True
        try:
            wire.request(request, wire.version(asker, to, request))
        except UnsupportedFieldError:
            return False
        return True

    def _fail(self, call: NetworkCall, failure: SendFailure) -> None:
        asker = call.asker
        if not call.over and asker is not None:
            call.over = True
            if asker.turn == call.turn and asker.replica is not None:
                asker.post(SendFailed(call.correlation, failure))

    def ask(
        self,
        to: int,
        request: Request,
        timeout_ms: int,
        done: Callable[[Response | None], None],
    ) -> None:
        """Send a client's request. `done` is called once, with None where the response is late."""
        world = self.world
        call = NetworkCall(None, to, request, world.now_us + timeout_ms * 1000, done)
        self.carry(OUTSIDE, to, self._arrive, call)
        world.push(call.deadline_us, self._time_out, call)

    def _refuse(self, process: Process, turn: int, send: Send) -> None:
        """The connection is refused: no node has that address."""
        if process.turn == turn and process.replica is not None:
            failed = SendFailed(send.correlation, SendFailure.DISCONNECTED)
            if process.connected.pop(send.to, None) is None:
                process.post(failed)
            else:
                process.post(failed, ConnectionLost(send.to))

    def _arrive(self, call: NetworkCall) -> None:
        world = self.world
        process = world.processes[call.to]
        asker = call.asker
        source = OUTSIDE if asker is None else asker.id
        silent = process.replica is None and not process.reachable
        if silent or self.is_cut(source, call.to):
            self._time_out_later(call)
            return
        if process.replica is None:
            self._break(process.id, call)
            return
        self._token += 1
        process.calls[self._token] = call
        if process.paused_us > call.deadline_us:
            self._time_out_later(call)
        received = Received(self._token, call.request)
        world.delivered(source, process, received)
        process.post(received)

    @staticmethod
    def _unanswered(call: NetworkCall) -> Process | None:
        """End the call without a response, if it is still open.

        Returns the process to notify, if its incarnation is still the sender's. A client is
        notified here.
        """
        if call.over:
            return None
        call.over = True
        asker = call.asker
        if asker is None:
            assert call.done is not None
            call.done(None)
            return None
        return asker if asker.turn == call.turn and asker.replica is not None else None

    def _time_out(self, call: NetworkCall) -> None:
        asker = self._unanswered(call)
        if asker is not None:
            asker.connected.pop(call.send_to, None)
            asker.post(SendFailed(call.correlation, SendFailure.TIMED_OUT))

    def _time_out_later(self, call: NetworkCall) -> None:
        """Schedule the timeout of a call without a response. A client's call has its own timer."""
        if call.asker is not None:
            self.world.push(max(call.deadline_us, self.world.now_us), self._time_out, call)

    def paused(self, process: Process) -> None:
        """The process is paused: calls to it may time out."""
        for call in process.calls.values():
            if call.deadline_us < process.paused_us:
                self._time_out_later(call)

    def _break(self, source: int, call: NetworkCall) -> None:
        """The receiver ended, and its machine resets the connection."""
        to = OUTSIDE if call.asker is None else call.asker.id
        if self.carry(source, to, self._connection_lost, call, True) > call.deadline_us:
            self._time_out_later(call)

    def _connection_lost(self, call: NetworkCall, refuses: bool) -> None:
        """The connection broke before the response; `refuses`: the peer refuses a new one."""
        asker = self._unanswered(call)
        if asker is not None:
            failed = SendFailed(call.correlation, SendFailure.DISCONNECTED)
            if refuses and asker.connected.pop(call.send_to, None) is not None:
                asker.post(failed, ConnectionLost(call.send_to))
            else:
                asker.post(failed)

    # -- answers ------------------------------------------------------------------------------
    def answer(self, process: Process, answer: Answer) -> None:
        call = process.calls.pop(answer.reply_to, None)
        if call is None or call.over:
            return
        asker = call.asker
        source = OUTSIDE if asker is None else asker.id
        try:
            response = self._as_received(call, answer)
        except (FormatError, WireError):
            self.world.push(self.world.now_us + 1, self._fail, call, SendFailure.DISCONNECTED)
            return
        at = self.carry(process.id, source, self._answered, call, response)
        if at > call.deadline_us:
            self._time_out_later(call)

    def _answered(self, call: NetworkCall, response: Response) -> None:
        asker = call.asker
        if asker is None:
            if not call.over:
                call.over = True
                assert call.done is not None
                call.done(response)
            return
        if asker.turn != call.turn or asker.replica is None:
            return
        world = self.world
        if not call.over and world.now_us > call.deadline_us:
            self._time_out(call)
            return
        if self.is_cut(call.to, asker.id):
            self._time_out_later(call)
            return
        call.over = True
        asker.connected[call.send_to] = world.processes[call.to].address
        answered = Answered(call.correlation, response)
        world.delivered(call.to, asker, answered)
        asker.post(answered)

    def _as_received(self, call: NetworkCall, answer: Answer) -> Response:
        """The response as the sender of the request receives it, with the bytes that it refers to.

        Raises FormatError or WireError where the bytes are damaged.
        """
        response, data = answer.response, answer.data
        if data and self._wild and self._plan.corrupt:
            data = self._corrupted(response, data)
        if call.version is not None:
            assert self._wire is not None
            return self._wire.response(call.request, call.version, response, data)
        if isinstance(response, FetchResponse):
            if response.records is not None:
                return FetchResponse(
                    response.error,
                    response.leader,
                    response.high_watermark,
                    response.log_start_offset,
                    response.diverging,
                    response.snapshot_id,
                    None,
                    self._batches(data),
                    response.leader_endpoints,
                )
        elif isinstance(response, FetchSnapshotResponse) and (
            data or isinstance(response.chunk, ReadChunk)
        ):
            return replace(response, chunk=data)
        return response

    def _corrupted(self, response: Response, data: bytes) -> bytes:
        """Flip a bit that a checksum covers. Offsets and epochs of a Fetch have no checksum."""
        if self._rng.random() >= self._plan.corrupt:
            return data
        first = _CHECKED if isinstance(response, FetchResponse) else 0
        last = 12 + int.from_bytes(data[8:12], "big") if first else len(data)
        at = first + int(self._rng.random() * (last - first))
        self.world.fault("corrupted", (len(data), at))
        return data[:at] + bytes([data[at] ^ 1 << int(self._rng.random() * 8)]) + data[at + 1 :]

    def _batches(self, data: bytes) -> tuple[Batch, ...]:
        """Parse and verify batches once: followers often receive the same bytes."""
        found = self._parsed.get(data)
        if found is None:
            if len(self._parsed) >= _PARSED:
                self._parsed.clear()
            found = tuple(map(to_raft_batch, iter_batches(data, cut_tail=True)))
            self._parsed[data] = found
        return found

    # -- connections --------------------------------------------------------------------------
    def connections_closed(self, process: Process) -> None:
        """A process ended. Its connections break, or stay silent after a power cut."""
        world = self.world
        calls, process.calls = process.calls, {}
        for call in calls.values():
            if process.reachable:
                self._break(process.id, call)
            else:
                self._time_out_later(call)
        if process.reachable:
            address = process.address
            for other in world.running:
                for to, known in list(other.connected.items()):
                    if known == address:
                        self.carry(process.id, other.id, self._lost, other, other.turn, to)

    def _lost(self, process: Process, turn: int, to: int) -> None:
        """An idle connection broke, and the peer refuses a new one."""
        if process.turn == turn and process.replica is not None and to in process.connected:
            del process.connected[to]
            process.post(ConnectionLost(to))

    def reset(self, process: Process) -> None:
        """Reset all connections to a process. New ones are possible at once."""
        calls, process.calls = process.calls, {}
        for call in calls.values():
            self._connection_lost(call, False)
