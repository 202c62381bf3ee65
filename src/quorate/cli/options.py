"""Options and command classes that the tools share."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.refusals import note_refusal
from quorate.cli.usage_hints import missing_value, no_such_command, with_hints

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.config.settings import Settings

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class WholeNumber(click.IntRange):
    """A whole number in a range. It refuses other words in plain ones, unlike click's IntRange."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_number(int, value):
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        return super().convert(value, param, ctx)


class NumberRange(click.FloatRange):
    """A number in a range. Unlike click's FloatRange it refuses NaN and infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not _is_number(float, value):
            unit = " of seconds" if param is not None and param.metavar == "SECONDS" else ""
            self.fail(f"{value!r} is not a number{unit}.", param, ctx)
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _is_number(kind: type[int] | type[float], value: Any) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True


MAX_SECONDS: Final = 1_000_000
"""Longest time of an option: sockets take no timeout beyond some years."""
_FILE_WORDS: Final = re.compile("FILE|DIR|PATH")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
KAFKA_RELEASE: Final = "4.3.1"
"""Whose tools these are: flags, texts, exit codes."""
INT64: Final = WholeNumber(-(1 << 63), (1 << 63) - 1)
INT32: Final = WholeNumber(-(1 << 31), (1 << 31) - 1)


class ToolCommand(click.Command):
    """A command whose options may be written as for Kafka's tools (`expand_options`)."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with with_hints(ctx, self):
            rest = super().parse_args(ctx, expand_options(args, self.get_params(ctx)))
            _check_text(ctx, self.get_params(ctx))
            return rest


def _check_text(ctx: click.Context, params: Sequence[click.Parameter]) -> None:
    """Raise BadOptionUsage for a value that the locale's encoding cannot read.

    The name of a file may have any bytes.
    """
    for param in params:
        if not isinstance(param, click.Option) or _FILE_WORDS.search(param.metavar or ""):
            continue
        value = ctx.params.get(param.name or "")
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and not text.isascii() and _SURROGATE.search(text):
                name = first_long(param.opts)
                encoding = sys.getfilesystemencoding()
                raise click.BadOptionUsage(
                    name,
                    f"The value of {name} cannot be read in the encoding of the locale ({encoding}): "
                    "set LC_ALL=C.UTF-8, or PYTHONUTF8=1",
                )


class FlatCommand(ToolCommand):
    """A command that reads its options as the parser of Kafka's tools without verbs (jopt-simple).

    `-name` is `--name`. An option that takes one value is refused where it is given twice.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        params = self.get_params(ctx)
        with with_hints(ctx, self):
            words = expand_options(args, params, single_dash=True)
        rest = super().parse_args(ctx, list(words))
        for param in repeated(words, params):
            raise click.UsageError(
                f"Found multiple arguments for option {first_long(param.opts).lstrip('-')}, but you "
                "asked for only one"
            )
        return rest


class OrderedGroup(click.Group):
    """A group of such commands, listed in the order of their definition."""

    command_class = ToolCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of each; click cuts it to one line."""
        rows = [(name, command.get_short_help_str(1000)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = next((n for n, arg in enumerate(args) if arg in self.commands), len(args))
        with with_hints(ctx, self):
            own = expand_options(args[:end], self.get_params(ctx))
            return super().parse_args(ctx, [*own, *args[end:]])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; what is none gets the nearest one, or all."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            raise no_such_command(ctx, self, name)
        return super().resolve_command(ctx, args)


def expand_options(
    args: Sequence[str], params: Sequence[click.Parameter], *, single_dash: bool = False
) -> list[str]:
    """Rewrite options that click reads differently from the parsers of Kafka's tools.

    An unambiguous prefix of a long option becomes that option, and `-x=VALUE` becomes `-xVALUE`
    (argparse4j). With `single_dash`, `-name` becomes `--name` where that option exists (jopt-simple).
    Values of options, and arguments after `--`, stay as they are. Raises BadOptionUsage for `-x=VALUE`
    where `-x` takes no value, and where the name of another option stands in place of a value.
    """
    takes_value: dict[str, bool] = {}
    options: dict[str, click.Option] = {}
    first: dict[str, str] = {}
    for param in params:
        if isinstance(param, click.Option):
            for name in (*param.opts, *param.secondary_opts):
                options[name] = param
                takes_value[name] = not (param.is_flag or param.count)
                first[name] = name if name in param.secondary_opts else first_long(param.opts)
    found: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            return [*found, arg, *rest]
        if single_dash and arg not in takes_value and _is_long(f"-{arg}", first):
            arg = f"-{arg}"
        if arg.startswith("--"):
            words, needs_value = _expand_long(arg, takes_value, first)
        else:
            words, needs_value = _expand_short(arg, takes_value)
        found += words
        if needs_value:
            value = next(rest, None)
            if value is None or (value.startswith("--") and value.partition("=")[0] in options):
                raise missing_value(first[_name(words[-1])], options[_name(words[-1])], value)
            found.append(value)
    return found


def _name(word: str) -> str:
    """The option of a word without its value; of flags behind one dash the last one."""
    return word if word.startswith("--") else f"-{word[-1]}"


def _is_long(arg: str, first: Mapping[str, str]) -> bool:
    """Whether the word is a long option, or an unambiguous prefix of one."""
    name = arg.partition("=")[0]
    matches = {first[option] for option in first if option.startswith(name)}
    return name.startswith("--") and len(name) > 2 and (name in first or len(matches) == 1)


def repeated(args: Sequence[str], params: Sequence[click.Parameter]) -> list[click.Parameter]:
    """The options that take one value and have several. `args`: as `expand_options` returns them."""
    single = {
        name: param
        for param in params
        if isinstance(param, click.Option) and not (param.is_flag or param.count)
        for name in param.opts
    }
    counts: dict[str, int] = {}
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            break
        name, equals, _ = arg.partition("=")
        param = single.get(name)
        if param is None:
            continue
        if not equals:
            next(rest, None)
        if not param.multiple and param.name is not None:
            counts[param.name] = counts.get(param.name, 0) + 1
    return [param for param in params if counts.get(param.name or "", 0) > 1]


def first_long(names: Sequence[str]) -> str:
    """The name of an option in texts: its first long one. The others are abbreviations and aliases."""
    return next((name for name in names if name.startswith("--")), names[0])


def _expand_long(
    arg: str, takes_value: Mapping[str, bool], first: Mapping[str, str]
) -> tuple[list[str], bool]:
    """The words that replace a long option; whether the next argument is its value.

    `first` maps each name to the first one of the same option: a prefix of several names of one option
    is not ambiguous.
    """
    name, equals, value = arg.partition("=")
    matches = {first[option] for option in takes_value if option.startswith(name)}
    if name not in takes_value and len(matches) == 1:
        [name] = matches
    return [f"{name}{equals}{value}"], not equals and takes_value.get(name, False)


def _expand_short(arg: str, takes_value: Mapping[str, bool]) -> tuple[list[str], bool]:
    """Do as `_expand_long`, for `-x`, `-xVALUE`, `-x=VALUE` and several flags behind one dash."""
    for at, letter in enumerate(arg[1:] if arg.startswith("-") else "", 1):
        name, rest = f"-{letter}", arg[at + 1 :]
        if name not in takes_value:
            break
        if takes_value[name]:
            if rest == "=":  # click takes `-x` alone as one whose value follows
                return [arg[: at + 1], ""], False
            return [arg[: at + 1] + rest.removeprefix("=")], not rest
        if rest.startswith("="):
            raise click.BadOptionUsage(name, f"Option {name!r} does not take a value.")
    return [arg], False


def json_option(command: Any) -> Any:
    """Add the option `--json` as parameter `as_json`."""
    text = "Print JSON; errors stay text on stderr."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def version_option(command: Any) -> Any:
    """Add `--version` of Kafka's scripts: the release alone, whatever else is on the command line."""

    def show(ctx: click.Context, param: click.Parameter, given: bool) -> None:
        if given:
            click.echo(KAFKA_RELEASE)
            ctx.exit()

    return click.option(
        "--version",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show the release of Kafka whose tool this is, and exit.",
    )(command)


def timeout_option(command: Any) -> Any:
    """Add the option `--timeout` as parameter `timeout`."""
    return click.option(
        "--timeout",
        type=NumberRange(min=0, min_open=True, max=MAX_SECONDS),
        metavar="SECONDS",
        help="Give up after this time; default: default.api.timeout.ms, 60 s.",
    )(command)


def connection_options(config_help: str) -> Callable[[Any], Any]:
    """Add the options that name the cluster; `open_admin` reads them."""

    def add(command: Any) -> Any:
        command = click.option("--command-config", metavar="FILE", help=config_help)(command)
        return bootstrap_options(command)

    return add


def bootstrap_options(command: Any, server: str = "", controller: str = "") -> Any:
    """Add the two bootstrap lists; `server` and `controller` are short names of the options.

    `--bootstrap-controllers` is the spelling of an early version of KIP-919.
    """
    for names, kind in (
        (("--bootstrap-controller", "--bootstrap-controllers", controller), "Controllers"),
        (("--bootstrap-server", server), "Brokers"),
    ):
        text = f"{kind} to connect to first."
        command = click.option(*filter(None, names), metavar="HOST:PORT,...", help=text)(command)
    return command


def note_wait(reason: str) -> None:
    """Say on stderr why a call takes long."""
    click.echo(f"Waiting: {reason}", err=True)


def note_resend(line: str) -> None:
    """Say on stderr what an attempt without a response may have done."""
    click.echo(line, err=True)


def open_admin(
    options: Mapping[str, Any], on_wait: Callable[[str], None] = note_wait
) -> tuple[Admin, Settings | None]:
    """Open a client by the options of `connection_options`; also returns the --command-config file.

    An option replaces the lists in the file. `options["timeout"]`, in seconds, limits the command.
    `on_wait` gets the reason of a long wait. Raises UsageError unless exactly one bootstrap list is
    given, and ConfigError.
    """
    from quorate.client import Admin
    from quorate.client.config import client_config, with_timeout

    servers, controllers = options["bootstrap_server"], options["bootstrap_controller"]
    if servers is not None and controllers is not None:
        raise click.UsageError(
            "argument --bootstrap-controller: not allowed with argument --bootstrap-server"
        )
    path = options["command_config"]
    if servers is None and controllers is None and path is None:
        raise click.UsageError(
            "one of the arguments --bootstrap-server --bootstrap-controller is required"
        )
    settings = None
    if path is not None:
        from quorate.config.properties_file import read_settings

        settings = read_settings(path)

    config = client_config(settings, servers, controllers)
    seconds = options.get("timeout")
    give_up_at = None if seconds is None else time.monotonic() + seconds
    limited = with_timeout(config, seconds)
    admin = Admin(limited, time.monotonic, on_wait, give_up_at, note_refusal, note_resend)
    return admin, settings
