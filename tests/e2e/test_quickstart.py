"""`quorate quickstart`: start, stop, copy, resume and tour."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from interop.process import QUORATE, free_port, run_tool, wait_for
from quorate.cli.quickstart import tour
from quorate.cli.quickstart.quorum_directory import QuickstartNode, QuorumDirectory
from quorate.cli.quickstart.supervisor import Supervisor
from quorate.client import QuorumInfo, ReplicaStatus

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


class Quickstart:
    """One run of `quorate quickstart` and what it has printed."""

    def __init__(self, data, *words):
        self.data = data
        self.output = data.parent / f"{data.name}.out"
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*QUORATE, "quickstart", "--data", str(data), *words],
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def text(self):
        return self.output.read_text()

    def wait_for_line(self, pattern):
        def look():
            found = re.search(pattern, self.text(), re.MULTILINE)
            assert found or self.process.poll() is None, self.text()
            return found

        return wait_for(look, pattern)

    def wait_for_leader(self):
        return self.wait_for_line(r"^leader (\d+)")

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.wait(60)


def controllers_of(data):
    """The pids of processes that run a controller of this directory."""
    listing = subprocess.run(("ps", "-axwwo", "pid=,args="), capture_output=True, text=True)
    rows = [line.split(None, 1) for line in listing.stdout.splitlines()]
    return [int(pid) for pid, words in rows if "server-start" in words and f"{data}/" in words]


@pytest.fixture
def run(tmp_path):
    """Starts quickstarts; whatever is left of them at the end is killed."""
    started = []

    def start(name, *words):
        started.append(Quickstart(tmp_path / name, *words))
        return started[-1]

    yield start
    for quickstart in started:
        quickstart.process.kill()
        quickstart.process.wait()
        for pid in controllers_of(quickstart.data):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def data(run):
    """The stopped data of a quorum of one."""
    quickstart = run("data", "--controllers", "1")
    quickstart.wait_for_leader()
    quickstart.stop()
    return quickstart.data


def contents(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def ports_of(data):
    nodes = json.loads((data / "quickstart.json").read_text())["nodes"]
    return [node["port"] for node in nodes]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_way_to_stop_it_stops_all_controllers(run, how):
    quickstart = run("q")
    quickstart.wait_for_leader()
    assert len(controllers_of(quickstart.data)) == 3
    assert quickstart.stop(how) == 0
    assert controllers_of(quickstart.data) == []
    assert "Stopped. The data is kept" in quickstart.text()


@pytest.mark.slow
def test_repeated_ctrl_c_leaves_no_controller_running(run):
    quickstart = run("q")
    quickstart.wait_for_leader()

    def interrupt_again():
        quickstart.process.send_signal(signal.SIGINT)
        return quickstart.process.poll() is not None

    wait_for(interrupt_again, "the end")
    assert quickstart.process.returncode == 0, quickstart.text()
    assert controllers_of(quickstart.data) == []


@pytest.mark.slow
def test_controllers_end_with_a_killed_supervisor_and_the_next_run_resumes(run):
    quickstart = run("q")
    quickstart.wait_for_leader()
    orphans = set(controllers_of(quickstart.data))
    quickstart.stop(signal.SIGKILL)
    again = run("q")
    again.wait_for_leader()
    assert len(controllers_of(again.data)) == 3
    assert orphans.isdisjoint(controllers_of(again.data))
    assert "Resuming 3 controllers" in again.text()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_first_start_is_resumed(run, how):
    quickstart = run("q")
    wait_for((quickstart.data / "controller-1").exists, "the first directory")
    quickstart.stop(how)
    again = run("q")
    again.wait_for_leader()
    again.stop()
    assert len(ports_of(again.data)) == 3
    assert "is down" not in again.text()


@pytest.mark.slow
def test_a_copied_data_directory_works(run, data):
    copy = data.with_name("a cöpy")
    shutil.copytree(data, copy)
    before = contents(data)
    quickstart = run(copy.name)
    quickstart.wait_for_leader()
    assert quickstart.stop() == 0
    assert contents(data) == before
    log = next(copy.glob("controller-1/data/*/*.log"))
    assert log.read_bytes() != before[data / log.relative_to(copy)]


@pytest.mark.slow
def test_lines_that_the_user_added_to_the_properties_are_kept(run, data):
    properties = data / "controller-1" / "server.properties"
    written = properties.read_text()
    properties.write_text(written + "metadata.log.segment.bytes=16777216\n")
    quickstart = run("data")
    quickstart.wait_for_leader()
    assert quickstart.stop() == 0
    assert properties.read_text() == written + "metadata.log.segment.bytes=16777216\n"


@pytest.mark.slow
def test_a_second_quickstart_of_the_same_data_is_refused(run, data):
    first = run("data")
    first.wait_for_leader()
    second = run_tool([*QUORATE, "quickstart", "--data", str(data)])
    assert second.returncode == 1
    assert f"another quickstart (pid {first.process.pid})" in second.stderr
    assert first.stop() == 0


@pytest.mark.slow
def test_a_running_controller_is_named_and_not_touched(data):
    properties = data / "controller-1" / "server.properties"
    with subprocess.Popen(
        [*QUORATE, "server-start", str(properties)], stderr=subprocess.DEVNULL
    ) as by_hand:
        try:
            node = QuickstartNode(1, 0, "")
            wait_for(lambda: QuorumDirectory(data).lock_pid_of(node) == by_hand.pid, "its lock")
            refused = run_tool([*QUORATE, "quickstart", "--data", str(data)])
            assert refused.returncode == 1
            assert f"1 (pid {by_hand.pid})" in refused.stderr
            assert f"kill {by_hand.pid}" in refused.stderr
            assert by_hand.poll() is None
        finally:
            by_hand.kill()


@pytest.mark.slow
def test_without_a_running_controller_the_quickstart_ends_with_the_reason(data):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", ports_of(data)[0]))
        taken.listen()
        refused = run_tool([*QUORATE, "quickstart", "--data", str(data)])
    assert refused.returncode == 1
    assert "controller 1: exit code 1:" in refused.stderr
    assert "the port is in use" in refused.stderr


@pytest.mark.slow
def test_failed_and_killed_controllers_are_reported(run):
    first = run("q")
    first.wait_for_leader()
    first.stop()
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", ports_of(first.data)[0]))
        taken.listen()
        quickstart = run("q")
        quickstart.wait_for_line(r"^controller 1 is down: exit code 1: .*the port is in use")
    leader = quickstart.wait_for_line(r"^leader (\d) \(pid (\d+)\)")
    os.kill(int(leader[2]), signal.SIGKILL)
    quickstart.wait_for_line(f"^controller {leader[1]} is down: ended by signal 9")
    quickstart.wait_for_line("^no leader now")
    [*_, command] = re.findall(r"^  restart with: (.*)$", quickstart.text(), re.MULTILINE)
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {command}"], cwd="/", stderr=subprocess.DEVNULL
    ) as back:
        try:
            quickstart.wait_for_line(rf"^controller {leader[1]} is down(?s:.*)^leader \d")
        finally:
            back.terminate()
    assert back.returncode == 0
    assert quickstart.stop() == 0


@pytest.mark.slow
def test_the_printed_commands_work_when_pasted_elsewhere(run, tmp_path):
    quickstart = run("with a space")
    quickstart.wait_for_leader()
    shown = (
        quickstart.text().partition("Try in another terminal:\n")[2].partition("\nor kill -9")[0]
    )
    commands = shown.splitlines()
    assert len(commands) == 3
    for command in commands:
        pasted = subprocess.run(command, shell=True, cwd="/", capture_output=True, text=True)
        assert pasted.returncode == 0, pasted.stderr
        assert pasted.stdout
    quickstart.stop()
    again = run("with a space", "--controllers", "5")
    again.wait_for_line("^Resuming 3 controllers")
    again.wait_for_line("^--controllers 5 is ignored")


@pytest.mark.slow
def test_the_tour_can_be_repeated_in_the_same_data(tmp_path):
    data = tmp_path / "data"
    command = [*QUORATE, "quickstart", "--tour", "--data", str(data)]
    for step in (
        ("Add controller 4", "Remove controller 1"),
        ("Add controller 1", "Remove controller 2"),
    ):
        shown = run_tool(command)
        assert shown.returncode == 0, shown.stdout + shown.stderr
        assert all(words in shown.stdout for words in step), shown.stdout
        assert "21 quota records and 2 voter sets of this tour" in shown.stdout
        assert controllers_of(data) == []


@pytest.mark.slow
def test_an_interrupted_tour_is_not_a_success(tmp_path):
    data = tmp_path / "data"
    command = [*QUORATE, "quickstart", "--tour", "--data", str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert any("kill -9 the leader" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert controllers_of(data) == []


@pytest.mark.parametrize(
    ("values", "sets", "complaint"),
    [
        ([1.0, 2.0], [{1, 2, 3, 4}, {2, 3, 4}], None),
        ([1.0], [{1, 2, 3, 4}, {2, 3, 4}], "quotas"),
        ([2.0, 1.0], [{1, 2, 3, 4}, {2, 3, 4}], "quotas"),
        ([1.0, 2.0], [], "voter sets"),
        ([1.0, 2.0], [{1, 2, 3, 4}], "voter sets"),
    ],
)
def test_the_tour_fails_when_the_log_lacks_a_write(tmp_path, monkeypatch, values, sets, complaint):
    quotas = [
        {"type": "CLIENT_QUOTA_RECORD", "data": {"key": "rate", "value": value}} for value in values
    ]
    voters = [
        {"type": "KRAFT_VOTERS", "data": {"voters": [{"voterId": i} for i in members]}}
        for members in sets
    ]
    monkeypatch.setattr(tour, "_records", lambda *_: quotas + voters)
    quorum = Supervisor(tmp_path)
    quorum.nodes = {i: QuickstartNode(i, 0, "") for i in (1, 2, 3, 4)}
    first, last = (
        QuorumInfo(2, 1, 5, tuple(ReplicaStatus(tour.ReplicaKey(i), 5, 0, 0) for i in ids), (), {})  # type: ignore[attr-defined]
        for ids in ((1, 2, 3), (2, 3, 4))
    )
    writes = [("rate", 1.0), ("rate", 2.0)]
    if complaint is None:
        tour._read_back(quorum, first, last, quorum.nodes[4], writes)
    else:
        with pytest.raises(tour.TourFailedError, match=complaint):
            tour._read_back(quorum, first, last, quorum.nodes[4], writes)


@pytest.mark.slow
def test_the_first_steps_of_the_readme_can_be_typed(tmp_path):
    steps = (
        (ROOT / "README.md")
        .read_text()
        .partition("## A controller by hand")[2]
        .partition("\n## ")[0]
    )
    blocks = re.findall(r"```\n(.*?)```", steps, re.DOTALL)
    assert len(blocks) == 3
    first, second = str(free_port()), str(free_port())
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for path in (tmp_path / "examples").glob("*.properties"):
        path.write_text(path.read_text().replace("9093", first).replace("9094", second))
    quorate = "quorate() { " + " ".join(QUORATE) + ' "$@"; }'
    with ExitStack() as terminals:
        for number, block in enumerate(blocks):
            typed = block.replace("source .venv/bin/activate", quorate).replace("9093", first)
            lines = typed.splitlines()
            serves = lines[-1].startswith("quorate server-start")
            if serves:
                # What a terminal stays in runs until the test ends.
                lines[-1] = f"exec {' '.join(QUORATE)} {lines[-1].removeprefix('quorate ')}"
            log = tmp_path / f"terminal-{number}"
            with log.open("wb") as out:
                terminal = subprocess.Popen(
                    ("bash", "-ec", "\n".join(lines)), cwd=tmp_path, stdout=out, stderr=out
                )
            terminals.callback(terminal.wait)
            terminals.callback(terminal.kill)
            if serves:
                expected = ": leader" if number == 0 else "listening on"
                wait_for(
                    lambda log=log, text=expected: text in log.read_text(), f"{expected} in {log}"
                )
            else:
                assert terminal.wait(60) == 0, log.read_text()


def test_help_has_a_short_form():
    shown = run_tool([*QUORATE, "quickstart", "-h"])
    assert shown.returncode == 0
    assert "--tour" in shown.stdout


def test_a_random_uuid_as_json():
    shown = run_tool([*QUORATE, "storage", "random-uuid", "--json"])
    assert shown.returncode == 0
    assert len(json.loads(shown.stdout)["uuid"]) == 22


@pytest.mark.parametrize("text", ["{", "[]", '{"cluster_id": "x", "nodes": []}', '{"nodes": 3}'])
def test_a_damaged_state_file_is_refused(tmp_path, text):
    (tmp_path / "quickstart.json").write_text(text)
    refused = run_tool([*QUORATE, "quickstart", "--data", str(tmp_path)])
    assert refused.returncode == 1
    assert "quickstart.json is invalid" in refused.stderr


@contextmanager
def no_room():
    """Nothing can be written to a file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def open_data(data):
    directory = QuorumDirectory(data)
    try:
        return directory.load_or_create(1)
    finally:
        directory.unlock()


def test_a_first_start_on_a_full_disk_is_resumed(tmp_path):
    with no_room(), pytest.raises(OSError):
        open_data(tmp_path)
    assert open_data(tmp_path) is False
    assert open_data(tmp_path) is True


def test_a_first_start_killed_in_its_first_write_is_resumed(tmp_path):
    (tmp_path / "quickstart.json.tmp").write_text("{")
    assert open_data(tmp_path) is False


def test_a_full_disk_destroys_no_existing_file(tmp_path):
    open_data(tmp_path)
    properties = tmp_path / "controller-1" / "server.properties"
    with properties.open("a") as file:
        file.write("metadata.log.segment.bytes=16777216\n")
    before = contents(tmp_path)
    with no_room(), pytest.raises(OSError):
        open_data(tmp_path)
    assert contents(tmp_path) == before


def test_a_foreign_directory_is_refused_and_not_changed(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    refused = run_tool([*QUORATE, "quickstart", "--data", str(tmp_path)])
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    assert os.listdir(tmp_path) == ["letter.txt"]
