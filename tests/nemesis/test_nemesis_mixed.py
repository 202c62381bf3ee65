"""The nemesis over a quorum of ours and Kafka's own controllers."""

import pytest

from interop.java import libs
from quorate.nemesis.controllers import ControllerWorkload
from quorate.nemesis.plan import Deed
from quorate.nemesis.run import Options, run


@pytest.mark.slow
@pytest.mark.interop
def test_a_mixed_quorum_keeps_its_promises(tmp_path):
    deeds = (
        Deed(1.0, "kill", True, 0.2, 1.0),
        Deed(5.0, "stop", True, 0.2, 3.0),
        Deed(9.0, "remove", False, 0.5, 0.5),
    )
    result = run(ControllerWorkload(libs()), Options(3, 11.0, deeds, tmp_path / "run"))
    assert result.broken == []
    assert result.deeds.total() >= 2
    assert result.outcomes["ok"] > 50
    assert len(set(result.leaders)) > 1
    assert any((tmp_path / "run").glob("kafka-*/data/__cluster_metadata-0/*.log"))
