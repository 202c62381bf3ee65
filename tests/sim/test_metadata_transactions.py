"""Metadata transactions in worlds of controllers: which situations happen, and which bugs are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from quorate.controller.activation import ACTIVATION
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import Result
from quorate.formats.records import AbortTransactionRecord
from quorate.metadata.replay import record_values
from quorate.node import own_writes
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.node_io import NodeEffects
from quorate.sim.checks.metadata_transactions import MetadataTransactionCheck
from quorate.sim.plan.draw_controllers import draw_controllers
from quorate.sim.run.run import checked, run_plan
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.sim.world.transactions import TRANSACTION_USERS

A_SNAPSHOT_FALLS_DUE = 47
A_LEADER_STOPS = 16
A_PART_IS_COMMITTED = 4
"""Seeds of worlds in which this happens while a transaction is open."""


class Situations(Observer):
    """What happened to transactions in a world."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        assert process.controller is not None
        node = process.controller.node
        for note in effects.notes:
            if "Aborting the transaction open at" in note:
                self.found.add("a predecessor's is aborted")
        if any(quota for user, quota in node.image.client_quotas.items() if _is_ours(user)):
            self.found.add("one has ended")


def _is_ours(entity: Any) -> bool:
    return entity[0][1] in TRANSACTION_USERS


@pytest.mark.interpreted
def test_a_snapshot_falls_due_and_a_leader_stops_while_a_transaction_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    situations = Situations()

    def freeze(machine: MetadataMachine) -> Iterable[bytes] | None:
        values = original(machine)
        if values is None and machine.image.features.metadata_version is not None:
            situations.found.add("a snapshot falls due")
        return values

    original = MetadataMachine.freeze
    monkeypatch.setattr(MetadataMachine, "freeze", freeze)
    outcome = run_plan(draw_controllers(A_LEADER_STOPS), [*checked(), situations])
    assert outcome.failure is None
    wanted = {"a snapshot falls due", "a predecessor's is aborted", "one has ended"}
    assert wanted <= situations.found


def freezes_always(machine: MetadataMachine) -> Iterable[bytes] | None:
    """In place of MetadataMachine.freeze: also inside a transaction."""
    version = machine.image.features.metadata_version
    return None if version is None else record_values(machine.image)


def shows_what_is_open(machine: MetadataMachine) -> Any:
    """In place of MetadataMachine.image: with the records of an open transaction."""
    return machine.head.image


def aborts_nothing(head: HeadView, bootstrap: Any, context: Context) -> Result[None]:
    """In place of the decision of the activation: it leaves a predecessor's transaction open."""
    found = ACTIVATION.decide(head, bootstrap, context)
    assert isinstance(found, Result)
    kept = [each for each in found.records if not isinstance(each, AbortTransactionRecord)]
    return Result(kept, None, atomic=found.atomic)


def failed_check(seed: int, observers: Sequence[Observer]) -> str:
    failure = run_plan(draw_controllers(seed), observers).failure
    assert failure is not None
    return failure.check


@pytest.mark.interpreted
def test_a_world_finds_a_snapshot_inside_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetadataMachine, "freeze", freezes_always)
    # A node that loads it cannot apply the end of a transaction that it does not know.
    assert failed_check(A_SNAPSHOT_FALLS_DUE, checked()) == "defect"


@pytest.mark.interpreted
def test_a_world_finds_an_image_with_an_open_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetadataMachine, "image", property(shows_what_is_open))
    check = MetadataTransactionCheck()
    assert failed_check(A_PART_IS_COMMITTED, [check]) == "transaction is atomic"


@pytest.mark.interpreted
def test_a_world_finds_a_controller_that_leaves_a_transaction_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(own_writes, "ACTIVATION", replace(ACTIVATION, decide=aborts_nothing))
    # The next transaction cannot begin, and the controller's log stays in the old one.
    found = failed_check(A_LEADER_STOPS, checked())
    assert found in ("defect", "liveness", "transaction ends", "acknowledged metadata")
