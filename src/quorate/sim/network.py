"""The links between nodes, and what happens to a message on its way.

A link keeps its order, as TCP does, but for messages that chance lets overtake. A request that
gets no answer is reported as `server.peers` reports it: DISCONNECTED when the connection breaks or
is refused, TIMED_OUT after silence, and ConnectionLost when a peer that had answered now refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.formats.batch import iter_batches, to_raft_batch
from quorate.formats.errors import FormatError
from quorate.node.replica import Answer
from quorate.raft.inputs import Answered, ConnectionLost, Failure, Received, SendFailed
from quorate.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    ReadChunk,
    Request,
    Response,
)
from quorate.raft.ready import Send
from quorate.raft.values import Batch
from quorate.sim.chance import Chance
from quorate.sim.process import NEVER, Process
from quorate.sim.wire import Wire
from quorate.wire.errors import UnsupportedFieldError, WireError

if TYPE_CHECKING:
    from quorate.sim.world import World

OUTSIDE: Final = 0
"""In place of a node id: clients and operators, whom no partition cuts off."""
_HELD_OVER: Final = 0.3
"""Of the messages into a partition so many arrive when it ends, if it ends soon."""
_MOST_HELD_US: Final = 20_000_000
_PARSED: Final = 256
_CHECKED: Final = 21
"""From here on a batch's checksum covers it."""


class Call:
    """A request under way, until it is answered or given up."""

    __slots__ = (
        "asker",
        "correlation",
        "deadline_us",
        "done",
        "over",
        "request",
        "send_to",
        "to",
        "turn",
        "version",
    )

    def __init__(
        self,
        asker: Process | None,
        to: int,
        request: Request,
        deadline_us: int,
        done: Callable[[Response | None], None] | None = None,
    ) -> None:
        self.asker = asker
        """None: somebody outside, who waits for `done`."""
        self.turn = 0 if asker is None else asker.turn
        self.correlation = 0
        self.send_to = 0
        """The id under which the asker knows whom it asks."""
        self.to = to
        self.request = request
        self.deadline_us = deadline_us
        self.done = done
        self.over = False
        self.version: int | None = None
        """In which it is encoded; None: handed over as it is."""


class Link:
    """One direction between two nodes."""

    __slots__ = ("cut_us", "last_us", "random", "slow_until_us", "slow_us")

    def __init__(self, seed: int, source: int, to: int) -> None:
        self.random = Chance(seed, "link", source, to).random
        self.last_us = 0
        self.cut_us = 0
        """Nothing passes before then."""
        self.slow_us = 0
        self.slow_until_us = 0


class Network:
    """All links of a world, and the requests on them."""

    def __init__(self, world: World) -> None:
        plan = world.plan
        self.world = world
        self._plan = plan.network
        count = plan.voters + plan.observers + 1
        self._links = [[Link(plan.seed, a, b) for b in range(count)] for a in range(count)]
        self._token = 0
        self._luck = Chance(plan.seed, "network")
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
        """No more faults from now on; what is held may still come."""
        for row in self._links:
            for link in row:
                link.cut_us = link.slow_until_us = 0
        self._wild = False

    def cut(self, source: int, to: int, until_us: int) -> None:
        """Nothing passes in this direction until then."""
        link = self._links[source][to]
        link.cut_us = max(link.cut_us, until_us)

    def join(self, source: int, to: int) -> None:
        """End what was cut."""
        self._links[source][to].cut_us = 0

    def slow(self, source: int, to: int, extra_us: int, until_us: int) -> None:
        link = self._links[source][to]
        link.slow_us, link.slow_until_us = extra_us, until_us

    def is_cut(self, source: int, to: int) -> bool:
        return self._links[source][to].cut_us > self.world.now_us

    # -- one message --------------------------------------------------------------------------
    def carry(self, source: int, to: int, deliver: Callable[..., None], *args: object) -> int:
        """Let `deliver(*args)` happen when a message arrives: then; NEVER when it is lost."""
        world = self.world
        now = world.now_us
        link = self._links[source][to]
        luck = link.random()
        at = now + self._delay_us + int(luck * self._jitter_us)
        if link.slow_until_us > now:
            at += int(luck * link.slow_us)
        if link.cut_us > now:
            if luck > _HELD_OVER or link.cut_us - now > _MOST_HELD_US:
                return NEVER
            world.fault("held by a partition", (source, to))
            at = max(at, link.cut_us + int(luck * 10_000))
        if self._wild:
            fate = self._fate(link.random())
            if fate is not None:
                world.fault(fate, (source, to))
                if fate == "lost":
                    return NEVER
                if fate == "reordered":
                    at = now + 1 + int(luck * self._delay_us)
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

    def _fate(self, luck: float) -> str | None:
        for fate, rate in self._fates:
            if luck < rate:
                return fate
            luck -= rate
        return None

    # -- requests -----------------------------------------------------------------------------
    def send(self, process: Process, send: Send) -> None:
        """A request of a replica to a peer."""
        world = self.world
        world.sent(process, send)
        to = world.addresses.get(send.address)
        deadline = world.now_us + send.timeout_ms * 1000
        if to is None:
            world.push(
                world.now_us + self._plan.delay_us, self._refuse, process, process.turn, send
            )
            return
        call = Call(process, to, send.request, deadline)
        call.correlation, call.send_to = send.correlation, send.to
        if self._wire is not None and not self._encode(call, self._wire):
            return
        if self._wild and self._plan.reset and self._luck.random() < self._plan.reset:
            world.fault("reset by chance", (process.id, to))
            world.push(world.now_us + self._plan.delay_us, self._hung_up, call, False)
            return
        if self.carry(process.id, to, self._arrive, call) > deadline:
            world.push(deadline, self._time_out, call)

    def _encode(self, call: Call, wire: Wire) -> bool:
        """Pass the request through its encoding; False when both sides' version cannot say it."""
        asker, world = call.asker, self.world
        assert asker is not None
        call.version = wire.version(asker, world.processes[call.to], call.request)
        try:
            call.request = wire.request(call.request, call.version)
        except UnsupportedFieldError:
            world.push(world.now_us + 1, self._fail, call, Failure.UNSUPPORTED_VERSION)
            return False
        return True

    def renew_software(self) -> None:
        """Let everybody speak the newest versions."""
        if self._wire is not None:
            self._wire.renew()

    def can_say(self, asker: Process, to: Process, request: Request) -> bool:
        """Has the version that these two speak of it all that the request says?"""
        wire = self._wire
        if wire is None:
            return True
        try:
            wire.request(request, wire.version(asker, to, request))
        except UnsupportedFieldError:
            return False
        return True

    def _fail(self, call: Call, failure: Failure) -> None:
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
        """A request from outside; `done` is called once, with None when no answer came in time."""
        world = self.world
        call = Call(None, to, request, world.now_us + timeout_ms * 1000, done)
        self.carry(OUTSIDE, to, self._arrive, call)
        world.push(call.deadline_us, self._time_out, call)

    def _refuse(self, process: Process, turn: int, send: Send) -> None:
        """Nobody listens at that address."""
        if process.turn == turn and process.replica is not None:
            failed = SendFailed(send.correlation, Failure.DISCONNECTED)
            if process.connected.pop(send.to, None) is None:
                process.post(failed)
            else:
                process.post(failed, ConnectionLost(send.to))

    def _arrive(self, call: Call) -> None:
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
    def _unanswered(call: Call) -> Process | None:
        """The call ends without an answer, if it has not ended yet: the process to be told so, in
        the life in which it asked. Who asks from outside is told here."""
        if call.over:
            return None
        call.over = True
        asker = call.asker
        if asker is None:
            assert call.done is not None
            call.done(None)
            return None
        return asker if asker.turn == call.turn and asker.replica is not None else None

    def _time_out(self, call: Call) -> None:
        asker = self._unanswered(call)
        if asker is not None:
            asker.connected.pop(call.send_to, None)
            asker.post(SendFailed(call.correlation, Failure.TIMED_OUT))

    def _time_out_later(self, call: Call) -> None:
        """There will be no answer in time. Who asks from outside has a timer already."""
        if call.asker is not None:
            self.world.push(max(call.deadline_us, self.world.now_us), self._time_out, call)

    def paused(self, process: Process) -> None:
        """It will not answer before it goes on."""
        for call in process.calls.values():
            if call.deadline_us < process.paused_us:
                self._time_out_later(call)

    def _break(self, source: int, call: Call) -> None:
        """The process that was asked is gone, and its machine says so."""
        to = OUTSIDE if call.asker is None else call.asker.id
        if self.carry(source, to, self._hung_up, call, True) > call.deadline_us:
            self._time_out_later(call)

    def _hung_up(self, call: Call, refuses: bool) -> None:
        """The connection broke before the answer; `refuses`: and cannot be made again."""
        asker = self._unanswered(call)
        if asker is not None:
            failed = SendFailed(call.correlation, Failure.DISCONNECTED)
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
            self.world.push(self.world.now_us + 1, self._fail, call, Failure.DISCONNECTED)
            return
        at = self.carry(process.id, source, self._answered, call, response)
        if at > call.deadline_us:
            self._time_out_later(call)

    def _answered(self, call: Call, response: Response) -> None:
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

    def _as_received(self, call: Call, answer: Answer) -> Response:
        """The answer with the bytes that it names, as who asked gets it.

        Raises FormatError or WireError where they are damaged.
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
        """A bit flips, where a checksum covers it: offsets and epochs of a Fetch have none."""
        if self._luck.random() >= self._plan.corrupt:
            return data
        first = _CHECKED if isinstance(response, FetchResponse) else 0
        last = 12 + int.from_bytes(data[8:12], "big") if first else len(data)
        at = first + int(self._luck.random() * (last - first))
        self.world.fault("corrupted", (len(data), at))
        return data[:at] + bytes([data[at] ^ 1 << int(self._luck.random() * 8)]) + data[at + 1 :]

    def _batches(self, data: bytes) -> tuple[Batch, ...]:
        """Followers are often sent the same bytes: parsed and checked once."""
        found = self._parsed.get(data)
        if found is None:
            if len(self._parsed) >= _PARSED:
                self._parsed.clear()
            found = tuple(map(to_raft_batch, iter_batches(data, cut_tail=True)))
            self._parsed[data] = found
        return found

    # -- connections --------------------------------------------------------------------------
    def hung_up(self, process: Process) -> None:
        """A process ended: its connections break, or fall silent when its machine went dark."""
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
        """An idle connection broke and is refused."""
        if process.turn == turn and process.replica is not None and to in process.connected:
            del process.connected[to]
            process.post(ConnectionLost(to))

    def reset(self, process: Process) -> None:
        """All connections to a process break; they can be made again at once."""
        calls, process.calls = process.calls, {}
        for call in calls.values():
            self._hung_up(call, False)
