"""Whole worlds: each kind of trouble does what it says, and the quorum comes through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from quorate.replica.replica import Effects, Input
from quorate.sim.plan.plan import (
    FAULT_EVENTS,
    LEADER,
    ClientPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    TimingPlan,
)
from quorate.sim.run.run import WorldOutcome, checked, run_plan, run_seed
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.storage.api import Recovered
from time_budget import one_in

BUSY = ClientPlan(count=3, think_ms=60)
SMALL = DiskPlan(segment_bytes=1000, snapshot_bytes=800, retention_bytes=2000)


class EventLog(Observer):
    """What was seen, counted and in words."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.answers: list[ClientOp] = []

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        self.count["started"] += 1
        self.notes += recovered.notes

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        self.count.update(type(item).__name__ for item in happened)
        self.notes += effects.notes

    def refused(self, process: SimulatedNode, reason: str) -> None:
        self.refusals.append(reason)

    def crashed(self, process: SimulatedNode) -> None:
        self.count["crashed"] += 1

    def wiped(self, process: SimulatedNode) -> None:
        self.count["wiped"] += 1

    def restored(self, process: SimulatedNode) -> None:
        self.count["restored"] += 1

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        self.count[kind] += 1

    def answered(self, op: ClientOp) -> None:
        self.answers.append(op)

    def says(self, text: str) -> bool:
        return any(text in note for note in self.notes)


def live(plan: Plan) -> tuple[WorldOutcome, EventLog]:
    """Run it with all checks; nothing may fail."""
    diary = EventLog()
    outcome = run_plan(plan, [*checked(), diary])
    assert outcome.failure is None, outcome.failure
    return outcome, diary


def world(*fault_events: FaultEvent, **changes: object) -> Plan:
    plan = Plan(seed=5, duration_ms=9000, clients=BUSY, disk=SMALL, fault_events=fault_events)
    return replace(plan, **changes)  # type: ignore[arg-type]


def test_a_quiet_world_elects_commits_and_answers() -> None:
    outcome, diary = live(world())
    assert outcome.simulated_ms >= 9000 and outcome.liveness_ms < 5000
    assert len(diary.answers) > 100 and all(op.outcome == "ok" for op in diary.answers)
    assert diary.count["crashed"] == 0
    assert diary.says("Wrote snapshot")


@pytest.mark.parametrize("voters", one_in(3, range(1, 8)))
def test_worlds_of_every_size(voters: int) -> None:
    fault_event = FaultEvent(4000, "power", (LEADER, 1500))
    _, diary = live(world(fault_event, voters=voters, observers=1))
    assert diary.count["crashed"] == 1 and diary.answers


CRASHES = [
    FaultEvent(4000, "kill", (LEADER, 700)),
    FaultEvent(4000, "power", (LEADER, 700)),
    FaultEvent(4000, "power-reorder", (1, 700)),
    FaultEvent(4000, "stop", (LEADER, 700)),
    FaultEvent(4000, "blackout", (0b1110, 900)),
    FaultEvent(4000, "fail-disk", (LEADER, 2, 700)),
    FaultEvent(4000, "crash-disk", (LEADER, 2, 700)),
    FaultEvent(4000, "crash-recovery", (2, 1, 700)),
    FaultEvent(4000, "crash-inside", (LEADER, 1, 2)),
    FaultEvent(4000, "full-disk", (LEADER, 900)),
    FaultEvent(4000, "rot", (2, 700)),
    FaultEvent(4000, "misdirect", (2, 700)),
    FaultEvent(4000, "blackout-reorder", (0b1110, 900)),
    FaultEvent(4000, "misplace", (2, 0, 700)),
    FaultEvent(4000, "misplace", (2, 512, 700)),
    FaultEvent(4000, "rot-epoch", (2, 700)),
    FaultEvent(4000, "lose-segment", (2, 700)),
    FaultEvent(4000, "lose-log", (2, 700)),
    FaultEvent(4000, "lose-snapshot", (2, 700)),
    FaultEvent(4000, "lose-vote", (2, 700)),
    FaultEvent(4000, "lose-epochs", (2, 700)),
    FaultEvent(4000, "wipe", (2, 700)),
    FaultEvent(4000, "replace", (2, 700)),
    FaultEvent(4000, "old-copy", (2, 1500, 700)),
    FaultEvent(4000, "move", (2, 700)),
    FaultEvent(4000, "move-outside", (2, 700)),
    FaultEvent(4000, "renew", (2, 700)),
]


@pytest.mark.parametrize(
    "fault_event", one_in(5, CRASHES), ids=lambda fault_event: fault_event.kind
)
def test_what_ends_a_process(fault_event: FaultEvent) -> None:
    _, diary = live(world(fault_event))
    assert diary.count["crashed"] >= 1
    assert diary.count["started"] >= 4


TROUBLES = [
    FaultEvent(4000, "pause", (LEADER, 4000)),
    FaultEvent(4000, "slow-cpu", (LEADER, 50_000, 2000)),
    FaultEvent(4000, "jump", (LEADER, 10**9)),
    FaultEvent(4000, "slow-disk", (LEADER, 1500, 3000)),
    FaultEvent(4000, "rot-live", (2,)),
    FaultEvent(4000, "partition", (0b0110, 3000)),
    FaultEvent(4000, "partition-one-way", (0b0010, 3000)),
    FaultEvent(4000, "isolate", (LEADER, 4000)),
    FaultEvent(4000, "mute", (LEADER, 4000)),
    FaultEvent(4000, "deafen", (LEADER, 4000)),
    FaultEvent(4000, "churn", (LEADER, 20, 300, 6)),
    FaultEvent(4000, "fork", (LEADER, 0, 20, 3, 4000)),
    FaultEvent(4000, "bridge", (3, 0b0010, 3000)),
    FaultEvent(4000, "flap", (0b0010, 400, 6)),
    FaultEvent(4000, "cut", (1, 2, 3000)),
    FaultEvent(4000, "slow-link", (1, 2, 1000, 3000)),
    FaultEvent(4000, "reset", (LEADER,)),
    FaultEvent(4000, "foreign-cluster", (2, 1, 100, 20)),
    FaultEvent(4000, "add", (4,)),
    FaultEvent(4000, "add-unacked", (4,)),
    FaultEvent(4000, "remove", (LEADER,)),
    FaultEvent(4000, "alter", (0b11100,)),
    FaultEvent(4000, "snapshot", (LEADER,)),
    FaultEvent(6000, "clean", (LEADER,)),
    FaultEvent(4000, "resign", (LEADER,)),
    FaultEvent(4000, "err", (2, 0)),
]


@pytest.mark.parametrize(
    "fault_event", one_in(6, TROUBLES), ids=lambda fault_event: fault_event.kind
)
def test_what_troubles_a_quorum(fault_event: FaultEvent) -> None:
    _, diary = live(world(fault_event, observers=1))
    assert diary.count[fault_event.kind] >= 1
    assert diary.answers


def test_every_fault_event_occurs_here() -> None:
    kinds = {fault_event.kind for fault_event in (*CRASHES, *TROUBLES)}
    elsewhere = {
        "upgrade",
        "insist",
        "exchange",
        "roll-back",
    }  # `test_rare_worlds` has the last two
    assert kinds | elsewhere == set(FAULT_EVENTS)


class Incarnations(Observer):
    """When the processes of one node began and ended, ms, and their incarnations."""

    def __init__(self, node_id: int) -> None:
        self._node_id = node_id
        self.began_ms: list[int] = []
        self.ended_ms: list[int] = []
        self.numbers: list[int] = []

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        if process.id == self._node_id:
            self.began_ms.append(process.world.now_us // 1000)  # type: ignore[attr-defined]
            self.numbers.append(process.incarnation)

    def crashed(self, process: SimulatedNode) -> None:
        if process.id == self._node_id:
            self.ended_ms.append(process.world.now_us // 1000)  # type: ignore[attr-defined]


@pytest.mark.parametrize("down_ms", [20, 3000])
@pytest.mark.parametrize("kind", ["fail-disk", "crash-disk"])
def test_a_failed_disk_keeps_its_node_down_for_its_duration(kind: str, down_ms: int) -> None:
    seen = Incarnations(1)
    run_plan(
        world(FaultEvent(3000, kind, (1, 1, down_ms)), FaultEvent(8000, "kill", (1, 50))), [seen]
    )
    failed_ms, killed_ms = seen.ended_ms
    assert seen.began_ms == [0, failed_ms + down_ms, killed_ms + 50]
    assert seen.numbers == [1, 2, 3]


def test_a_failed_start_is_no_incarnation() -> None:
    seen = Incarnations(1)
    run_plan(world(FaultEvent(3000, "crash-recovery", (1, 1, 100))), [seen])
    assert (seen.numbers, len(seen.ended_ms)) == ([1, 2], 1)


def test_a_static_quorum_becomes_dynamic_and_changes_its_voters() -> None:
    fault_events = (
        FaultEvent(4000, "upgrade"),
        FaultEvent(5000, "add", (4,)),
        FaultEvent(7000, "remove", (1,)),
    )
    _, diary = live(world(*fault_events, static=True, observers=1))
    assert diary.count["upgraded"] == 1
    assert diary.says("voters {2-") and diary.count["asked"] >= 2


@pytest.mark.parametrize(("times", "is_done"), [(1, 0), (50, 1)])
def test_an_operator_insists_until_the_upgrade_is_done(times: int, is_done: int) -> None:
    """It starts before the first leader; after it is done, nothing more is requested."""
    _, diary = live(world(FaultEvent(100, "insist", (times, 200)), static=True))
    assert diary.count["upgraded"] == is_done


def test_a_static_voter_with_a_damaged_disk_stays_down() -> None:
    _, diary = live(world(FaultEvent(4000, "rot", (2, 700)), static=True))
    assert diary.count["wiped"] == 0
    assert diary.count["damaged"] == 1


def test_no_majority_of_disks_is_damaged() -> None:
    fault_events = [FaultEvent(3000 + 10 * i, "rot", (1 + i % 3, 500)) for i in range(9)]
    _, diary = live(world(*fault_events))
    assert diary.count["damaged"] >= 1 and diary.count["not damaged"] >= 1


def test_rot_is_found_and_the_disk_replaced() -> None:
    found = Counter[str]()
    for seed in range(6):
        _, diary = live(world(FaultEvent(5000, "rot", (2, 300)), seed=seed))
        found["refused"] += len(diary.refusals)
        found["wiped"] += diary.count["wiped"]
        assert all("node-2/" in reason and "; " in reason for reason in diary.refusals), (
            diary.refusals
        )
    assert found["refused"] >= 2 and found["wiped"] == found["refused"]


def test_an_old_copy_is_restored_only_where_no_node_needs_more() -> None:
    _, diary = live(world(FaultEvent(2000, "old-copy", (2, 1500, 500)), duration_ms=20_000))
    assert diary.count["restored"] + diary.count["not restored"] == 1
    quiet = world(
        FaultEvent(2000, "old-copy", (2, 1500, 500)), clients=ClientPlan(count=1, think_ms=2000)
    )
    _, diary = live(quiet)
    assert diary.count["restored"] == 1
    _, diary = live(replace(quiet, voters=1, observers=2))
    assert diary.count["restored"] == 0


def test_messages_that_misbehave() -> None:
    network = NetworkPlan(
        loss=0.05, duplicate=0.05, hold=0.05, hold_ms=2000, reorder=0.1, reset=0.1, corrupt=0.1
    )
    for wire in (False, True):
        _, diary = live(world(network=network, wire=wire, duration_ms=15_000))
        for kind in ("lost", "duplicated", "held", "reordered", "reset at random", "corrupted"):
            assert diary.count[kind] > 1, kind


def test_observers_join_by_themselves() -> None:
    _, diary = live(world(observers=2, auto_join=True))
    assert diary.says("auto join: joins the voter set, the leader has agreed")


def test_a_client_that_gives_up_never_knows() -> None:
    clients = ClientPlan(count=4, think_ms=20, timeout_ms=100, give_up=1.0)
    _, diary = live(world(FaultEvent(3000, "isolate", (LEADER, 5000)), clients=clients))
    assert {op.outcome for op in diary.answers} == {"ok", "unknown"}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 160, 10))
def test_worlds_drawn_from_seeds(first: int) -> None:
    for seed in range(first, first + 10):
        outcome = run_seed(seed, checked())
        assert outcome.failure is None, (seed, outcome.failure)


def test_a_leader_that_no_node_asks_writes_now_and_then() -> None:
    ends: dict[int, int] = {}

    class Ends(Observer):
        def stepped(
            self, process: SimulatedNode, happened: Sequence[Input], effects: Effects
        ) -> None:
            ends[process.id] = process.core.high_watermark

    quiet = world(clients=ClientPlan(count=0), duration_ms=6000)
    assert run_plan(quiet, [*checked(), Ends()]).failure is None
    alone = max(ends.values())
    busy = replace(quiet, timing=TimingPlan(idle_ms=100))
    assert run_plan(busy, [*checked(), Ends()]).failure is None
    assert max(ends.values()) > alone + 20


def test_a_log_that_ages_is_rolled_and_cleaned_by_age() -> None:
    old = DiskPlan(segment_ms=500, snapshot_ms=700, retention_ms=900, clean_ms=500)
    drops = []
    for disk in (old, replace(old, retention_ms=604_800_000)):
        _, diary = live(world(disk=disk))
        drops.append(sum("older snapshots dropped" in note for note in diary.notes))
    assert drops[0] > 20 and drops[1] == 3  # the one of each disk with the first voters
