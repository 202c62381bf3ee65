"""The checks of a controller's head: each rule broken once, on a node made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.sim.checks.controller_head import ControllerHeadCheck
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.observer import ViolationError
from quorate.wire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse

pytestmark = pytest.mark.interpreted  # it hands stand-ins to the check

USER = (("user", "a"),)
QUOTA = {"producer_byte_rate": 1.0}


def image(quotas: dict[Any, Any] | None = None, version: int | None = 20) -> Any:
    features = SimpleNamespace(metadata_version=version)
    return SimpleNamespace(client_quotas=quotas or {}, features=features)


def node(committed: Any, end: int = 10) -> Any:
    """A leader that has applied up to `end` and has nothing outstanding."""
    head = SimpleNamespace(image=committed, committed=committed, transaction=None, outstanding=0)
    applied = SimpleNamespace(offset=end)
    return SimpleNamespace(
        node_id=1,
        head=head,
        image=committed,
        image_offset=end - 1,
        pending_offset=end,
        is_active=True,
        replica=SimpleNamespace(applied=applied, core=SimpleNamespace(high_watermark=end)),
    )


def step(check: ControllerHeadCheck, stepped: Any, *responses: ControllerResponse) -> None:
    process = SimpleNamespace(id=1, controller=SimpleNamespace(node=stepped))
    effects = SimpleNamespace(stopped=False, faulted=None)
    check.node_stepped(process, effects, responses)  # type: ignore[arg-type]


def refused(stepped: Any, *responses: ControllerResponse) -> str:
    with pytest.raises(ViolationError) as found:
        step(ControllerHeadCheck(), stepped, *responses)
    return found.value.check


def acknowledged(committed: int | None) -> ControllerResponse:
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name="a")],
                ops=[entry.OpData(key="producer_byte_rate", value=1.0, remove=False)],
            )
        ]
    )
    response = AlterClientQuotasResponse(entries=[AlterClientQuotasResponse.EntryData()])
    return ControllerResponse(-1, request, response, committed)


def test_a_leader_with_writes_outstanding() -> None:
    leader = node(image({USER: QUOTA}))
    leader.head.image = image({USER: QUOTA, (("user", "b"),): QUOTA}, 21)
    leader.head.outstanding, leader.pending_offset = 1, 11
    step(ControllerHeadCheck(), leader, acknowledged(10))


def test_head_follows_the_committed_image() -> None:
    behind = node(image())
    behind.head.committed = image({USER: QUOTA})
    assert refused(behind) == "head is not behind"


def test_head_is_the_committed_image_with_nothing_outstanding() -> None:
    other = node(image())
    other.head.image = image({USER: QUOTA})
    assert refused(other) == "head is not behind"


def test_the_newest_write_is_not_below_what_is_applied() -> None:
    low = node(image())
    low.pending_offset = 9
    assert refused(low) == "head is not behind"


@pytest.mark.parametrize(
    "head", [image({}, 20), image({USER: QUOTA}, 19), image({USER: QUOTA}, None)]
)
def test_head_with_writes_outstanding_holds_what_is_committed(head: Any) -> None:
    leader = node(image({USER: QUOTA}))
    leader.head.image, leader.head.outstanding = head, 1
    assert refused(leader) == "head is not behind"


def test_head_is_reverted_when_leadership_is_lost() -> None:
    follower = node(image())
    follower.is_active, follower.head.outstanding = False, 1
    assert refused(follower) == "head is reverted"


@pytest.mark.parametrize("end", [None, 11])
def test_a_write_is_answered_after_its_commit(end: int | None) -> None:
    assert refused(node(image({USER: QUOTA})), acknowledged(end)) == "answered when committed"


def test_a_write_is_answered_after_it_is_applied() -> None:
    leader = node(image({USER: QUOTA}))
    leader.replica.core.high_watermark = 11
    assert refused(leader, acknowledged(11)) == "answered when committed"


@pytest.mark.parametrize("held", [{}, {USER: {"producer_byte_rate": 2.0}}])
@pytest.mark.parametrize("end", [10, -1])
def test_each_later_image_has_an_acknowledged_quota(held: dict[Any, Any], end: int) -> None:
    check = ControllerHeadCheck()
    step(check, node(image({USER: QUOTA})), acknowledged(end))
    step(check, node(image(), 9))
    with pytest.raises(ViolationError) as found:
        step(check, node(image(held), 10))
    assert found.value.check == "acknowledged metadata"


def test_an_image_at_the_end_has_an_acknowledged_quota() -> None:
    check = ControllerHeadCheck()
    step(check, node(image({USER: QUOTA})), acknowledged(10))
    process = SimpleNamespace(id=1, controller=SimpleNamespace(node=node(image())))
    with pytest.raises(ViolationError):
        check.finished(SimpleNamespace(nodes={1: process}))  # type: ignore[arg-type]
