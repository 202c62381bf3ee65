"""AlterQuorum's planner: every step is a single one, and safe."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quorate.base.ids import ReplicaKey
from quorate.raft.alter import AddStep, AlterVotersError, RemoveStep, plan
from quorate.sim.scenario.names import key

KEYS = st.frozensets(
    st.builds(key, st.integers(1, 6), st.integers(0, 1)), min_size=1, max_size=6
).filter(lambda keys: len({k.id for k in keys}) == len(keys))


def apply(voters: frozenset[ReplicaKey], step: AddStep | RemoveStep) -> frozenset[ReplicaKey]:
    if isinstance(step, AddStep):
        assert step.voter.id not in {k.id for k in voters}
        return voters | {step.voter}
    assert step.voter in voters
    return voters - {step.voter}


@given(KEYS, KEYS)
def test_reaches_the_target_in_the_fewest_steps(current, target):
    try:
        steps = plan(current, target)
    except AlterVotersError:
        assert len(current) == 1 and {k.id for k in current} == {k.id for k in target}
        return
    replaced = {k.id for k in target - current} & {k.id for k in current}
    least = min(len(current), len(target)) - (1 if replaced else 0)
    voters = current
    for step in steps:
        voters = apply(voters, step)
        assert len(voters) >= least
        assert len(voters) <= max(len(current), len(target) + 1)
    assert voters == target
    assert len(steps) == len(current - target) + len(target - current)


@given(KEYS, KEYS, st.data())
def test_can_be_resumed_from_every_point(current, target, data):
    leader = data.draw(st.sampled_from(sorted(current))).id
    try:
        steps = plan(current, target, leader)
    except AlterVotersError:
        assume(False)
    voters = current
    for i, step in enumerate(steps):
        assert plan(voters, target, leader) == steps[i:]
        voters = apply(voters, step)
    assert plan(voters, target, leader) == ()


@given(KEYS, KEYS, st.data())
def test_the_leader_is_removed_last(current, target, data):
    leader = data.draw(st.sampled_from(sorted(current)))
    try:
        steps = plan(current, target, leader.id)
    except AlterVotersError:
        assume(False)
    removals = [step.voter for step in steps if isinstance(step, RemoveStep)]
    assert leader not in removals[:-1]


def test_replaces_one_for_one():
    steps = plan([key(1), key(2), key(3)], [key(4), key(5), key(6)], leader_id=2)
    expected = [
        AddStep(key(4)),
        RemoveStep(key(1)),
        AddStep(key(5)),
        RemoveStep(key(3)),
        AddStep(key(6)),
        RemoveStep(key(2)),
    ]
    assert list(steps) == expected


def test_a_replaced_directory_is_removed_before_it_is_added_again():
    steps = plan([key(1), key(2), key(3)], [key(1), key(2), key(3, disk=1)], leader_id=1)
    assert list(steps) == [RemoveStep(key(3)), AddStep(key(3, disk=1))]


def test_unreachable_voters_are_removed_first():
    current = [key(1), key(2), key(3), key(4), key(5)]
    steps = plan(current, [key(1), key(2), key(3)], leader_id=1, live=[key(1), key(2), key(4)])
    assert steps[0] == RemoveStep(key(5))


@pytest.mark.parametrize(
    ("current", "target", "live", "text"),
    [
        ([key(1)], [], None, "at least one voter"),
        ([key(1)], [key(1), key(1, disk=1)], None, "twice"),
        ([key(1)], [key(1, disk=1)], None, "only voter"),
        ([key(1), key(2), key(3)], [key(1), key(3)], [key(1), key(2)], "no majority answers"),
    ],
)
def test_refuses_with_the_reason(current, target, live, text):
    with pytest.raises(AlterVotersError, match=text):
        plan(current, target, leader_id=1, live=live)
