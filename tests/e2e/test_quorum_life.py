"""Three Quorate processes: elections, failover, restarts, voter changes, no lost record."""

import json
import random
import signal
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from interop.kafka import Quorum, new_uuid, wait_for
from interop.process import QUORATE, QuorateNode, run_tool
from narrow import not_none
from retries import DurabilityViolationError
from time_budget import DAY, one_day_in, share

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


FETCH_TIMEOUT = 20.0
"""Of a quorum with long timeouts, in seconds: who takes over sooner had no need to wait it out, however slow
the machine is."""


@contextmanager
def running(directory, **config):
    with Quorum(directory, dict.fromkeys((1, 2, 3), "quorate"), config=config) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


@pytest.fixture
def quorum(tmp_path):
    with running(tmp_path) as quorum:
        yield quorum


@pytest.fixture
def slow_quorum(tmp_path):
    fetch_timeout_ms = int(FETCH_TIMEOUT * 1000)
    with running(tmp_path, **{"controller.quorum.fetch.timeout.ms": fetch_timeout_ms}) as quorum:
        yield quorum


def records_of(node):
    """Every line that `quorate dump-log --json` prints of a node's logs and snapshots."""
    files = sorted([*node.partition.glob("*.log"), *node.partition.glob("*.checkpoint")])
    words = ["dump-log", "--cluster-metadata-decoder", "--json", "--files"]
    run = run_tool([*QUORATE, *words, ",".join(map(str, files))])
    assert run.returncode == 0, run.stderr
    return run.stdout


def assert_all_confirmed(quorum):
    quorum.wait_for_commit_by_all()
    for node in quorum.controllers:
        kept = records_of(node)
        lost = [name for name in quorum.acknowledged if name not in kept]
        if lost:
            raise DurabilityViolationError(f"{node} lost {len(lost)} of {len(quorum.acknowledged)}")


def test_a_killed_leader_is_replaced_as_soon_as_its_connections_break(slow_quorum):
    slow_quorum.write(20)
    leader = slow_quorum.leader()
    before = slow_quorum.wait_for_commit_by_all()
    leader.kill()
    start = time.monotonic()
    slow_quorum.write(1)
    assert time.monotonic() - start < FETCH_TIMEOUT / 2
    leader.start()
    view = slow_quorum.wait_for_commit_by_all()
    assert view.epoch > before.epoch
    assert_all_confirmed(slow_quorum)


def test_a_frozen_leader_is_replaced_and_follows_after_it_resumes(quorum):
    leader = quorum.leader()
    before = quorum.wait_for_commit_by_all()
    leader.freeze()
    quorum.write(5)
    leader.thaw()
    view = quorum.wait_for_commit_by_all()
    assert view.epoch > before.epoch
    assert view.leader != leader.id
    assert_all_confirmed(quorum)


def test_a_graceful_stop_hands_over_without_a_gap(slow_quorum):
    leader = slow_quorum.leader()
    start = time.monotonic()
    assert leader.kill(signal.SIGTERM) == 0
    slow_quorum.write(1)
    assert time.monotonic() - start < FETCH_TIMEOUT / 2
    leader.start()
    assert_all_confirmed(slow_quorum)


READS_FOR_EVER = """
import time
from quorate.storage.disk_storage import FileStorage
def open_for_ever(self):
    print("reading the log", flush=True)
    while True:
        time.sleep(0.01)
FileStorage.open = open_for_ever
from quorate.cli.main import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_during_recovery_is_clean(tmp_path, monkeypatch, number):
    def server_command(self, *args):
        return [sys.executable, "-c", READS_FOR_EVER, "server-start", str(self.properties), *args]

    monkeypatch.setattr(QuorateNode, "server_command", server_command)
    node = QuorateNode(1, tmp_path, {"controller.quorum.bootstrap.servers": "localhost:1"})
    node.format(new_uuid(), "--standalone")
    node.start()
    wait_for(lambda: "reading the log" in node.log, "the log to be read")
    not_none(node.process).send_signal(signal.SIGHUP)  # as of a log rotator: no reason to stop
    assert node.kill(number) == 0
    assert f"Received {number.name} during the start: stopped" in node.log


def test_a_restarted_quorum_keeps_its_state(quorum):
    quorum.write(20)
    before = quorum.wait_for_commit_by_all()
    for node in quorum.controllers:
        node.kill()
    for node in quorum.controllers:
        node.start()
    view = quorum.wait_for_commit_by_all()
    assert view.epoch > before.epoch
    assert view.voters.keys() == before.voters.keys()
    assert_all_confirmed(quorum)


def test_voters_are_added_and_removed(quorum):
    """A fourth voter is added and the leader removed; the other three continue."""
    fourth = quorum.join(4, "quorate")
    quorum.wait_until(
        lambda v: 4 in v.observers and v.observers[4].end_offset >= v.high_watermark, "node 4"
    )
    added = fourth.quorum_tool(
        *quorum.tool_arguments(), "--command-config", str(fourth.properties), "add-controller"
    )
    assert added.returncode == 0, added.stdout + added.stderr
    assert quorum.wait_for_commit_by_all().voters.keys() == {1, 2, 3, 4}
    leader = quorum.leader()
    removed = fourth.quorum_tool(
        *quorum.tool_arguments(),
        *("remove-controller", "-i", str(leader.id), "-d", leader.directory_id_text),
    )
    assert removed.returncode == 0, removed.stdout + removed.stderr
    view = quorum.wait_until(lambda v: v.leader != leader.id, "another leader")
    assert view.voters.keys() == {1, 2, 3, 4} - {leader.id}
    leader.kill()
    quorum.write(10)
    quorum.wait_for_commit_by_all()


def test_status_as_json_equals_the_table(quorum):
    node = quorum.leader()
    result = node.quorum_tool(*quorum.tool_arguments(), "describe", "--status", "--json")
    assert result.returncode == 0, result.stderr
    status = json.loads(result.stdout)
    text = node.quorum_tool(*quorum.tool_arguments(), "describe", "--status").stdout
    assert str(node.id) in text
    assert quorum.cluster_id in text
    assert quorum.cluster_id in result.stdout
    assert isinstance(status, dict)


class Writer(threading.Thread):
    """Writes through the current leader without end; the quorum must keep every acknowledged name."""

    def __init__(self, quorum):
        super().__init__(daemon=True)
        self.quorum = quorum
        self.ended = threading.Event()

    def run(self):
        while not self.ended.is_set():
            try:
                self.quorum.write(1, timeout=1.0)
            except AssertionError:
                continue  # nobody led for a second; the test waits for progress itself

    def wait_for_progress(self, records):
        target = len(self.quorum.acknowledged) + records
        wait_for(lambda: len(self.quorum.acknowledged) >= target, f"{records} more writes", 30)


def test_kills_lose_no_acknowledged_record(quorum):
    """A random node, often the leader, is killed at a random moment under load."""
    rounds = share(20, quick=5, daily=8)
    chance = random.Random(DAY)
    writer = Writer(quorum)
    writer.start()
    for _ in range(rounds):
        victim = chance.choice(quorum.controllers)
        writer.wait_for_progress(chance.randrange(1, 12))
        victim.kill()
        writer.wait_for_progress(2)
        victim.start()
    writer.ended.set()
    writer.join()
    assert len(quorum.acknowledged) > 3 * rounds
    assert_all_confirmed(quorum)


@one_day_in(2, 0)
def test_a_single_voter_keeps_every_acknowledged_record_through_kills(tmp_path):
    """Only the own disk can keep the record."""
    with Quorum(tmp_path, {1: "quorate"}) as quorum:
        quorum.format()
        quorum.start()
        node = quorum.leader()
        assert isinstance(node, QuorateNode)
        chance = random.Random(DAY)
        writer = Writer(quorum)
        writer.start()
        for _ in range(share(30, quick=5, daily=10)):
            writer.wait_for_progress(chance.randrange(1, 6))
            node.kill()
            node.start()
        writer.wait_for_progress(1)
        writer.ended.set()
        writer.join()
        assert_all_confirmed(quorum)
