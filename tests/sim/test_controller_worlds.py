"""Worlds of whole controllers: they pass every check, and a broken controller is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller import (
    brokers,
    configs,
    features,
    new_partitions,
    partition_changes,
    placement,
    quotas,
    reassignments,
    registration,
    topic_deletion,
    topics,
)
from quorate.controller.assignments import BrokerFacts
from quorate.controller.head import Head
from quorate.controller.liveness import Liveness, LivenessChange
from quorate.controller.partition_changes import PartitionTarget
from quorate.controller.partition_index import PartitionIndex
from quorate.formats.records import (
    ClientQuotaRecord,
    ConfigRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from quorate.metadata.image import Partition
from quorate.node.node_io import NodeEffects
from quorate.node.write_queue import WriteQueue
from quorate.sim.plan.draw import draw
from quorate.sim.plan.draw_controllers import CONTROLLERS, draw_controllers
from quorate.sim.plan.plan import FaultEvent, Plan, PlanError, check_plan
from quorate.sim.plan.text import parse_plan, plan_text
from quorate.sim.run.campaign import seeds_of_day
from quorate.sim.run.run import checked, run_plan, run_seed
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.wire.messages import (
    AllocateProducerIdsRequest,
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterUserScramCredentialsRequest,
    AssignReplicasToDirsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    ControllerRegistrationRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    UpdateFeaturesRequest,
)
from time_budget import TODAY, share

BUSY = 26
"""A seed of three voters and four brokers that have most of their writes committed."""
SECONDS = share(60, quick=5, daily=8)
"""Of the fresh seeds: begin no world after that."""
LEAST = 10


class Committed(Observer):
    """Counts the writes that were acknowledged, by request, and the nodes' own registrations."""

    def __init__(self) -> None:
        self.writes: dict[type[Any], int] = {}
        self.controllers: set[int] = set()

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        for response in responses:
            if response.committed is not None:
                kind = type(response.request)
                self.writes[kind] = self.writes.get(kind, 0) + 1
        assert process.controller is not None
        self.controllers |= set(process.controller.node.image.cluster.controllers)


def test_a_world_of_controllers_passes_every_check() -> None:
    committed = Committed()
    outcome = run_plan(draw_controllers(BUSY), [*checked(), committed])
    assert outcome.failure is None
    assert set(committed.writes) >= {
        AlterClientQuotasRequest,
        AllocateProducerIdsRequest,
        AlterPartitionReassignmentsRequest,
        AlterPartitionRequest,
        AlterUserScramCredentialsRequest,
        AssignReplicasToDirsRequest,
        BrokerHeartbeatRequest,
        BrokerRegistrationRequest,
        ControllerRegistrationRequest,
        CreateAclsRequest,
        CreateDelegationTokenRequest,
        CreatePartitionsRequest,
        CreateTopicsRequest,
        DeleteAclsRequest,
        DeleteTopicsRequest,
        ElectLeadersRequest,
        ExpireDelegationTokenRequest,
        RenewDelegationTokenRequest,
        UpdateFeaturesRequest,
    }
    assert {1, 2, 3} < committed.controllers  # those of clients, too


def test_a_world_of_controllers_follows_from_its_plan() -> None:
    plan = draw_controllers(10)
    found = run_plan(parse_plan(plan_text(plan)))
    assert found.trace_hash == run_seed(10, checked(), CONTROLLERS).trace_hash


def test_plans_without_controllers_read_as_before() -> None:
    assert "controllers" not in plan_text(draw(BUSY))
    assert "\ncontrollers yes\n" in plan_text(draw_controllers(BUSY), short=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"wire": True},
        {"old": 2},
        {"young": 2},
        {"scenario": "canElectInitialLeader"},
        {"fault_events": (FaultEvent(1000, "upgrade"),)},
    ],
)
def test_settings_that_controllers_do_not_have(settings: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="a world of controllers has no"):
        check_plan(Plan(controllers=True, **settings))


@pytest.mark.parametrize("controllers", [True, False])
def test_a_voter_with_a_new_disk_finds_a_quorum_that_a_client_may_upgrade(
    controllers: bool,
) -> None:
    """At kraft.version 1 a node without a log no longer has the configured voters."""
    cluster = SimulatedCluster(Plan(controllers=controllers, static=True, voters=3), [])
    assert bool(cluster.bootstrap_servers(without=1)) == controllers


def never_reverts(head: Head) -> None:
    """In place of Head.revert."""


def ignores_commits(head: Head, *ignored: object) -> None:
    """In place of Head.set_committed."""


def answers_at_once(original: Callable[..., None]) -> Callable[..., None]:
    """Around WriteQueue._written."""

    def written(queue: Any, item: Any, result: Any) -> None:
        original(queue, item, result)
        if queue._pending and queue._pending[-1] is item and item.call is not None:
            queue._pending.pop()
            queue._succeed(item, queue.committed_offset)

    return written


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("owner", "name", "mutant", "check"),
    [
        (Head, "revert", never_reverts, "head is reverted"),
        (Head, "set_committed", ignores_commits, "head is not behind"),
        (WriteQueue, "_written", answers_at_once(WriteQueue._written), "acknowledged"),
    ],
)
def test_a_world_finds_a_broken_controller(
    monkeypatch: pytest.MonkeyPatch, owner: type[Any], name: str, mutant: Any, check: str
) -> None:
    monkeypatch.setattr(owner, name, mutant)
    failure = run_plan(draw_controllers(BUSY), checked()).failure
    assert failure is not None
    assert check in failure.check


def leads_anywhere(change: Any, replica: int) -> bool:
    """In place of _Change._is_valid: a leader need not be in sync."""
    found: bool = change.rules.may_lead(change.before, replica)
    return found


def elects_nobody(change: Any) -> None:
    """In place of _Change._elect."""


def counts_nothing(index: Any, *ignored: object) -> None:
    """In place of PartitionIndex.advance."""


def is_never_leaving(liveness: Liveness, broker_id: int) -> bool:
    """In place of Liveness.is_leaving: a broker gets new roles until its fencing is written."""
    return False


COMMITTED = Liveness.committed


def counts_the_first_part_alone(
    liveness: Liveness, changes: Iterable[LivenessChange], last_offset: int
) -> None:
    """In place of Liveness.committed: the offset of a registration is too low."""
    COMMITTED(liveness, changes, last_offset - 2)


def keeps_what_was_added(partition: Partition, replicas: list[int]) -> PartitionTarget:
    """In place of _reassigned: as Kafka 4.3.1 does."""
    removing = sorted(set(partition.replicas) - set(replicas))
    adding = sorted(set(replicas) - set(partition.replicas))
    return PartitionTarget(
        replicas=[*replicas, *removing], removing=removing or None, adding=adding or None
    )


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("owner", "name", "mutant", "check", "first"),
    [
        (partition_changes._Change, "_is_valid", leads_anywhere, "partition states", 0),
        (partition_changes._Change, "_elect", elects_nobody, "partition states", 0),
        (PartitionIndex, "advance", counts_nothing, "index equals image", 0),
        (Liveness, "is_leaving", is_never_leaving, "partition states", 65),
        (Liveness, "committed", counts_the_first_part_alone, "brokers are caught up", 0),
        (reassignments, "_reassigned", keeps_what_was_added, "liveness", 12),
    ],
)
def test_worlds_with_brokers_find_a_broken_controller(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, mutant: Any, check: str, first: int
) -> None:
    """Within twenty seeds; `first` is where they begin."""
    monkeypatch.setattr(owner, name, mutant)
    plans = (
        plan for seed in range(first, first + 20) if (plan := draw_controllers(seed)).brokers > 1
    )
    failures = (run_plan(plan, checked()).failure for plan in plans)
    failure = next(found for found in failures if found is not None)
    assert failure.check == check


def forgets_records(records: list[Any]) -> None:
    """In place of check_size: a request is acknowledged, and nothing is written."""
    records.clear()


def on_one_broker(original: Any) -> Any:
    """Around _Racks.place."""
    return lambda racks, factor: original(racks, 1) * factor


def names_one_directory(facts: BrokerFacts, replicas: Sequence[int]) -> list[Uuid]:
    """In place of BrokerFacts.directories: the record has fewer directories than replicas."""
    return [ZERO_UUID]


def with_one_epoch(original: Any) -> Any:
    """Around _registration_record: all registrations have the same epoch."""

    def record(*given: Any) -> RegisterBrokerRecord:
        made: RegisterBrokerRecord = original(*given)
        made.broker_epoch = 7
        return made

    return record


def downwards(original: Any) -> Any:
    """Around _check_direction: an upgrade may lower a level."""
    return lambda name, level, current, *rest: original(name, level, min(level, current), *rest)


def takes_any_version(current: int, level: int, kind: int) -> None:
    """In place of _check_metadata_version."""


def writes_no_quota(*ignored: object) -> list[ClientQuotaRecord]:
    """In place of _alter_one."""
    return []


def writes_no_config(*ignored: object, **named: object) -> list[ConfigRecord]:
    """In place of changed_configs."""
    return []


def of_another(original: Any) -> Any:
    """Around _record of a controller."""

    def record(request: Any) -> RegisterControllerRecord:
        made: RegisterControllerRecord = original(request)
        made.controller_id += 5000
        return made

    return record


def put(mutant: Any) -> Callable[[Any], Any]:
    """In place of whatever is there."""
    return lambda original: mutant


RACKS = "_Racks"


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("bugs", "check", "first"),
    [
        ([(topics, "check_size", put(forgets_records))], "acknowledged topics", 4),
        ([(topic_deletion, "check_size", put(forgets_records))], "acknowledged topics", 5),
        ([(new_partitions, "check_size", put(forgets_records))], "acknowledged topics", 5),
        ([(getattr(placement, RACKS), "place", on_one_broker)], "partition states", 3),
        ([(BrokerFacts, "directories", put(names_one_directory))], "defect", 4),
        ([(brokers, "_registration_record", with_one_epoch)], "broker epochs grow", 4),
        (
            [
                (features, "_check_direction", downwards),
                (features, "_check_metadata_version", put(takes_any_version)),
            ],
            "head is not behind",
            2,
        ),
        ([(quotas, "_alter_one", put(writes_no_quota))], "acknowledged metadata", 0),
        ([(configs, "changed_configs", put(writes_no_config))], "acknowledged configs", 9),
        ([(registration, "_record", of_another)], "acknowledged registrations", 0),
    ],
    ids=[
        *("topics", "deletion", "partitions", "placement", "directories", "brokers"),
        *("features", "quotas", "configs", "controllers"),
    ],
)
def test_worlds_find_a_bug_of_each_domain(
    monkeypatch: pytest.MonkeyPatch, bugs: list[tuple[Any, str, Any]], check: str, first: int
) -> None:
    """Within five seeds; `first` is where they begin."""
    for owner, name, around in bugs:
        monkeypatch.setattr(owner, name, around(getattr(owner, name)))
    outcomes = (run_seed(seed, checked(), CONTROLLERS) for seed in range(first, first + 5))
    failure = next(found.failure for found in outcomes if found.failure is not None)
    assert failure.check == check


@pytest.mark.parametrize("seed", [864, 959])
def test_an_upgrade_names_a_directory_that_a_new_disk_has_replaced(seed: int) -> None:
    """A voter gets an empty disk at kraft.version 0 and fetches; then the quorum upgrades.

    The voter set names its first directory, whose row keeps what the new disk has asked for.
    """
    assert run_plan(draw_controllers(seed), checked()).failure is None


def test_brokers_need_controllers() -> None:
    with pytest.raises(PlanError, match="brokers need controllers"):
        check_plan(Plan(brokers=1))


@pytest.mark.slow
def test_fresh_seeds_of_controllers_pass_every_check() -> None:
    until = time.monotonic() + SECONDS
    for tried, seed in enumerate(seeds_of_day(TODAY, 20_000), 1):
        failure = run_seed(seed, checked(), CONTROLLERS).failure
        assert failure is None, f"quorate sim run --controllers --seeds {seed}: {failure}"
        if tried >= LEAST and time.monotonic() > until:
            break
