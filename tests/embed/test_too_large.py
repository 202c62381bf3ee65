"""What fits no batch of the log: refused in the caller's terms, up to the last byte."""

import asyncio

import pytest

from embed.test_propose_all import Journal, run
from quorate import embed
from quorate.embed import MAX_ENTRY_BYTES, EntryTooLarge, QuorateError, local_cluster


class Sizes(Journal):
    """Keeps nothing but the sizes."""

    def apply(self, offset, entry):
        return super().apply(offset, b"%d" % len(entry))


def test_an_entry_has_a_greatest_size_and_its_refusal_says_it():
    async def story():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            assert await leader.propose(bytes(MAX_ENTRY_BYTES)) == 1
            for propose in (leader.propose, leader.propose_nowait):
                with pytest.raises(EntryTooLarge) as caught:
                    await propose(bytes(MAX_ENTRY_BYTES + 1))
                assert str(caught.value) == (
                    "An entry of 8388523 bytes cannot be proposed at once: 8388522 bytes fit"
                )
                assert (caught.value.size, caught.value.limit) == (8388523, MAX_ENTRY_BYTES)
            assert await leader.propose(b"small") == 2

    run(story)


def test_so_have_entries_that_are_proposed_together():
    async def story():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            most = MAX_ENTRY_BYTES - 2 * 25
            with pytest.raises(EntryTooLarge) as caught:
                await leader.propose_all([b"one", b"", bytes(most - 2)])
            assert str(caught.value) == (
                f"3 entries of {most + 1} bytes together cannot be proposed at once: so many can "
                f"have {most}"
            )
            assert await leader.propose_all([b"one", b"", bytes(most - 3)]) == [1, 2, 3]

    run(story)


def test_there_can_be_too_many_even_of_empty_ones():
    async def story():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            with pytest.raises(EntryTooLarge, match="so many do not fit one batch, whatever"):
                await leader.propose_all([b""] * 400_000)

    run(story)


def test_who_proposes_what_can_never_fit_does_not_wait_for_a_turn(monkeypatch):
    async def story():
        async with local_cluster(1, Sizes) as cluster:
            leader = await cluster.leader()
            leader._outstanding.limit = 1
            first = leader.propose_nowait(b"x")
            refused = asyncio.ensure_future(leader.propose(bytes(MAX_ENTRY_BYTES + 1)))
            await asyncio.sleep(0)
            assert refused.done() and isinstance(refused.exception(), EntryTooLarge)
            assert await first == 1

    run(story)


def test_every_error_is_exported_and_has_the_exported_base():
    errors = {
        name
        for name in vars(embed.errors)
        if isinstance(getattr(embed.errors, name), type)
        and issubclass(getattr(embed.errors, name), QuorateError)
    }
    assert "EntryTooLarge" in errors and errors <= set(embed.__all__)
