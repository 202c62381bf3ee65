"""Kafka's simulation scenarios by name (RaftEventSimulationTest), each a family of worlds.

A seed draws how many voters and observers there are, how they keep time, and the network. What
happens is no list of deeds with times but a script: it acts when what it waited for has come. All
checks watch as in any world, and at the end everything must heal.

What is not as in Kafka: a process that is killed may lose what it had not synced, or its network
only; it may go in any order; half of the quorums keep their voters in the log, Kafka's are static.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.sim.chance import Chance
from quorate.sim.observe import Violation
from quorate.sim.plan import (
    ClientPlan,
    Deed,
    DiskPlan,
    NetworkPlan,
    Plan,
    PlanError,
    TimingPlan,
)

if TYPE_CHECKING:
    from quorate.sim.process import Process
    from quorate.sim.world import World

FIRST: Final = 10
"""Offsets that are committed before anything goes wrong, and again after it."""
_FOREVER_MS: Final = 1_000_000_000
_PATIENCE_MS: Final = 60_000
_LOOK_US: Final = 5_000


class Stage:
    """A world with a script in hand: it acts, and waits for what must come of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.luck = Chance(world.plan.seed, "script")
        self.reigns: set[tuple[int, int]] = set()
        """(epoch, leader) of all that were seen to lead."""

    # -- looking ------------------------------------------------------------------------------
    @property
    def ids(self) -> list[int]:
        return list(self.world.processes)

    @property
    def voters(self) -> list[int]:
        return self.ids[: self.world.plan.voters]

    def committed(self, ids: Iterable[int] | None = None) -> int:
        """The highest high watermark of these nodes, or of all that run; -1: none."""
        return max((p.core.high_watermark for p in self._running(ids)), default=-1)

    def _running(self, ids: Iterable[int] | None) -> list[Process]:
        return [p for p in self.world.running if ids is None or p.id in ids]

    # -- waiting ------------------------------------------------------------------------------
    def until(self, what: str, so: Callable[[], bool]) -> None:
        """Let the world go on until it is so; raises Violation when the plan's time is over."""
        world = self.world
        while not so():
            if world.now_us >= world.plan.duration_ms * 1000:
                raise Violation(
                    world.plan.scenario, f"not within {world.plan.duration_ms} ms: {what}"
                )
            world.run_until(world.now_us + _LOOK_US)
            leader = world.leader()
            if leader is not None:
                self.reigns.add((leader.core.epoch, leader.id))

    def any_reach(self, offset: int) -> None:
        """A high watermark of so much, anywhere."""
        self.until(f"{offset} is committed", lambda: self.committed() >= offset)

    def all_reach(self, offset: int, ids: Iterable[int] | None = None) -> None:
        """The same, of each of these nodes, or of all that run."""
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
        """Nobody but the first leader has led, and in no other epoch."""
        if len(self.reigns) != 1:
            said = ", ".join(f"node {node} in epoch {epoch}" for epoch, node in sorted(self.reigns))
            raise Violation(self.world.plan.scenario, f"leadership changed: {said}")

    # -- acting -------------------------------------------------------------------------------
    def do(self, kind: str, *args: int) -> None:
        """Do a deed of a plan, now."""
        self.world.faults.do(Deed(self.world.now_us // 1000, kind, args), self.luck)

    def end(self, node: int, *kinds: str) -> None:
        """One of these deeds ends the process; it stays down."""
        self.do(self.luck.pick(kinds), node, _FOREVER_MS)
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
        """These and all others hear each other again."""
        for node in nodes:
            for other in self.ids:
                self.world.network.join(node, other)
                self.world.network.join(other, node)

    def lose_disk(self, node: int) -> None:
        """A process that is down comes back with an empty disk, configured as before."""
        world, process = self.world, self.world.processes[node]
        process.wipe()
        process.static = world.plan.static
        world.wiped(process)


# -- the scripts --------------------------------------------------------------------------------
def _can_elect_initial_leader(stage: Stage) -> None:
    stage.all_reach(FIRST)


def _can_elect_new_leader_after_old_leader_failure(stage: Stage) -> None:
    stage.any_reach(FIRST)
    old = stage.leader()
    stage.end(old, "kill", "power", "stop", "stop")
    stage.another_leads(old)
    stage.all_reach(stage.committed() + FIRST)
    stage.start(old)
    stage.all_reach(stage.committed() + FIRST)


def _can_recover_after_all_nodes_killed(stage: Stage) -> None:
    stage.any_reach(FIRST)
    committed = stage.committed()
    for node in stage.luck.shuffled(stage.ids):
        stage.end(node, "kill", "power")
    majority = len(stage.voters) // 2 + 1
    for node in stage.luck.shuffled(stage.voters)[:majority]:
        stage.start(node)
    stage.all_reach(committed + FIRST)


def _can_elect_new_leader_after_old_leader_partitioned_away(stage: Stage) -> None:
    stage.any_reach(FIRST)
    old = stage.leader()
    stage.isolate(old)
    stage.another_leads(old)
    others = [node for node in stage.ids if node != old]
    stage.all_reach(stage.committed() + FIRST, others)


def _can_make_progress_if_majority_is_reachable(stage: Stage) -> None:
    stage.any_reach(FIRST)
    minority = stage.luck.shuffled(stage.voters)[:2]
    majority = [node for node in stage.voters if node not in minority]
    stage.do("partition", sum(1 << node for node in minority), _FOREVER_MS)
    stage.all_reach(stage.committed() + FIRST, majority)
    few, many = stage.committed(minority), stage.committed(majority)
    if few >= many:
        raise Violation(stage.world.plan.scenario, f"{minority} have {few}, {majority} have {many}")
    stage.reconnect(minority)
    stage.all_reach(stage.committed() + FIRST)


def _ping_pong(stage: Stage, a: int, b: int, d: int, e: int) -> None:
    """KIP-996: a - c, b - d, and c, d, e hear each other. Without pre-votes c and d, whom a and b
    cannot both hear, depose each other for ever."""
    everybody = set(stage.voters)
    (c,) = everybody - {a, b, d, e}
    stage.disconnect(a, (b, d, e))
    stage.disconnect(b, (c, e))


def _leadership_assigned_only_once(stage: Stage) -> None:
    a, b, c, d, e = stage.luck.shuffled(stage.voters)
    _ping_pong(stage, a, b, d, e)
    leader = stage.leader()
    hear_it = {c: (a, c, d, e), d: (b, c, d, e), e: (c, d, e)}.get(leader)
    if hear_it is None:
        raise Violation(
            stage.world.plan.scenario, f"node {leader} leads, with one other to hear it"
        )
    stage.all_reach(2 * FIRST, hear_it)
    stage.one_led()


def _leadership_will_not_change(stage: Stage) -> None:
    stage.all_reach(FIRST, stage.voters)
    c = stage.leader()
    stage.reigns = {(stage.world.processes[c].core.epoch, c)}
    a, b, d, e = (node for node in stage.luck.shuffled(stage.voters) if node != c)
    _ping_pong(stage, a, b, d, e)
    stage.all_reach(stage.committed() + FIRST, (a, c, d, e))
    longest = 2 * stage.world.plan.timing.fetch_timeout_ms * 1000 + stage.world.now_us
    stage.until("b has run in vain", lambda: stage.world.now_us >= longest)
    stage.one_led()


def _can_make_progress_after_back_to_back_leader_failures(stage: Stage) -> None:
    stage.any_reach(FIRST)
    first = stage.leader()
    stage.isolate(first)
    second = stage.another_leads(first)
    stage.reconnect([first])
    stage.isolate(second)
    others = [node for node in stage.ids if node != second]
    stage.all_reach(stage.committed() + FIRST, others)


def _can_recover_from_single_node_committed_data_loss(stage: Stage) -> None:
    """The others have a leader, and all that it had acknowledged, before the node returns."""
    stage.any_reach(FIRST)
    lost = stage.luck.pick(stage.voters)
    stage.end(lost, "power")
    stage.lose_disk(lost)
    stage.all_reach(stage.committed() + FIRST)
    stage.start(lost)
    stage.all_reach(stage.committed() + FIRST)


# -- the families -------------------------------------------------------------------------------
class Scenario(NamedTuple):
    """Voters and observers: least and most, both included."""

    script: Callable[[Stage], None]
    voters: tuple[int, int]
    observers: tuple[int, int]
    rough: bool = True
    """Messages may be lost, come twice or late, and nodes be of versions that know no pre-votes:
    not where nobody but the first leader may lead."""


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
    luck = Chance(seed, name)
    election = luck.between(150, 300)
    fetch = luck.between(election, 2 * election)
    return Plan(
        seed=seed,
        scenario=name,
        voters=luck.between(*scenario.voters),
        observers=luck.skewed(*scenario.observers),
        static=luck.happens(0.5),
        wire=scenario.rough and luck.happens(0.1),
        duration_ms=_PATIENCE_MS,
        network=_network(luck, scenario.rough),
        timing=TimingPlan(
            election_timeout_ms=election,
            fetch_timeout_ms=fetch,
            election_backoff_max_ms=election,
            request_timeout_ms=fetch,
            retry_backoff_ms=luck.between(20, 100),
            fetch_max_wait_ms=fetch // 4,
            high_watermark_linger_ms=luck.pick((0, 2)),
        ),
        disk=DiskPlan(sync_us=luck.pick((50, 500, 5000)), torn=luck.happens(0.7)),
        clients=ClientPlan(count=luck.between(3, 6), think_ms=election, timeout_ms=election),
    )


def _network(luck: Chance, rough: bool) -> NetworkPlan:
    network = NetworkPlan(delay_us=luck.pick((50, 300, 2000)), jitter_us=luck.pick((20, 400, 5000)))
    if not rough or luck.happens(0.6):
        return network
    return replace(
        network,
        loss=luck.pick((0.0, 0.01, 0.05)),
        duplicate=luck.pick((0.0, 0.05)),
        reorder=luck.pick((0.0, 0.1)),
    )


def play(world: World) -> None:
    """Let the world follow the script that its plan names."""
    SCENARIOS[world.plan.scenario].script(Stage(world))


def check_scenario(plan: Plan) -> None:
    """Raise PlanError where the plan names a script that there is not, or has too few for it."""
    scenario = SCENARIOS.get(plan.scenario)
    if scenario is None:
        raise PlanError(
            f"there is no scenario '{plan.scenario}'; there are: {', '.join(SCENARIOS)}"
        )
    least, most = scenario.voters
    if not least <= plan.voters <= most:
        raise PlanError(f"{plan.scenario} is played by {least} to {most} voters")
