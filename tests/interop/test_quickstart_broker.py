"""`quorate quickstart --with-broker` with Java: an unmodified broker joins three Quorate controllers."""

import os
import subprocess

import pytest

from interop.java import libs
from interop.process import QUORATE

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_a_record_goes_through_a_kafka_broker(tmp_path):
    shown = subprocess.run(
        [*QUORATE, "quickstart", "--with-broker", "--data", str(tmp_path / "data")],
        env={**os.environ, "QUORATE_KAFKA_LIBS": str(libs())},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (shown.returncode, shown.stderr) == (0, ""), shown.stdout
    assert "broker 101 is in service at 127.0.0.1:" in shown.stdout
    assert "consumed: a record through a Quorate quorum" in shown.stdout
    assert shown.stdout.endswith("All steps succeeded.\n")
