"""What a bad medium may do: only what Kafka's formats can tell."""

from __future__ import annotations

import pytest

from quorate.formats.batch import encode_batch
from quorate.sim.chance import Chance
from quorate.sim.damage import lose
from quorate.storage.memory import MemoryDisk

OLD = "00000000000000000084-0000000001.checkpoint"
NEW = "00000000000000000098-0000000002.checkpoint"
FIRST, SECOND, FRESH = (f"{base:020d}.log" for base in (0, 80, 98))
WHOLE = {FIRST: encode_batch(0, 1, 0, [b"a"] * 80), SECOND: encode_batch(80, 1, 0, [b"b"] * 18)}


def lost(files: dict[str, bytes]) -> set[str | None]:
    """All that is ever said to be lost of such a disk."""
    said = set()
    for seed in range(40):
        disk = MemoryDisk()
        for name, data in files.items():
            disk.put(name, data)
        said.add(lose(disk, Chance(seed, "test"), "snapshot"))
    return said


@pytest.mark.parametrize(
    "log",
    [{FIRST: WHOLE[FIRST]}, {FIRST: b""}, {}],
    ids=["a part of the log", "an empty log", "no log"],
)
def test_a_snapshot_for_which_the_log_is_being_dropped_is_not_lost(log: dict[str, bytes]) -> None:
    """Seed 10109606: the power failed in the middle of that, and nothing else knew of the rest."""
    assert lost({OLD: b"x", NEW: b"y", **log}) == {None}


@pytest.mark.parametrize("log", [WHOLE, {FRESH: b""}], ids=["all of the log", "the log behind it"])
def test_any_snapshot_that_the_log_reaches_may_be_lost(log: dict[str, bytes]) -> None:
    assert lost({OLD: b"x", NEW: b"y", **log}) == {f"lost: {OLD}", f"lost: {NEW}"}


def test_an_older_snapshot_may_be_lost_while_the_log_is_dropped() -> None:
    part = {FIRST: encode_batch(0, 1, 0, [b"a"] * 90)}
    assert lost({OLD: b"x", NEW: b"y", **part}) == {f"lost: {OLD}"}
