"""A few hundred requests of the day's seed: a Java controller and ours answer and write the same."""

from pathlib import Path

import pytest

from differential.run import run_seed
from time_budget import DAY, share

pytestmark = [pytest.mark.interop, pytest.mark.slow]

REQUESTS = share(3_000, quick=200, daily=800)


def test_a_java_controller_and_ours_agree(tmp_path: Path) -> None:
    found = run_seed(tmp_path, DAY, REQUESTS)
    assert not found.lines, "\n".join(found.lines)
    assert found.fault or (found.requests >= REQUESTS and found.records > REQUESTS / 4)
