"""`quorate metadata-quorum`: output, errors and interruption."""

import json
import re
import time
from typing import Any

import pytest

from cli.json_schema import fits
from client.fake_node import HANG_UP, FakeNode
from quorate.base.errors import ErrorCode
from quorate.base.ids import ReplicaKey, Uuid, uuid_to_text
from quorate.cli.json_schemas import schema_of
from quorate.formats.batch import encode_control_batch
from quorate.formats.meta_properties import MetaProperties
from quorate.log_dirs.meta_properties import write_meta_properties
from quorate.raft.values import LeaderChange, Voter, Voters
from quorate.wire.messages import (
    AddRaftVoterResponse,
    DescribeClusterResponse,
    DescribeQuorumResponse,
    FetchResponse,
    RemoveRaftVoterResponse,
    UnregisterControllerResponse,
)

PARTITION = DescribeQuorumResponse.TopicData.PartitionData
DIRECTORIES = {n: Uuid(bytes([n]) * 16) for n in range(1, 6)}
TEXTS = {n: uuid_to_text(directory) for n, directory in DIRECTORIES.items()}


def replica(node_id, offset=100, fetched=-1, caught_up=-1, directory=None):
    return PARTITION.ReplicaState(
        replica_id=node_id,
        replica_directory_id=DIRECTORIES[node_id] if directory is None else directory,
        log_end_offset=offset,
        last_fetch_timestamp=fetched,
        last_caught_up_timestamp=caught_up,
    )


def quorum(voters, observers=(), listeners=True, high_watermark=90):
    node = DescribeQuorumResponse.Node
    return DescribeQuorumResponse(
        topics=[
            DescribeQuorumResponse.TopicData(
                partitions=[
                    PARTITION(
                        leader_id=1,
                        leader_epoch=7,
                        high_watermark=high_watermark,
                        current_voters=list(voters),
                        observers=list(observers),
                    )
                ]
            )
        ],
        nodes=[
            node(
                node_id=voter.replica_id,
                listeners=[node.Listener(name="C", host="h", port=9000 + voter.replica_id)],
            )
            for voter in voters
        ]
        if listeners
        else [],
    )


def log_answer(high_watermark, records=b""):
    """What leader 1 of epoch 7 answers to Fetch."""
    topic = FetchResponse.FetchableTopicResponse
    leader = topic.PartitionData.LeaderIdAndEpoch(leader_id=1, leader_epoch=7)
    partition = topic.PartitionData(
        high_watermark=high_watermark, current_leader=leader, records=records
    )
    return FetchResponse(responses=[topic(partitions=[partition])])


USUAL = quorum(
    [replica(2, 95, 4000, 3000), replica(1, 100, 5000, 5000), replica(3, 98, 4500, 4400)],
    [replica(4, 50, -1, -1)],
)


@pytest.fixture
def node():
    """A quorum of only leader 1."""
    with FakeNode({"DescribeQuorumRequest": [USUAL], "FetchRequest": [log_answer(90)]}) as node:
        node.answers["DescribeClusterRequest"] = [
            DescribeClusterResponse(
                cluster_id="abc",
                controller_id=1,
                brokers=[
                    DescribeClusterResponse.DescribeClusterBroker(
                        broker_id=1, host=node.address.host, port=node.address.port
                    )
                ],
            )
        ]
        yield node


@pytest.fixture
def tool(quorate, node):
    """Run the tool against the node."""

    def tool(*arguments):
        return quorate("metadata-quorum", "--bootstrap-controller", node.address, *arguments)

    return tool


def test_status(tool):
    assert tool("describe", "--status").out == (
        "ClusterId:              abc\n"
        "LeaderId:               1\n"
        "LeaderEpoch:            7\n"
        "HighWatermark:          90\n"
        "MaxFollowerLag:         5\n"
        "MaxFollowerLagTimeMs:   2000\n"
        f'CurrentVoters:          [{{"id": 2, "directoryId": "{TEXTS[2]}", "endpoints": '
        f'["C://h:9002"]}}, {{"id": 1, "directoryId": "{TEXTS[1]}", "endpoints": ["C://h:9001"]}}, '
        f'{{"id": 3, "directoryId": "{TEXTS[3]}", "endpoints": ["C://h:9003"]}}]\n'
        f'CurrentObservers:       [{{"id": 4, "directoryId": "{TEXTS[4]}"}}]\n'
    )


def test_options_may_be_abbreviated_as_in_kafka(quorate, tool, node):
    whole = tool("describe", "--status")
    assert tool("describe", "--stat") == whole
    assert quorate("metadata-quorum", "--bootstrap-c", node.address, "describe", "--st") == whole
    unclear = quorate("metadata-quorum", "--bootstrap", node.address, "describe", "--status")
    assert unclear.code == 1 and "--bootstrap" in unclear.err


def test_a_number_beyond_int32_is_refused_before_connecting(quorate):
    outcome = quorate(
        *("metadata-quorum", "--bootstrap-controller", "127.0.0.1:1", "remove-controller"),
        *("-i", "99999999999", "-d", "JEXY6aqzQY-32P5TStzaFg"),
    )
    assert outcome.code == 1 and "'-i'" in outcome.err and "2147483647" in outcome.err


def test_the_status_of_one_voter_without_directory_or_listeners(tool, node):
    lone = replica(1, 100, 5000, 5000, Uuid(bytes(16)))
    node.answers["DescribeQuorumRequest"] = [quorum([lone], listeners=False)]
    lines = tool("describe", "--status").out.splitlines()
    assert lines[4:] == [
        "MaxFollowerLag:         0",
        "MaxFollowerLagTimeMs:   0",
        'CurrentVoters:          [{"id": 1}]',
        "CurrentObservers:       []",
    ]


def test_a_follower_that_never_fetched_has_no_lag_in_time(tool, node):
    node.answers["DescribeQuorumRequest"] = [quorum([replica(1, 9, 5, 5), replica(2, -1)])]
    lines = tool("describe", "--status").out.splitlines()
    assert lines[4:6] == ["MaxFollowerLag:         10", "MaxFollowerLagTimeMs:   -1"]


def test_status_in_json(tool):
    facts = json.loads(tool("describe", "--status", "--json").out)
    assert (facts["leaderId"], facts["maxFollowerLag"], facts["clusterId"]) == (1, 5, "abc")
    assert facts["currentVoters"][0] == {
        "id": 2,
        "directoryId": TEXTS[2],
        "endpoints": ["C://h:9002"],
    }


def test_replication(tool):
    rows = [line.split("\t") for line in tool("describe", "--replication").out.splitlines()]
    assert [[cell.strip() for cell in row] for row in rows] == [
        [
            *("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp"),
            *("LastCaughtUpTimestamp", "Status", ""),
        ],
        ["1", TEXTS[1], "100", "0", "5000", "5000", "Leader", ""],
        ["2", TEXTS[2], "95", "5", "4000", "3000", "Follower", ""],
        ["3", TEXTS[3], "98", "2", "4500", "4400", "Follower", ""],
        ["4", TEXTS[4], "50", "50", "-1", "-1", "Observer", ""],
    ]
    assert len({len(row) for row in rows}) == 1
    assert [len(cell) for cell in rows[0]] == [len(cell) for cell in rows[1]]


@pytest.mark.parametrize("behind_ms", [1, 1000, 4500, 1_000_000])
def test_ages_use_the_leaders_clock_where_it_is_later(tool, monkeypatch, behind_ms):
    """Kafka's tool ends with "possible drift in system clock" here."""
    monkeypatch.setattr(time, "time", lambda: (5000 - behind_ms) / 1000)
    outcome = tool("describe", "--replication", "--human-readable")
    assert [line.split("\t")[4:6] for line in outcome.out.splitlines()[1:]] == [
        ["0 ms ago          ", "0 ms ago             "],
        ["1000 ms ago       ", "2000 ms ago          "],
        ["500 ms ago        ", "600 ms ago           "],
        ["-1                ", "-1                   "],
    ]
    assert f"The clock of leader 1 is {behind_ms} ms ahead of this machine's" in outcome.err


@pytest.mark.parametrize("leader_ms", [-1, 3000])
def test_a_time_that_no_clock_has_reached_is_in_the_future(tool, node, monkeypatch, leader_ms):
    """The leader's clock was set back, or the leader does not tell its time."""
    monkeypatch.setattr(time, "time", lambda: 3.0)
    node.answers["DescribeQuorumRequest"] = [
        quorum([replica(1, 100, leader_ms, leader_ms), replica(2, 95, 4000, 2000)])
    ]
    line = tool("describe", "--replication", "--human-readable").out.splitlines()[2]
    assert [cell.rstrip() for cell in line.split("\t")[4:6]] == [
        "1000 ms in the future (clock drift)",
        "1000 ms ago",
    ]


def test_replication_with_human_readable_times(tool, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 5.25)
    out = tool("describe", "--replication", "--human-readable").out
    cells = [[cell.strip() for cell in line.split("\t")] for line in out.splitlines()]
    assert [row[4:6] for row in cells[1:]] == [
        ["250 ms ago", "250 ms ago"],
        ["1250 ms ago", "2250 ms ago"],
        ["750 ms ago", "850 ms ago"],
        ["-1", "-1"],
    ]


def test_replication_in_json(tool):
    rows = json.loads(tool("describe", "--replication", "--json").out)
    assert [row["nodeId"] for row in rows] == [1, 2, 3, 4]
    assert rows[1]["lastFetchTimestamp"] == 4000


def voters(*ids):
    return Voters(tuple(Voter(ReplicaKey(n, DIRECTORIES[n]), ()) for n in ids))


@pytest.mark.parametrize(
    ("committed", "pending", "rows"),
    [
        ((1, 2), (1, 2, 4), {"UncommittedAddedVoter": 4}),
        ((1, 2, 4), (1, 2), {"UncommittedRemovedVoter": 4}),
        ((1, 2), (1, 2), {}),
    ],
)
def test_an_uncommitted_change_of_the_voters_is_shown(node, tool, committed, pending, rows):
    log = (
        encode_control_batch(0, 7, 1, [LeaderChange(1, (1,), (1,)), voters(*committed)]),
        encode_control_batch(2, 7, 1, [voters(*pending)]),
    )

    def fetched(request):
        offset = request.topics[0].partitions[0].fetch_offset
        return log_answer(2, b"".join(log) if offset == 0 else log[1])

    node.answers["FetchRequest"] = fetched
    node.answers["DescribeQuorumRequest"] = [
        quorum([replica(1, 3), replica(2, 2)], high_watermark=2)
    ]
    lines = tool("describe", "--status").out.splitlines()[8:]
    assert lines == [
        f'{name + ": ":<24}[{{"id": {n}, "directoryId": "{TEXTS[n]}"}}]' for name, n in rows.items()
    ]
    facts = json.loads(tool("describe", "--status", "--json").out)
    assert {name: [{"id": n, "directoryId": TEXTS[n]}] for name, n in rows.items()} == {
        name[0].upper() + name[1:]: value for name, value in facts.items() if "ncommitted" in name
    }
    assert fits(schema_of("metadata-quorum"), facts)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "One of --status or --replication must be specified"),
        (("--status", "--replication"), "Only one of --status or --replication should be"),
        (("--status", "--human-readable"), "only supported along with --replication"),
    ],
)
def test_describe_needs_exactly_one_mode(tool, words, message):
    outcome = tool("describe", *words)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("describe", "--status"),
            "one of the arguments --bootstrap-server --bootstrap-controller",
        ),
        (
            ("--bootstrap-server", "a:1", "--bootstrap-controller", "b:1", "describe", "--status"),
            "not allowed with argument --bootstrap-server",
        ),
        (
            ("--bootstrap-controller", "a", "describe", "--status"),
            "Invalid url in bootstrap.controllers: a",
        ),
        (
            ("--bootstrap-server", ",", "describe", "--status"),
            "No resolvable bootstrap urls given in bootstrap.servers",
        ),
        (
            ("--bootstrap-server", "a:1", "--command-config", "nowhere", "describe", "--status"),
            "Cannot read nowhere: No such file or directory",
        ),
    ],
)
def test_an_invalid_bootstrap_list_is_refused(quorate, words, message):
    outcome = quorate("metadata-quorum", *words)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err


def test_a_client_file_sets_timeouts_and_kerberos_is_refused(tool, tmp_path, node):
    path = tmp_path / "client.properties"
    path.write_text("client.id=me\nrequest.timeout.ms=5000\n")
    assert tool("--command-config", path, "describe", "--status").code == 0
    assert node.requests[0].client_id == "me"
    path.write_text("security.protocol=SASL_SSL\n")
    outcome = tool("--command-config", path, "describe", "--status")
    assert outcome.code == 1
    assert "sasl.mechanism: GSSAPI (Kerberos), Kafka's default, is not supported" in outcome.err
    path.write_text("request.timeout.ms=soon\n")
    assert "line 1" in tool("--command-config", path, "describe", "--status").err


@pytest.fixture
def controller(tmp_path):
    """The properties file of the formatted controller 4; a function of changes."""

    def controller(**changes):
        write_meta_properties(str(tmp_path), MetaProperties(1, "abc", 4, DIRECTORIES[4]))
        values = {
            "node_id": 4,
            "process_roles": "controller",
            "log_dirs": tmp_path,
            "listeners": "C://:9004,D://d:1",
            "advertised_listeners": "C://[::1]:9004",
            "controller_listener_names": "c,D",
        } | changes
        path = tmp_path / "server.properties"
        lines = [f"{k.replace('_', '.')}={v}\n" for k, v in values.items() if v is not None]
        path.write_text("".join(lines))
        return path

    return controller


def test_add_controller(tool, node, controller):
    node.answers["AddRaftVoterRequest"] = [AddRaftVoterResponse()]
    said = f"controller 4 with directory id {TEXTS[4]} and endpoints: C://[::1]:9004, D://d:1\n"
    words = ("--command-config", controller(), "add-controller")
    assert tool(*words, "--dry-run").out == f"DRY RUN of adding {said}"
    assert node.asked("AddRaftVoterRequest") == []
    assert tool(*words).out == f"Added {said}"
    (request,) = node.asked("AddRaftVoterRequest")
    assert [(each.name, each.host) for each in request.listeners] == [("C", "::1"), ("D", "d")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_id": None}, "node.id not found in configuration file."),
        ({"node_id": -1}, "node.id was negative in configuration file."),
        ({"process_roles": "broker"}, "process.roles did not contain 'controller'"),
        ({"log_dirs": None}, "Neither metadata.log.dir nor log.dirs were found."),
        ({"metadata_log_dir": "nowhere"}, "Unable to read meta.properties from nowhere"),
        ({"controller_listener_names": None}, "controller.listener.names was not found."),
        ({"controller_listener_names": "X"}, "about controller listener name: X"),
        ({"listeners": "nonsense"}, "Unable to parse nonsense to a broker endpoint"),
    ],
)
def test_add_controller_refuses_other_files_than_a_controllers(
    tool, node, controller, changes, message
):
    outcome = tool("--command-config", controller(**changes), "add-controller")
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert node.asked("AddRaftVoterRequest") == []


def test_add_controller_needs_a_file(tool):
    assert "You must supply the configuration file of the controller" in tool("add-controller").err


def test_remove_controller(tool, node):
    node.answers["RemoveRaftVoterRequest"] = [RemoveRaftVoterResponse()]
    words = ("remove-controller", "-i", 3, "-d", TEXTS[3])
    said = f" KRaft controller 3 with directory id {TEXTS[3]}\n"
    assert tool(*words, "--dry-run").out == f"DRY RUN of removing {said}"
    assert node.asked("RemoveRaftVoterRequest") == []
    assert tool(*words).out == f"Removed {said}"


REMOVE_3 = ("remove-controller", "-i", 3, "-d", TEXTS[3])
REMOVED_3 = f"KRaft controller 3 with directory id {TEXTS[3]}\n"
HINT = (
    "To unregister the controller from the cluster, run "
    "`kafka-cluster.sh unregister-controller --id 3`."
)


def test_remove_controller_also_unregisters(tool, node):
    """Of Kafka 4.4, with the blanks of its texts."""
    node.answers["RemoveRaftVoterRequest"] = [RemoveRaftVoterResponse()]
    node.answers["UnregisterControllerRequest"] = [UnregisterControllerResponse()]
    assert tool(*REMOVE_3, "--unregister", "--dry-run").out == (
        f"DRY RUN of removing {REMOVED_3}DRY RUN of unregistering KRaft controller 3\n"
    )
    assert node.asked("UnregisterControllerRequest") == []
    outcome = tool(*REMOVE_3, "--unregister")
    assert outcome == (0, f"Removed {REMOVED_3}Unregistered KRaft controller 3\n", "")
    assert [request.controller_id for request in node.asked("UnregisterControllerRequest")] == [3]


@pytest.mark.parametrize("reason", ["too old", "too old."])
def test_a_removal_remains_when_unregistering_is_refused(tool, node, reason):
    refusal = UnregisterControllerResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=reason
    )
    node.answers["RemoveRaftVoterRequest"] = [RemoveRaftVoterResponse()]
    node.answers["UnregisterControllerRequest"] = [refusal]
    code, out, err = tool(*REMOVE_3, "--unregister")
    assert (code, out) == (1, f"Removed {REMOVED_3}")
    assert err == f"Failed to unregister controller 3: too old. {HINT}\n"


def test_a_removal_remains_when_the_node_cannot_unregister(tool, node):
    """A node of Kafka 4.3 has no such API."""
    node.answers["RemoveRaftVoterRequest"] = [RemoveRaftVoterResponse()]
    del node.versions[94]
    code, out, err = tool(*REMOVE_3, "--unregister")
    assert (code, out) == (1, f"Removed {REMOVED_3}")
    assert re.match(r"Failed to unregister controller 3: .* does not support Unreg.*\. To un", err)


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (ErrorCode.VOTER_NOT_FOUND, True),
        (ErrorCode.UNSUPPORTED_VERSION, True),
        (ErrorCode.INVALID_REQUEST, False),
    ],
)
def test_a_refused_removal_suggests_unregistering_where_that_may_help(tool, node, error, hint):
    refusal = RemoveRaftVoterResponse(error_code=error, error_message="why.")
    node.answers["RemoveRaftVoterRequest"] = [refusal]
    code, out, err = tool(*REMOVE_3, "--unregister")
    assert (code, out) == (1, "") and node.asked("UnregisterControllerRequest") == []
    if hint:
        assert err == f"Failed to remove KRaft voter 3: why. {HINT}\n"
    else:
        assert "why" in err and HINT not in err
    assert HINT not in tool(*REMOVE_3).err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-i", "-3", "-d", TEXTS[3]), "Invalid negative --controller-id: -3"),
        (("-i", "3", "-d", "x"), "Failed to parse --controller-directory-id: 'x' is not a uuid"),
        (("-i", "x", "-d", TEXTS[3]), "'x' is not a whole number"),
        (("-i", "3"), "Missing option '--controller-directory-id'"),
    ],
)
def test_remove_controller_needs_an_id_and_a_directory_id(tool, words, message):
    outcome = tool("remove-controller", *words)
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err


@pytest.fixture
def living(node):
    """The node answers as a quorum of 1, 2, 3 with the observer 4 that changes as it is asked."""
    voters, observers = {1, 2, 3}, {4}

    def describe(_):
        rows = {n: replica(n, 100, 5000, 5000) for n in voters | observers}
        current, others = ([rows[n] for n in sorted(ids)] for ids in (voters, observers))
        return quorum(current, others, high_watermark=100)

    def add(request):
        observers.discard(request.voter_id)
        voters.add(request.voter_id)
        return AddRaftVoterResponse()

    def remove(request):
        voters.discard(request.voter_id)
        observers.add(request.voter_id)
        return RemoveRaftVoterResponse()

    node.answers |= {
        "DescribeQuorumRequest": describe,
        "AddRaftVoterRequest": add,
        "RemoveRaftVoterRequest": remove,
    }
    return voters


TARGET = f"1,3,4@h:9004:{TEXTS[4]}"


def test_alter_dry_run(tool, living):
    assert tool("alter", "--target", TARGET, "--dry-run").out == (
        f"DRY RUN of step 1 of 2: add controller 4 with directory id {TEXTS[4]} at h:9004\n"
        f"DRY RUN of step 2 of 2: remove controller 2 with directory id {TEXTS[2]}\n"
    )
    assert living == {1, 2, 3}


def test_alter_dry_run_waits_for_fetches_to_a_new_leader(tool, living, node, monkeypatch):
    describe = node.answers["DescribeQuorumRequest"]
    looks: list[Any] = []

    def no_node_at_first(request):
        answer = describe(request)
        looks.append(len(looks))
        if len(looks) < 3:
            answer.topics[0].partitions[0].current_voters[1].last_fetch_timestamp = -1
        return answer

    node.answers["DescribeQuorumRequest"] = no_node_at_first
    monkeypatch.setattr("quorate.client.alter._POLL_S", 0)
    assert tool("alter", "--target", "1,2", "--dry-run").out.count("DRY RUN of step") == 1
    assert len(looks) == 3


def test_alter_dry_run_warns_of_a_controller_that_does_not_fetch(tool, living):
    target = f"1,4@h:9004:{TEXTS[4]},5@h:9005:{TEXTS[5]}"
    outcome = tool("alter", "--target", target, "--dry-run")
    assert outcome.out.count("DRY RUN of step") == 4
    assert outcome.err == (
        f"Warning: this step would fail now. Cannot add controller 5 with directory id {TEXTS[5]} "
        "at h:9005: it does not fetch from the leader. Format it with --no-initial-controllers, "
        "start it, and check that 'describe --replication' shows it as an observer with this "
        "directory id.\n"
    )
    assert tool("alter", "--target", TARGET, "--dry-run").err == ""


def test_alter_takes_no_step_before_all_new_voters_fetch(tool, living, monkeypatch):
    monkeypatch.setattr("quorate.client.alter.FETCH_WAIT_S", 0)
    outcome = tool("alter", "--target", f"1,2,3@h:9003:{TEXTS[5]}")
    assert (outcome.code, outcome.out) == (1, "")
    assert "Cannot add controller 3" in outcome.err
    assert living == {1, 2, 3}


def test_alter(tool, living):
    lines = tool("alter", "--target", TARGET).out.splitlines()
    assert lines[0].startswith("Step 1 of 2: add controller 4 with")
    assert lines[1].startswith("Step 2 of 2: remove controller 2 with")
    assert lines[2] == "The voters are now 1, 3, 4."
    assert living == {1, 3, 4}
    assert tool("alter", "--target", TARGET).out == "The voter set is already the target.\n"


def test_alter_warns_when_the_bootstrap_list_loses_its_voters(tool, living, node):
    describe = node.answers["DescribeQuorumRequest"]

    def with_the_address_asked(request):
        answer = describe(request)
        answer.nodes[0].listeners[0].host, answer.nodes[0].listeners[0].port = node.address
        return answer

    node.answers["DescribeQuorumRequest"] = with_the_address_asked
    assert tool("alter", "--target", TARGET, "--dry-run").err == ""
    outcome = tool("alter", "--target", f"2,3,4@h:9004:{TEXTS[4]}", "--dry-run")
    assert outcome.err.startswith(f"Warning: no voter will be at {node.address} afterwards.")
    assert "one of h:9004, h:9002, h:9003 for --bootstrap" in outcome.err


def test_alter_in_json_prints_one_object_per_line(tool, living):
    facts = [
        json.loads(line)
        for line in tool("alter", "--target", TARGET, "--json").out.split("\n")[:-1]
    ]
    assert [(fact["action"], fact["id"], fact["state"]) for fact in facts] == [
        ("add", 4, "committed"),
        ("remove", 2, "committed"),
    ]


def test_alter_dry_run_in_json_has_separate_fields(tool, living):
    lines = tool("alter", "--target", TARGET, "--dry-run", "--json").out.splitlines()
    facts = [json.loads(line) for line in lines]
    assert [(fact["state"], fact["action"], fact["id"]) for fact in facts] == [
        ("planned", "add", 4),
        ("planned", "remove", 2),
    ]
    assert living == {1, 2, 3}


@pytest.mark.parametrize("flags", [(), ("--dry-run",)])
def test_alter_without_steps_reports_unchanged_in_json(tool, living, flags):
    outcome = tool("alter", "--target", "1,2,3", "--json", *flags)
    assert (outcome.code, json.loads(outcome.out)) == (0, {"state": "unchanged"})


def test_an_interrupted_alter_prints_how_to_continue(tool, living, node, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("quorate.client.admin.quorum.QuorumCalls.remove_voter", interrupt)
        outcome = tool("alter", "--target", TARGET)
    assert outcome.code == 130
    assert "Stopped after 1 committed steps" in outcome.err
    assert living == {1, 2, 3, 4}
    assert tool("alter", "--target", TARGET).out.startswith("Step 1 of 1: remove controller 2")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "No voters given."),
        ("1,9", "Controller 9 is not a voter: write it as id@host:port:directory-id"),
        ("1,1", "Node id 1 was specified more than once."),
        ("1,4@h", "No colon following hostname could be found."),
        (f"1,2,3,5@h:1:{TEXTS[5]}", "it does not fetch from the leader"),
    ],
)
def test_alter_refuses_an_invalid_target(tool, living, target, message, monkeypatch):
    monkeypatch.setattr("quorate.client.alter.FETCH_WAIT_S", 0)
    outcome = tool("alter", "--target", target)
    assert outcome.code == 1
    assert message in outcome.err
    assert living == {1, 2, 3}


def test_a_lost_connection_is_a_one_line_error(tool, node, tmp_path):
    node.answers["DescribeQuorumRequest"] = [HANG_UP]
    path = tmp_path / "client.properties"
    path.write_text("default.api.timeout.ms=50\nretry.backoff.ms=1\n")
    outcome = tool("--command-config", path, "describe", "--status")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f"The connection to {node.address} broke: the node closed it\n"
