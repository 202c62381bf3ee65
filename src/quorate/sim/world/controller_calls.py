"""Requests from outside to the controllers of a world, and the responses on their way back."""

from __future__ import annotations

from abc import abstractmethod

from quorate.security.principal import ANONYMOUS
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.network import Network
from quorate.sim.world.observable import OUTSIDE
from quorate.sim.world.process import Process
from quorate.wire.schema import Message


class ControllerCall:
    """One request on its way to one node. `source` is the id of the node that sends it, or OUTSIDE.

    `principal` is who asks, as `type:name`.
    """

    def __init__(self, request: Message, source: int = OUTSIDE, principal: str = ANONYMOUS) -> None:
        self.request = request
        self.source = source
        self.principal = principal
        self.over = False
        """It has a response, or its sender waits no more."""

    @abstractmethod
    def answered(self, response: Message | None) -> None:
        """The response arrives; None: the node refuses the connection, or the time is over."""


class ControllerCalls:
    """All calls of a world."""

    def __init__(self, world: SimulatedCluster, network: Network) -> None:
        self._world = world
        self._network = network
        self._token = 0
        self._open: dict[int, ControllerCall] = {}
        """By token, which is negative: those of the network are positive."""

    def send(self, call: ControllerCall, to: int) -> None:
        """Send the request to a node. The network may lose it."""
        self._network.carry(call.source, to, self._arrive, to, call)

    def expire(self, call: ControllerCall, after_us: int) -> None:
        """End the call without a response after this time, unless it has one by then."""
        self._world.push(self._world.now_us + after_us, self._answer, call, None)

    def respond(self, process: Process, response: ControllerResponse) -> None:
        """A controller answers one of the calls."""
        call = self._open.pop(response.token)
        self._network.carry(process.id, call.source, self._answer, call, response.response)

    def _arrive(self, to: int, call: ControllerCall) -> None:
        process = self._world.processes[to]
        if process.controller is None:
            if process.reachable:
                self._network.carry(to, call.source, self._answer, call, None)
            return
        self._token -= 1
        self._open[self._token] = call
        process.controller.ask(self._token, call.request, call.principal)
        process.post()

    def _answer(self, call: ControllerCall, response: Message | None) -> None:
        if not call.over:
            call.over = True
            call.answered(response)
