"""What the tools' command lines share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from quorate.client.admin import Admin
    from quorate.node.settings import Settings

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class NumberRange(click.FloatRange):
    """Numbers between bounds, which NaN passes by."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is no number.", param, ctx)
        return number


INT32: Final = click.IntRange(-(1 << 31), (1 << 31) - 1)


class Tool(click.Command):
    """A command whose long options may be cut short, as Kafka's may, while it is clear which."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, spelled_out(args, _long_options(self, ctx)))


class OrderedGroup(click.Group):
    """A group of such commands, listed in the order in which they were added."""

    command_class = Tool

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        mine = next((n for n, arg in enumerate(args) if arg in self.commands), len(args))
        mine_whole = spelled_out(args[:mine], _long_options(self, ctx))
        return super().parse_args(ctx, [*mine_whole, *args[mine:]])


def _long_options(command: click.Command, ctx: click.Context) -> list[str]:
    options = [name for param in command.get_params(ctx) for name in param.opts]
    return [name for name in options if name.startswith("--")]


def spelled_out(args: Sequence[str], known: Sequence[str]) -> list[str]:
    """Arguments with every unambiguous beginning of a long option in full; none behind `--`."""
    found: list[str] = []
    for number, arg in enumerate(args):
        if arg == "--":
            return [*found, *args[number:]]
        name, equals, value = arg.partition("=")
        meant = [option for option in known if option.startswith(name)]
        is_cut = name.startswith("--") and name not in known and len(meant) == 1
        found.append(f"{meant[0]}{equals}{value}" if is_cut else arg)
    return found


def json_option(command: Any) -> Any:
    """Add `--json`, passed on as `as_json`."""
    text = "Print JSON; an error is text on stderr, as without it."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def connection_options(config_help: str) -> Callable[[Any], Any]:
    """Add the options that name the cluster; `open_admin` understands them."""

    def add(command: Any) -> Any:
        for name, metavar, text in (
            ("--command-config", "FILE", config_help),
            ("--bootstrap-controller", "HOST:PORT,...", "Controllers to ask first."),
            ("--bootstrap-server", "HOST:PORT,...", "Brokers to ask first."),
        ):
            command = click.option(name, metavar=metavar, help=text)(command)
        return command

    return add


def open_admin(options: Mapping[str, Any]) -> tuple[Admin, Settings | None]:
    """The client for the given options, and the properties of `--command-config`, if any.

    Raises UsageError unless exactly one bootstrap list is given, and ConfigError.
    """
    from quorate.client.admin import Admin
    from quorate.client.config import client_config

    servers, controllers = options["bootstrap_server"], options["bootstrap_controller"]
    if servers is not None and controllers is not None:
        raise click.UsageError(
            "argument --bootstrap-controller: not allowed with argument --bootstrap-server"
        )
    if servers is None and controllers is None:
        raise click.UsageError(
            "one of the arguments --bootstrap-server --bootstrap-controller is required"
        )
    path = options["command_config"]
    settings = None
    if path is not None:
        from quorate.node.settings_file import read_settings

        settings = read_settings(path)

    def waiting(reason: str) -> None:
        click.echo(f"Waiting: {reason}", err=True)

    return Admin(client_config(settings, servers, controllers), waiting=waiting), settings
