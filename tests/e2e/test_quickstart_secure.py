"""`quorate quickstart --secure`, and the commands of docs/security.md that follow it."""

import json
import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from interop.process import QUORATE, run_tool, wait_for
from quorate.cli.quickstart.quorum_directory import QuorumDirectory

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parents[2] / "docs" / "security.md"


def blocks_of_the_page():
    section = PAGE.read_text().partition("## From nothing to")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


@pytest.mark.slow
def test_the_commands_of_the_page_can_be_typed(tmp_path):
    start, let_in, refused = blocks_of_the_page()
    assert refused.count("# ") == refused.count("quorate ") == 3
    quorate = "quorate() { " + " ".join(QUORATE) + ' "$@"; }\n'

    def typed(command):
        return subprocess.run(
            ("bash", "-ec", quorate + command), cwd=tmp_path, capture_output=True, text=True
        )

    output = tmp_path / "shown"
    with output.open("wb") as out:
        words = start.strip().removeprefix("quorate ").split()
        quickstart = subprocess.Popen(
            [*QUORATE, *words], cwd=tmp_path, stdout=out, stderr=out, start_new_session=True
        )
    try:

        def is_led():
            assert quickstart.poll() is None, output.read_text()
            return re.search(r"^leader \d", output.read_text(), re.MULTILINE)

        wait_for(is_led, "the live view", 90)
        for command in let_in.strip().splitlines():
            run = typed(command)
            assert run.returncode == 0, run.stderr
        for reason, command in re.findall(r"# (.*)\n(.*)", refused):
            run = typed(command)
            assert run.returncode == 1
            assert reason in run.stderr + run.stdout
    finally:
        quickstart.send_signal(signal.SIGINT)
        assert quickstart.wait(60) == 0
    data = tmp_path / "trial"
    passwords = json.loads((data / "secure" / "passwords.json").read_text()).values()
    logs = [path.read_text() for path in data.glob("controller-*/server.log")]
    assert len(logs) == 3
    assert not [p for p in passwords for text in (output.read_text(), *logs) if p in text]
    holders = [*data.glob("secure/*"), *data.glob("controller-*/server.properties")]
    open_to_others = [p.name for p in holders if stat.S_IMODE(p.stat().st_mode) & 0o077]
    assert set(open_to_others) <= {"ca.pem"}  # the umask may close that, too


def test_a_quorum_without_tls_stays_without(tmp_path):
    directory = QuorumDirectory(tmp_path)
    try:
        directory.load_or_create(1)
    finally:
        directory.unlock()
    refused = run_tool([*QUORATE, "quickstart", "--secure", "--data", str(tmp_path)])
    assert refused.returncode == 1
    assert "has no TLS; name another directory" in refused.stderr


def test_a_moved_secure_directory_keeps_its_passwords(tmp_path):
    def load(data):
        directory = QuorumDirectory(data)
        try:
            assert directory.load_or_create(1, secure=True) == (data.name == "moved")
        finally:
            directory.unlock()
        return json.loads((data / "secure" / "passwords.json").read_text())

    before = load(tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "moved")
    assert load(tmp_path / "moved") == before
    text = (tmp_path / "moved" / "secure" / "admin.properties").read_text()
    assert f"{tmp_path}/moved/secure/admin.pem" in text
    assert before["admin"] in text


def test_it_excludes_the_broker():
    refused = run_tool([*QUORATE, "quickstart", "--secure", "--with-broker"])
    assert refused.returncode == 1
    assert "exclude each other" in refused.stderr
