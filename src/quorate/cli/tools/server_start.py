"""`quorate server-start`: run a controller from Kafka's own properties file."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Never

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import ToolCommand


@click.command(
    cls=ToolCommand, name="server-start", context_settings={"help_option_names": ["-h", "--help"]}
)
@click.argument("properties", type=click.Path(dir_okay=False))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a value of the file. May be repeated.",
)
@click.option(
    "--log-format",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="Format of the log on stderr.",
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="Lowest level to log.",
)
def server_start(
    properties: str, overrides: tuple[str, ...], log_format: str, log_level: str
) -> None:
    """Run a controller until SIGTERM or Ctrl-C, from Kafka's PROPERTIES file.

    Format its log directories first, with 'quorate storage format'. The exit code is 0 after a
    clean stop.
    """
    end_on_early_signals()
    from quorate.config.node_file import load_config
    from quorate.server import logs

    style: logs.Format = "json" if log_format == "json" else "human"
    try:
        config = load_config(properties, overrides)
        logs.configure(config.node_id, style, log_level.upper())
        from quorate.server.app import run  # half of the start-up time; a bad file needs none of it

        run(config)
    except QuorateError as error:
        if style == "human":
            raise
        if not logs.LOG.handlers:
            logs.configure(None, style)
        logs.LOG.error("%s", error)  # the last line must be JSON, too
        raise click.exceptions.Exit(error.exit_code) from error


def end_on_early_signals() -> None:
    """Until the node installs its own handlers: exit with 0 on SIGTERM and SIGINT, ignore SIGHUP.

    An immediate exit is safe: so far the node has only read, and a start recovers from a crash anyway.
    Raising an exception is not: inside an import it would leave a half-initialized module.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit_now)
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def _exit_now(number: int, frame: FrameType | None) -> Never:
    logs = sys.modules.get("quorate.server.logs")
    with suppress(Exception):  # logging may be half imported, or interrupted within a line
        if logs is not None and logs.LOG.handlers:
            name = signal.Signals(number).name
            logs.LOG.info("Received %s during the start: stopped", name)
    os._exit(0)
