"""A run: start the quorum, inject faults, recover, read the disks, check."""

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
from typing import Any, Final, Protocol

from quorate.base.errors import QuorateError
from quorate.nemesis.checks import (
    RECOVERS,
    Violation,
    linearizable,
    log_order,
    nothing_lost,
    same_prefix,
)
from quorate.nemesis.disk_contents import DiskContents
from quorate.nemesis.faults import FaultInjector, OnEvent, ignore
from quorate.nemesis.history import ClientHistory, longest_outage_us
from quorate.nemesis.node import NodeProcess
from quorate.nemesis.plan import ScheduledFault
from quorate.nemesis.quorum import NemesisQuorum
from quorate.nemesis.recovery import recover, wait_replicated, wait_until
from quorate.nemesis.watchdog import Watchdog

RECOVERY_TIMEOUT_S: Final = 60.0
"""After the last fault a quorum must be whole again by then; an election takes a second or two."""


@dataclass(frozen=True, slots=True)
class NemesisOptions:
    """How a run is done."""

    seed: int
    seconds: float
    faults: tuple[ScheduledFault, ...]
    directory: Path
    """Where all files of the run are; empty or missing before it."""


@dataclass(slots=True)
class NemesisResult:
    """What a run did and what its checks found. Counters are by kind of fault."""

    options: NemesisOptions
    faults: Counter[str] = field(default_factory=Counter)
    """Injected and repaired."""
    failed: Counter[str] = field(default_factory=Counter)
    """Could not be injected or repaired; faults.jsonl has the reasons."""
    skipped: Counter[str] = field(default_factory=Counter)
    """There was no node for them, or no time."""
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """How many client operations had which outcome."""
    outage_ms: int = 0
    """The longest time without an acknowledged write while faults were injected."""
    recovery_ms: int = -1
    """From the last repair to a whole quorum; -1: never."""
    leaders: list[str] = field(default_factory=list)
    processes: int = 0
    """How many were started."""
    committed: int = 0
    """The offset below which everything was committed at the end (exclusive)."""
    violations: list[Violation] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.options.seed,
            "seconds": self.options.seconds,
            "directory": str(self.options.directory),
            "faults": dict(sorted(self.faults.items())),
            "failed": dict(sorted(self.failed.items())),
            "skipped": dict(sorted(self.skipped.items())),
            "operations": dict(self.outcomes),
            "longest_write_outage_ms": self.outage_ms,
            "recovery_ms": self.recovery_ms,
            "leaders": self.leaders,
            "processes": self.processes,
            "committed_offset": self.committed,
            "violations": [asdict(violation) for violation in self.violations],
        }


class NemesisClient(Protocol):
    async def run(self, over: asyncio.Event) -> None:
        """Send one operation after another until `over` is set."""


class NemesisWorkload(ABC):
    """The programs in the nodes, their clients, and the reader of their disks."""

    clients: int
    """The number of clients."""

    @abstractmethod
    def nodes(self, options: NemesisOptions, watchdog: Watchdog) -> Mapping[int, NodeProcess]: ...

    @abstractmethod
    def client(
        self, name: int, quorum: NemesisQuorum, history: ClientHistory, seed: str
    ) -> NemesisClient:
        """Client number `name`, from 0. Its random choices depend on `name` and `seed`."""

    async def traffic(
        self,
        quorum: NemesisQuorum,
        history: ClientHistory,
        options: NemesisOptions,
        over: asyncio.Event,
    ) -> None:
        """Run the clients until `over` is set."""
        seed = str(options.seed)
        clients = [self.client(name, quorum, history, seed) for name in range(self.clients)]
        await asyncio.gather(*(client.run(over) for client in clients))

    @abstractmethod
    async def final_checks(self, quorum: NemesisQuorum, history: ClientHistory) -> list[Violation]:
        """Check what all members of the recovered, idle quorum must agree on."""

    @abstractmethod
    def read_disk(self, node: NodeProcess) -> DiskContents:
        """Read the disk of a killed node. Raises QuorateError."""


class NotEmptyError(QuorateError):
    """The directory of a run has files in it."""

    exit_code = 2


def run_nemesis(
    workload: NemesisWorkload, options: NemesisOptions, on_event: OnEvent = ignore
) -> NemesisResult:
    """Do a run; its files are in `options.directory` afterwards.

    `on_event` receives each fault as it begins and ends. Raises QuorateError or OSError.
    """
    options.directory.mkdir(parents=True, exist_ok=True)
    if any(options.directory.iterdir()):
        raise NotEmptyError(f"{options.directory} is not empty: give another directory")
    watchdog = Watchdog()
    try:
        return asyncio.run(_Run(workload, options, watchdog, on_event).run())
    finally:
        watchdog.close()


class _Run:
    def __init__(
        self,
        workload: NemesisWorkload,
        options: NemesisOptions,
        watchdog: Watchdog,
        on_event: OnEvent,
    ) -> None:
        self.workload = workload
        self.options = options
        self.history = ClientHistory()
        self.over = asyncio.Event()
        self.quorum = NemesisQuorum(workload.nodes(options, watchdog))
        self.injector = FaultInjector(self.quorum, self.history, self.over, on_event)
        self.result = NemesisResult(options)

    async def run(self) -> NemesisResult:
        # A request to a stopped node takes its whole timeout: others must not wait for a thread.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(32))
        try:
            try:
                await self.quorum.start_new()
                await self._inject_faults()
                await self._check_idle_quorum()
            finally:
                for node in self.quorum:
                    await node.kill()
                await self.quorum.network.close()
        except BaseException:
            with suppress(OSError):
                self._write_history()
            raise
        self._write_history()
        self._check_history_and_disks()
        text = json.dumps(self.result.to_json(), indent=2) + "\n"
        (self.options.directory / "result.json").write_text(text)
        return self.result

    async def _inject_faults(self) -> None:
        """Run clients and faults at the same time, then the liveness phase.

        1. Wait for the first leader.
        2. Inject faults for `options.seconds`, and wait until all are repaired.
        3. Wait until the quorum is whole, then until a client's write is acknowledged.
        4. Stop the clients. They run until here: a quorum that recovers only while it is idle
           fails step 3.
        """
        try:
            await wait_until(self._has_leader, RECOVERY_TIMEOUT_S, "no leader")
        except QuorateError as error:
            self.result.violations.append(Violation("a new quorum elects a leader", str(error)))
            return
        start_us = self.history.now_us()
        ending = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(
                self.workload.traffic(self.quorum, self.history, self.options, ending)
            )
            faults = group.create_task(self.injector.run(self.options.faults))
            await asyncio.sleep(self.options.seconds)
            self.over.set()
            await faults
            end_us = self.history.now_us()
            self.result.violations += await self._recover()
            self.result.violations += await self._wait_for_write()
            ending.set()
        ops = [op for op in self.history.ops if op.invoked_us >= start_us]
        self.result.outage_ms = longest_outage_us(ops, end_us) // 1000

    async def _has_leader(self) -> bool:
        info = await self.quorum.describe()
        return info is not None and info.high_watermark > 0

    async def _recover(self) -> list[Violation]:
        start_us = self.history.now_us()
        try:
            await recover(self.quorum, self.injector, RECOVERY_TIMEOUT_S)
        except QuorateError as error:
            return [Violation(RECOVERS, str(error))]
        self.result.recovery_ms = (self.history.now_us() - start_us) // 1000
        return []

    async def _wait_for_write(self) -> list[Violation]:
        """A client's write must be acknowledged without any further help.

        No process starts any more: once none runs, no write can be acknowledged.
        """
        start_us = self.history.now_us()

        async def is_written() -> bool:
            if not any(node.running for node in self.quorum):
                raise QuorateError("no write can be acknowledged: no node runs")
            recent = takewhile(lambda op: op.invoked_us >= start_us, reversed(self.history.ops))
            return any(op.kind != "get" and op.outcome == "ok" for op in recent)

        missing = "no write was acknowledged since the last fault was repaired"
        try:
            await wait_until(is_written, RECOVERY_TIMEOUT_S, missing)
        except QuorateError as error:
            return [Violation(RECOVERS, str(error))]
        return []

    async def _check_idle_quorum(self) -> None:
        """Without traffic every voter reaches the same offset, and the same state."""
        if self.result.violations:
            return
        try:
            self.result.committed = await wait_replicated(self.quorum)
            self.result.violations += await self.workload.final_checks(self.quorum, self.history)
        except QuorateError as error:
            self.result.violations.append(Violation(RECOVERS, str(error)))

    def _check_history_and_disks(self) -> None:
        result, ops = self.result, self.history.ops
        # 1. Count what was done.
        result.outcomes = self.history.outcomes()
        result.faults = self._count("end")
        result.failed = self._count("failed")
        result.skipped = Counter(fault.kind for fault in self.options.faults) - self._count("begin")
        result.leaders = [f"{self.quorum.nodes[i].kind} {i}" for i in self.quorum.leaders]
        result.processes = sum(node.starts for node in self.quorum)
        # 2. Processes end only where a fault ends them.
        result.violations += [
            Violation("no node ends unexpectedly", text) for text in self.injector.unexpected_exits
        ]
        result.violations += [
            Violation("a replica ends when its disk fails", text)
            for text in self.injector.survived_disk_failures
        ]
        result.violations += [
            Violation("no node logs a traceback", f"{node.log_file} has one")
            for node in self.quorum
            if b"Traceback (most recent call last)" in node.log_file.read_bytes()
        ]
        # 3. The clients' history.
        result.violations += linearizable(ops)
        # 4. The disks, as far as everything was committed.
        if not result.committed:
            return
        try:
            logs = [self.workload.read_disk(node) for node in self.quorum]
        except QuorateError as error:
            result.violations.append(Violation("a disk is readable", str(error)))
            return
        result.violations += same_prefix(logs, result.committed)
        result.violations += nothing_lost(ops, logs, result.committed)
        result.violations += [
            violation for log in logs for violation in log_order(ops, log, result.committed)
        ][:1]

    def _count(self, what: str) -> Counter[str]:
        """The events of this name, by kind of fault."""
        return Counter(event["kind"] for event in self.injector.events if event["what"] == what)

    def _write_history(self) -> None:
        """Write the clients' history and the fault events; of an interrupted run, too."""
        directory = self.options.directory
        self.history.write(directory / "history.jsonl")
        lines = "".join(json.dumps(event) + "\n" for event in self.injector.events)
        (directory / "faults.jsonl").write_text(lines)
