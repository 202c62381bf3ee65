"""When a node is healthy and ready, and the reasons when it is not."""

import json
from dataclasses import dataclass, replace

import pytest

from node.world import World
from quorate.server.health import DISK_PATIENCE_S, Health
from quorate.server.meters import Meters
from quorate.server.metric_table import state_of


@dataclass
class FakeDriver:
    """The state of a driver."""

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
        world, controller = self.world, self.world.nodes[node_id].running
        meters = Meters(controller.replica, lambda: world.now_ms / 1000)
        step = controller.step

        def measured(happened, now):
            effects = step(happened, now)
            meters.stepped(happened, effects)
            return effects

        controller.step = measured  # type: ignore[method-assign]  # as the driver measures
        self.drivers[node_id] = FakeDriver()
        self.healths[node_id] = Health(self.drivers[node_id], controller.replica, meters)

    def unready_reason(self, node):
        return self.healths[node.node_id].unready_reason()

    @property
    def is_whole(self):
        return all(self.unready_reason(node) is None for node in self.world.alive)

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


def test_no_node_is_ready_without_a_leader():
    watched = Watched()
    watched.world.run(2)
    for node in watched.world.alive:
        assert watched.unready_reason(node) == "no leader is known in epoch 0"
        status, page = facts(watched.healths[node.node_id].ready_page())
        assert (status, page["ready"], page["leader"]) == (503, False, -1)
        assert facts(watched.healths[node.node_id].health_page())[0] == 200


def test_all_nodes_of_a_working_quorum_stay_ready(watched):
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


def test_a_single_voter_is_ready():
    watched = Watched(node_ids=(1,))
    node = watched.world.nodes[1]
    watched.world.run_until(lambda: watched.unready_reason(node) is None)
    watched.world.run(10_000)
    assert watched.unready_reason(node) is None


def test_the_role_of_an_observer_is_that_of_the_metrics():
    watched = Watched(node_ids=(1, 2, 3, 4))
    for node in watched.world.nodes.values():
        node.config = replace(node.config, static_voters=node.config.static_voters[:3])
        watched.world.crash(node.node_id)
        watched.world.start(node.node_id)
        watched.watch(node.node_id)
    observer, health = watched.world.nodes[4], watched.healths[4]
    watched.world.run_until(lambda: watched.unready_reason(observer) is None)
    page = facts(health.ready_page())[1]
    assert page["role"] == state_of(observer.core) == "observer"


def test_a_follower_that_is_cut_off_is_not_ready_within_the_fetch_timeout(watched):
    world = watched.world
    _, (one, other) = watched.leader_and_followers()
    world.cut = {one.node_id}
    world.run(2200)
    assert watched.unready_reason(one) is not None
    assert watched.unready_reason(other) is None


def test_a_leader_without_a_majority_is_not_ready(watched):
    world = watched.world
    leader, _ = watched.leader_and_followers()
    world.cut = {leader.node_id}
    # Check quorum: 1.5 times the fetch timeout of 2 s.
    world.run(3100)
    assert watched.unready_reason(leader) is not None
    assert facts(watched.healths[leader.node_id].health_page())[0] == 200


def test_a_silent_network_is_noticed_without_a_step(watched):
    """A frozen process wakes: the clock has gone on, but no step has been taken yet."""
    leader, followers = watched.leader_and_followers()
    watched.world.now_ms += 60_000
    assert watched.unready_reason(leader) == "leads, but a majority of the voters does not fetch"
    for node in followers:
        assert watched.unready_reason(node) == f"leader {leader.node_id} does not answer fetches"


def test_a_node_that_comes_back_is_ready_only_when_it_has_caught_up(watched):
    world = watched.world
    _, (one, _) = watched.leader_and_followers()
    world.crash(one.node_id)
    world.run(3000)
    one = world.start(one.node_id)
    watched.watch(one.node_id)
    assert watched.unready_reason(one) is not None
    world.run_until(lambda: watched.unready_reason(one) is None)
    assert one.controller.replica.applied.offset >= one.core.known_committed > 0


def test_readiness_counts_what_the_leader_has_committed(watched):
    _, (one, _) = watched.leader_and_followers()
    role = one.core.state.role
    role.leader_high_watermark = one.core.log_end.offset + 100
    assert watched.unready_reason(one) is None, "it had caught up a moment ago"
    role.fetch_deadline += 5000
    watched.world.now_ms += 2001
    applied = one.controller.replica.applied.offset
    assert watched.unready_reason(one) == (
        f"applied up to offset {applied} of {one.core.known_committed} (the committed end offset)"
    )


def test_a_node_that_shuts_down_is_healthy_but_not_ready(watched):
    leader, _ = watched.leader_and_followers()
    watched.drivers[leader.node_id].leaving = True
    assert watched.unready_reason(leader) == "it is shutting down"
    assert watched.healths[leader.node_id].unhealthy_reason() is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"fault": "storage failed: Input/output error"}, "storage failed: Input/output error"),
        ({"disk_busy_s": DISK_PATIENCE_S + 1}, "the disk has not answered for more than 30 s"),
        ({"disk_busy_s": float("inf")}, "the disk has not answered for more than 30 s"),
    ],
)
def test_a_failed_or_hanging_disk_is_unhealthy(watched, change, reason):
    leader, _ = watched.leader_and_followers()
    for name, value in change.items():
        setattr(watched.drivers[leader.node_id], name, value)
    health = watched.healths[leader.node_id]
    assert (health.unhealthy_reason(), health.unready_reason()) == (reason, reason)
    status, page = facts(health.health_page())
    assert (status, page["healthy"], page["reason"]) == (503, False, reason)
