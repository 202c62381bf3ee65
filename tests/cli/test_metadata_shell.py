"""`quorate metadata-shell` as a command."""

import gc
import io
import json

import pytest

from quorate.cli.tools import metadata_shell_session
from quorate.shell.image_tree import root
from quorate.shell.loading import EMPTY
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


@pytest.mark.parametrize("command", [["ls", "/"], ["diff", 5, 9]])
def test_no_collection_visits_the_image_once_it_is_read(quorate, folder, monkeypatch, command):  # noqa: F811
    frozen = []

    def checked(view):
        frozen.append(all(each is not view for each in gc.get_objects()))
        return root(view)

    monkeypatch.setattr(metadata_shell_session, "root", checked)
    try:
        assert quorate(SHELL, "-d", folder, *command).code == 0
    finally:
        gc.unfreeze()
    assert frozen and all(frozen)


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


def test_diff_compares_everything_that_a_glob_matches(quorate, folder):  # noqa: F811
    """Only the first match was compared, under the name of the glob."""
    for glob in ("/image/topics/byName/t?/name", "/image/topics/byName/{t4,t5}/name"):
        code, out, _ = quorate(SHELL, "-d", folder, "diff", 7, 9, glob)
        assert (code, out) == (
            0,
            "+ /image/topics/byName/t4/name: t4\n+ /image/topics/byName/t5/name: t5\n",
        )
    # What is gone at the second point is part of it.
    code, out, _ = quorate(SHELL, "-d", folder, "diff", 9, 5, "image/topics/byName/*/name")
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        f"- /image/topics/byName/t{number}/name" for number in (3, 4, 5)
    ]
    code, _, err = quorate(SHELL, "-d", folder, "diff", 7, 9, "/image/topics/byName/x*")
    assert (code, "no such file or directory at either point" in err) == (1, True)


def test_a_time_outside_of_the_log_is_named(quorate, folder):  # noqa: F811
    words = ("ls", "/image/topics/byName")
    code, out, err = quorate(SHELL, "-d", folder, "--at-time", "1969-12-31", *words)
    assert (code, out) == (0, "")
    first = "The first record, at offset 0, is of 1970-01-01T00:00:00.100+00:00"
    assert err == f"{first}: before it there is nothing.\n"
    code, out, err = quorate(SHELL, "-d", folder, "--at-time", "2030-01-01", *words)
    assert (code, out.split()) == (0, ["t1", "t2", "t3", "t4", "t5"])
    last = "The last record, at offset 9, is of 1970-01-01T00:00:00.600+00:00"
    assert err == f"{last}: the state after it is shown.\n"
    inside = ("--at-time", "1970-01-01T00:00:00.600Z")
    assert quorate(SHELL, "-d", folder, *inside, *words).err == ""
    assert last in quorate(SHELL, "-d", folder, "diff", 5, "2030-01-01").err


def test_options_of_the_tool_may_stand_behind_the_command(quorate, folder):  # noqa: F811
    code, out, _ = quorate(SHELL, "-d", folder, "ls", "/image/topics", "--json", "--redact")
    assert (code, json.loads(out)["lines"]) == (0, ["byId", "byName"])
    words = "ls", "/image/topics/byName", "--at-offset=5", "-d", folder
    assert quorate(SHELL, *words).out == "t1\nt2\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--at-offst", 5, "ls", "/"),
            "No such option '--at-offst'. (Did you mean one of: '--at-off",
        ),
        (("ls", "/", "--redct"), "No such option '--redct'. (Did you mean one of: '--dir"),
        (("ls", "-l"), "No such option '-l'."),
    ],
)
def test_an_unknown_option_is_not_taken_for_a_command(quorate, folder, words, said):  # noqa: F811
    """Unknown options became words of the command, and the error named another fault."""
    code, out, err = quorate(SHELL, *words, *["-d", folder] * (words[0] == "ls"))
    assert (code, out) == (1, "") and said in err


def test_only_commands_that_show_something_read_on(quorate, monkeypatch):
    """Without a leader each refresh waits: pwd and exit must not."""
    asked = []

    class Follower:
        position = "at 0"

        def __init__(self, quorum):
            pass

        def close(self):
            pass

        def catch_up(self):
            return EMPTY

    monkeypatch.setattr("quorate.shell.following.QuorumFollower", Follower)
    monkeypatch.setattr(
        "quorate.cli.tools.metadata_shell_live.read_on", lambda *_: asked.append("read")
    )
    for line in ("pwd", "history", "help", "man ls", "", "nonsense", "exit"):
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n"))
        assert quorate(SHELL, "-C", "localhost:1").code == 0
    assert asked == []
    lines = ("ls", "cat /x", "cd /image", "find", "tree /image")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert quorate(SHELL, "-C", "localhost:1").code == 0
    assert len(asked) == len(lines)


def test_a_formatted_directory_is_shown(quorate, tmp_path):
    """Before its first start a node has a snapshot alone: 0-0, or bootstrap.checkpoint."""
    for kind in ("--standalone", "--no-initial-controllers"):
        node = tmp_path / kind
        config = tmp_path / "server.properties"
        config.write_text(
            "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\n"
            "listeners=C://localhost:9093\n"
            f"controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={node}\n"
        )
        words = ("storage", "format", "-c", config, kind, "-t", "Auo5pIz_RXynyYRjkH2osA")
        assert quorate(*words).code == 0
        shown = {
            file.name: quorate(SHELL, "-s", file, "tree", "/").out
            for file in node.rglob("*.checkpoint")
        }
        code, out, err = quorate(SHELL, "-d", node, "tree", "/image/features")
        assert (code, err) == (0, "")
        assert " ".join(out.split()) in " ".join(shown["bootstrap.checkpoint"].split())
        code, out, _ = quorate(SHELL, "-d", node, "tree", "/control")
        with_voters = {name: text for name, text in shown.items() if "directoryId" in text}
        assert (code, "directoryId" in out) == (0, bool(with_voters))
        for name in with_voters:
            [file] = node.rglob(name)
            assert quorate(SHELL, "-d", file.parent, "tree", "/").out == with_voters[name]


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
        (("-d", "/nope", "ls"), "/nope does not exist"),
        (("-s", "/nope/00000000000000000004-0000000001.checkpoint", "ls"), "No such file"),
    ],
)
def test_wrong_arguments_are_refused(quorate, arguments, message):
    code, out, err = quorate(SHELL, *arguments)
    assert (code, out) == (1, "")
    assert message in err
