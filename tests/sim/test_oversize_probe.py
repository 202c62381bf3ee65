"""What the leader is asked when all is over: whatever is too large for a batch is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.raft.values import RaftLimits
from quorate.replica.proposals import Outcome, Proposals, Submit
from quorate.sim.plan.plan import Plan
from quorate.sim.run.oversize_probe import CHECK
from quorate.sim.run.run import Failure, run_plan
from sim.planted import propose_without_limit


def failure(batch_bytes: int = 4096) -> Failure | None:
    limits = RaftLimits(batch_bytes=batch_bytes)
    return run_plan(Plan(seed=1, voters=1, duration_ms=3000, limits=limits)).failure


@pytest.mark.parametrize("batch_bytes", [400, 1 << 20, 1 << 30])
def test_a_leader_that_refuses_passes(batch_bytes: int) -> None:
    assert failure(batch_bytes) is None


@pytest.mark.interpreted
def test_a_leader_that_appends_a_batch_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    propose_without_limit(monkeypatch)
    found = failure()
    assert found is not None and found.check == CHECK
    assert "asked to append 4097 bytes as one, at most 4096 may be" in found.message


@pytest.mark.interpreted
def test_a_replica_that_drops_an_oversize_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    true_groups = Proposals._groups

    def groups(self: Proposals, outcomes: list[Outcome]) -> Iterator[list[Submit]]:
        return true_groups(self, [])

    monkeypatch.setattr(Proposals, "_groups", groups)
    found = failure()
    assert found is not None and found.check == CHECK
    assert found.message.endswith("says nothing")
