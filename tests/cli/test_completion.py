"""Completion files of the shells: current, and what bash makes of them."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "src" / "quorate" / "cli" / "completion"
BASH = shutil.which("bash") or "bash is missing"
ELECTIONS = ("preferred", "unclean")
MADE = """
import json, runpy
print(json.dumps(runpy.run_path('tools/write_completion.py')['completions']()))
"""
ASK = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_quorate
printf '%s\\n' "${COMPREPLY[@]}"
"""


def test_the_files_are_current():
    """In a process of its own: click keeps the help option of a command that has run."""
    made = subprocess.run([sys.executable, "-c", MADE], cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made
    files = {shell: (FILES / f"quorate.{shell}").read_text() for shell in ("bash", "zsh", "fish")}
    assert files == json.loads(made.stdout), "run: python tools/write_completion.py"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_tool_prints_the_file(quorate, shell):
    assert quorate("completion", shell) == (0, (FILES / f"quorate.{shell}").read_text(), "")


def test_another_shell_is_refused(quorate):
    outcome = quorate("completion", "tcsh")
    assert (outcome.code, outcome.out) == (1, "")
    assert "'bash', 'zsh', 'fish'" in outcome.err


def completed(*words: str) -> list[str]:
    """What bash offers for the last word, without a Python and without quorate."""
    run = subprocess.run(
        [BASH, "--norc", "-c", ASK, "ask", str(FILES / "quorate.bash"), *words],
        capture_output=True,
        text=True,
        env={"PATH": ""},
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("quorate stor|", ["storage"]),
        ("quorate storage f|", ["format", "feature-dependencies"]),
        ("quorate storage format --st|", ["--standalone"]),
        ("quorate --ver|", ["--version"]),
        ("quorate topics --json|", ["--json", "--json-schema"]),
        ("quorate server-start --log-format |", ["human", "json"]),
        ("quorate server-start --log-format = j|", ["json"]),
        ("quorate server-start --log-format =|", ["human", "json"]),
        ("quorate server-start --log-level d|", ["debug"]),
        ("quorate server-start --log-level debug --log-f|", ["--log-format"]),
        # The value of an option is no command, though it has the name of one.
        ("quorate metadata-quorum --command-config describe des|", ["describe"]),
        ("quorate metadata-quorum --bootstrap-controller a : 9093 alter --t|", ["--target"]),
        ("quorate storage format --config |", []),
        ("quorate nothing-of-the-kind --x|", []),
        ("quorate completion z|", ["zsh"]),
        ("quorate configs --entity-type br|", ["brokers", "broker-loggers"]),
        ("quorate configs --entity-type = ip|", ["ips"]),
        ("quorate configs --entity-type=ip|", ["--entity-type=ips"]),
        ("quorate configs --entity-type=ips --entity-type cli|", ["clients", "client-metrics"]),
        ("quorate acls --operation Des|", ["Describe", "DescribeConfigs", "DescribeTokens"]),
        ("quorate acls --resource-pattern-type = pre|", ["prefixed"]),
        ("quorate leader-election --election-type = |", ["preferred", "unclean"]),
        ("quorate leader-election --election-type=|", [f"--election-type={e}" for e in ELECTIONS]),
        ("quorate features disable --feature share|", ["share.version"]),
        ("quorate metadata-shell -s file.checkpoint t|", ["tree"]),
        ("quorate topics --ver|", ["--version"]),
    ],
)
def test_bash_completes(line, offered):
    words = line.removesuffix("|").split(" ")
    assert completed(*words) == offered


def test_bash_completes_every_command_and_option():
    nodes = runpy.run_path(str(ROOT / "tools" / "write_completion.py"))["tree"]()
    assert len(nodes) > 50
    for words, node in nodes.items():
        # One bash for each command: `completed` runs for the commands, then for the options.
        assert completed(*words.split(), "") == list(node.commands), words
        names = {option.name for option in node.options}
        assert set(completed(*words.split(), "-")) == names, words
