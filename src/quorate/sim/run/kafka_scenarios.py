"""Kafka's simulation scenarios by name (RaftEventSimulationTest), each a family of worlds.

A seed draws the numbers of voters and observers, the clocks and the network. A script performs the
fault events: it waits for conditions instead of times. All checks run as in any world, and a
liveness phase follows.

Differences from Kafka: a killed process may lose unsynced data, or only its connections; it may end
in several ways; half of the quorums have their voters in the log, where Kafka's are static.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from quorate.sim.plan.plan import (
    ClientPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    PlanError,
    TimingPlan,
)
from quorate.sim.prng import Prng
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.process import Process
from quorate.sim.world.world import World

FIRST: Final = 10
"""The number of offsets that are committed before the first fault, and again after it."""
_FOREVER_MS: Final = 1_000_000_000
_PATIENCE_MS: Final = 60_000
_LOOK_US: Final = 5_000


class ScenarioStage:
    """A world and the actions and conditions of its script."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = Prng(world.plan.seed, "script")
        self.leaderships: set[tuple[int, int]] = set()
        """(epoch, leader) of all observed leaders."""

    # -- state --------------------------------------------------------------------------------
    @property
    def ids(self) -> list[int]:
        return list(self.world.processes)

    @property
    def voters(self) -> list[int]:
        return self.ids[: self.world.plan.voters]

    def committed(self, ids: Iterable[int] | None = None) -> int:
        """The highest high watermark of these nodes, or of all running ones; -1: unknown."""
        return max((p.core.high_watermark for p in self._running(ids)), default=-1)

    def _running(self, ids: Iterable[int] | None) -> list[Process]:
        return [p for p in self.world.running if ids is None or p.id in ids]

    # -- waiting ------------------------------------------------------------------------------
    def until(self, what: str, so: Callable[[], bool]) -> None:
        """Run the world until the condition holds. Raises ViolationError at the end of the plan's time."""
        world = self.world
        while not so():
            if world.now_us >= world.plan.duration_ms * 1000:
                raise ViolationError(
                    world.plan.scenario, f"not within {world.plan.duration_ms} ms: {what}"
                )
            world.run_until(world.now_us + _LOOK_US)
            leader = world.leader()
            if leader is not None:
                self.leaderships.add((leader.core.epoch, leader.id))

    def any_reach(self, offset: int) -> None:
        """Wait until a node has this high watermark."""
        self.until(f"{offset} is committed", lambda: self.committed() >= offset)

    def all_reach(self, offset: int, ids: Iterable[int] | None = None) -> None:
        """Wait until each of these nodes, or of all running ones, has this high watermark."""
        self.until(
            f"{offset} is committed at all of {'the running nodes' if ids is None else ids}",
            lambda: all(p.core.high_watermark >= offset for p in self._running(ids)),
        )

    def another_leads(self, old: int) -> int:
        self.until(f"another than node {old} leads", lambda: self._leader() not in (None, old))
        return self.leader()

    def _leader(self) -> int | None:
        leader = self.world.leader()
        return None if leader is None else leader.id

    def leader(self) -> int:
        self.until("somebody leads", lambda: self._leader() is not None)
        leader = self._leader()
        assert leader is not None
        return leader

    def one_led(self) -> None:
        """Raise ViolationError where another node than the first leader has led, or in another epoch."""
        if len(self.leaderships) != 1:
            said = ", ".join(
                f"node {node} in epoch {epoch}" for epoch, node in sorted(self.leaderships)
            )
            raise ViolationError(self.world.plan.scenario, f"leadership changed: {said}")

    # -- acting -------------------------------------------------------------------------------
    def do(self, kind: str, *args: int) -> None:
        """Perform a fault event now."""
        self.world.faults.do(FaultEvent(self.world.now_us // 1000, kind, args), self.rng)

    def end(self, node: int, *kinds: str) -> None:
        """End the process with one of these fault events. It stays down."""
        self.do(self.rng.pick(kinds), node, _FOREVER_MS)
        process = self.world.processes[node]
        self.until(f"node {node} is down", lambda: process.replica is None)

    def start(self, node: int) -> None:
        self.world.faults.start(self.world.processes[node])

    def isolate(self, node: int) -> None:
        self.do("isolate", node, _FOREVER_MS)

    def disconnect(self, node: int, others: Iterable[int]) -> None:
        for other in others:
            self.do("cut", node, other, _FOREVER_MS)
            self.do("cut", other, node, _FOREVER_MS)

    def reconnect(self, nodes: Iterable[int]) -> None:
        """End the partition between these nodes and all others."""
        for node in nodes:
            for other in self.ids:
                self.world.network.join(node, other)
                self.world.network.join(other, node)

    def lose_disk(self, node: int) -> None:
        """Start a process that is down with an empty disk and the same configuration."""
        world, process = self.world, self.world.processes[node]
        process.wipe()
        process.static = world.plan.static
        world.wiped(process)


# -- the scripts --------------------------------------------------------------------------------
def _can_elect_initial_leader(stage: ScenarioStage) -> None:
    stage.all_reach(FIRST)


def _can_elect_new_leader_after_old_leader_failure(stage: ScenarioStage) -> None:
    stage.any_reach(FIRST)
    old = stage.leader()
    stage.end(old, "kill", "power", "stop", "stop")
    stage.another_leads(old)
    stage.all_reach(stage.committed() + FIRST)
    stage.start(old)
    stage.all_reach(stage.committed() + FIRST)


def _can_recover_after_all_nodes_killed(stage: ScenarioStage) -> None:
    stage.any_reach(FIRST)
    committed = stage.committed()
    for node in stage.rng.shuffled(stage.ids):
        stage.end(node, "kill", "power")
    majority = len(stage.voters) // 2 + 1
    for node in stage.rng.shuffled(stage.voters)[:majority]:
        stage.start(node)
    stage.all_reach(committed + FIRST)


def _can_elect_new_leader_after_old_leader_partitioned_away(stage: ScenarioStage) -> None:
    stage.any_reach(FIRST)
    old = stage.leader()
    stage.isolate(old)
    stage.another_leads(old)
    others = [node for node in stage.ids if node != old]
    stage.all_reach(stage.committed() + FIRST, others)


def _can_make_progress_if_majority_is_reachable(stage: ScenarioStage) -> None:
    stage.any_reach(FIRST)
    minority = stage.rng.shuffled(stage.voters)[:2]
    majority = [node for node in stage.voters if node not in minority]
    stage.do("partition", sum(1 << node for node in minority), _FOREVER_MS)
    stage.all_reach(stage.committed() + FIRST, majority)
    few, many = stage.committed(minority), stage.committed(majority)
    if few >= many:
        raise ViolationError(
            stage.world.plan.scenario, f"{minority} have {few}, {majority} have {many}"
        )
    stage.reconnect(minority)
    stage.all_reach(stage.committed() + FIRST)


def _ping_pong(stage: ScenarioStage, a: int, b: int, d: int, e: int) -> None:
    """KIP-996: the links a - c and b - d work, and those among c, d and e.

    Neither c nor d reaches both a and b. Without pre-votes c and d depose each other for ever.
    """
    everybody = set(stage.voters)
    (c,) = everybody - {a, b, d, e}
    stage.disconnect(a, (b, d, e))
    stage.disconnect(b, (c, e))


def _leadership_assigned_only_once(stage: ScenarioStage) -> None:
    a, b, c, d, e = stage.rng.shuffled(stage.voters)
    _ping_pong(stage, a, b, d, e)
    leader = stage.leader()
    hear_it = {c: (a, c, d, e), d: (b, c, d, e), e: (c, d, e)}.get(leader)
    if hear_it is None:
        raise ViolationError(
            stage.world.plan.scenario, f"node {leader} leads, with one other to hear it"
        )
    stage.all_reach(2 * FIRST, hear_it)
    stage.one_led()


def _leadership_will_not_change(stage: ScenarioStage) -> None:
    stage.all_reach(FIRST, stage.voters)
    c = stage.leader()
    stage.leaderships = {(stage.world.processes[c].core.epoch, c)}
    a, b, d, e = (node for node in stage.rng.shuffled(stage.voters) if node != c)
    _ping_pong(stage, a, b, d, e)
    stage.all_reach(stage.committed() + FIRST, (a, c, d, e))
    longest = 2 * stage.world.plan.timing.fetch_timeout_ms * 1000 + stage.world.now_us
    stage.until("b has lost an election", lambda: stage.world.now_us >= longest)
    stage.one_led()


def _can_make_progress_after_back_to_back_leader_failures(stage: ScenarioStage) -> None:
    stage.any_reach(FIRST)
    first = stage.leader()
    stage.isolate(first)
    second = stage.another_leads(first)
    stage.reconnect([first])
    stage.isolate(second)
    others = [node for node in stage.ids if node != second]
    stage.all_reach(stage.committed() + FIRST, others)


def _can_recover_from_single_node_committed_data_loss(stage: ScenarioStage) -> None:
    """The others elect a leader and have everything that the node had acknowledged before it returns."""
    stage.any_reach(FIRST)
    lost = stage.rng.pick(stage.voters)
    stage.end(lost, "power")
    stage.lose_disk(lost)
    stage.all_reach(stage.committed() + FIRST)
    stage.start(lost)
    stage.all_reach(stage.committed() + FIRST)


# -- the families -------------------------------------------------------------------------------
class Scenario(NamedTuple):
    """(minimum, maximum) of voters and observers, both inclusive."""

    script: Callable[[ScenarioStage], None]
    voters: tuple[int, int]
    observers: tuple[int, int]
    rough: bool = True
    """Whether messages may be lost, duplicated or late, and nodes may lack pre-votes. False where
    only the first leader may lead."""


SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        "canElectInitialLeader": Scenario(_can_elect_initial_leader, (1, 5), (0, 5)),
        "canElectNewLeaderAfterOldLeaderFailure": Scenario(
            _can_elect_new_leader_after_old_leader_failure, (3, 5), (0, 5)
        ),
        "canRecoverAfterAllNodesKilled": Scenario(
            _can_recover_after_all_nodes_killed, (1, 5), (0, 5)
        ),
        "canElectNewLeaderAfterOldLeaderPartitionedAway": Scenario(
            _can_elect_new_leader_after_old_leader_partitioned_away, (3, 5), (0, 5)
        ),
        "canMakeProgressIfMajorityIsReachable": Scenario(
            _can_make_progress_if_majority_is_reachable, (5, 5), (0, 3)
        ),
        "leadershipAssignedOnlyOnceWithNetworkPartitionIfThereExistsMajority": Scenario(
            _leadership_assigned_only_once, (5, 5), (0, 3), rough=False
        ),
        "leadershipWillNotChangeDuringNetworkPartitionIfMajorityStillReachable": Scenario(
            _leadership_will_not_change, (5, 5), (0, 3), rough=False
        ),
        "canMakeProgressAfterBackToBackLeaderFailures": Scenario(
            _can_make_progress_after_back_to_back_leader_failures, (3, 5), (0, 5)
        ),
        "canRecoverFromSingleNodeCommittedDataLoss": Scenario(
            _can_recover_from_single_node_committed_data_loss, (3, 5), (0, 2)
        ),
    }
)
"""By Kafka's names."""


def draw_scenario(name: str, seed: int) -> Plan:
    """The plan of a seed in this family; `name` is one of SCENARIOS."""
    scenario = SCENARIOS[name]
    rng = Prng(seed, name)
    election = rng.between(150, 300)
    fetch = rng.between(election, 2 * election)
    return Plan(
        seed=seed,
        scenario=name,
        voters=rng.between(*scenario.voters),
        observers=rng.skewed(*scenario.observers),
        static=rng.happens(0.5),
        wire=scenario.rough and rng.happens(0.1),
        duration_ms=_PATIENCE_MS,
        network=_network(rng, scenario.rough),
        timing=TimingPlan(
            election_timeout_ms=election,
            fetch_timeout_ms=fetch,
            election_backoff_max_ms=election,
            request_timeout_ms=fetch,
            retry_backoff_ms=rng.between(20, 100),
            fetch_max_wait_ms=fetch // 4,
            high_watermark_linger_ms=rng.pick((0, 2)),
        ),
        disk=DiskPlan(sync_us=rng.pick((50, 500, 5000)), torn=rng.happens(0.7)),
        clients=ClientPlan(count=rng.between(3, 6), think_ms=election, timeout_ms=election),
    )


def _network(rng: Prng, rough: bool) -> NetworkPlan:
    network = NetworkPlan(delay_us=rng.pick((50, 300, 2000)), jitter_us=rng.pick((20, 400, 5000)))
    if not rough or rng.happens(0.6):
        return network
    return replace(
        network,
        loss=rng.pick((0.0, 0.01, 0.05)),
        duplicate=rng.pick((0.0, 0.05)),
        reorder=rng.pick((0.0, 0.1)),
    )


def play(world: World) -> None:
    """Run the script that the plan of the world names."""
    SCENARIOS[world.plan.scenario].script(ScenarioStage(world))


def check_scenario(plan: Plan) -> None:
    """Raise PlanError where the script does not exist, or the plan has too few voters for it."""
    scenario = SCENARIOS.get(plan.scenario)
    if scenario is None:
        raise PlanError(
            f"there is no scenario '{plan.scenario}'; there are: {', '.join(SCENARIOS)}"
        )
    least, most = scenario.voters
    if not least <= plan.voters <= most:
        raise PlanError(f"{plan.scenario} is played by {least} to {most} voters")
