"""The `quorate` command: finds the tool, and turns every error into one clear line.

Starting costs what click costs: a tool's own module is imported only when it is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, NoReturn

import click

from quorate import __version__
from quorate.base.errors import QuorateError

INTERRUPTED: Final = 130
USAGE: Final = 1
"""Kafka's tools end with 1 where click would with 2."""


class Tool(NamedTuple):
    """Where a subcommand lives (`module:attribute`) and what it is for, in one line."""

    place: str
    help: str


TOOLS: Final[Mapping[str, Tool]] = {
    "quickstart": Tool(
        "quorate.cli.quickstart:quickstart", "Run a durable three-controller quorum and watch it."
    ),
    "server-start": Tool(
        "quorate.cli.server_start:server_start", "Run a controller from Kafka's properties file."
    ),
    "storage": Tool(
        "quorate.cli.storage:storage", "Format a node's log directories, or look at them."
    ),
    "metadata-quorum": Tool(
        "quorate.cli.metadata_quorum:metadata_quorum", "Describe the quorum and change its voters."
    ),
    "features": Tool(
        "quorate.cli.features:features", "Show and change the cluster's feature levels."
    ),
    "dump-log": Tool(
        "quorate.cli.dump_log:dump_log", "Print the records of log segments and snapshots."
    ),
}


class Tools(click.Group):
    """A group whose commands are imported when they are run, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(TOOLS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        tool = TOOLS.get(cmd_name)
        if tool is None:
            return None
        from importlib import import_module

        module, _, attribute = tool.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Tools"):
            formatter.write_dl([(name, tool.help) for name, tool in TOOLS.items()])


@click.group(
    cls=Tools,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each tool explains itself: quorate TOOL --help.",
)
@click.version_option(__version__, prog_name="quorate", message="%(prog)s %(version)s")
def quorate() -> None:
    """The metadata quorum of Apache Kafka (KRaft): run it, and look after it.

    Kafka's own verbs, flags, output and exit codes; --json where a tool prints facts.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (default: this process's) and return its exit code."""
    try:
        result: Any = quorate.main(
            None if arguments is None else list(arguments), "quorate", standalone_mode=False
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (`| head`); keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _explain(error)
    return result if isinstance(result, int) else 0


def _explain(error: Exception) -> int:
    """Say on stderr what went wrong; the traceback only with QUORATE_DEBUG set."""
    if os.environ.get("QUORATE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, QuorateError):
        click.echo(str(error), err=True)
        return error.exit_code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"{where}{error.strerror or error}", err=True)
        return 1
    click.echo(
        f"Internal error, please report it: {type(error).__name__}: {error} "
        "(QUORATE_DEBUG=1 shows where)",
        err=True,
    )
    return 70


def main() -> NoReturn:
    """The console script."""
    sys.exit(run())


if __name__ == "__main__":
    main()
