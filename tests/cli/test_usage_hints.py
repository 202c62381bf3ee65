"""A wrong word on the command line: the error says what is expected, and the nearest right form."""

from __future__ import annotations

import click
import pytest

from cli.test_options import commands
from quorate.cli.main import TOOLS
from quorate.cli.options import first_long


def test_every_option_without_its_value_says_what_it_takes():
    """The next option is not taken for the value: `--id --bootstrap-server HOST:PORT`."""
    seen = 0
    for words, command in commands():
        options = [param for param in command.params if isinstance(param, click.Option)]
        for option in options:
            if option.is_flag or option.count:
                continue
            for name in option.opts:
                long = first_long(option.opts)
                for args in ([name], [name, long]):
                    with pytest.raises(click.BadOptionUsage) as refused:
                        command.make_context(words, args)
                    text = refused.value.format_message()
                    assert text.startswith(f"Option {long!r} requires an argument"), words
                    assert f": {long} " in text, words
                    assert ("follows" in text) == (args[1:] != [] and long.startswith("--"))
                    seen += 1
    assert seen > 200


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("storage fromat", "No such command 'fromat'. Did you mean 'format'?"),
        ("storage xyz", "No such command 'xyz'. Use one of random-uuid, format, info,"),
        ("storage --format", "No such option '--format'. Did you mean the command 'format'?"),
        (
            "metadata-quorum describe --bootstrap-controller a:1",
            "before the command: quorate metadata-quorum --bootstrap-controller ... describe.",
        ),
        (
            "metadata-quorum --status",
            "after the command: quorate metadata-quorum describe --status.",
        ),
        (
            "cluster --bootstrap-server a:1 cluster-id",
            "after the command: quorate cluster COMMAND --bootstrap-server.",
        ),
        ("topics list", "Got unexpected extra argument (list). Did you mean '--list'?"),
        ("quickstart now", "Got unexpected extra argument (now)\n"),
        ("topics --list -bootstrap-server", "argument: --bootstrap-server HOST:PORT,..."),
        (
            "acls --list --resource-pattern-type",
            "--resource-pattern-type any|match|literal|prefixed",
        ),
        ("cluster unregister -i --json", "'--id' requires an argument, but '--json' follows: --id"),
        ("kafka-topics.sh --list", "there is no tool 'kafka-topics.sh'; did you mean 'topics'?"),
        ("kafka-broker-api-versions", "did you mean 'cluster api-versions'?"),
        ("server-strat x", "did you mean 'server-start'?"),
        ("help", "did you mean '--help'?"),
        ("--hlep", "there is no option '--hlep'; did you mean '--help'?"),
        ("--xyz", "there is no option '--xyz'; 'quorate --help' lists them."),
    ],
)
def test_the_nearest_right_form_is_named(quorate, words, says):
    code, out, err = quorate(*words.split())
    assert (code, out) == (1, "")
    assert says in err


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_the_script_of_kafka_names_the_tool(quorate, name):
    assert f"did you mean '{name}'?" in quorate(f"kafka-{name}.sh").err
