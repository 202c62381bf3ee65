"""Our quorum and feature tools on a quorum that is Kafka's alone, beside Kafka's tools."""

import re
import subprocess

import pytest

from interop.java import FEATURES, METADATA_QUORUM, java_tool
from interop.kafka import Quorum
from interop.process import QUORATE, run_tool

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.xdist_group("quorum-tool")]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory):
    """Three voters, the observer 4, the broker 5; no NoOpRecords, so nothing moves by itself."""
    quiet = {"metadata.max.idle.interval.ms": 0}
    kinds = dict.fromkeys((1, 2, 3), "java")
    with Quorum(tmp_path_factory.mktemp("quorum-tool"), kinds, config=quiet) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        quorum.join(4, "java")
        quorum.add_broker(5)
        quorum.wait_until(lambda v: {4, 5} <= set(v.observers) and v.lag <= 0, "the observers")
        yield quorum


def ours(tool, *words):
    return run_tool([*QUORATE, tool, *words])


def theirs(tool, *words):
    main = {"metadata-quorum": METADATA_QUORUM, "features": FEATURES}[tool]
    return java_tool(main, *words)


def voters(quorum):
    return set(quorum.view().voters)


def broker(quorum):
    return ("--bootstrap-server", quorum.nodes[5].address)


def without_times(text):
    text = re.sub(r"(MaxFollowerLagTimeMs: +)\d+", r"\1<ms>", text)
    return re.sub(r"\b1[789]\d{11}\b", "<time>", text)


@pytest.mark.parametrize("words", [("--status",), ("--replication",)], ids=" ".join)
@pytest.mark.parametrize("through", ["controllers", "broker"])
def test_describe_to_the_byte(quorum, through, words):
    where = broker(quorum) if through == "broker" else quorum.tool_arguments()

    def described(tool):
        run = tool("metadata-quorum", *where, "describe", *words)
        assert run.returncode == 0, run
        return without_times(run.stdout)

    # A broker's heartbeat may write a record between the two calls: then they are made again.
    pairs = ((described(ours), described(theirs)) for _ in range(5))
    assert any(mine == kafkas for mine, kafkas in pairs)


def test_a_voter_comes_and_goes(quorum):
    node = quorum.nodes[4]
    where = quorum.tool_arguments()
    add = (*where, "--command-config", str(node.properties), "add-controller")
    remove = (*where, "remove-controller", "-i", "4", "-d", node.directory_id_text)
    for words in (add, remove):
        mine, kafkas = (tool("metadata-quorum", *words, "--dry-run") for tool in (ours, theirs))
        assert (mine.returncode, mine.stdout) == (kafkas.returncode, kafkas.stdout)
    assert voters(quorum) == {1, 2, 3}
    added = ours("metadata-quorum", *add)
    assert added.stdout == (
        f"Added controller 4 with directory id {node.directory_id_text} and endpoints: "
        f"CONTROLLER://{node.address}\n"
    )
    assert voters(quorum) == {1, 2, 3, 4}
    removed = theirs("metadata-quorum", *remove)
    assert removed.returncode == 0
    added_again = theirs("metadata-quorum", *add)
    assert added_again.stdout == added.stdout
    removed_again = ours("metadata-quorum", *remove)
    assert (removed_again.returncode, removed_again.stdout) == (0, removed.stdout)
    assert voters(quorum) == {1, 2, 3}


def test_refusals_of_the_leader_are_printed_in_its_words(quorum):
    where = quorum.tool_arguments()
    remove = ("remove-controller", "-i", "9", "-d", "AAAAAAAAAAAAAAAAAAAAAg")
    properties = str(quorum.nodes[1].properties)
    add = ("--command-config", properties, "add-controller")
    for words in (remove, add):
        mine, kafkas = (tool("metadata-quorum", *where, *words) for tool in (ours, theirs))
        assert mine.returncode == kafkas.returncode == 1
        error = re.match(r"org\.apache\.kafka\.common\.errors\.\w+: (.*)", kafkas.stderr)
        assert error, kafkas
        # The sets in Java's messages have no order.
        assert sorted_set(error[1]) in sorted_set(mine.stderr)
        assert len(mine.stderr.splitlines()) == 1


def sorted_set(text):
    return re.sub(r"\[(.*)\]", lambda m: str(sorted(m[1].split("), "))), text.replace(")]", "), ]"))


def test_through_a_broker_a_voter_changes_too(quorum):
    node = quorum.nodes[4]
    added = ours(
        *("metadata-quorum", *broker(quorum), "--command-config", str(node.properties)),
        "add-controller",
    )
    assert added.returncode == 0, added
    assert voters(quorum) == {1, 2, 3, 4}
    removed = ours(
        *("metadata-quorum", *broker(quorum), "remove-controller"),
        *("-i", "4", "-d", node.directory_id_text),
    )
    assert removed.returncode == 0, removed
    assert voters(quorum) == {1, 2, 3}


def entry(node):
    return f"{node.id}@{node.address}:{node.directory_id_text}"


def test_alter_replaces_any_voter_the_leader_too(quorum):
    where = quorum.tool_arguments()
    leader = quorum.leader()
    rest = sorted({1, 2, 3} - {leader.id})
    target = f"{rest[0]},{rest[1]},{entry(quorum.nodes[4])}"
    dry = ours("metadata-quorum", *where, "alter", "--target", target, "--dry-run")
    assert dry.returncode == 0
    assert [line.partition(" with ")[0] for line in dry.stdout.splitlines()] == [
        "DRY RUN of step 1 of 2: add controller 4",
        f"DRY RUN of step 2 of 2: remove controller {leader.id}",
    ]
    assert voters(quorum) == {1, 2, 3}
    run = ours("metadata-quorum", *where, "alter", "--target", target)
    assert run.returncode == 0, run
    assert run.stdout.count("committed in") == 2
    quorum.wait_until(lambda v: set(v.voters) == {*rest, 4}, "the new voters")
    back = f"{rest[0]},{rest[1]},{entry(leader)}"
    quorum.wait_until(lambda v: leader.id in v.observers, "the old leader to observe")
    assert ours("metadata-quorum", *where, "alter", "--target", back).returncode == 0
    quorum.wait_until(lambda v: set(v.voters) == {1, 2, 3}, "the old voters")
    again = ours("metadata-quorum", *where, "alter", "--target", "1,2,3")
    assert again.stdout == "The voter set is already the target.\n"


def test_alter_does_not_begin_what_cannot_end(quorum):
    where = quorum.tool_arguments()
    absent = f"9@{quorum.nodes[1].address}:AAAAAAAAAAAAAAAAAAAAAg"
    run = ours("metadata-quorum", *where, "alter", "--target", f"1,2,3,{absent}")
    assert run.returncode == 1
    assert "it does not fetch from the leader" in run.stderr
    run = ours("metadata-quorum", *where, "alter", "--target", "1,2,4")
    assert (run.returncode, run.stdout) == (1, "")
    assert "Controller 4 is not a voter" in run.stderr
    assert voters(quorum) == {1, 2, 3}


FEATURE_WORDS = [
    ("describe",),
    ("describe", "--node-id", "2"),
    ("upgrade", "--feature", "group.version=9"),
    ("upgrade", "--feature", "group.version=1", "--dry-run"),
    ("downgrade", "--feature", "group.version=0", "--feature", "share.version=0", "--dry-run"),
    ("disable", "--feature", "share.version", "--dry-run"),
    ("upgrade", "--release-version", "4.3", "--feature", "group.version=1"),
    ("upgrade",),
    ("upgrade", "--metadata", "4.3", "--dry-run"),
    ("downgrade", "--release-version", "3.9", "--dry-run"),
]


@pytest.mark.parametrize("words", FEATURE_WORDS, ids=" ".join)
def test_features(quorum, words):
    mine, kafkas = (tool("features", *quorum.tool_arguments(), *words) for tool in (ours, theirs))
    assert mine.returncode == kafkas.returncode, (mine, kafkas)
    assert re.sub(r"Epoch: \d+", "", mine.stdout) == re.sub(r"Epoch: \d+", "", kafkas.stdout)
    assert mine.stderr == kafkas.stderr


def test_the_shell_shows_kafkas_committed_metadata(quorum):
    run = ours("metadata-shell", "-C", quorum.bootstrap, "cat", "/control/leader/id")
    assert (run.returncode, run.stdout) == (0, f"{quorum.leader().id}\n"), run
    assert run.stderr.startswith(f"Cluster {quorum.cluster_id}, leader {quorum.leader().id}: ")
    run = ours("metadata-shell", "-C", quorum.bootstrap, "ls", "/image/cluster/brokers")
    assert (run.returncode, run.stdout.split()) == (0, ["5"]), run
    run = ours("metadata-shell", "-C", quorum.nodes[5].address, "ls")
    assert run.returncode == 1 and "must name controller listeners" in run.stderr, run


def test_describe_survives_the_leaders_death(quorum):
    """Asked while an election runs, the tool waits for the new leader instead of failing."""
    leader = quorum.leader()
    leader.kill()
    others = [node for node in quorum.controllers if node is not leader and node.id != 4]
    run: subprocess.CompletedProcess[str] = ours(
        "metadata-quorum", *quorum.tool_arguments([leader, *others]), "describe", "--status"
    )
    leader.start()
    assert run.returncode == 0, run
    found = re.search(r"LeaderId: +(\d+)", run.stdout)
    assert found and int(found[1]) in {node.id for node in others}
    quorum.wait_until(lambda v: leader.id in v.voters and v.lag <= 0, "the voter to return")
