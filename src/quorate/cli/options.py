"""What the tools' command lines share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from quorate.client.admin import Admin
    from quorate.node.settings import Settings

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class OrderedGroup(click.Group):
    """A group of commands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def json_option(command: Any) -> Any:
    """Add `--json`, passed on as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


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
        from quorate.node.settings import read_settings

        settings = read_settings(path)
    return Admin(client_config(settings, servers, controllers)), settings
