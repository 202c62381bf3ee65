"""The commands that a quickstart prints; each can be pasted into a terminal."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from quorate.cli.quickstart.quorum_directory import QuorumDirectory


def next_commands(quorum: QuorumDirectory) -> list[str]:
    """Lines with commands to try in another terminal."""
    node = next(iter(quorum.nodes.values()))
    log = quorum.log_dir(node) / "__cluster_metadata-0" / f"{0:020d}.log"
    program = _program()
    tool = f"{program} metadata-quorum {shlex.join(address_words(quorum))}"
    return [
        "",
        "Try in another terminal:",
        f"{tool} describe --status",
        f"{tool} describe --replication --human-readable",
        f"{program} dump-log --cluster-metadata-decoder --files {shlex.quote(str(log))}",
        "or kill -9 the leader by its pid: the others elect a new one. Ctrl-C here stops all.",
        "",
    ]


def address_words(quorum: QuorumDirectory) -> list[str]:
    """The options of a tool that reach the quorum, as its administrator where it has TLS."""
    if quorum.secured is not None:
        return ["--command-config", str(quorum.secured.admin_file)]
    return ["--bootstrap-controller", quorum.bootstrap]


def restart_command(quorum: QuorumDirectory, node_id: int) -> str:
    """The command that starts a stopped controller again."""
    properties = shlex.quote(str(quorum.properties(quorum.nodes[node_id])))
    return f"{_program()} server-start {properties}"


def command_text(words: list[str]) -> str:
    """A command of this installation of `quorate`."""
    return f"{_program()} {shlex.join(words)}"


def _program() -> str:
    installed = Path(sys.executable).with_name("quorate")
    if not installed.exists():
        return f"{shlex.quote(sys.executable)} -m quorate"
    on_path = shutil.which("quorate")
    return "quorate" if on_path == str(installed) else shlex.quote(str(installed))
