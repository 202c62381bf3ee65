"""The `quorate` command: finds the tool, and turns every error into one clear line.

Nothing is imported before it is needed: `--help` takes what Python itself takes to start, and a
tool pays for its own modules only.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

if TYPE_CHECKING:
    import click

INTERRUPTED: Final = 130
USAGE: Final = 1
"""Kafka's tools end with 1 where click would with 2."""
DEFECT: Final = 70
_COLLECT_EVERY: Final = 20_000
"""New objects between two runs of the garbage collector; Python's own number is 700."""


class Tool(NamedTuple):
    """Where a click command lives (`module:attribute`) and what it is for, in one line."""

    place: str
    help: str
    usage: int = USAGE
    """The exit code where the command line is wrong."""
    refused: int = 1
    """The exit code where the machine refuses: a full disk, a file that may not be read."""


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
    "pipeline": Tool(
        "quorate.cli.pipeline:pipeline",
        "Metadata logs as tables, history and answers (Spark).",
        2,
        DEFECT,
    ),
    "sim": Tool(
        "quorate.cli.sim:sim", "Run whole quorums in hostile worlds drawn from seeds.", 2, DEFECT
    ),
}


def run(arguments: Sequence[str]) -> int:
    """Run one command line (without the program's name) and return its exit code."""
    name, rest = (arguments[0], list(arguments[1:])) if arguments else ("--help", [])
    try:
        if name == "--version" or (name in TOOLS and rest == ["--version"]):
            from quorate import __version__

            print(f"quorate {__version__}")
            code = 0
        elif name in TOOLS:
            code = _run_tool(name, rest)
        elif name in ("-h", "--help"):
            print(_help())
            code = 0 if arguments else USAGE
        else:
            return _unknown(name)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader left (`| head`); keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _explain(error, TOOLS[name].refused if name in TOOLS else 1)


def _run_tool(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    import click

    module, _, attribute = TOOLS[name].place.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    try:
        # Not click's own main: it would take a closed pipe for a failure.
        with command.make_context(f"quorate {name}", arguments) as context:
            result = command.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return TOOLS[name].usage
    except click.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _help() -> str:
    width = max(map(len, TOOLS))
    tools = "\n".join(f"  {name:<{width}}  {tool.help}" for name, tool in TOOLS.items())
    return f"""\
Usage: quorate TOOL [OPTIONS] [ARGS]...

  The metadata quorum of Apache Kafka (KRaft): run it, and look after it.

  Kafka's own verbs, flags, output and exit codes; --json where a tool prints facts.

Tools:
{tools}

Options:
  -h, --help  Show this message and exit.
  --version   Show the version and exit; every tool takes it too.

Examples:
  quorate quickstart
  quorate storage format --standalone -t "$(quorate storage random-uuid)" -c server.properties
  quorate server-start server.properties
  quorate metadata-quorum --bootstrap-controller localhost:9093 describe --status

Each tool explains itself: quorate TOOL --help"""


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    close = get_close_matches(name, TOOLS, n=1)
    hint = f"did you mean '{close[0]}'?" if close else "'quorate --help' lists them."
    print(f"quorate: there is no tool '{name}'; {hint}", file=sys.stderr)
    return USAGE


def _explain(error: Exception, refused: int) -> int:
    """Say on stderr what went wrong; the traceback only with QUORATE_DEBUG set.

    refused: the exit code for errors of the operating system
    """
    from quorate.base.errors import QuorateError

    if os.environ.get("QUORATE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, QuorateError):
        print(error, file=sys.stderr)
        return error.exit_code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        print(f"{where}{error.strerror or error}", file=sys.stderr)
        return refused
    print(
        f"Internal error, please report it: {type(error).__name__}: {error} "
        "(QUORATE_DEBUG=1 shows where)",
        file=sys.stderr,
    )
    return DEFECT


def _open_what_is_closed() -> None:
    """Give each standard stream that is closed its number back, or the next file would have it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - for as long as we run


def main() -> NoReturn:
    """The console script.

    Starting and ending take a good part of a short command's time: the collector is told to look
    less often (imports make much that stays), and what is left is not torn down piece by piece.
    """
    gc.set_threshold(_COLLECT_EVERY)
    _open_what_is_closed()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            continue
    os._exit(code)


if __name__ == "__main__":
    main()
