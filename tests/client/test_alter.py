"""From any voter set to any other: the plan, what it must never do, and carrying it out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.client.admin import Quorum, Replica
from quorate.client.alter import AlterError, Step, Target, alter, check, plan

NOW = 1_000_000
HERE = Address("h", 9093)


def key(node_id: int, directory: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([directory] * 15 + [node_id])))


def want(node_id: int, directory: int = 0) -> Target:
    return Target(key(node_id, directory), HERE)


def told(steps: list[Step]) -> list[str]:
    """`+1` and `-1`; with the directory where it is not the first."""
    return [f"{'+' if s.add else '-'}{s.key.id}{'abc'[s.key.directory_id[0]]}" for s in steps]


def test_nothing_to_do():
    assert plan([key(1), key(2)], [want(2), want(1)], leader_id=1) == []


def test_new_voters_first_then_the_old_ones_and_the_leader_last():
    steps = plan([key(1), key(2), key(3)], [want(3), want(5), want(4)], leader_id=1)
    assert told(steps) == ["+4a", "+5a", "-2a", "-1a"]


def test_a_voter_with_a_new_directory_leaves_before_it_comes_back():
    steps = plan([key(1), key(2), key(3)], [want(1), want(2, 1), want(3)], leader_id=1)
    assert told(steps) == ["-2a", "+2b"]


def test_the_leaders_own_swap_comes_last():
    steps = plan([key(1), key(2), key(3)], [want(1, 1), want(2, 1), want(4)], leader_id=1)
    assert told(steps) == ["+4a", "-2a", "+2b", "-3a", "-1a", "+1b"]


IDS = st.integers(1, 6)
SETS = st.dictionaries(IDS, st.integers(0, 2), min_size=1)


@given(SETS, SETS, st.data())
def test_any_set_is_reached_by_single_steps_that_are_legal(current, target, data):
    leader_id = data.draw(st.sampled_from(sorted(current)))
    voters = {key(*item) for item in current.items()}
    wanted = {key(*item) for item in target.items()}
    smallest = min(len(voters), len(wanted))
    steps = plan(voters, [Target(each, HERE) for each in wanted], leader_id)
    for index, step in enumerate(steps):
        if step.add:
            assert step.key.id not in {voter.id for voter in voters}
            voters = voters | {step.key}
        else:
            assert step.key in voters
            voters = voters - {step.key}
            leads = step.key.id == leader_id
            assert not leads or not [s for s in steps[index + 1 :] if s.key.id != leader_id]
        assert len(voters) >= smallest - 1
    assert voters == wanted
    assert len(steps) == len(set(steps))


@given(SETS, SETS, st.data())
def test_a_plan_that_is_begun_goes_on_the_same_way(current, target, data):
    """Resumable: planning again after a step gives what was left."""
    leader_id = data.draw(st.sampled_from(sorted(current)))
    voters = {key(*item) for item in current.items()}
    wanted = [Target(key(*item), HERE) for item in target.items()]
    steps = plan(voters, wanted, leader_id)
    while steps:
        voters = voters ^ {steps[0].key}
        again = plan(voters, wanted, leader_id)
        assert sorted(again) == sorted(steps[1:])
        steps = again
    assert voters == {entry.key for entry in wanted}


def quorum(voters, observers=(), dead=(), leader_id=1) -> Quorum:
    def rows(keys):
        return tuple(
            Replica(each, 10, NOW - (60_000 if each in dead else 100), NOW) for each in keys
        )

    leader = Replica(key(leader_id), 10, NOW, NOW)
    rest = rows([each for each in voters if each.id != leader_id])
    return Quorum(
        leader_id, 1, 10, (leader, *rest), rows(observers), {leader_id: (Listener("C", "h", 1),)}
    )


def test_a_step_that_can_commit_passes():
    check(quorum([key(1), key(2), key(3)], [key(4)]), Step(True, key(4), HERE))
    check(quorum([key(1), key(2), key(3)], dead=[key(3)]), Step(False, key(3)))


def test_a_controller_that_does_not_run_is_not_added():
    for observers in ([], [key(4, 1)]):
        with pytest.raises(AlterError, match=r"add controller 4 .* does not hear from it"):
            check(quorum([key(1)], observers), Step(True, key(4), HERE))
    with pytest.raises(AlterError, match="does not hear from it"):
        check(quorum([key(1)], [key(4)], dead=[key(4)]), Step(True, key(4), HERE))


def test_a_step_that_leaves_no_live_majority_is_refused():
    voters = [key(1), key(2), key(3)]
    with pytest.raises(AlterError, match="only 1 of the 2 voters that would be left are alive"):
        check(quorum(voters, dead=[key(3)]), Step(False, key(2)))


class Cluster:
    """As much of Admin as `alter` uses; changes take effect at once."""

    def __init__(self, voters, observers=()):
        self.voters, self.observers, self.leader_id = list(voters), list(observers), 1
        self.calls = []

    def describe_quorum(self):
        return quorum(self.voters, self.observers, leader_id=self.leader_id)

    def add_voter(self, voter, listeners):
        self.calls.append(("add", voter.id, *listeners))
        self.observers.remove(voter)
        self.voters.append(voter)

    def remove_voter(self, voter):
        self.calls.append(("remove", voter.id))
        self.voters.remove(voter)
        self.observers.append(voter)
        if voter.id == self.leader_id:
            self.leader_id = self.voters[0].id


def test_alter_takes_the_steps_in_order_and_tells_of_each():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    heard = []
    reached = alter(
        cluster,
        [Target(key(1)), Target(key(3)), want(4)],
        lambda step, rest: heard.append((str(step)[:6], len(rest))),
        lambda step: heard.append("done"),
    )
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093)), ("remove", 2)]
    assert heard == [("add co", 1), "done", ("remove", 0), "done"]
    assert {voter.key for voter in reached.voters} == {key(1), key(3), key(4)}


def test_alter_plans_anew_when_the_leader_changes():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])

    def elect_two(step):
        if step.add:
            cluster.leader_id = 2

    alter(cluster, [Target(key(3)), want(4)], lambda *_: None, elect_two)
    assert [call[:2] for call in cluster.calls] == [("add", 4), ("remove", 1), ("remove", 2)]


def test_alter_goes_on_where_it_was_stopped():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    target = [Target(key(1)), Target(key(3)), want(4)]

    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alter(cluster, target, lambda *_: None, stop)
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093))]
    alter(cluster, target, lambda *_: None, lambda _: None)
    assert cluster.calls[1:] == [("remove", 2)]
