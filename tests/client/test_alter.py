"""Altering the voter set: planning from the leader's description, and taking the steps."""

from typing import Any

import pytest

from narrow import as_any
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.client import QuorumInfo, ReplicaStatus
from quorate.client import alter as module
from quorate.client.alter import (
    AlterError,
    QuorumView,
    alter,
    live_replicas,
    new_bootstrap_addresses,
    step_text,
    steps_to,
)
from quorate.raft.alter import AlterVotersError

NOW = 1_000_000


@pytest.fixture(autouse=True)
def short_timeouts(monkeypatch):
    monkeypatch.setattr(module, "FETCH_WAIT_S", 0)
    monkeypatch.setattr(module, "_POLL_S", 0)


HERE = Address("h", 9093)


def key(node_id: int, directory: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, Uuid(bytes([directory] * 15 + [node_id])))


def target(*entries) -> dict[ReplicaKey, Address | None]:
    """Ids of voters that stay; keys of new ones."""
    return {entry if isinstance(entry, ReplicaKey) else key(entry): HERE for entry in entries}


def quorum(voters, observers=(), dead=(), leader_id=1, unheard=(), epoch=1) -> QuorumInfo:
    def fetched_at(each):
        if each in unheard:
            return -1
        return NOW - (60_000 if each in dead else 100)

    def rows(keys):
        return tuple(ReplicaStatus(each, 10, fetched_at(each), NOW) for each in keys)

    leader = ReplicaStatus(key(leader_id), 10, NOW, NOW)
    rest = rows([each for each in voters if each.id != leader_id])
    return QuorumInfo(
        leader_id,
        epoch,
        10,
        (leader, *rest),
        rows(observers),
        {leader_id: (Listener("C", "h", 1),)},
    )


def steps(found, targets) -> list[str]:
    return [" ".join(step_text(step, targets).split()[:3]) for step in steps_to(found, targets)]


def test_alter_returns_when_the_target_is_reached():
    assert steps_to(quorum([key(1), key(2)]), target(2, 1)) == ()


def test_the_leader_is_removed_last():
    wanted = target(3, 4, 5)
    found = quorum([key(1), key(2), key(3)], [key(4), key(5)])
    assert steps(found, wanted) == [
        "add controller 4",
        "remove controller 2",
        "add controller 5",
        "remove controller 1",
    ]


def test_a_replica_that_fetched_recently_is_alive():
    found = quorum([key(1), key(2), key(3)], [key(4), key(5)], dead=[key(3), key(5)])
    assert live_replicas(found) == {key(1), key(2), key(4)}


def test_dead_voters_are_removed_first_and_a_majority_stays():
    voters = [key(1), key(2), key(3)]
    wanted = target(1, 4, 5)
    found = quorum(voters, [key(4), key(5)], dead=[key(3)])
    assert steps(found, wanted)[:2] == ["add controller 4", "remove controller 3"]
    with pytest.raises(AlterVotersError, match="no majority answers"):
        steps_to(quorum(voters, dead=[key(3)]), target(1, 3))


def test_the_text_of_a_step_names_id_directory_and_address():
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
def test_a_bootstrap_list_of_removed_voters_gets_the_new_addresses(
    bootstrap, wanted, to_know, monkeypatch
):
    def look_up(host, port):
        if host not in ("localhost", "127.0.0.1"):
            raise OSError("not known")
        return [(2, 1, 6, "", ("127.0.0.1", 0))]

    monkeypatch.setattr(module.socket, "getaddrinfo", look_up)  # type: ignore[attr-defined]
    places = {1: ("a", 1), 2: ("b", 2), 3: ("127.0.0.1", 3)}
    now = quorum([key(1), key(2), key(3)])._replace(
        listeners={n: (Listener("C", *place),) for n, place in places.items()}
    )

    def addresses(text):
        pairs = (entry.split(":") for entry in text.split())
        return tuple(Address(host, int(port)) for host, port in pairs)

    targets = {key(n): addresses(place)[0] if place else None for n, place in wanted.items()}
    assert new_bootstrap_addresses(addresses(bootstrap), now, targets) == addresses(to_know)


class Cluster:
    """The part of Admin that `alter` uses; changes take effect at once."""

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


def view_of(cluster: Cluster) -> QuorumView:
    return QuorumView(as_any(cluster))


def test_alter_waits_for_an_observers_first_fetch_to_a_new_leader(monkeypatch):
    class Late(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            here = self.observers if self.looks > 3 else []
            return quorum(self.voters, here, leader_id=self.leader_id)

    monkeypatch.setattr(module, "FETCH_WAIT_S", 60)
    cluster = Late([key(1), key(2)], [key(4)])
    alter(view_of(cluster), target(1, 2, 4), lambda step, following: None, lambda step: None)
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

    monkeypatch.setattr(module, "FETCH_WAIT_S", 5)
    monkeypatch.setattr(module, "_POLL_S", 0.1)
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])  # type: ignore[attr-defined]
    monkeypatch.setattr(module.time, "sleep", sleep)  # type: ignore[attr-defined]
    return now


def test_a_voter_without_a_fetch_to_a_new_leader_is_not_dead(patience):
    """Without {2} as a voter that lives, its removal looks harmless: {1, 3} never commit again."""
    cluster = Changed([key(1), key(2), key(3)])
    with pytest.raises(AlterVotersError, match="no majority answers"):
        alter(view_of(cluster), target(1, 3), lambda *_: None, lambda _: None)
    assert cluster.calls == []


def test_alter_waits_until_a_majority_fetches_from_a_new_leader(patience):
    class Slow(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            unheard = [] if self.looks > 3 else [key(3)]
            return quorum(self.voters, self.observers, unheard=unheard)

    cluster = Slow([key(1), key(2), key(3)])
    alter(view_of(cluster), target(1, 3), lambda *_: None, lambda _: None)
    assert cluster.calls == [("remove", 2)]


def test_a_silent_voter_is_awaited_once_per_leader(patience):
    cluster = Changed([key(1), key(2), key(3), key(4), key(5)])
    alter(view_of(cluster), target(1, 2, 4), lambda *_: None, lambda _: None)
    assert [call[1] for call in cluster.calls] == [3, 5]
    assert 5 <= patience[0] < 6


def test_a_view_waits_for_the_voters_fetches(patience):
    seen = view_of(Changed([key(1), key(2), key(4)])).look()
    assert live_replicas(seen) == {key(1), key(2), key(4)}
    assert patience[0] < 1


def test_a_view_does_not_wait_twice_for_the_same_leader(patience):
    view = view_of(Changed([key(1), key(2), key(3)]))
    view.look()
    waited = patience[0]
    assert waited >= 5
    view.look()
    assert patience[0] == waited


def test_alter_takes_the_steps_in_order_and_reports_each():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    heard: list[Any] = []
    reached = alter(
        view_of(cluster),
        target(1, 3, 4),
        lambda step, following: heard.append((step.voter.id, following)),
        lambda step: heard.append("done"),
    )
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093)), ("remove", 2)]
    assert heard == [(4, 1), "done", (2, 0), "done"]
    assert {voter.key for voter in reached.voters} == {key(1), key(3), key(4)}


def test_alter_plans_again_when_the_leader_changes():
    cluster = Cluster([key(1), key(2), key(3)], [key(4), key(5)])

    def elect_two(step):
        if step.voter.id == 4:
            cluster.leader_id = 2

    alter(view_of(cluster), target(3, 4, 5), lambda *_: None, elect_two)
    assert [call[:2] for call in cluster.calls] == [
        ("add", 4),
        ("remove", 1),
        ("add", 5),
        ("remove", 2),
    ]


def test_alter_resumes_after_an_interruption():
    cluster = Cluster([key(1), key(2), key(3)], [key(4)])
    wanted = target(1, 3, 4)

    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        alter(view_of(cluster), wanted, lambda *_: None, stop)
    assert cluster.calls == [("add", 4, Listener("C", "h", 9093))]
    alter(view_of(cluster), wanted, lambda *_: None, lambda _: None)
    assert cluster.calls[1:] == [("remove", 2)]


def test_a_target_only_in_the_leaders_log_is_not_reached():
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
    reached = alter(view_of(cluster), target(1, 2), lambda *_: None, lambda _: None)
    assert cluster.calls == [("remove", 3)]
    assert {voter.key for voter in reached.voters} == {key(1), key(2)}


def test_a_target_that_is_never_committed_is_an_error(patience):
    class Stuck(Cluster):
        def describe_quorum(self):
            return quorum(self.voters)._replace(high_watermark=9)

    with pytest.raises(
        AlterError, match=r"log of leader 1 .* for 30 s the high watermark has stayed at 9"
    ):
        alter(view_of(Stuck([key(1), key(2)])), target(1, 2), lambda *_: None, lambda _: None)
    assert 30 <= patience[0] < 31


def test_a_target_is_reached_while_the_log_end_stays_above_the_high_watermark():
    class Busy(Cluster):
        looks = 0

        def describe_quorum(self):
            self.looks += 1
            found = quorum(self.voters)
            end = 10 * self.looks
            voters = tuple(voter._replace(log_end_offset=end) for voter in found.voters)
            return found._replace(high_watermark=end - 5, voters=voters)

    cluster = Busy([key(1), key(2)])
    alter(view_of(cluster), target(1, 2), lambda *_: None, lambda _: None)
    assert cluster.looks == 2


@pytest.mark.parametrize("observers", [[], [key(4, 1)]])
def test_a_controller_that_is_not_running_is_not_added(observers):
    cluster = Cluster([key(1)], observers)
    with pytest.raises(AlterError, match=r"add controller 4 .* does not fetch from the leader"):
        alter(view_of(cluster), target(1, 4), lambda *_: None, lambda _: None)
    assert cluster.calls == []


def test_a_new_voter_needs_an_address():
    cluster = Cluster([key(1)], [key(4)])
    with pytest.raises(AlterError, match="its address or the leader's listener is not known"):
        alter(view_of(cluster), {key(1): None, key(4): None}, lambda *_: None, lambda _: None)
