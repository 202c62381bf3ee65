"""What a bad medium may do: only what Kafka's formats detect."""

from __future__ import annotations

from itertools import count

import pytest

from quorate.formats.batch import encode_batch
from quorate.sim.prng import Prng
from quorate.sim.world.corruption import corrupt_offset, lose, misdirect
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
        said.add(lose(disk, Prng(seed, "test"), "snapshot"))
    return said


@pytest.mark.parametrize(
    "log",
    [{FIRST: WHOLE[FIRST]}, {FIRST: b""}, {}],
    ids=["a part of the log", "an empty log", "no log"],
)
def test_a_snapshot_for_which_the_log_is_being_dropped_is_not_lost(log: dict[str, bytes]) -> None:
    """Seed 10109606: the power failed during that write, and nothing else had the remainder."""
    assert lost({OLD: b"x", NEW: b"y", **log}) == {None}


@pytest.mark.parametrize("log", [WHOLE, {FRESH: b""}], ids=["all of the log", "the log behind it"])
def test_any_snapshot_that_the_log_reaches_may_be_lost(log: dict[str, bytes]) -> None:
    assert lost({OLD: b"x", NEW: b"y", **log}) == {f"lost: {OLD}", f"lost: {NEW}"}


def test_an_older_snapshot_may_be_lost_while_the_log_is_dropped() -> None:
    part = {FIRST: encode_batch(0, 1, 0, [b"a"] * 90)}
    assert lost({OLD: b"x", NEW: b"y", **part}) == {f"lost: {OLD}"}


def chance_of(*drawn: tuple[int, int]) -> Prng:
    """A prng that draws these: each a number, and the limit that it is below."""
    for seed in count():
        rng = Prng(seed)
        if all(rng.below(limit) == number for number, limit in drawn):
            return Prng(seed)
    raise AssertionError


@pytest.mark.parametrize(("source", "is_reported"), [(8, False), (0, True), (9, True)])
def test_a_block_that_makes_a_whole_batch_of_the_same_place_is_not_misdirected(
    source: int, is_reported: bool
) -> None:
    """Seed 14124062: no checksum covers a base offset, so no reader can distinguish one batch's bytes behind
    it from another's."""
    one, other, last = (
        encode_batch(n, 1, 0, [value]) for n, value in enumerate((b"a", b"b", b"c"))
    )
    assert len(one) < 8 + 64  # a block reaches to its end
    disk = MemoryDisk()
    disk.put(FIRST, one + other + last)
    before_last, whole = len(one + other), len(one + other + last)
    rng = chance_of((0, 1), (0, 1), (8, before_last), (len(one) + source, whole))
    said = misdirect(disk, rng)
    assert (said is not None) == is_reported
    assert (disk.content(FIRST) != one + other + last) == is_reported


def test_a_bit_that_rots_in_a_base_offset_leaves_all_else() -> None:
    whole = encode_batch(0, 1, 0, [b"a"]) + encode_batch(1, 1, 0, [b"b"])
    for seed in range(100):
        disk = MemoryDisk()
        disk.put(FIRST, whole)
        assert (
            corrupt_offset(disk, Prng(seed, "test"))
            == f"a bit of the base offset of the batch at byte 0 of {FIRST}"
        )
        found = disk.content(FIRST)
        assert int.from_bytes(found[:8]).bit_count() == 1
        assert found[8:] == whole[8:]
