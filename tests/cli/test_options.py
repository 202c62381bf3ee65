"""Options in the forms that the parser of Kafka's tools accepts, for every tool."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from client.fake_node import FakeNode
from client.test_admin import BROKER, cluster
from narrow import as_any
from quorate.cli.main import TOOLS
from quorate.cli.options import CONTEXT, FlatCommand, ToolCommand, expand_options, first_long
from quorate.wire.messages import DescribeTopicPartitionsResponse

CLUSTER_ID = "Auo5pIz_RXynyYRjkH2osA"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command of every tool, with the words that name it."""
    for name, tool in TOOLS.items():
        module, _, attribute = tool.place.partition(":")
        yield from _commands(name, getattr(import_module(module), attribute))


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            yield from _commands(f"{name} {word}", each)


def short_options() -> Iterator[tuple[click.Command, click.Option, str]]:
    for _, command in commands():
        for param in command.params:
            if isinstance(param, click.Option):
                yield from ((command, param, name) for name in param.opts if len(name) == 2)


def value_of(command: click.Command, option: click.Option, args: list[str]) -> object:
    """What click passes on for `option`, before any conversion."""
    context = click.Context(command, **as_any(CONTEXT))
    parser = command.make_parser(context)
    values, left, _ = parser.parse_args(expand_options(args, command.get_params(context)))
    assert not left
    found = values[option.name]
    return found[0] if option.multiple else found


def test_every_command_of_every_tool_takes_the_forms_of_kafkas_tools():
    plain = [name for name, command in commands() if type(command).parse_args in PLAIN]
    assert plain == []


def test_every_number_of_an_option_has_a_range():
    """A number that no field of a request can hold is refused by the option's name."""
    open_ended = [
        (name, param.name)
        for name, command in commands()
        for param in command.params
        if type(param.type) in (type(click.INT), type(click.FLOAT))
    ]
    assert open_ended == []


def test_a_value_that_is_no_number_is_refused_in_plain_words():
    seen = set()
    for name, command in commands():
        for param in command.params:
            if getattr(param, "count", False):  # a flag
                continue
            if isinstance(param.type, click.IntRange):
                expected = "'1x' is not a whole number."
            elif isinstance(param.type, click.FloatRange):
                expected = f"'1x' is not a number{' of seconds' * (param.metavar == 'SECONDS')}."
            else:
                continue
            with pytest.raises(click.BadParameter) as refused:
                as_any(param.type).convert("1x", param, None)
            assert refused.value.message == expected, (name, param.name)
            seen.add(expected)
    assert {"'1x' is not a whole number.", "'1x' is not a number of seconds."} <= seen


PLAIN = (click.Command.parse_args, click.Group.parse_args)


@pytest.mark.parametrize("value", ["a", "a=b", "=a", "-a", ""])
def test_every_short_option_takes_its_value_after_an_equals_sign(value):
    seen = 0
    for command, option, name in short_options():
        if option.is_flag:
            with pytest.raises(click.BadOptionUsage, match=f"'{name}' does not take a value"):
                value_of(command, option, [f"{name}={value}"])
        else:
            assert value_of(command, option, [f"{name}={value}"]) == value
            assert value_of(command, option, [name, value]) == value
            seen += 1
    assert seen >= 10


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-st=ID"], ["-stID"]),
        (["-sg", "-t", "-t=ID"], ["-sg", "-t", "-t=ID"]),
        (["--cluster", "--feat", "--feat=a=1"], ["--cluster-id", "--feat", "--feature=a=1"]),
        (["--cluster=-t=ID"], ["--cluster-id=-t=ID"]),
        (["x=1", "-", "-q=1", "--", "-t=ID"], ["x=1", "-", "-q=1", "--", "-t=ID"]),
    ],
)
def test_values_of_options_and_unknown_options_stay_as_they_are(args, expected):
    command = next(command for name, command in commands() if name == "storage format")
    assert isinstance(command, ToolCommand)
    assert expand_options(args, command.params) == expected


@pytest.mark.parametrize(
    "words",
    [
        ("configs", "--alter", "--user", "zo\udcc3\udcab", "--add-config", "producer_byte_rate=1"),
        ("topics", "--create", "--topic", "ok", "--topic", "\udcc3\udca9"),
        ("cluster", "api-versions", "--bootstrap-controller", "\udcc3:1"),
    ],
)
def test_a_value_that_the_locale_cannot_read_is_named(quorate, words):
    """Python passes such bytes on as halves of surrogate pairs, which no request can hold."""
    where = () if "cluster" in words else ("--bootstrap-controller", "localhost:1")
    code, out, err = quorate(*words, *where)
    name = next(words[at - 1] for at, word in enumerate(words) if not word.isascii())
    assert (code, out) == (1, "")
    assert f"The value of {name} cannot be read in the encoding of the locale" in err
    assert "set LC_ALL=C.UTF-8" in err


def test_a_file_may_have_a_name_that_the_locale_cannot_read(quorate, tmp_path):
    config = tmp_path / "\udcc3.properties"
    config.write_text("nothing=\n")
    run = quorate("topics", "--list", "--command-config", config)
    assert run.code == 1 and "cannot be read in the encoding" not in run.out + run.err


# -- tools without verbs (jopt-simple) -----------------------------------------------------------
def flat_options(kinds: str) -> list[tuple[str, click.Option, str]]:
    """The options of the flat tools that take one value or several, or none, by their long names."""
    found = []
    for name, command in commands():
        if isinstance(command, FlatCommand):
            for param in command.params:
                if isinstance(param, click.Option) and param.expose_value:
                    kind = "flag" if param.is_flag or param.count else "value"
                    if kind in kinds and not (kinds == "value" and param.multiple):
                        found += [(name, param, each) for each in param.opts if len(each) > 2]
    return found


def test_every_tool_without_verbs_is_flat():
    assert {name for name, _, _ in flat_options("flag value")} == {
        *("topics", "configs", "acls", "leader-election", "reassign-partitions", "log-dirs"),
        *("delegation-tokens", "dump-log"),
    }


def test_a_second_value_is_refused(quorate):
    seen = 0
    for tool, option, name in flat_options("value"):
        value = "1" if not isinstance(option.type, click.Choice) else option.type.choices[0]
        shown = first_long(option.opts).lstrip("-")
        text = f"Found multiple arguments for option {shown}, but you asked for only one\n"
        more = ("--files", "x") if tool == "dump-log" else ()
        for words in (
            (name, value, f"{name}={value}"),
            (name, value, first_long(option.opts), value),
        ):
            code, out, err = quorate(tool, *more, *words)
            assert (code, out) == (1, "") and err.endswith(text), (tool, words, err)
        seen += 1
    assert seen > 50


def test_values_that_look_like_options_are_no_second_value(quorate):
    words = ("--describe", "--user", "--topic", "--add-config", "--user")
    assert "Found multiple" not in quorate("configs", *words).err
    assert quorate("topics", "--partitions", "1", "--partitions", "2", "--help").code == 0


def test_one_dash_is_enough_for_a_long_option():
    for tool, option, name in flat_options("flag value"):
        command = next(command for each, command in commands() if each == tool)
        words = [name[1:]] if option.is_flag or option.count else [name[1:], "v"]
        assert expand_options(words, command.params, single_dash=True) == [
            f"-{words[0]}",
            *words[1:],
        ]
        if len(words) == 2:
            joined = expand_options([f"{name[1:]}=-x"], command.params, single_dash=True)
            assert joined == [f"{name}=-x"]


def test_one_dash_means_what_it_means_to_kafkas_tools(quorate):
    with FakeNode({}, BROKER) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        node.answers["DescribeTopicPartitionsRequest"] = [DescribeTopicPartitionsResponse()]
        listed = quorate("topics", "-list", "-bootstrap-s", node.address, "-topic=x")
        assert listed == (0, "\n", "")
    assert "No such option" in quorate("topics", "-nothing").err
    assert "Usage:" in quorate("topics", "-h").out and "Usage:" in quorate("acls", "-help").out
    # Tools with verbs have argparse4j.
    assert quorate("cluster", "cluster-id", "-bootstrap-server", "h:1").code == 1


def test_format_stores_the_cluster_id_behind_an_equals_sign(quorate, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=controller\nnode.id=1\ncontroller.listener.names=C\n"
        "listeners=C://localhost:9093\n"
        f"controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={tmp_path / 'log'}\n"
    )
    assert quorate("storage", "format", f"-c={config}", "-N", f"-t={CLUSTER_ID}").code == 0
    written = (tmp_path / "log" / "meta.properties").read_text()
    assert f"\ncluster.id={CLUSTER_ID}\n" in written


ALIASES = [
    ("--bootstrap-controllers", "1@{}"),
    ("--bootstrap-controller", "{}"),
    ("--bootstrap-c", "{},2@{}"),
]


@pytest.mark.parametrize(("option", "value"), ALIASES)
def test_spellings_of_early_kips_name_controllers(quorate, option, value):
    with FakeNode({}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        where = (option, value.format(node.address, node.address))
        assert quorate("cluster", "cluster-id", *where) == (0, "Cluster ID: c\n", "")
        listed = quorate("reassign-partitions", "--execute", *where)
        assert '"[reassignment-json-file]"' in listed.err


def test_more_spellings_of_early_kips(quorate, tmp_path):
    file = tmp_path / "node.properties"
    file.write_text("")
    where = ("--bootstrap-controllers", "localhost:1")
    quorum = ("metadata-quorum", *where)
    for words, reason in (
        ((*quorum, "add-controller", "--config", file), "node.id not found in configuration file"),
        (
            (*quorum, "--command-config", file, "add-controller", "--config", file),
            "--config and --command-config cannot be specified together",
        ),
        (
            (*quorum, "remove-controller", "--controller-id", "-1", "--controller-uuid", "x"),
            "Invalid negative --controller-id",
        ),
        (
            ("features", *where, "upgrade", "--release-software", "4.3", "--metadata", "4.3"),
            "Can not specify `release-version` with other feature flags",
        ),
    ):
        outcome = quorate(*words)
        assert (outcome.code, reason in outcome.err) == (1, True), outcome


@pytest.mark.parametrize("name", ["metadata-quorum", "features"])
def test_a_timeout_limits_the_tools_of_the_quorum(quorate, name):
    words = ("describe", "--status") if name == "metadata-quorum" else ("describe",)
    where = ("--bootstrap-controller", "localhost:1", "--timeout", "0.01")
    began = time.monotonic()
    code, _, err = quorate(name, *where, *words)
    assert (code, "Cannot connect to localhost:1" in err) == (1, True)
    assert "do the controllers run?" in err
    assert time.monotonic() - began < 2


def numbers() -> Iterator[tuple[str, str]]:
    for name, command in commands():
        for param in command.params:
            if isinstance(param.type, click.types.FloatParamType):
                yield name, max(param.opts, key=len)


@pytest.mark.parametrize(("name", "option"), list(numbers()))
@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_a_number_that_is_not_finite_is_refused(quorate, name, option, number):
    code, out, err = quorate(*name.split(), option, number)
    assert (code in (1, 2), out) == (True, "")
    assert f"'{option}'" in err and "Internal error" not in err
