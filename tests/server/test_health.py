"""When a node calls itself healthy and ready, and which reason it gives when it is not."""

import json
from dataclasses import dataclass, replace

import pytest

from node.world import World
from quorate.server.health import DISK_PATIENCE_S, Health
from quorate.server.meters import Meters
from quorate.server.metric_table import state_of


@dataclass
class FakeDriver:
    """What a driver says of itself."""

    fault: str | None = None
    leaving: bool = False
    disk_busy_s: float = 0.0


class Watched:
    """A world of three, and the verdicts on each node."""

    def __init__(self, **options):
        self.world = World(**options)
        self.drivers = {}
        self.healths = {}
        for node_id in self.world.nodes:
            self.watch(node_id)

    def watch(self, node_id):
        world, controller = self.world, self.world.nodes[node_id].controller
        meters = Meters(controller.replica, lambda: world.now_ms / 1000)
        step = controller.step

        def measured(happened, now):
            effects = step(happened, now)
            meters.stepped(happened, effects)
            return effects

        controller.step = measured
        self.drivers[node_id] = FakeDriver()
        self.healths[node_id] = Health(self.drivers[node_id], controller.replica, meters)

    def unready(self, node):
        return self.healths[node.node_id].unready()

    @property
    def is_whole(self):
        return all(self.unready(node) is None for node in self.world.alive)

    def leader_and_followers(self):
        leader = self.world.active
        return leader, [node for node in self.world.alive if node is not leader]


@pytest.fixture
def watched():
    watched = Watched()
    watched.world.run_until(lambda: watched.world.active and watched.is_whole)
    return watched


def facts(page):
    assert page.body.count(b"\n") == 1 and page.body.endswith(b"\n")
    return int(page.status), json.loads(page.body)


def test_nobody_is_ready_before_there_is_a_leader():
    watched = Watched()
    watched.world.run(2)
    for node in watched.world.alive:
        assert watched.unready(node) == "no leader is known in epoch 0"
        status, told = facts(watched.healths[node.node_id].ready_page())
        assert (status, told["ready"], told["leader"]) == (503, False, -1)
        assert facts(watched.healths[node.node_id].health_page())[0] == 200


def test_all_of_a_working_quorum_are_ready_and_stay_so(watched):
    for _ in range(60):
        watched.world.run(50)
        assert watched.is_whole
    leader, followers = watched.leader_and_followers()
    for node in (leader, *followers):
        assert facts(watched.healths[node.node_id].ready_page()) == (
            200,
            {
                "ready": True,
                "node": node.node_id,
                "role": node.core.role,
                "leader": leader.node_id,
                "epoch": leader.core.epoch,
            },
        )


def test_a_lone_voter_is_ready_by_itself():
    watched = Watched(node_ids=(1,))
    node = watched.world.nodes[1]
    watched.world.run_until(lambda: watched.unready(node) is None)
    watched.world.run(10_000)
    assert watched.unready(node) is None


def test_an_observer_is_called_one_as_in_the_metrics():
    watched = Watched(node_ids=(1, 2, 3, 4))
    for node in watched.world.nodes.values():
        node.config = replace(node.config, static_voters=node.config.static_voters[:3])
        watched.world.crash(node.node_id)
        watched.world.start(node.node_id)
        watched.watch(node.node_id)
    observer, health = watched.world.nodes[4], watched.healths[4]
    watched.world.run_until(lambda: watched.unready(observer) is None)
    told = facts(health.ready_page())[1]
    assert told["role"] == state_of(observer.core) == "observer"


def test_a_follower_that_is_cut_off_is_not_ready_within_the_fetch_timeout(watched):
    world = watched.world
    _, (one, other) = watched.leader_and_followers()
    world.cut = {one.node_id}
    world.run(2200)
    assert watched.unready(one) is not None
    assert watched.unready(other) is None


def test_a_leader_without_a_majority_is_not_ready(watched):
    world = watched.world
    leader, _ = watched.leader_and_followers()
    world.cut = {leader.node_id}
    # Check quorum: 1.5 times the fetch timeout of 2 s.
    world.run(3100)
    assert watched.unready(leader) is not None
    assert facts(watched.healths[leader.node_id].health_page())[0] == 200


def test_a_silent_network_is_noticed_without_a_step(watched):
    """A frozen process wakes: the clock has gone on, but no step has been taken yet."""
    leader, followers = watched.leader_and_followers()
    watched.world.now_ms += 60_000
    assert watched.unready(leader) == "leads, but a majority of the voters does not fetch"
    for node in followers:
        assert watched.unready(node) == f"leader {leader.node_id} does not answer fetches"


def test_a_node_that_comes_back_is_ready_only_when_it_has_caught_up(watched):
    world = watched.world
    _, (one, _) = watched.leader_and_followers()
    world.crash(one.node_id)
    world.run(3000)
    one = world.start(one.node_id)
    watched.watch(one.node_id)
    assert watched.unready(one) is not None
    world.run_until(lambda: watched.unready(one) is None)
    assert one.controller.replica.applied.offset >= one.core.known_committed > 0


def test_what_the_leader_has_committed_counts_not_only_what_arrived(watched):
    _, (one, _) = watched.leader_and_followers()
    role = one.core._state.role
    role.leader_high_watermark = one.core.log_end.offset + 100
    assert watched.unready(one) is None, "it had caught up a moment ago"
    role.fetch_deadline += 5000
    watched.world.now_ms += 2001
    applied = one.controller.replica.applied.offset
    assert watched.unready(one) == (
        f"applied up to offset {applied} of {one.core.known_committed} that are committed"
    )


def test_a_node_that_leaves_is_healthy_but_not_ready(watched):
    leader, _ = watched.leader_and_followers()
    watched.drivers[leader.node_id].leaving = True
    assert watched.unready(leader) == "it is leaving the quorum"
    assert watched.healths[leader.node_id].ill() is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fault": "storage failed: Input/output error"}, "storage failed: Input/output error"),
        ({"disk_busy_s": DISK_PATIENCE_S + 1}, "the disk has not answered for more than 30 s"),
        ({"disk_busy_s": float("inf")}, "the disk has not answered for more than 30 s"),
    ],
)
def test_a_failed_or_hanging_disk_is_an_illness(watched, change, reason):
    leader, _ = watched.leader_and_followers()
    for name, value in change.items():
        setattr(watched.drivers[leader.node_id], name, value)
    health = watched.healths[leader.node_id]
    assert (health.ill(), health.unready()) == (reason, reason)
    status, told = facts(health.health_page())
    assert (status, told["healthy"], told["reason"]) == (503, False, reason)
