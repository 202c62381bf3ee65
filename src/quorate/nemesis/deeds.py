"""Carrying deeds out, each in a task of its own; every one mends what it broke."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.nemesis.clients import ask_member
from quorate.nemesis.history import History
from quorate.nemesis.node import Node
from quorate.nemesis.plan import Deed
from quorate.nemesis.proxy import Rule
from quorate.nemesis.quorum import Ensemble, taken

_GRACE_S: Final = 10.0
"""On a busy machine a process takes a while to end."""
_ENDED: Final = "ended"
_RUNS: Final = "it still runs"
_NOT_MET: Final = "it met no fault"
_SILENT: Final = "it does not answer"
Tell = Callable[[Mapping[str, Any]], None]


def ignore(line: Mapping[str, Any]) -> None:
    """Nobody looks."""


class Nemesis:
    """Runs deeds on an ensemble. `told` has a line for each step, with its time."""

    def __init__(
        self, ensemble: Ensemble, history: History, over: asyncio.Event, watch: Tell = ignore
    ) -> None:
        self.ensemble = ensemble
        self.told: list[dict[str, Any]] = []
        self.surprises: list[str] = []
        """Nodes that ended by themselves and were not made to."""
        self.outlived: list[str] = []
        """Nodes that went on after their disk had failed."""
        self._history = history
        self._over = over
        self._watch = watch
        self._changing = asyncio.Lock()

    async def run(self, deeds: Iterable[Deed]) -> None:
        """Every deed at its time; returns when all is mended, soon after `over`."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.TaskGroup() as group:
            for deed in deeds:
                await self.rest(start + deed.at_s - loop.time())
                if self._over.is_set():
                    break
                group.create_task(self._do(deed))

    async def rest(self, seconds: float) -> None:
        """Sleep, not beyond `over`."""
        try:
            await asyncio.wait_for(self._over.wait(), max(seconds, 0))
        except TimeoutError:
            return

    def tell(self, what: str, **facts: Any) -> None:
        line = {"at_us": self._history.now_us(), "what": what, **facts}
        self.told.append(line)
        self._watch(line)

    async def look_after(self) -> None:
        """Start again what ended by itself, and take note of who should not have."""
        for node in self.ensemble:
            if node.process is None or node.running or node.busy:
                continue
            code = node.process.returncode
            node.gone()
            words = f"{node.kind} {node.id} ended with {code}: {node.last_words()}"
            self.tell("ended", node=node.id, doomed=node.doomed, words=words)
            if not node.doomed:
                node.falls += 1
                self.surprises.append(words)
            if not node.is_hopeless:
                self.ensemble.start(node)

    async def _do(self, deed: Deed) -> None:
        await self.look_after()
        victim = await self._victim(deed)
        facts = {**asdict(deed), "victim": victim and victim.id}
        if victim is None or self._over.is_set():
            self.tell("left out", **facts)
            return
        self.tell("begin", **facts)
        try:
            await _ACTS[deed.kind](self, deed, victim)
        except QuorateError as error:
            self.tell("failed", error=str(error), **facts)
        else:
            self.tell("end", **facts)

    async def _victim(self, deed: Deed) -> Node | None:
        nodes = list(self.ensemble)
        chosen = nodes[int(deed.pick * len(nodes))]
        if deed.on_leader:
            await self.ensemble.view()
            # While none is found, who led last is the best guess.
            chosen = self.ensemble.nodes[self.ensemble.leaders[-1]]
        free = [node for node in (chosen, *nodes) if node.running and not node.busy]
        return free[0] if free else None

    # -- processes ------------------------------------------------------------------------
    async def kill(self, deed: Deed, node: Node) -> None:
        with taken(node):
            await node.kill()
            await self.rest(deed.lasts_s)
            self.ensemble.start(node)

    async def power(self, deed: Deed, node: Node) -> None:
        """Those that another deed has stay as they are: it starts them itself."""
        nodes = [node for node in self.ensemble if not node.busy]
        for node in nodes:
            node.busy = True
        try:
            for node in nodes:
                if node.process is not None:
                    node.process.kill()
            await asyncio.gather(*(node.kill() for node in nodes))
            await self.rest(deed.lasts_s)
            for node in nodes:
                self.ensemble.start(node)
        finally:
            for node in nodes:
                node.busy = False

    async def stop(self, deed: Deed, node: Node) -> None:
        with taken(node):
            node.freeze()
            await self.rest(deed.lasts_s)
            node.thaw()

    # -- the network ----------------------------------------------------------------------
    async def impose(self, deed: Deed, rule: Rule) -> None:
        network = self.ensemble.network
        network.impose(rule)
        await self.rest(deed.lasts_s)
        network.lift(rule)

    async def cut(self, deed: Deed, node: Node) -> None:
        await self.impose(deed, Rule(self.ensemble.links_of(node), cut=True))

    async def hold(self, deed: Deed, node: Node) -> None:
        await self.impose(deed, Rule(self.ensemble.links_of(node), held=True))

    async def deaf(self, deed: Deed, node: Node) -> None:
        await self.impose(deed, Rule(self.ensemble.links_of(node, out=False), held=True))

    async def mute(self, deed: Deed, node: Node) -> None:
        await self.impose(deed, Rule(self.ensemble.links_of(node, to=False), held=True))

    async def split(self, deed: Deed, node: Node) -> None:
        others = [other for other in self.ensemble if other is not node]
        other = others[int(deed.pick * len(others))]
        pair = frozenset({(node.id, other.id), (other.id, node.id)})
        await self.impose(deed, Rule(pair, held=True))

    async def lag(self, deed: Deed, node: Node) -> None:
        await self.impose(deed, Rule(self.ensemble.all_links(), delay_s=deed.amount_s))

    async def reset(self, deed: Deed, node: Node) -> None:
        self.ensemble.network.reset(self.ensemble.links_of(node))

    # -- disks ----------------------------------------------------------------------------
    async def slow_disk(self, deed: Deed, node: Node) -> None:
        with taken(node):
            await _set_disk(node, deed.amount_s, "")
            await self.rest(deed.lasts_s)
            await _set_disk(node, 0.0, "")

    async def bad_disk(self, deed: Deed, node: Node) -> None:
        """Once it has failed its process must end; then it starts again on what is durable."""
        with taken(node):
            node.doomed = True
            fails = "write" if deed.pick < 0.5 else "sync"
            await _set_disk(node, 0.0, fails)
            await self.rest(deed.lasts_s)
            how = await _end_of(node)
            if how == _RUNS:
                words = f"{node.kind} {node.id} still runs {_GRACE_S:g} s after a failed {fails}"
                self.outlived.append(words)
            words = node.last_words() if how == _ENDED else how
            self.tell(_ENDED if how == _ENDED else "not ended", node=node.id, words=words)
            await node.kill()
            self.ensemble.start(node)

    # -- voters ---------------------------------------------------------------------------
    async def remove(self, deed: Deed, node: Node) -> None:
        """One change at a time, as one operator would; a change that failed is left to `heal`."""
        async with self._changing:
            await self.ensemble.remove(node)
            await self.rest(deed.lasts_s)
            await self.ensemble.add(node)

    async def replace(self, deed: Deed, node: Node) -> None:
        async with self._changing:
            with taken(node):
                # A voter whose removal is not sure must keep its disk: its votes are on it.
                await self.ensemble.remove(node)
                await self.ensemble.replace(node)
            await self.rest(deed.lasts_s)
            await self.ensemble.add(node)


async def _end_of(node: Node) -> str:
    """What comes of a node whose disk fails: one of the four, soon or after a while."""
    loop = asyncio.get_running_loop()
    end = loop.time() + _GRACE_S
    how = _SILENT
    while node.running:
        try:
            how = _RUNS if await ask_member(node, {"do": "failed"}) else _NOT_MET
        except QuorateError:  # it may be at its end
            how = _SILENT
        if how == _NOT_MET or loop.time() > end:
            return how
        await asyncio.sleep(0.05)
    return _ENDED


async def _set_disk(node: Node, slow_s: float, fails: str) -> None:
    await ask_member(node, {"do": "disk", "slow_s": slow_s, "fails": fails})


_ACTS: Final[dict[str, Callable[[Nemesis, Deed, Node], Awaitable[None]]]] = {
    "kill": Nemesis.kill,
    "power": Nemesis.power,
    "stop": Nemesis.stop,
    "cut": Nemesis.cut,
    "hold": Nemesis.hold,
    "deaf": Nemesis.deaf,
    "mute": Nemesis.mute,
    "split": Nemesis.split,
    "lag": Nemesis.lag,
    "reset": Nemesis.reset,
    "slow-disk": Nemesis.slow_disk,
    "bad-disk": Nemesis.bad_disk,
    "remove": Nemesis.remove,
    "replace": Nemesis.replace,
}
