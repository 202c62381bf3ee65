"""Refused starts: a clear message, the right exit code, no traceback."""

import json
import re
import socket
import subprocess

import pytest

from interop.kafka import describe_quorum, new_uuid, wait_for
from interop.process import HOST, QUORATE, QuorateNode
from quorate.formats.records import FeatureLevelRecord
from quorate.log_dirs.formatter import bootstrap_checkpoint

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
def node(tmp_path):
    """One formatted node that does not run yet."""
    node = QuorateNode(1, tmp_path / "node1")
    node.config["controller.quorum.bootstrap.servers"] = node.address
    node.cluster_id = new_uuid()  # type: ignore[attr-defined]
    node.format(node.cluster_id, "--standalone")  # type: ignore[attr-defined]
    yield node
    node.stop()


def assert_refuses_to_start(node, *words, code=1):
    """The process exits with `code` and logs all `words`, without a traceback."""
    before = len(node.log)
    node.start()
    assert node.wait_for_exit() == code, node.log
    said = node.log[before:]
    for word in words:
        assert re.search(re.escape(str(word)), said, re.I), f"no '{word}' in: {said}"
    assert "Traceback" not in said


# The directory


def test_an_unformatted_directory_stops_the_start(tmp_path):
    node = QuorateNode(1, tmp_path / "node1")
    node.config["controller.quorum.bootstrap.servers"] = node.address
    assert_refuses_to_start(node, "meta.properties", node.data)


@pytest.mark.parametrize("properties", ["node.id=1\n", "", None])
def test_a_failed_start_is_a_json_line_with_log_format_json(tmp_path, properties):
    """The last line was for people whatever --log-format said."""
    path = tmp_path / "server.properties"
    if properties is not None:
        path.write_text(properties)
    command = [*QUORATE, "server-start", path, "--log-format", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    *_, last = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 1 and last["level"] == "ERROR"
    assert str(path) in last["message"] or "process.roles" in last["message"]


def test_a_directory_of_another_node_stops_the_start(node):
    node.id = 2
    assert_refuses_to_start(node, "node.id", "meta.properties")


def meta_properties(node, pattern, text):
    """Change a line of the node's meta.properties."""
    path = node.data / "meta.properties"
    path.write_text(re.sub(pattern, text, path.read_text(), flags=re.M))


@pytest.mark.parametrize(
    ("pattern", "text", "words"),
    [
        (r"^version=1$", "version=2", ("version 2", "newer release")),
        (r"^directory.id=.*$", "directory.id=abc", ("directory.id: 'abc'", "put the file back")),
    ],
)
def test_a_damaged_meta_properties_does_not_suggest_formatting(node, pattern, text, words):
    meta_properties(node, pattern, text)
    assert_refuses_to_start(node, node.data / "meta.properties", *words)
    assert "storage format" not in node.log


def test_a_voter_with_another_directory_id_logs_why_it_only_observes(node):
    voter = node.directory_id_text
    meta_properties(node, r"^directory.id=.*$", f"directory.id={new_uuid()}")
    node.start("--log-level", "warning")
    wait_for(lambda: "WARNING node 1: the voter set holds node 1" in node.log, "the warning")
    assert voter in node.log and node.directory_id_text in node.log


def test_a_directory_in_use(node):
    node.start()
    wait_for(lambda: describe_quorum(HOST, node.port), "the first process")
    second = QuorateNode(1, node.directory, node.config)
    assert_refuses_to_start(second, "lock", node.data)


def test_a_directory_that_cannot_be_written(tmp_path):
    node = QuorateNode(1, tmp_path / "node1", {"log.dirs": tmp_path / "file" / "data"})
    (tmp_path / "file").write_text("not a directory")
    node.config["controller.quorum.bootstrap.servers"] = node.address
    node.write_properties()
    run = node.storage_tool("format", "-t", new_uuid(), "-c", str(node.properties), "--standalone")
    assert run.returncode == 1
    assert str(tmp_path / "file") in run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    assert_refuses_to_start(node, tmp_path / "file")


def test_a_port_in_use(node):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, node.port))
        other.listen()
        assert_refuses_to_start(node, node.port, "in use")


BAD_SETTINGS = {
    "controller.quorum.voters": ("1@nonsense", "controller.quorum.voters"),
    "process.roles": ("broker,controller", "process.roles"),
    "node.id": ("minus one", "node.id"),
    "controller.quorum.election.timeout.ms": ("soon", "controller.quorum.election.timeout.ms"),
    "listeners": ("CONTROLLER://127.0.0.1:port", "listeners"),
}


@pytest.mark.parametrize("key", BAD_SETTINGS)
def test_a_bad_setting(node, key):
    value, word = BAD_SETTINGS[key]
    node.config[key] = value
    assert_refuses_to_start(node, word)


# Damaged files


@pytest.fixture
def written(node):
    """The node after it ran and was killed, with a log of some length."""
    node.config["metadata.max.idle.interval.ms"] = 20
    node.start()
    wait_for(lambda: (v := describe_quorum(HOST, node.port)) and v.high_watermark > 50, "a log", 30)
    node.kill()
    return node


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def log_of(node):
    return node.partition / "00000000000000000000.log"


def test_flipped_bytes_in_the_middle_of_the_log(written):
    log = log_of(written)
    flip(log, log.stat().st_size // 2)
    assert_refuses_to_start(written, log.name, "damaged at byte", "offset")


def test_a_torn_tail_is_truncated_and_the_node_starts(written):
    log = log_of(written)
    log.write_bytes(log.read_bytes()[:-7])
    written.start()
    wait_for(lambda: (v := describe_quorum(HOST, written.port)) and v.high_watermark > 50, "it")
    assert "Traceback" not in written.log


def test_a_quorum_state_that_is_not_json(written):
    (written.partition / "quorum-state").write_text('{"leaderId": 1, "lead')
    assert_refuses_to_start(written, "quorum-state")


def test_a_quorum_state_of_a_newer_version(written):
    path = written.partition / "quorum-state"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"data_version": 9}))
    assert_refuses_to_start(written, "quorum-state", "version", "9")


def test_a_damaged_snapshot(written):
    snapshot = written.partition / "00000000000000000000-0000000000.checkpoint"
    snapshot.chmod(0o644)
    flip(snapshot, snapshot.stat().st_size - 40)
    assert_refuses_to_start(written, snapshot.name)


def begin_with_an_unknown_version(node):
    """Change the directory as if other software had formatted it; returns the changed file."""
    path = node.data / "bootstrap.checkpoint"
    record = FeatureLevelRecord(name="metadata.version", feature_level=99)
    path.write_bytes(bootstrap_checkpoint([record], 0))
    return path


def test_a_new_cluster_at_an_unknown_metadata_version(node):
    path = begin_with_an_unknown_version(node)
    assert_refuses_to_start(node, path, "level 99", "this node supports levels")


def test_an_old_bootstrap_version_does_not_stop_a_start(written):
    begin_with_an_unknown_version(written)
    written.start()
    wait_for(
        lambda: (v := describe_quorum(HOST, written.port)) and v.leader == written.id, "it to lead"
    )


def test_meta_properties_without_its_cluster(written):
    (written.data / "meta.properties").write_text("version=1\nnode.id=1\n")
    assert_refuses_to_start(written, "meta.properties", "cluster.id")


def test_too_low_a_file_limit_stops_the_start(node):
    command = ["bash", "-c", 'ulimit -n 12; exec "$@"', "-", *map(str, QUORATE), "server-start"]
    ended = subprocess.run(
        [*command, str(node.properties)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 1
    assert "12 files open" in ended.stderr and "ulimit -Hn" in ended.stderr
    assert "Internal error" not in ended.stderr


def test_a_log_that_cannot_grow_stops_the_node(node, tmp_path):
    """As on a full disk: the node names the file and the reason, and acknowledged records stay."""
    node.config["metadata.max.idle.interval.ms"] = 5
    full = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *node.server_command()]
    node.server_command = lambda *args: full
    node.start()
    wait_for(lambda: re.search(r"(?i)too large|no space", node.log), "the disk to be full", 60)
    wait_for(lambda: not describe_quorum(HOST, node.port), "the node to stop leading")
    assert "00000000000000000000.log" in node.log
    assert "Traceback" not in node.log
    node.stop()
    del node.server_command
    node.start()
    wait_for(lambda: (v := describe_quorum(HOST, node.port)) and v.high_watermark > 100, "it")
