"""UnregisterController between controllers and tools of Kafka 4.4.0 and ours (KIP-1312)."""

import json

import pytest

from interop.java import DUMP_LOG, FEATURES, KAFKA_4_4, METADATA_QUORUM, java_tool
from interop.kafka import Quorum
from interop.process import QUORATE, run_tool, wait_for
from quorate.base.ids import Address
from quorate.client import Admin, ClientConfig

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CLUSTER = "org.apache.kafka.tools.ClusterTool"
ABSENT = "AAAAAAAAAAAAAAAAAAAAAg"
QUIET = {"metadata.max.idle.interval.ms": 0}


def ours(tool, *words):
    return run_tool([*QUORATE, tool, *words])


def theirs(main, *words):
    return java_tool(main, *words, release=KAFKA_4_4)


def registered(quorum):
    """The registered controllers that the quorum describes."""
    bootstrap = tuple(Address("127.0.0.1", node.port) for node in quorum.controllers)
    with Admin(ClientConfig(bootstrap, controllers=True)) as admin:
        return set(admin.describe_cluster().nodes)


def unregister(quorum, controller_id):
    """By Kafka's tool."""
    run = theirs(CLUSTER, "unregister-controller", *quorum.tool_arguments(), "--id", controller_id)
    assert run.returncode == 0, run
    assert run.stdout == f"Controller {controller_id} is no longer registered.\n"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A controller of ours at level 33, with registrations 1001 to 1003 of controllers that are gone."""
    kinds = {1: "quorate"}
    with Quorum(tmp_path_factory.mktemp("alone"), kinds, config=QUIET) as quorum:
        quorum.format("--release-version", "4.4")
        quorum.start()
        quorum.leader()
        quorum.write(3)
        yield quorum


def test_both_tools_unregister(alone):
    assert registered(alone) == {1, 1001, 1002, 1003}
    unregister(alone, "1001")
    assert registered(alone) == {1, 1002, 1003}


@pytest.mark.parametrize(
    "words",
    [
        ("-i", "1002", "-d", ABSENT, "--unregister", "--dry-run"),
        ("-i", "1002", "-d", ABSENT, "--unregister"),
    ],
    ids=["dry run", "not a voter"],
)
def test_the_tools_say_the_same_of_unregistering(alone, words):
    where = (*alone.tool_arguments(), "remove-controller", *words)
    mine, kafkas = ours("metadata-quorum", *where), theirs(METADATA_QUORUM, *where)
    assert (mine.returncode, mine.stdout) == (kafkas.returncode, kafkas.stdout)
    assert mine.stderr == kafkas.stderr
    assert 1002 in registered(alone)


def test_levels_of_4_4_are_shown_as_kafkas_tool_shows_them(alone):
    where = (*alone.tool_arguments(), "describe")
    mine, kafkas = ours("features", *where), theirs(FEATURES, *where)
    assert (mine.returncode, mine.stdout) == (kafkas.returncode, kafkas.stdout)
    assert "4.4-IV2" in mine.stdout


def test_a_controller_of_either_kind_registers_again_and_reads_the_record(tmp_path):
    kinds = {1: "quorate", 2: "java-4.4", 3: "quorate"}
    with Quorum(tmp_path, kinds, config=QUIET) as quorum:
        quorum.format("--release-version", "4.4")
        quorum.start()
        quorum.leader()
        wait_for(lambda: registered(quorum) == {1, 2, 3}, "the registrations")
        # A leader of each kind unregisters a running controller of the other kind.
        for leader, other in ((1, 2), (2, 1)):
            quorum.hand_over(quorum.nodes[leader])
            unregister(quorum, str(other))
            wait_for(lambda: registered(quorum) == {1, 2, 3}, "the registration to come back")
        quorum.wait_until(lambda v: v.lag <= 0, "all records everywhere")
        quorum.stop()
        assert [dump_of(node) for node in quorum.controllers] == [[2, 1]] * 3


def dump_of(node):
    """The controllers that the node's log unregisters; both tools print the same of it."""
    (log,) = (node.data / "__cluster_metadata-0").glob("*.log")
    words = ("--cluster-metadata-decoder", "--files", str(log))
    mine, kafkas = ours("dump-log", *words), theirs(DUMP_LOG, *words)
    assert mine.stdout == kafkas.stdout
    found = [
        json.loads(line.partition("payload: ")[2])
        for line in mine.stdout.splitlines()
        if "UNREGISTER_CONTROLLER_RECORD" in line
    ]
    return [record["data"]["controllerId"] for record in found]
