"""Injecting the scheduled faults, each in a task of its own, and repairing them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.nemesis.clients import ask_member
from quorate.nemesis.history import ClientHistory
from quorate.nemesis.node import NodeProcess
from quorate.nemesis.plan import ScheduledFault
from quorate.nemesis.proxy import LinkRule
from quorate.nemesis.quorum import NemesisQuorum, reserved

_EXIT_TIMEOUT_S: Final = 10.0
"""A process ends late on a busy machine."""
_ENDED: Final = "ended"
_RUNS: Final = "it still runs"
_NO_FAULT: Final = "no fault was hit"
_SILENT: Final = "it does not answer"
OnEvent = Callable[[Mapping[str, Any]], None]
"""Receives each event of a run: a mapping with `at_us`, `what`, and the event's own fields."""


def ignore(event: Mapping[str, Any]) -> None:
    """The OnEvent that drops every event."""


class FaultInjector:
    """Injects faults into a quorum until `over` is set. `events` has an entry for each step."""

    def __init__(
        self,
        quorum: NemesisQuorum,
        history: ClientHistory,
        over: asyncio.Event,
        on_event: OnEvent = ignore,
    ) -> None:
        self.quorum = quorum
        self.events: list[dict[str, Any]] = []
        self.unexpected_exits: list[str] = []
        """Nodes that ended although no fault made them end."""
        self.survived_disk_failures: list[str] = []
        """Nodes that went on after their disk had failed."""
        self._history = history
        self._over = over
        self._on_event = on_event
        self._voter_change = asyncio.Lock()

    async def run(self, faults: Iterable[ScheduledFault]) -> None:
        """Inject every fault at its time; return when all are repaired, soon after `over`."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                await self.sleep(start + fault.at_s - loop.time())
                if self._over.is_set():
                    break
                group.create_task(self._inject(fault))

    async def sleep(self, seconds: float) -> None:
        """Sleep, but not beyond `over`: then faults are repaired at once."""
        try:
            await asyncio.wait_for(self._over.wait(), max(seconds, 0))
        except TimeoutError:
            return

    def report(self, what: str, **fields: Any) -> None:
        """Record an event and pass it on."""
        event = {"at_us": self._history.now_us(), "what": what, **fields}
        self.events.append(event)
        self._on_event(event)

    async def restart_ended_nodes(self) -> None:
        """Start the nodes again that have ended; record those that no fault made end."""
        for node in self.quorum:
            if node.process is None or node.running or node.reserved:
                continue
            code = node.process.returncode
            node.record_exit()
            text = f"{node.kind} {node.id} ended with {code}: {node.last_log_line()}"
            self.report(_ENDED, node=node.id, expected=node.failure_expected, text=text)
            if not node.failure_expected:
                node.unexpected_exits += 1
                self.unexpected_exits.append(text)
            if not node.fails_at_every_start:
                self.quorum.start(node)

    async def _inject(self, fault: ScheduledFault) -> None:
        await self.restart_ended_nodes()
        target = await self._target_of(fault)
        fields = {**asdict(fault), "node": target and target.id}
        if target is None or self._over.is_set():
            self.report("skipped", **fields)
            return
        self.report("begin", **fields)
        try:
            await _ACTIONS[fault.kind](self, fault, target)
        except QuorateError as error:
            self.report("failed", error=str(error), **fields)
        else:
            self.report("end", **fields)

    async def _target_of(self, fault: ScheduledFault) -> NodeProcess | None:
        """The chosen node, or another one where that is not available."""
        nodes = list(self.quorum)
        chosen = nodes[int(fault.pick * len(nodes))]
        if fault.on_leader:
            await self.quorum.describe()
            # While no leader is found, the last one is the best guess.
            chosen = self.quorum.nodes[self.quorum.leaders[-1]]
        free = [node for node in (chosen, *nodes) if node.running and not node.reserved]
        return free[0] if free else None

    # -- processes ------------------------------------------------------------------------
    async def kill(self, fault: ScheduledFault, node: NodeProcess) -> None:
        with reserved(node):
            await node.kill()
            await self.sleep(fault.duration_s)
            self.quorum.start(node)

    async def power(self, fault: ScheduledFault, node: NodeProcess) -> None:
        """Kill all nodes but those that another fault has reserved: that one starts them itself."""
        nodes = [node for node in self.quorum if not node.reserved]
        for node in nodes:
            node.reserved = True
        try:
            # 1. All signals go out before the first wait, so that no node reacts to the end of
            #    another one.
            for node in nodes:
                if node.process is not None:
                    node.process.kill()
            # 2. Wait until they are gone.
            await asyncio.gather(*(node.kill() for node in nodes))
            await self.sleep(fault.duration_s)
            # 3. Power is back.
            for node in nodes:
                self.quorum.start(node)
        finally:
            for node in nodes:
                node.reserved = False

    async def stop(self, fault: ScheduledFault, node: NodeProcess) -> None:
        with reserved(node):
            node.pause()
            await self.sleep(fault.duration_s)
            node.resume()

    # -- the network ----------------------------------------------------------------------
    async def _with_rule(self, fault: ScheduledFault, rule: LinkRule) -> None:
        network = self.quorum.network
        network.add_rule(rule)
        await self.sleep(fault.duration_s)
        network.remove_rule(rule)

    async def cut(self, fault: ScheduledFault, node: NodeProcess) -> None:
        await self._with_rule(fault, LinkRule(self.quorum.links_of(node), cut=True))

    async def hold(self, fault: ScheduledFault, node: NodeProcess) -> None:
        await self._with_rule(fault, LinkRule(self.quorum.links_of(node), held=True))

    async def hold_in(self, fault: ScheduledFault, node: NodeProcess) -> None:
        links = self.quorum.links_of(node, outgoing=False)
        await self._with_rule(fault, LinkRule(links, held=True))

    async def hold_out(self, fault: ScheduledFault, node: NodeProcess) -> None:
        links = self.quorum.links_of(node, incoming=False)
        await self._with_rule(fault, LinkRule(links, held=True))

    async def hold_pair(self, fault: ScheduledFault, node: NodeProcess) -> None:
        others = [other for other in self.quorum if other is not node]
        other = others[int(fault.pick * len(others))]
        pair = frozenset({(node.id, other.id), (other.id, node.id)})
        await self._with_rule(fault, LinkRule(pair, held=True))

    async def delay(self, fault: ScheduledFault, node: NodeProcess) -> None:
        await self._with_rule(fault, LinkRule(self.quorum.all_links(), delay_s=fault.amount_s))

    async def reset(self, fault: ScheduledFault, node: NodeProcess) -> None:
        self.quorum.network.reset(self.quorum.links_of(node))

    # -- disks ----------------------------------------------------------------------------
    async def slow_disk(self, fault: ScheduledFault, node: NodeProcess) -> None:
        with reserved(node):
            await _set_disk(node, fault.amount_s, "")
            await self.sleep(fault.duration_s)
            await _set_disk(node, 0.0, "")

    async def bad_disk(self, fault: ScheduledFault, node: NodeProcess) -> None:
        """A replica whose disk has failed must end; it starts again on what is durable."""
        with reserved(node):
            node.failure_expected = True
            fails = "write" if fault.pick < 0.5 else "sync"
            # 1. Make the disk fail, for long enough that the replica uses it.
            await _set_disk(node, 0.0, fails)
            await self.sleep(fault.duration_s)
            # 2. A replica that has met the failure ends by itself, and one that has not may run.
            outcome = await _outcome_of_disk_failure(node)
            if outcome == _RUNS:
                text = f"{node.kind} {node.id} still runs {_EXIT_TIMEOUT_S:g} s after a failed "
                self.survived_disk_failures.append(text + fails)
            text = node.last_log_line() if outcome == _ENDED else outcome
            what = _ENDED if outcome == _ENDED else "not ended"
            self.report(what, node=node.id, text=text)
            # 3. The fault is in the process: a new process has a sound disk.
            await node.kill()
            self.quorum.start(node)

    # -- voters ---------------------------------------------------------------------------
    async def remove(self, fault: ScheduledFault, node: NodeProcess) -> None:
        """One change at a time, as an operator does; `recover` completes a change that failed."""
        async with self._voter_change:
            await self.quorum.remove(node)
            await self.sleep(fault.duration_s)
            await self.quorum.add(node)

    async def replace(self, fault: ScheduledFault, node: NodeProcess) -> None:
        async with self._voter_change:
            with reserved(node):
                # A voter whose removal is not confirmed keeps its disk, which has its votes: an
                # error of `remove` leaves the disk alone.
                await self.quorum.remove(node)
                await self.quorum.replace(node)
            await self.sleep(fault.duration_s)
            await self.quorum.add(node)


async def _outcome_of_disk_failure(node: NodeProcess) -> str:
    """One of _ENDED, _RUNS, _NO_FAULT and _SILENT, after _EXIT_TIMEOUT_S at the latest."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _EXIT_TIMEOUT_S
    outcome = _SILENT
    while node.running:
        try:
            outcome = _RUNS if await ask_member(node, {"do": "failed"}) else _NO_FAULT
        except QuorateError:  # it may be about to end
            outcome = _SILENT
        if outcome == _NO_FAULT or loop.time() > end:
            return outcome
        await asyncio.sleep(0.05)
    return _ENDED


async def _set_disk(node: NodeProcess, slow_s: float, fails: str) -> None:
    await ask_member(node, {"do": "disk", "slow_s": slow_s, "fails": fails})


_ACTIONS: Final[
    dict[str, Callable[[FaultInjector, ScheduledFault, NodeProcess], Awaitable[None]]]
] = {
    "kill": FaultInjector.kill,
    "power": FaultInjector.power,
    "stop": FaultInjector.stop,
    "cut": FaultInjector.cut,
    "hold": FaultInjector.hold,
    "hold-in": FaultInjector.hold_in,
    "hold-out": FaultInjector.hold_out,
    "hold-pair": FaultInjector.hold_pair,
    "delay": FaultInjector.delay,
    "reset": FaultInjector.reset,
    "slow-disk": FaultInjector.slow_disk,
    "bad-disk": FaultInjector.bad_disk,
    "remove": FaultInjector.remove,
    "replace": FaultInjector.replace,
}
