"""The child processes of a quickstart: what every user of the machine can see of them."""

import json
import subprocess

import pytest

from quorate.cli.quickstart.quorum_directory import QuorumDirectory


@pytest.mark.parametrize("secure", [False, True])
def test_no_command_of_a_quickstart_has_a_password(tmp_path, monkeypatch, secure):
    commands, run = [], subprocess.run

    def noting(command, **options):
        commands.append((" ".join(command), options.get("env")))
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", noting)
    quorum = QuorumDirectory(tmp_path / "data")
    quorum.load_or_create(1, secure=secure)
    quorum.unlock()
    assert quorum.nodes[1].formatted
    assert len(commands) == 1
    if secure:
        passwords = json.loads((tmp_path / "data" / "secure" / "passwords.json").read_text())
        assert passwords
        for password in passwords.values():
            assert password not in str(commands)
