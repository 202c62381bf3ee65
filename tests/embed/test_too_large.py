"""Entries that do not fit a batch are refused, exact to the byte."""

import asyncio

import pytest

from embed.test_propose_all import Journal, run
from quorate import embed
from quorate.embed import MAX_ENTRY_BYTES, EntryTooLargeError, QuorateError, local_cluster


class Sizes(Journal):
    """Keeps nothing but the sizes."""

    def apply(self, offset, entry):
        return super().apply(offset, b"%d" % len(entry))


def test_an_entry_above_the_limit_is_refused_with_the_limit():
    async def scenario():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            assert await leader.propose(bytes(MAX_ENTRY_BYTES)) == 1
            for propose in (leader.propose, leader.propose_nowait):
                with pytest.raises(EntryTooLargeError) as caught:
                    await propose(bytes(MAX_ENTRY_BYTES + 1))
                assert str(caught.value) == (
                    "An entry of 8388523 bytes cannot be proposed as one batch: the limit is 8388522 bytes"
                )
                assert (caught.value.size, caught.value.limit) == (8388523, MAX_ENTRY_BYTES)
            assert await leader.propose(b"small") == 2

    run(scenario)


def test_entries_proposed_together_have_a_common_limit():
    async def scenario():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            most = MAX_ENTRY_BYTES - 2 * 25
            with pytest.raises(EntryTooLargeError) as caught:
                await leader.propose_all([b"one", b"", bytes(most - 2)])
            assert str(caught.value) == (
                f"3 entries of {most + 1} bytes together cannot be proposed as one batch: the "
                f"limit is {most} bytes"
            )
            assert await leader.propose_all([b"one", b"", bytes(most - 3)]) == [1, 2, 3]

    run(scenario)


def test_too_many_empty_entries_are_refused():
    async def scenario():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            with pytest.raises(EntryTooLargeError, match="so many entries never fit, whatever"):
                await leader.propose_all([b""] * 400_000)

    run(scenario)


def test_an_entry_that_can_never_fit_is_refused_without_waiting(monkeypatch):
    async def scenario():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            leader._outstanding.limit = 1
            first = leader.propose_nowait(b"x")
            refused = asyncio.ensure_future(leader.propose(bytes(MAX_ENTRY_BYTES + 1)))
            await asyncio.sleep(0)
            assert refused.done() and isinstance(refused.exception(), EntryTooLargeError)
            assert await first == 1

    run(scenario)


def test_every_error_is_exported_and_has_the_exported_base():
    errors = {
        name
        for name in vars(embed.errors)
        if isinstance(getattr(embed.errors, name), type)
        and issubclass(getattr(embed.errors, name), QuorateError)
    }
    assert "EntryTooLargeError" in errors and errors <= set(embed.__all__)
