"""QUORATE_VERIFY_LOG: a wrong belief of core or storage stops the node and is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.node.node_io import NodeEffects
from quorate.raft.values import RaftConfig, Voter
from quorate.replica.replica import Replica, Submit
from quorate.server.driver import Driver
from quorate.server.limits import ConnectionLimits
from quorate.server.log_verification import VERIFY_LOG, verify_log
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.disk_storage import FileStorage
from quorate.verify.log_audit import LogBeliefError

KEY = ReplicaKey(1, Uuid(bytes(15) + b"\1"))


class Node:
    """A lone voter, which elects itself and writes its LeaderChange."""

    node_id = 1

    def __init__(self, storage: FileStorage) -> None:
        listeners = (Listener("CONTROLLER", "localhost", 1),)
        config = RaftConfig(
            "cluster",
            1,
            KEY.directory_id,
            True,
            listeners,
            static_voters=(Voter(KEY, listeners, 0, 1),),
            election_timeout_ms=50,
        )
        self.replica = Replica(config, storage.open(), KeyValueMachine(), lambda: 0.5)

    def step(self, happened: Any, now: Any) -> NodeEffects:
        found = self.replica.step(happened, now)
        return NodeEffects(
            jobs=found.jobs, wake_at_ms=found.wake_at_ms, faulted=found.faulted, notes=found.notes
        )


def run(
    path: Path, until: Callable[[Replica], bool], damage: Callable[[Path], None] | None = None
) -> str | None:
    """Run a node until then, or until it stops; its fault.

    `damage` happens to its newest segment once it has committed, and a write follows.
    """

    async def scenario() -> str | None:
        nonlocal damage
        storage = FileStorage(path)
        node, loop = Node(storage), asyncio.get_running_loop()
        ended: list[str | None] = []
        driver = Driver(node, storage, loop, ConnectionLimits(), 10, ended.append)
        config: Any = SimpleNamespace(metadata_log_dir=str(path))
        verify_log(driver, node.replica, storage, config)
        driver.start()
        try:
            async with asyncio.timeout(20):
                while not ended and not until(node.replica):
                    if damage is not None and has_committed(node.replica):
                        damage(max(path.rglob("*.log")))
                        damage = None
                        driver.post(Submit(1, (b"value",)))
                    await asyncio.sleep(0.001)
        finally:
            await driver.close()
            storage.close()
        return ended[0] if ended else None

    return asyncio.run(scenario())


def has_committed(replica: Replica) -> bool:
    return replica.core.high_watermark > 0


def never(replica: Replica) -> bool:
    return False


def test_a_sound_node_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_LOG, "1")
    assert run(tmp_path, has_committed) is None


@pytest.mark.interpreted
def test_a_wrong_belief_of_the_core_stops_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERIFY_LOG, "1")
    monkeypatch.setattr("quorate.raft.core.RaftCore.log_start_offset", property(lambda core: 7))
    assert run(tmp_path, never) == "the core's log start: 7, and it must be 0"


def test_a_wrong_belief_of_the_storage_stops_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERIFY_LOG, "1")
    size: Any = FileStorage.size
    monkeypatch.setattr(FileStorage, "size", property(lambda self: max(size.__get__(self) - 1, 0)))
    fault = run(tmp_path, never)
    assert fault is not None and "the storage's log size: " in fault


def test_damage_of_the_active_segment_stops_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERIFY_LOG, "1")
    fault = run(tmp_path, never, lambda file: os.truncate(file, 0))
    assert fault is not None and "changed by another program" in fault


def test_nothing_is_compared_without_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VERIFY_LOG, raising=False)
    monkeypatch.setattr(FileStorage, "size", property(lambda self: 1))
    assert run(tmp_path, has_committed) is None


def test_a_wrong_recovery_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VERIFY_LOG, "1")
    storage = FileStorage(tmp_path)
    node = Node(storage)
    node.replica.core.state.log.end_offset = 3
    config: Any = SimpleNamespace(metadata_log_dir=str(tmp_path))
    with pytest.raises(LogBeliefError, match=r"the end of the log on the medium: 0, .* must be 3"):
        verify_log(SimpleNamespace(), node.replica, storage, config)  # type: ignore[arg-type]
    storage.close()
