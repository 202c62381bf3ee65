"""`quorate metadata-shell` as a command."""

import io
import json

import pytest

from shell.test_loading import folder  # noqa: F401 - a fixture

SHELL = "metadata-shell"


def test_a_command_prints_and_ends(quorate, folder):  # noqa: F811
    assert quorate(SHELL, "-d", folder, "--at-offset", 5, "ls", "/image/topics/byName") == (
        0,
        "t1\nt2\n",
        "",
    )
    code, out, _ = quorate(
        SHELL, "-d", folder, "--at-time", "1970-01-01T00:00:00.5Z", "find", "/image/topics/byName"
    )
    assert (code, out.splitlines()[-1]) == (0, "/image/topics/byName/t3/name")


def test_diff_shows_what_changed_between_two_points(quorate, folder):  # noqa: F811
    code, out, _ = quorate(SHELL, "-d", folder, "diff", 7, 9, "/image/topics/byName")
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        f"+ /image/topics/byName/t{number}/{name}" for number in (4, 5) for name in ("id", "name")
    ]
    code, out, _ = quorate(SHELL, "-d", folder, "--json", "diff", 7, 7)
    assert (code, json.loads(out)) == (0, [])
    code, out, _ = quorate(SHELL, "-d", folder, "--json", "diff", 5, 7, "/image/topics/byName")
    assert [one["after"] for one in json.loads(out)][1:] == ["t3"]


def test_commands_are_read_from_a_pipe(quorate, folder, monkeypatch):  # noqa: F811
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("cd /image/topics\n\nls 'unclosed\nls\nexit\npwd\n")
    )
    code, out, _ = quorate(SHELL, "-d", folder)
    assert (code, out.splitlines()[3:]) == (
        0,
        ["ls 'unclosed: No closing quotation", "byId", "byName"],
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --snapshot FILE or --directory DIR"),
        (("-d", "x", "-s", "y"), "either --snapshot FILE or --directory DIR"),
        (("-s", "x", "--at-offset", "1"), "need --directory"),
        (("-d", "x", "-C", "host:1"), "either --snapshot FILE or --directory DIR"),
        (("-C", "host:1", "--at-offset", "1"), "need --directory"),
        (("-C", "host:1", "diff", "1", "2"), "diff needs --directory"),
        (("-q", "host", "ls"), "Invalid url in bootstrap.controllers: host"),
        (("--config", "/nope.properties", "ls"), "/nope.properties"),
        (("-d", "x", "--at-offset", "1", "--at-time", "2020-01-01"), "not both"),
        (("-d", "x", "--at-time", "noon"), "'noon' is not a time"),
        (("-s", "x", "diff", "1", "2"), "diff needs --directory"),
        (("-d", "x", "diff", "1"), "diff FROM TO [PATH]"),
        (("-d", "x", "--json"), "--json needs a command"),
        (("-d", "/nope", "ls"), "/nope is not a directory"),
        (("-s", "/nope/00000000000000000004-0000000001.checkpoint", "ls"), "No such file"),
    ],
)
def test_wrong_arguments_are_refused(quorate, arguments, message):
    code, out, err = quorate(SHELL, *arguments)
    assert (code, out) == (1, "")
    assert message in err
