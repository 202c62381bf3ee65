"""A whole run: found, torment, heal, read the disks, judge, keep."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.nemesis.checks import Broken, linearizable, log_order, nothing_lost, same_prefix
from quorate.nemesis.deeds import Nemesis, Tell, ignore
from quorate.nemesis.harvest import Harvest
from quorate.nemesis.heal import heal, settle, until
from quorate.nemesis.history import History, longest_outage_us
from quorate.nemesis.node import Node
from quorate.nemesis.plan import Deed
from quorate.nemesis.quorum import Ensemble
from quorate.nemesis.watchdog import Watchdog

HEAL_S: Final = 60.0
"""By then after the last deed a quorum must be whole again; real elections take one or two."""


@dataclass(frozen=True, slots=True)
class Options:
    seed: int
    seconds: float
    deeds: tuple[Deed, ...]
    directory: Path
    """Where everything of the run is kept; empty or missing."""


@dataclass(slots=True)
class Result:
    options: Options
    deeds: Counter[str] = field(default_factory=Counter)
    """How often each kind was done."""
    failed: Counter[str] = field(default_factory=Counter)
    """How often it could not be done; deeds.jsonl says why."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How often there was no node for it, or no time."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """How many operations ended how."""
    outage_ms: int = 0
    """The longest time without an acknowledged write while the nemesis was at work."""
    healed_ms: int = -1
    """From the last mending to a whole quorum; -1: never."""
    leaders: list[str] = field(default_factory=list)
    lives: int = 0
    """How many processes were started."""
    committed: int = 0
    """End offset of what was committed at the end."""
    broken: list[Broken] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        return {
            "seed": self.options.seed,
            "seconds": self.options.seconds,
            "directory": str(self.options.directory),
            "deeds": dict(sorted(self.deeds.items())),
            "failed": dict(sorted(self.failed.items())),
            "left_out": dict(sorted(self.left_out.items())),
            "operations": dict(self.outcomes),
            "longest_write_outage_ms": self.outage_ms,
            "healed_ms": self.healed_ms,
            "leaders": self.leaders,
            "processes": self.lives,
            "committed_offset": self.committed,
            "broken": [asdict(broken) for broken in self.broken],
        }


class Workload(ABC):
    """What runs in the nodes, who writes to it, and how it is read."""

    @abstractmethod
    def nodes(self, options: Options, watchdog: Watchdog) -> Mapping[int, Node]: ...

    @abstractmethod
    async def traffic(
        self, ensemble: Ensemble, history: History, options: Options, over: asyncio.Event
    ) -> None:
        """Clients, until `over`."""

    @abstractmethod
    async def last_look(self, ensemble: Ensemble, history: History) -> list[Broken]:
        """Ask the whole, quiet quorum whatever it must now agree on."""

    @abstractmethod
    def harvest(self, node: Node) -> Harvest:
        """Read the disk of a killed node. Raises QuorateError."""


class NotEmpty(QuorateError):
    exit_code = 2


def run(workload: Workload, options: Options, watch: Tell = ignore) -> Result:
    """Run it; what went on is in `options.directory` afterwards.

    `watch` is told each deed as it begins and ends. Raises QuorateError or OSError.
    """
    options.directory.mkdir(parents=True, exist_ok=True)
    if any(options.directory.iterdir()):
        raise NotEmpty(f"{options.directory} is not empty: give another directory")
    watchdog = Watchdog()
    try:
        return asyncio.run(_Run(workload, options, watchdog, watch).run())
    finally:
        watchdog.close()


class _Run:
    def __init__(
        self, workload: Workload, options: Options, watchdog: Watchdog, watch: Tell
    ) -> None:
        self.workload = workload
        self.options = options
        self.history = History()
        self.over = asyncio.Event()
        self.ensemble = Ensemble(workload.nodes(options, watchdog))
        self.nemesis = Nemesis(self.ensemble, self.history, self.over, watch)
        self.result = Result(options)

    async def run(self) -> Result:
        # Questions to a stopped node take their time: others must not wait for them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
        try:
            try:
                await self.ensemble.found()
                await self._torment()
                await self._end_well()
            finally:
                for node in self.ensemble:
                    await node.kill()
                await self.ensemble.network.close()
        except BaseException:
            with suppress(OSError):
                self._keep_what_happened()
            raise
        self._keep_what_happened()
        self._judge()
        told = json.dumps(self.result.facts(), indent=2) + "\n"
        (self.options.directory / "result.json").write_text(told)
        return self.result

    async def _torment(self) -> None:
        """Clients and deeds at the same time, and a moment of good weather for the clients."""
        try:
            await until(self._is_led, HEAL_S, "no leader")
        except QuorateError as error:
            self.result.broken.append(Broken("a new quorum works", str(error)))
            return
        start_us = self.history.now_us()
        ending = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self.workload.traffic(self.ensemble, self.history, self.options, ending)
            )
            deeds = group.create_task(self.nemesis.run(self.options.deeds))
            await asyncio.sleep(self.options.seconds)
            self.over.set()
            await deeds
            end_us = self.history.now_us()
            self.result.broken += await self._heal()
            self.result.broken += await self._is_written_again()
            ending.set()
        ops = [op for op in self.history.ops if op.invoked_us >= start_us]
        self.result.outage_ms = longest_outage_us(ops, end_us) // 1000

    async def _is_led(self) -> bool:
        view = await self.ensemble.view()
        return view is not None and view.high_watermark > 0

    async def _heal(self) -> list[Broken]:
        start_us = self.history.now_us()
        try:
            await heal(self.ensemble, self.nemesis, HEAL_S)
        except QuorateError as error:
            return [Broken("a healed quorum works again", str(error))]
        self.result.healed_ms = (self.history.now_us() - start_us) // 1000
        return []

    async def _is_written_again(self) -> list[Broken]:
        """Clients must get through without any further help."""
        start_us = self.history.now_us()

        async def is_written() -> bool:
            recent = takewhile(lambda op: op.invoked_us >= start_us, reversed(self.history.ops))
            return any(op.kind != "get" and op.outcome == "ok" for op in recent)

        try:
            await until(is_written, HEAL_S, "no write was acknowledged since all was healed")
        except QuorateError as error:
            return [Broken("a healed quorum works again", str(error))]
        return []

    async def _end_well(self) -> None:
        """No more traffic: everyone gets everything."""
        if self.result.broken:
            return
        try:
            self.result.committed = await settle(self.ensemble)
            self.result.broken += await self.workload.last_look(self.ensemble, self.history)
        except QuorateError as error:
            self.result.broken.append(Broken("a healed quorum works again", str(error)))

    def _judge(self) -> None:
        result, ops = self.result, self.history.ops
        result.outcomes = self.history.outcomes()
        told = self.nemesis.told
        result.deeds = Counter(line["kind"] for line in told if line["what"] == "end")
        result.failed = Counter(line["kind"] for line in told if line["what"] == "failed")
        begun = Counter(line["kind"] for line in told if line["what"] == "begin")
        result.left_out = Counter(deed.kind for deed in self.options.deeds) - begun
        result.leaders = [f"{self.ensemble.nodes[i].kind} {i}" for i in self.ensemble.leaders]
        result.lives = sum(node.lives for node in self.ensemble)
        result.broken += [
            Broken("a node runs until it is made to end", words) for words in self.nemesis.surprises
        ]
        result.broken += [
            Broken("a failed disk ends a replica", words) for words in self.nemesis.outlived
        ]
        result.broken += [
            Broken("no node meets a defect", f"{node.log_file} has the traceback of one")
            for node in self.ensemble
            if b"Traceback (most recent call last)" in node.log_file.read_bytes()
        ]
        result.broken += linearizable(ops)
        if not result.committed:
            return
        try:
            logs = [self.workload.harvest(node) for node in self.ensemble]
        except QuorateError as error:
            result.broken.append(Broken("what is on a disk is sound", str(error)))
            return
        result.broken += same_prefix(logs, result.committed)
        result.broken += nothing_lost(ops, logs, result.committed)
        result.broken += [
            broken for log in logs for broken in log_order(ops, log, result.committed)
        ][:1]

    def _keep_what_happened(self) -> None:
        """Of a run that is interrupted, too."""
        directory = self.options.directory
        self.history.write(directory / "history.jsonl")
        told = "".join(json.dumps(line) + "\n" for line in self.nemesis.told)
        (directory / "deeds.jsonl").write_text(told)
