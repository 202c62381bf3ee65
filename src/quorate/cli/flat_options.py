"""Options of the tools whose verbs are options (`topics --list`).

Kafka's tools of this kind read them with jopt-simple and `CommandLineUtils`, whose texts these are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import (
    CONTEXT,
    FlatCommand,
    connection_options,
    first_long,
    json_option,
    open_admin,
    timeout_option,
    version_option,
)

if TYPE_CHECKING:
    from quorate.client import Admin

BOTH_LISTS: Final = "You cannot specify both --bootstrap-controller and --bootstrap-server."
NO_LIST: Final = "You must specify either --bootstrap-controller or --bootstrap-server."


class FlatToolError(QuorateError):
    """The command is refused, or it failed; the message is that of Kafka's tool."""


class JsonFileError(QuorateError):
    """A JSON file that cannot be read, or has not the expected form."""


def flat_command(
    name: str, examples: str, config_help: str, *, timeout: bool = True
) -> Callable[[Any], Any]:
    """A command with the options of a connection, `--json` and (`timeout`) `--timeout`."""

    def add(function: Any) -> Any:
        function = json_option(version_option(function))
        if timeout:
            function = timeout_option(function)
        function = connection_options(config_help)(function)
        function = click.pass_context(function)
        epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples.splitlines())
        make = click.command(name, cls=FlatCommand, context_settings=CONTEXT, epilog=epilog)
        return make(function)

    return add


def given_options(ctx: click.Context) -> frozenset[str]:
    """The long names, without dashes, of the options on the command line."""
    source = click.core.ParameterSource.COMMANDLINE
    return frozenset(
        long_name(param)
        for param in ctx.command.params
        if param.name and ctx.get_parameter_source(param.name) is source
    )


def long_name(param: click.Parameter) -> str:
    """Return `bootstrap-server` for the option `-b, --bootstrap-server`."""
    return first_long(param.opts).lstrip("-")


def require(given: Iterable[str], *names: str) -> None:
    """Raise UsageError for the first option that is missing (`checkRequiredArgs`)."""
    for name in names:
        if name not in given:
            raise click.UsageError(f'Missing required argument "[{name}]"')


def refuse_with(given: Iterable[str], name: str, others: Iterable[str]) -> None:
    """Raise UsageError if `name` is given with one of the others (`checkInvalidArgs`)."""
    if name in given:
        for other in others:
            if other in given:
                raise click.UsageError(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def open_tool(options: Mapping[str, Any], missing: str = NO_LIST) -> Admin:
    """Open a client by the options of `flat_command`.

    Raises FlatToolError with the text `missing` when no bootstrap list is given, neither as an option
    nor in the file of --command-config.
    """
    servers, controllers = options["bootstrap_server"], options["bootstrap_controller"]
    if servers is not None and controllers is not None:
        raise FlatToolError(BOTH_LISTS)
    if servers is None and controllers is None and options["command_config"] is None:
        raise FlatToolError(missing)
    return open_admin(options)[0]


def reason_of(error: QuorateError) -> str:
    """The text of an error; of one that the cluster answered, without the name of its code."""
    text = getattr(error, "text", getattr(error, "reason", None))
    return text if isinstance(text, str) else str(error)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    import json

    click.echo(json.dumps(value, indent=2))


def json_int(value: Any, where: str) -> int:
    """A whole number of 32 bits in JSON (`DecodeJson.DecodeInteger`). Raises JsonFileError: `where` it is."""
    import json

    if isinstance(value, int) and not isinstance(value, bool) and -(1 << 31) <= value < 1 << 31:
        return value
    shown = json.dumps(value, ensure_ascii=False)
    raise JsonFileError(f"{where}: Expected `Integer` value, received {shown}")


def read_json_file(path: str) -> Any:
    """The value in a JSON file. Raises JsonFileError with line and column."""
    import json
    from pathlib import Path

    try:
        return json.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise JsonFileError(f"Cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise JsonFileError(f"{path}: the file is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise JsonFileError(f"{path}, {place}: not valid JSON: {error.msg}") from None
