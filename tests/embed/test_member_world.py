"""Worlds of members hold their invariants, repeat themselves, and find planted bugs."""

from __future__ import annotations

import pytest

from embed.member_world import FOREIGN, MemberViolationError, MemberWorld
from mutants.edit import begin_with, replace
from mutants.mutant import Mutant, planted
from quorate.embed.machine import OpaqueMachine
from quorate.replica import proposals

SEEDS = 12
SEEDS_OF_MUTANTS = 24
FIRST_SEEDS = {"interrupted-load-is-kept": 200}
"""Where the seeds of a planted bug begin, if not at 0: one world in eighty interrupts a load."""
SITUATIONS = (
    "a load was interrupted by a crash",
    "a load was interrupted by a newer snapshot",
    "a read after a barrier",
    "a snapshot was loaded",
)


@pytest.mark.slow
def test_the_worlds_of_a_few_seeds() -> None:
    """They reach what they are for."""
    reached: set[str] = set()
    for seed in range(SEEDS):
        world = MemberWorld(seed)
        world.run()
        assert len(world.acknowledged) > 20
        reached |= {point for point, times in world.coverage.items() if times}
    assert reached == {*SITUATIONS}


def test_a_seed_repeats_its_world() -> None:
    first, second = MemberWorld(5), MemberWorld(5)
    first.run()
    second.run()
    assert first.trace == second.trace and first.acknowledged == second.acknowledged
    assert first.trace != MemberWorld(6).trace


def test_a_foreign_member_gets_nothing_and_a_lone_voter_wins_nothing_of_ours() -> None:
    world = MemberWorld(7)
    world.run()
    foreign = world.members[FOREIGN]
    assert foreign.node is not None and foreign.history.entries == []
    for member in world.members.values():
        if member.id != FOREIGN:
            assert member.node is not None
            assert FOREIGN not in {v.key.id for v in member.node.replica.core.voters.voters or ()}


@pytest.mark.parametrize("seed", range(3))
def test_a_foreign_record_stops_every_member_where_it_stands(seed: int) -> None:
    world = MemberWorld(seed, foreign_record=True)
    world.push(3_000_000, world.propose_foreign_record)
    world.run()
    ours = [member for member in world.members.values() if member.id != FOREIGN]
    faults = [member.fault for member in ours if member.fault is not None]
    assert len(faults) >= 2
    offsets = {int(fault.partition("at offset ")[2].split()[0]) for fault in faults}
    assert len(offsets) == 1, "they stop at one offset"
    assert max(world.applied) < offsets.pop()


PLANTED = (
    Mutant(
        "interrupted-load-is-kept",
        "the chunks of an interrupted load stay for the next one",
        OpaqueMachine.begin_load,
        replace("self._chunks = []", "self._chunks = self._chunks"),
    ),
    Mutant(
        "load-without-restore",
        "a loaded snapshot does not reach the state machine",
        OpaqueMachine.end_load,
        replace("self._machine.restore(chunks)", "None"),
    ),
    Mutant(
        "entry-skipped-between-steps",
        "a step that stops within a batch counts one entry too many",
        OpaqueMachine.apply,
        replace("offset - entry.base_offset", "len(entry.values)"),
    ),
    Mutant(
        "answered-before-applied",
        "proposals are answered up to five records before they are applied",
        proposals.Proposals.release,
        begin_with("applied += 5"),
    ),
)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("mutant", PLANTED, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    with planted(mutant):
        first = FIRST_SEEDS.get(mutant.name, 0)
        for seed in range(first, first + SEEDS_OF_MUTANTS):
            try:
                MemberWorld(seed).run()
            except MemberViolationError:
                return
    pytest.fail("no seed finds it")
