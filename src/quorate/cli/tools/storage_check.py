"""`quorate storage check`: what blocks a Quorate node from taking the place of Kafka's controller."""

from __future__ import annotations

import json
from typing import Final

import click

from quorate.cli.columns import table_lines
from quorate.cli.options import CONTEXT, ToolCommand, json_option

_BLOCKED: Final = 1
_UNREADABLE: Final = 2


@click.command(
    "check",
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Exit codes:
  0  nothing blocks    1  something blocks    2  the file cannot be read""",
)
@click.option(
    "--config",
    "-c",
    "config_path",
    required=True,
    metavar="FILE",
    help="The properties file of the controller.",
)
@json_option
def check(config_path: str, as_json: bool) -> int:
    """List what blocks a Quorate node with a file and its directories; changes nothing.

    The rules are those of server-start. The whole log is read, also beside a running controller.
    """
    from quorate.config.collecting import CollectingSettings
    from quorate.config.properties_file import read_as
    from quorate.config.settings import ConfigError

    try:
        settings = read_as(CollectingSettings, config_path)
    except ConfigError as error:
        click.echo(str(error), err=True)
        return _UNREADABLE
    from quorate.server.preflight import findings

    found = findings(settings)
    blocked = any(each.blocks for each in found)
    if as_json:
        facts = {"blocked": blocked, "findings": [each._asdict() for each in found]}
        click.echo(json.dumps(facts, indent=2))
        return _BLOCKED if blocked else 0
    if found:
        rows = [("yes" if each.blocks else "no", each.about, each.reason) for each in found]
        click.echo("\n".join(table_lines(("blocks", "about", "reason"), rows)) + "\n")
    if blocked:
        click.echo(f"Quorate cannot run {config_path} as it is.")
    else:
        click.echo(f"Nothing blocks a Quorate node with {config_path}.")
    return _BLOCKED if blocked else 0
