"""`quorate quickstart --with-broker` without Java: the brokers are simulated, the sockets real."""

import os
import re

import pytest

from interop.process import QUORATE, run_tool
from quorate.cli.quickstart.java_broker import kafka_jars

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def no_jars(monkeypatch, tmp_path):
    """An environment without Kafka's jars, and a directory without them to run in."""
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setenv("QUORATE_KAFKA_LIBS", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_simulated_brokers_live_their_life(no_jars, tmp_path):
    data = tmp_path / "data"
    shown = run_tool([*QUORATE, "quickstart", "--with-broker", "--data", str(data)])
    assert (shown.returncode, shown.stderr) == (0, "")
    assert len(re.findall(r"broker 10[123] is in service, epoch \d+", shown.stdout)) == 3
    before, after = shown.stdout.split("broker 101 ended: the controller allows the shutdown")
    assert "leader 101" in before
    assert "leader 101" not in after
    assert len(re.findall(r"partition \d: leader 10[23], ", after)) == 3
    assert shown.stdout.endswith("All steps succeeded.\n")
    again = run_tool([*QUORATE, "quickstart", "--with-broker", "--data", str(data)])
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Resuming 3 controllers" in again.stdout


def test_the_tour_and_the_broker_exclude_each_other():
    refused = run_tool([*QUORATE, "quickstart", "--with-broker", "--tour"])
    assert refused.returncode == 1
    assert "exclude each other" in refused.stderr


def test_jars_are_used_with_java_only(no_jars, monkeypatch, tmp_path):
    home = tmp_path / "kafka"
    (home / "libs").mkdir(parents=True)
    (home / "libs" / "kafka_2.13-4.3.1.jar").touch()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(0o755)
    assert kafka_jars() is None
    monkeypatch.setenv("KAFKA_HOME", str(home))
    monkeypatch.setenv("PATH", str(java.parent), prepend=os.pathsep)
    assert kafka_jars() == home / "libs"
    monkeypatch.setenv("PATH", str(home))
    assert kafka_jars() is None
