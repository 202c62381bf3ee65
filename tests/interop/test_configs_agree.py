"""Java's admin client gets the same answers about configs from our controllers as from Kafka's."""

import re
from pathlib import Path

import pytest

from interop.checks import assert_java_is_content
from interop.java import libs
from interop.kafka import Quorum
from interop.process import run_tool, wait_for

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SOURCE = Path(__file__).with_name("ConfigRequests.java")
FILE = {
    "log.retention.hours": 3,
    "log.segment.bytes": 2_000_000,
    "log.roll.jitter.ms": 5,
    "compression.type": "zstd",
    "plugin.key": "may be a secret",
    "listener.name.x.ssl.keystore.location": "/x",
    "log.cleaner.min.cleanable.ratio": "0.0001",
}
OF_THE_NODE = re.compile(
    r"^describe ConfigResource\(type=BROKER, name='1'\)\t(listeners|advertised\.listeners|log\.dirs?|"
    r"metadata\.log\.dir|controller\.quorum\.[a-z.]+|quorate\.[a-z.]+|node\.id|process\.roles)\t"
)
"""Configs that differ between two nodes, whatever program they run."""


def test_java_clients_get_kafkas_answers(tmp_path):
    """One cluster of each kind, side by side, each with a Java broker."""
    with (
        Quorum(tmp_path / "ours", {1: "quorate"}, config=FILE) as ours,
        Quorum(tmp_path / "theirs", {1: "java"}, config=FILE) as theirs,
    ):
        both = (ours, theirs)
        for quorum in both:
            quorum.format()
            quorum.start()
        brokers = [quorum.add_broker(11) for quorum in both]
        words = []
        for quorum, broker in zip(both, brokers, strict=True):
            wait_for(lambda broker=broker: broker.answers, "the broker", 60)
            words += [broker.address, quorum.nodes[1].address, "1"]
        run = run_tool(["java", "-cp", f"{libs()}/*", str(SOURCE), *words], timeout=120)
        assert run.returncode == 0, run
        for quorum in both:
            assert_java_is_content(quorum)
    lines = [line for line in run.stdout.splitlines() if not OF_THE_NODE.match(line)]
    middle = lines.index("next")
    assert lines[:middle] == lines[middle + 1 : -1]
    assert middle > 500
