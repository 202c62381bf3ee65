"""Reaching another voter set: what is planned from what the leader says, and carrying it out."""

import pytest

from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.client import alter as module
from quorate.client.admin import Quorum, Replica
from quorate.client.alter import (
    AlterError,
    View,
    addresses_to_know,
    alter,
    live,
    step_text,
    steps_to,
)
from quorate.raft.alter import CannotAlter

NOW = 1_000_000


@pytest.fixture(autouse=True)
def no_patience(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 0)
    monkeypatch.setattr(module, "_LOOK_S", 0)


HERE = Address("h", 9093)


def key(node_id: int, directory: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([directory] * 15 + [node_id])))


def target(*entries) -> dict[ReplicaKey, Address | None]:
    """Ids of voters that stay; keys of new ones."""
    return {entry if isinstance(entry, ReplicaKey) else key(entry): HERE for entry in entries}


def quorum(voters, observers=(), dead=(), leader_id=1, unheard=(), epoch=1) -> Quorum:
    def fetched_at(each):
        if each in unheard:
            return -1
        return NOW - (60_000 if each in dead else 100)

    def rows(keys):
        return tuple(Replica(each, 10, fetched_at(each), NOW) for each in keys)

    leader = Replica(key(leader_id), 10, NOW, NOW)
    rest = rows([each for each in voters if each.id != leader_id])
    return Quorum(
        leader_id,
        epoch,
        10,
        (leader, *rest),
        rows(observers),
        {leader_id: (Listener("C", "h", 1),)},
    )


def told(found, targets) -> list[str]:
    return [" ".join(step_text(step, targets).split()[:3]) for step in steps_to(found, targets)]


def test_nothing_to_do():
    assert steps_to(quorum([key(1), key(2)]), target(2, 1)) == ()


def test_the_leader_is_removed_last():
    wanted = target(3, 4, 5)
    found = quorum([key(1), key(2), key(3)], [key(4), key(5)])
    assert told(found, wanted) == [
        "add controller 4",
        "remove controller 2",
        "add controller 5",
        "remove controller 1",
    ]


def test_who_fetched_lately_is_alive():
    found = quorum([key(1), key(2), key(3)], [key(4), key(5)], dead=[key(3), key(5)])
    assert live(found) == {key(1), key(2), key(4)}


def test_the_dead_go_first_and_a_majority_stays():
    voters = [key(1), key(2), key(3)]
    wanted = target(1, 4, 5)
    found = quorum(voters, [key(4), key(5)], dead=[key(3)])
    assert told(found, wanted)[:2] == ["add controller 4", "remove controller 3"]
    with pytest.raises(CannotAlter, match="no majority answers"):
        steps_to(quorum(voters, dead=[key(3)]), target(1, 3))


def test_a_step_is_told_in_full():
    wanted = target(1, 2, key(3, 7))
    found = quorum([key(1), key(2), key(3)], [key(3, 7)])
    assert [step_text(step, wanted) for step in steps_to(found, wanted)] == [
        "remove controller 3 with directory id AAAAAAAAAAAAAAAAAAAAAw",
        "add controller 3 with directory id BwcHBwcHBwcHBwcHBwcHAw at h:9093",
    ]


@pytest.mark.parametrize(
    ("bootstrap", "wanted", "to_know"),
    [
        ("a:1", {1: None, 2: None}, ""),  # it stays
        ("a:1", {2: None, 4: "d:4"}, "d:4 b:2"),
        ("a:1 b:2", {2: None, 4: "d:4"}, ""),  # one of two stays
        ("a:1 b:2", {3: None, 4: "d:4"}, "d:4 127.0.0.1:3"),
        ("a:1", {2: None, 4: "a:1"}, ""),  # the newcomer has its place
        ("localhost:3", {1: None, 2: None}, "a:1 b:2"),  # known by another name
        ("localhost:3", {1: None, 3: None}, ""),
        ("proxy:9", {4: "d:4"}, ""),  # nobody knows who that is
        ("localhost:2", {1: None}, ""),
    ],
)
def test_who_asked_only_leaving_voters_must_know_the_new_ones(
    bootstrap, wanted, to_know, monkeypatch
):
    def look_up(host, port):
        if host not in ("localhost", "127.0.0.1"):
            raise OSError("not known")
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(module.socket, "getaddrinfo", look_up)
    places = {1: ("a", 1), 2: ("b", 2), 3: ("127.0.0.1", 3)}
    now = quorum([key(1), key(2), key(3)])._replace(
        listeners={n: (Listener("C", *place),) for n, place in places.items()}
    )

    def addresses(text):
        pairs = (entry.split(":") for entry in text.split())
        return tuple(Address(host, int(port)) for host, port in pairs)

    targets = {key(n): addresses(place)[0] if place else None for n, place in wanted.items()}
    assert addresses_to_know(addresses(bootstrap), now, targets) == addresses(to_know)


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


def test_an_observer_that_a_new_leader_has_not_heard_of_yet_is_waited_for(monkeypatch):
    class Late(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            here = self.observers if self.looks > 3 else []
            return quorum(self.voters, here, leader_id=self.leader_id)

    monkeypatch.setattr(module, "PATIENCE_S", 60)
    cluster = Late([key(1), key(2)], [key(4)])
    alter(View(cluster), target(1, 2, 4), lambda step, following: None, lambda step: None)
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093))] and cluster.looks == 5


class Changed(Cluster):
    """Its leader is new: it hears of each voter in turn, one more at each look; of 3 never."""

    looks, epoch = 0, 1

    def describe_quorum(self):
        self.looks += 1
        unheard = [key(3), *sorted(self.voters)[self.looks :]]
        return quorum(self.voters, self.observers, unheard=unheard, epoch=self.epoch)

    def remove_voter(self, voter):
        super().remove_voter(voter)
        self.looks, self.epoch = 0, self.epoch + 1


@pytest.fixture
def patience(monkeypatch):
    """5 s, of which each look takes 0.1."""
    now = [0.0]

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(module, "PATIENCE_S", 5)
    monkeypatch.setattr(module, "_LOOK_S", 0.1)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module.time, "sleep", sleep)
    return now


def test_a_voter_that_a_new_leader_has_not_heard_of_yet_is_not_taken_for_dead(patience):
    """Without {2} as a voter that lives, its removal looks harmless: {1, 3} never commit again."""
    cluster = Changed([key(1), key(2), key(3)])
    with pytest.raises(CannotAlter, match="no majority answers"):
        alter(View(cluster), target(1, 3), lambda *_: None, lambda _: None)
    assert cluster.calls == []


def test_nor_is_an_alteration_given_up_while_a_majority_has_not_been_heard_of_yet(patience):
    class Slow(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            unheard = [] if self.looks > 3 else [key(3)]
            return quorum(self.voters, self.observers, unheard=unheard)

    cluster = Slow([key(1), key(2), key(3)])
    alter(View(cluster), target(1, 3), lambda *_: None, lambda _: None)
    assert cluster.calls == [("remove", 2)]


def test_a_voter_that_stays_silent_is_waited_for_once_a_leader(patience):
    cluster = Changed([key(1), key(2), key(3), key(4), key(5)])
    alter(View(cluster), target(1, 2, 4), lambda *_: None, lambda _: None)
    assert [call[1] for call in cluster.calls] == [3, 5]
    assert 5 <= patience[0] < 6


def test_a_view_is_of_a_leader_that_has_heard_of_its_voters(patience):
    seen = View(Changed([key(1), key(2), key(4)])).look()
    assert live(seen) == {key(1), key(2), key(4)}
    assert patience[0] < 1


def test_who_has_looked_long_enough_does_not_wait_again_under_the_same_leader(patience):
    view = View(Changed([key(1), key(2), key(3)]))
    view.look()
    waited = patience[0]
    assert waited >= 5
    view.look()
    assert patience[0] == waited


def test_alter_takes_the_steps_in_order_and_tells_of_each():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    heard = []
    reached = alter(
        View(cluster),
        target(1, 3, 4),
        lambda step, following: heard.append((step.voter.id, following)),
        lambda step: heard.append("done"),
    )
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093)), ("remove", 2)]
    assert heard == [(4, 1), "done", (2, 0), "done"]
    assert {voter.key for voter in reached.voters} == {key(1), key(3), key(4)}


def test_alter_plans_anew_when_the_leader_changes():
    cluster = Cluster([key(1), key(2), key(3)], [key(4), key(5)])

    def elect_two(step):
        if step.voter.id == 4:
            cluster.leader_id = 2

    alter(View(cluster), target(3, 4, 5), lambda *_: None, elect_two)
    assert [call[:2] for call in cluster.calls] == [
        ("add", 4),
        ("remove", 1),
        ("add", 5),
        ("remove", 2),
    ]


def test_alter_goes_on_where_it_was_stopped():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    wanted = target(1, 3, 4)

    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alter(View(cluster), wanted, lambda *_: None, stop)
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093))]
    alter(View(cluster), wanted, lambda *_: None, lambda _: None)
    assert cluster.calls[1:] == [("remove", 2)]


def test_a_target_that_only_the_leaders_log_has_is_not_reached():
    """The removal of 3 stands in the log of leader 1, which is lost with it."""

    class Uncommitted(Cluster):
        ends = iter([(12, 10), (13, 11)])  # of the log, and what is committed

        def describe_quorum(self):
            end, committed = next(self.ends, (14, 14))
            if end == 14 and self.epoch == 1:
                self.epoch, self.leader_id = 2, 2
                self.voters.append(key(3))
                self.observers.remove(key(3))
            found = quorum(self.voters, self.observers, leader_id=self.leader_id, epoch=self.epoch)
            voters = tuple(voter._replace(log_end_offset=end) for voter in found.voters)
            return found._replace(high_watermark=committed, voters=voters)

        epoch = 1

    cluster = Uncommitted([key(1), key(2)], [key(3)])
    reached = alter(View(cluster), target(1, 2), lambda *_: None, lambda _: None)
    assert cluster.calls == [("remove", 3)]
    assert {voter.key for voter in reached.voters} == {key(1), key(2)}


def test_a_target_that_is_never_committed_is_told(patience):
    class Stuck(Cluster):
        def describe_quorum(self):
            return quorum(self.voters)._replace(high_watermark=9)

    with pytest.raises(AlterError, match=r"log of leader 1 .* to offset 9 only, for 30 s"):
        alter(View(Stuck([key(1), key(2)])), target(1, 2), lambda *_: None, lambda _: None)
    assert 30 <= patience[0] < 31


def test_a_target_is_reached_where_the_log_always_runs_ahead_of_what_is_committed():
    class Busy(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            found = quorum(self.voters)
            end = 10 * self.looks
            voters = tuple(voter._replace(log_end_offset=end) for voter in found.voters)
            return found._replace(high_watermark=end - 5, voters=voters)

    cluster = Busy([key(1), key(2)])
    alter(View(cluster), target(1, 2), lambda *_: None, lambda _: None)
    assert cluster.looks == 2


@pytest.mark.parametrize("observers", [[], [key(4, 1)]])
def test_a_controller_that_does_not_run_is_not_added(observers):
    cluster = Cluster([key(1)], observers)
    with pytest.raises(AlterError, match=r"add controller 4 .* does not hear from it"):
        alter(View(cluster), target(1, 4), lambda *_: None, lambda _: None)
    assert cluster.calls == []


def test_a_new_voter_needs_an_address():
    cluster = Cluster([key(1)], [key(4)])
    with pytest.raises(AlterError, match="its address or the leader's listener is not known"):
        alter(View(cluster), {key(1): None, key(4): None}, lambda *_: None, lambda _: None)
