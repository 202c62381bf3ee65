"""Old snapshots and segments go, and a replica that needs what went fetches a snapshot instead.

Both kinds of node look for what may go once a minute. So that a test need not wait for it, both
are started in a way that makes it a second; what goes, and how, is theirs.
"""

import functools
import subprocess
import sys
from pathlib import Path

import pytest

from interop import kafka
from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.java import SERVER, JavaNode, libs
from interop.kafka import Quorum
from interop.process import QuorateNode, wait_for
from quorate.formats.files import parse_segment_name, parse_snapshot_name
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SMALL = {
    "internal.metadata.log.segment.bytes": 2000,
    "metadata.log.max.record.bytes.between.snapshots": 2000,
    "metadata.max.retention.bytes": 6000,
}

CLEANS_OFTEN = """
from dataclasses import replace
from quorate.server import settings
policy = settings.snapshot_policy
settings.snapshot_policy = lambda config: replace(policy(config), clean_interval_ms=1_000)
from quorate.cli.main import main
main()
"""


@functools.cache
def compiled(classes: Path) -> Path:
    source = Path(__file__).with_name("CleansOften.java")
    command = ["javac", "-cp", f"{libs()}/*", "-d", str(classes), str(source)]
    subprocess.run(command, check=True, timeout=60)
    return classes


class CleaningJava(JavaNode):
    def server_command(self, *args):
        command = super().server_command(*args)
        path = command.index("-cp") + 1
        command[path] += f":{compiled(self.directory.parent / 'classes')}"
        command[command.index(SERVER)] = "org.apache.kafka.common.utils.CleansOften"
        return command


class CleaningQuorate(QuorateNode):
    def server_command(self, *args):
        return [sys.executable, "-c", CLEANS_OFTEN, "server-start", str(self.properties), *args]


@pytest.fixture
def quorum(tmp_path, monkeypatch):
    monkeypatch.setattr(kafka, "KINDS", {"java": CleaningJava, "quorate": CleaningQuorate})
    kinds = {1: "quorate", 2: "java", 3: "java"}
    with Quorum(tmp_path, kinds, config=SMALL) as quorum:
        quorum.format()
        quorum.start()
        yield quorum


def segments(node):
    names = [path.name for path in node.partition.glob("*.log")]
    return sorted(base for name in names if (base := parse_segment_name(name)) is not None)


def snapshots(node):
    names = [path.name for path in node.partition.glob("*.checkpoint")]
    return sorted(filter(None, map(parse_snapshot_name, names)))


def write_until_cleaned(quorum, nodes, beyond=0):
    """Write until no node of `nodes` has a record before offset `beyond`, nor its first one."""

    def cleaned():
        quorum.write(10)
        return all(segments(node)[0] > beyond for node in nodes)

    wait_for(cleaned, f"{nodes} to drop what is before {beyond}: {list(map(segments, nodes))}")
    for node in nodes:
        assert_explains_its_log(node)


def assert_explains_its_log(node):
    """A snapshot holds all that is before its log. Read in the order in which both move on: more
    may be cleaned meanwhile, and Kafka cuts its log before it drops the older snapshots."""
    log_start = segments(node)[0]
    assert snapshots(node)[-1].offset >= log_start, f"{node} cannot explain its log"


def assert_began_with_a_snapshot(quorum, node, old_end):
    """What `node` has begins behind `old_end`, where it had nothing yet."""
    quorum.write(5)
    quorum.wait_for_commit_by_all()
    assert segments(node)[0] > old_end
    assert_explains_its_log(node)


def end_offset(quorum, node):
    return quorum.view().voters[node.id].end_offset


@one_day_in(2, 1)
def test_what_was_cleaned_is_fetched_as_a_snapshot_and_nothing_is_lost(quorum):
    quorate, java, other = quorum.controllers
    quorum.write(20)
    quorum.wait_for_commit_by_all()

    # A voter that sleeps while the others clean: Kafka's, under a leader of ours.
    quorum.hand_over(quorate)
    old_end = end_offset(quorum, other)
    other.kill()
    write_until_cleaned(quorum, [quorate, java], beyond=old_end + 50)
    assert quorum.leader() is quorate
    other.start()
    assert_began_with_a_snapshot(quorum, other, old_end)

    # Ours, under a leader of Kafka's.
    old_end = end_offset(quorum, quorate)
    quorate.kill()
    write_until_cleaned(quorum, [java, other], beyond=old_end + 50)
    quorate.start()
    assert_began_with_a_snapshot(quorum, quorate, old_end)
    assert quorum.leader().kind == "java"

    # One that has nothing at all.
    joins = {"controller.quorum.auto.join.enable": "true"}
    newcomer = quorum.join(4, "quorate", SMALL | joins)
    quorum.wait_until(lambda v: newcomer.id in v.voters, f"{newcomer} to join")
    assert_began_with_a_snapshot(quorum, newcomer, 0)

    # All start anew on what they have cleaned; then each on what the other kind has.
    for swap in (False, True):
        for node in quorum.controllers:
            node.kill()
        for node in quorum.controllers:
            if swap:
                node = quorum.swap(node.id, "java" if node.kind == "quorate" else "quorate")
            node.start()
        quorum.wait_for_commit_by_all()
        quorum.write(5)
    assert_nothing_is_lost(quorum)
    assert_java_is_content(quorum)
