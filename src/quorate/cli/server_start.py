"""`quorate server-start`: run a controller from Kafka's own properties file."""

from __future__ import annotations

import click

from quorate.base.errors import QuorateError


@click.command(name="server-start", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("properties", type=click.Path(dir_okay=False))
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Replace a value of the file; may be given again.",
)
@click.option(
    "--log-format",
    type=click.Choice(["human", "json"]),
    default="human",
    show_default=True,
    help="How lines on stderr look.",
)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
)
def server_start(
    properties: str, overrides: tuple[str, ...], log_format: str, log_level: str
) -> None:
    """Run a controller until SIGTERM or Ctrl-C, from Kafka's PROPERTIES file.

    Format its directories before with 'quorate storage format'. Ends with 0 after a clean stop.
    """
    from quorate.server import early

    early.watch()
    from quorate.node.config import load_config
    from quorate.server import logs
    from quorate.server.app import run

    style: logs.Format = "json" if log_format == "json" else "human"
    try:
        config = load_config(properties, overrides)
        logs.configure(config.node_id, style, log_level.upper())
        run(config)
    except QuorateError as error:
        if style == "human":
            raise
        if not logs.LOG.handlers:
            logs.configure(None, style)
        logs.LOG.error("%s", error)  # who reads JSON reads the last line, too
        raise click.exceptions.Exit(error.exit_code) from error
