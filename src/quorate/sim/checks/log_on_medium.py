"""What each core and storage believes of log and snapshots is what the medium has, after each step.

`quorate.verify` has the rules; a node runs them where `QUORATE_VERIFY_LOG` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError
from quorate.verify.log_audit import LogAudit, LogBeliefError
from quorate.verify.medium import Medium, MediumFiles

if TYPE_CHECKING:
    from quorate.replica.disk_jobs import Job, Result
    from quorate.replica.replica import Effects, Input
    from quorate.storage.api import Recovered
    from quorate.storage.memory import MemoryDisk

CHECK = "log as on the medium"


class LogOnMediumCheck(Observer):
    """One LogAudit for each running node. A damaged medium is not compared."""

    def __init__(self) -> None:
        self._audits: dict[int, LogAudit] = {}

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        storage = process.storage
        audit = LogAudit(storage, Medium(MemoryDirectory(storage.disk)), recovered.log)
        self._audits[process.id] = audit
        if process.damage is None:
            try:
                audit.recovered()
            except LogBeliefError as wrong:
                _refuse(process, wrong)

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        if not effects.is_over:
            try:
                self._audits[process.id].stepped(happened, effects.jobs, process.core)
            except LogBeliefError as wrong:
                _refuse(process, wrong)

    def performed(
        self, process: SimulatedNode, jobs: Sequence[Job], results: Sequence[Result]
    ) -> None:
        if process.damage is None:
            try:
                self._audits[process.id].performed(jobs, results)
            except LogBeliefError as wrong:
                _refuse(process, wrong)


class MemoryDirectory(MediumFiles):
    """The files of a disk in memory."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk

    def names(self) -> list[str]:
        return self._disk.names()

    def names_stamp(self) -> int | None:
        return self._disk.names_stamp

    def size(self, name: str) -> int:
        return self._disk.content_size(name)

    def read(self, name: str, position: int, size: int) -> bytes:
        return self._disk.part(name, position, size)

    def stamp(self, name: str) -> int | None:
        return self._disk.stamp(name)


def _refuse(process: SimulatedNode, wrong: LogBeliefError) -> NoReturn:
    said = f"node {process.id} (incarnation {process.incarnation}): {wrong}"
    raise ViolationError(CHECK, said) from wrong
