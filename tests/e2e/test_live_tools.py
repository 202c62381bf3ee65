"""`metadata-shell` and `cluster events` beside a quorum of three processes, through a leader's death."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.kafka import HOST, Quorum, free_port, wait_for
from interop.process import QUORATE, run_tool
from interop.test_cleaning import SMALL
from narrow import not_none

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture(scope="module")
def quorum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quorum]:
    """Its logs begin with a snapshot soon; a leader whose followers are frozen leads on for a while."""
    kinds = dict.fromkeys((1, 2, 3), "quorate")
    config = SMALL | {"controller.quorum.fetch.timeout.ms": 20_000}
    with Quorum(tmp_path_factory.mktemp("live"), kinds, config=config) as quorum:
        for node in quorum.controllers:
            node.config["quorate.metrics.listener"] = f"{HOST}:{free_port()}"
            node.config["quorate.audit.dir"] = str(node.directory / "audit")
        quorum.format()
        quorum.start()
        quorum.write(60)
        wait_for(lambda: list(quorum.leader().partition.glob("*-*.checkpoint")), "a snapshot")
        yield quorum


class Session:
    """The interactive shell, driven through pipes."""

    def __init__(self, quorum: Quorum, errors: Path) -> None:
        self.errors = errors
        with errors.open("w") as file:
            self._process = subprocess.Popen(
                [*QUORATE, "metadata-shell", "-C", quorum.bootstrap, "--timeout", "60"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True, bufsize=1,
            )  # fmt: skip

    def ask(self, line: str) -> list[str]:
        """What the command prints. `pwd` marks the end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{line}\npwd\n")
        found = []
        while (text := self._process.stdout.readline().rstrip("\n")) != "/":
            assert self._process.poll() is None, self.errors.read_text()
            found.append(text)
        return found

    def end(self) -> int:
        self._process.communicate("exit\n")
        return self._process.returncode


def shell(*words: str) -> subprocess.CompletedProcess[str]:
    return run_tool([*QUORATE, "metadata-shell", *words])


def test_one_command_shows_the_committed_metadata_and_its_offset(quorum: Quorum) -> None:
    run = shell("--bootstrap-controller", quorum.bootstrap, "ls", "/image")
    assert (run.returncode, "cluster" in run.stdout.split()) == (0, True), run
    assert run.stderr.startswith(f"Cluster {quorum.cluster_id}, leader ")
    assert "offset" in run.stderr and "epoch" in run.stderr
    view = not_none(quorum.view())
    assert set(view.voters) == {1, 2, 3} and not view.observers


def test_the_shell_follows_the_log_through_the_death_of_the_leader(
    quorum: Quorum, tmp_path: Path
) -> None:
    session = Session(quorum, tmp_path / "errors")
    session.ask("ls /")
    before = len(session.ask("find /image/cluster/controllers"))
    quorum.write(3)
    assert len(session.ask("find /image/cluster/controllers")) > before
    killed = quorum.leader()
    killed.kill()
    quorum.write(3)
    after = session.ask("cat /control/leader/id")
    assert session.end() == 0
    assert f"leader {killed.id}: " in session.errors.read_text()
    killed.start()
    assert after not in ([], [str(killed.id)])


def test_who_was_asked_is_named_when_nobody_answers(tmp_path: Path) -> None:
    run = shell("-q", "127.0.0.1:1,127.0.0.1:2", "--timeout", "0.2", "ls")
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert "no leader answered within 200 ms" in run.stderr
    assert "Cannot connect to 127.0.0.1:1" in run.stderr
    assert "Cannot connect to 127.0.0.1:2" in run.stderr


def test_events_are_the_same_from_files_and_from_running_controllers(quorum: Quorum) -> None:
    leader = quorum.leader()
    events = [*QUORATE, "cluster", "events", "--api", "ControllerRegistration", "--json"]
    live = run_tool([*events, leader.config["quorate.metrics.listener"]])
    files = run_tool([*events, *(str(node.directory / "audit") for node in quorum.controllers)])
    assert (live.returncode, files.returncode, files.stderr) == (0, 0, ""), (live, files)
    found, everywhere = json.loads(live.stdout), json.loads(files.stdout)
    assert found and all(entry in everywhere for entry in found)
    assert {entry["node"] for entry in found} == {leader.id}
    assert [entry["time"] for entry in everywhere] == sorted(e["time"] for e in everywhere)


def test_a_voter_that_is_not_committed_yet_is_shown_by_the_status(quorum: Quorum) -> None:
    fourth = quorum.join(4, "quorate")
    quorum.wait_until(lambda v: 4 in v.observers and v.lag <= 0, "node 4 to catch up")
    leader = quorum.leader()
    status = [*QUORATE, "metadata-quorum", "--bootstrap-controller", leader.address, "describe"]
    where = ("--bootstrap-controller", leader.address, "--command-config", str(fourth.properties))
    followers = [node for node in quorum.founders if node is not leader]
    for node in followers:
        node.freeze()
    try:
        with subprocess.Popen([*QUORATE, "metadata-quorum", *where, "add-controller"]) as adding:
            row = wait_for(
                lambda: json.loads(run_tool([*status, "--status", "--json"]).stdout or "{}").get(
                    "uncommittedAddedVoter"
                ),
                "the row of the voter that is being added",
            )
            for node in followers:
                node.thaw()
            assert adding.wait(30) == 0
    finally:
        for node in followers:
            node.thaw()
    assert row == [{"id": 4, "directoryId": fourth.directory_id_text}]
    quorum.wait_until(lambda v: 4 in v.voters and v.lag <= 0, "the voter 4")
    text = run_tool([*status, "--status"]).stdout
    assert "CurrentVoters" in text and "Uncommitted" not in text
