"""Fault injection into a quorum of Quorate's and Kafka's controllers."""

import pytest

from interop.java import libs
from quorate.nemesis.mixed_workload import ControllerWorkload
from quorate.nemesis.plan import ScheduledFault
from quorate.nemesis.run import NemesisOptions, run_nemesis
from time_budget import one_day_in


@pytest.mark.slow
@pytest.mark.interop
@one_day_in(2, 1)
def test_a_mixed_quorum_violates_nothing(tmp_path):
    """NodeProcess 3 is Kafka's; `pick` 0.9 selects it."""
    faults = (
        ScheduledFault(1.0, "kill", True, 0.2, 1.0),
        ScheduledFault(5.0, "stop", True, 0.2, 3.0),
        ScheduledFault(9.0, "remove", False, 0.5, 0.5),
        ScheduledFault(11.0, "cut", False, 0.9, 2.0),
        ScheduledFault(14.0, "kill", False, 0.9, 0.5),
        ScheduledFault(19.0, "power", False, 0.2, 0.5),
        ScheduledFault(25.0, "hold", True, 0.2, 3.0),
    )
    result = run_nemesis(
        ControllerWorkload(libs()), NemesisOptions(3, 30.0, faults, tmp_path / "run")
    )
    assert result.violations == []
    assert result.faults.total() >= 5
    assert result.outcomes["ok"] > 50
    assert len(set(result.leaders)) > 1
    assert any((tmp_path / "run").glob("kafka-*/data/__cluster_metadata-0/*.log"))
