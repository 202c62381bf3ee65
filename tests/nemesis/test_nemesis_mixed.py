"""The nemesis over a quorum of ours and Kafka's own controllers."""

import pytest

from interop.java import libs
from quorate.nemesis.controllers import ControllerWorkload
from quorate.nemesis.plan import Deed
from quorate.nemesis.run import Options, run


@pytest.mark.slow
@pytest.mark.interop
def test_a_mixed_quorum_keeps_its_promises(tmp_path):
    """Node 3 is Kafka's; `pick` 0.9 is that one."""
    deeds = (
        Deed(1.0, "kill", True, 0.2, 1.0),
        Deed(5.0, "stop", True, 0.2, 3.0),
        Deed(9.0, "remove", False, 0.5, 0.5),
        Deed(11.0, "cut", False, 0.9, 2.0),
        Deed(14.0, "kill", False, 0.9, 0.5),
        Deed(19.0, "power", False, 0.2, 0.5),
        Deed(25.0, "hold", True, 0.2, 3.0),
    )
    result = run(ControllerWorkload(libs()), Options(3, 30.0, deeds, tmp_path / "run"))
    assert result.broken == []
    assert result.deeds.total() >= 5
    assert result.outcomes["ok"] > 50
    assert len(set(result.leaders)) > 1
    assert any((tmp_path / "run").glob("kafka-*/data/__cluster_metadata-0/*.log"))
