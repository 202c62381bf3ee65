"""The command itself: help, version, errors and imports at the start."""

import os
import subprocess
import sys
from importlib import import_module

import click
import pytest

from quorate import __version__
from quorate.base.errors import InvariantError, QuorateError
from quorate.cli import main

IMPORTED_FOR_HELP = {
    # The help names the oldest and the newest release.
    "storage": ["quorate.formats", "quorate.formats.versions"],
    "features": ["quorate.formats", "quorate.formats.versions"],
    # Its options take the names of operations.
    "acls": ["quorate.security", "quorate.security.acl"],
}


@pytest.fixture
def tool(monkeypatch):
    """Replace the storage tool by a function."""

    def tool(behaviour):
        command = click.command()(behaviour)
        monkeypatch.setattr("quorate.cli.tools.storage.storage", command)

    return tool


def test_help_names_every_tool(quorate):
    for arguments in (["--help"], ["-h"]):
        outcome = quorate(*arguments)
        assert outcome.code == 0
        assert all(f"  {name} " in outcome.out for name in main.TOOLS)


def test_without_arguments_the_help_is_printed_with_a_failure(quorate):
    outcome = quorate()
    assert (outcome.code, outcome.out.startswith("Usage: quorate TOOL")) == (1, True)


def test_version(quorate):
    assert quorate("--version").out == f"quorate {__version__}\n"


WITH_VERSION = {
    "topics": ("--list", "--describe"),
    "configs": ("--describe", "--alter"),
    "acls": ("--list", "--add"),
    "leader-election": ("--topic", "t"),
    "reassign-partitions": ("--verify",),
    "log-dirs": ("--bootstrap-server", "localhost:1"),
    "delegation-tokens": ("--create",),
    "dump-log": ("--files", "none.log"),
}
"""Tools whose scripts have --version, and other options beside it."""


@pytest.mark.parametrize("name", [each for each in main.TOOLS if each not in WITH_VERSION])
def test_version_of_a_tool(quorate, name):
    assert quorate(name, "--version") == (0, f"quorate {__version__}\n", "")


@pytest.mark.parametrize("name", WITH_VERSION)
def test_version_of_a_tool_of_kafka(quorate, name):
    """The release alone, whatever stands beside the option (`printVersionAndExit`)."""
    for words in ((), WITH_VERSION[name]):
        assert quorate(name, *words, "--version") == (0, "4.3.1\n", "")


def test_an_unknown_tool_gets_a_suggestion(quorate):
    outcome = quorate("storag", "format")
    assert outcome.code == 1
    assert "there is no tool 'storag'; did you mean 'storage'?" in outcome.err
    assert "'quorate --help' lists them" in quorate("xyzzy").err


@pytest.mark.parametrize("name", main.TOOLS)
def test_every_tool_has_a_help_text(quorate, name):
    module, _, attribute = main.TOOLS[name].place.partition(":")
    assert isinstance(getattr(import_module(module), attribute), click.Command)
    outcome = quorate(name, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"Usage: quorate {name}")


def noted_interrupt():
    found = KeyboardInterrupt()
    found.add_note("the change may have been applied")
    return found


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (QuorateError("what, where, what to do"), 1, "what, where, what to do\n"),
        (InvariantError("a defect"), 70, "a defect\n"),
        (PermissionError(13, "Permission denied", "file"), 1, "file: Permission denied\n"),
        (KeyboardInterrupt(), 130, ""),
        (noted_interrupt(), 130, "Interrupted: the change may have been applied\n"),
        (click.Abort(), 130, ""),
        (ValueError("odd"), 70, "Internal error, please report it: ValueError: odd"),
    ],
)
def test_an_error_is_one_clear_line(quorate, tool, monkeypatch, error, code, said):
    monkeypatch.delenv("QUORATE_DEBUG", raising=False)

    def fail():
        raise error

    tool(fail)
    outcome = quorate("storage")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(said)
    assert "Traceback" not in outcome.err


def test_the_traceback_needs_quorate_debug(quorate, tool, monkeypatch):
    def fail():
        raise QuorateError("why")

    tool(fail)
    monkeypatch.setenv("QUORATE_DEBUG", "1")
    outcome = quorate("storage")
    assert outcome.code == 1
    assert "Traceback" in outcome.err


def test_the_exit_code_of_a_tool_is_kept(quorate, tool):
    tool(lambda: 3)
    assert quorate("storage").code == 3


def test_a_usage_error_has_the_exit_code_of_kafkas_tools(quorate):
    outcome = quorate("storage", "format", "--nonsense")
    assert outcome.code == 1
    assert "No such option" in outcome.err


def test_a_closed_pipe_is_not_an_error():
    command = [sys.executable, "-m", "quorate", "storage", "version-mapping"]
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (run.returncode, run.stderr) == (0, b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("arguments", ["--version", "sim run --seeds 0"])
def test_a_closed_standard_stream_is_not_an_error(closed, arguments):
    """As cron jobs and daemons leave them; nothing that is opened then gets its number."""
    command = f"'{sys.executable}' -m quorate {arguments} {closed}"
    run = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["storage", "random-uuid"], 1), (["sim", "run", "--seeds", "0"], 70)],
    ids=["as Kafka's", "where 1 is a verdict"],
)
def test_a_full_disk_has_another_exit_code_than_a_verdict(arguments, code):
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "quorate", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (run.returncode, run.stderr) == (code, "No space left on device\n")


def test_help_imports_no_slow_module():
    code = (
        "import sys; from quorate.cli.main import run; run(['--help']);"
        "print([m for m in ('click', 'rich', 'asyncio', 'dataclasses', 'typing') "
        "if m in sys.modules and m != 'typing'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_the_quorum_tool_imports_no_event_loop():
    code = (
        "import sys; from quorate.cli.main import run;"
        "run(['metadata-quorum', '--bootstrap-controller', 'localhost:1', 'describe']);"
        "import quorate.client.admin.quorum, quorate.client.config;"
        "print([m for m in ('rich', 'asyncio', 'uvloop', 'logging') "
        "if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("tool", main.TOOLS)
def test_the_help_of_a_tool_imports_what_parses_options_and_no_more(tool):
    """The machinery behind a tool takes as long to import as Python and click together."""
    code = (
        "import sys; from quorate.cli.main import run;"
        f"run(['{tool}', '--help']);"
        "slow = {'asyncio', 'logging', 'rich', 'secrets', 'ssl'};"
        "print([m for m in sys.modules if m in slow or m.startswith('quorate.')"
        " and not m.startswith(('quorate.cli', 'quorate.base', 'quorate._'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    allowed = str(IMPORTED_FOR_HELP.get(tool, []))
    assert run.stdout.splitlines()[-1] == allowed
