"""The `quorate` command: runs a tool and turns every error into one line on stderr.

Modules are imported on demand: `--help` starts as fast as Python itself, and a tool loads only its own
modules.
"""

from __future__ import annotations

import codecs
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TextIO

from quorate.cli.refusals import noted_refusals

if TYPE_CHECKING:
    import click

INTERRUPTED: Final = 130
USAGE: Final = 1
"""Kafka's tools exit with 1 after a usage error; click would exit with 2."""
DEFECT: Final = 70
_ASCII: Final = "quorate_ascii"
_COLLECT_EVERY: Final = 20_000
"""New objects between two runs of the garbage collector; Python's default is 700."""


class ToolEntry(NamedTuple):
    """A tool: its click command (`module:attribute`) and its purpose in one line."""

    place: str
    help: str
    usage: int = USAGE
    """Exit code after a usage error."""
    refused: int = 1
    """Exit code after an error of the operating system, e.g. a full disk."""


TOOLS: Final[Mapping[str, ToolEntry]] = {
    "quickstart": ToolEntry(
        "quorate.cli.quickstart.quickstart:quickstart",
        "Run a durable three-controller quorum and watch it.",
    ),
    "server-start": ToolEntry(
        "quorate.cli.tools.server_start:server_start",
        "Run a controller from Kafka's properties file.",
    ),
    "storage": ToolEntry(
        "quorate.cli.tools.storage:storage", "Format a node's log directories, or inspect them."
    ),
    "metadata-quorum": ToolEntry(
        "quorate.cli.tools.metadata_quorum:metadata_quorum",
        "Describe the quorum and change its voters.",
    ),
    "features": ToolEntry(
        "quorate.cli.tools.features:features", "Show and change the cluster's feature levels."
    ),
    "topics": ToolEntry(
        "quorate.cli.tools.topics:topics", "List, describe, create, alter and delete topics."
    ),
    "configs": ToolEntry(
        "quorate.cli.tools.configs:configs",
        "Describe and change configs, quotas and SCRAM credentials.",
    ),
    "acls": ToolEntry(
        "quorate.cli.tools.acls:acls", "List, add and remove access control entries."
    ),
    "cluster": ToolEntry(
        "quorate.cli.tools.cluster:cluster", "Show nodes and APIs; remove registrations."
    ),
    "leader-election": ToolEntry(
        "quorate.cli.tools.leader_election:leader_election", "Elect partition leaders."
    ),
    "reassign-partitions": ToolEntry(
        "quorate.cli.tools.reassign_partitions:reassign_partitions",
        "Move partitions between brokers and directories.",
    ),
    "log-dirs": ToolEntry(
        "quorate.cli.tools.log_dirs:log_dirs", "Show the log directories of brokers."
    ),
    "delegation-tokens": ToolEntry(
        "quorate.cli.tools.delegation_tokens:delegation_tokens",
        "Create, renew, expire and describe delegation tokens.",
    ),
    "dump-log": ToolEntry(
        "quorate.cli.tools.dump_log:dump_log", "Print the records of log segments and snapshots."
    ),
    "metadata-shell": ToolEntry(
        "quorate.cli.tools.metadata_shell:metadata_shell",
        "Explore a snapshot or a log as a tree of files.",
    ),
    "pipeline": ToolEntry(
        "quorate.cli.pipeline.main:pipeline",
        "Metadata logs as tables, history and answers (Spark).",
        2,
        DEFECT,
    ),
    "sim": ToolEntry(
        "quorate.cli.sim.main:sim",
        "Simulate quorums with faults drawn from seeds.",
        2,
        DEFECT,
    ),
    "completion": ToolEntry(
        "quorate.cli.completion.completion:completion",
        "Print the completion file of bash, zsh or fish.",
    ),
}

_KAFKAS_VERSION: Final = frozenset(
    {
        *("topics", "configs", "acls", "leader-election", "reassign-partitions", "log-dirs"),
        *("delegation-tokens", "dump-log"),
    }
)
"""Tools whose scripts have an option --version (`CommandDefaultOptions`): they answer it as Kafka's."""
_SCRIPTS: Final = {"broker-api-versions": "cluster api-versions", "help": "--help"}
"""Words that mean another tool here: Kafka's scripts, without kafka- and .sh."""
_OPTIONS: Final = ("--help", "--version", "--json-schema")
_OWN_VERSION: Final = TOOLS.keys() - _KAFKAS_VERSION


def run(arguments: Sequence[str]) -> int:
    """Run one command line, without the program's name; returns the exit code."""
    code = _run(arguments)
    for line in noted_refusals():
        if code != 0:
            print(line, file=sys.stderr)
    return code


def _run(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], list(arguments[1:])) if arguments else ("--help", [])
    try:
        if name == "--version" or (name in _OWN_VERSION and rest == ["--version"]):
            from quorate import __version__

            print(f"quorate {__version__}")
            code = 0
        elif name in TOOLS and rest == ["--json-schema"]:
            code = _print_schema(name)
        elif name in TOOLS:
            code = _run_tool(name, rest)
        elif name in ("-h", "--help"):
            from quorate.cli.columns import fold

            print("\n".join(fold(_help().split("\n"))))
            code = 0 if arguments else USAGE
        else:
            return _unknown(name)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except BrokenPipeError:
        # The reader has exited (`| head`). Replace stdout, or the final flush would fail again.
        _discard(sys.stdout)
        return 0
    except Exception as error:
        return _explain(error, TOOLS[name].refused if name in TOOLS else 1)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    """Say what a change that was under way may have done."""
    for note in getattr(interrupt, "__notes__", ()):
        print(f"Interrupted: {note}", file=sys.stderr)
    return INTERRUPTED


def _print_schema(name: str) -> int:
    """Print the JSON Schema of what the tool prints with `--json`."""
    import json

    from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA, schema_of

    if name not in TOOLS_WITH_SCHEMA:
        print(f"quorate: the JSON of '{name}' has no schema", file=sys.stderr)
        return USAGE
    print(json.dumps(schema_of(name), indent=2))
    return 0


def _run_tool(name: str, arguments: list[str]) -> int:
    from importlib import import_module

    import click

    module, _, attribute = TOOLS[name].place.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    try:
        # Not click's own main: it exits with 1 when the reader closes the pipe.
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

  Run and administer the metadata quorum of Apache Kafka (KRaft).

  Verbs, flags, output and exit codes are Kafka's; --json prints results as JSON.

Tools:
{tools}

Options:
  -h, --help     Show this message and exit.
  --version      Show the version and exit; also as the only option of a tool.
  --json-schema  As the only option of a tool: show the schema of its JSON.

Examples:
  quorate quickstart
  quorate storage format --standalone -t "$(quorate storage random-uuid)" -c server.properties
  quorate server-start server.properties
  quorate metadata-quorum --bootstrap-controller localhost:9093 describe --status

Help for a tool: quorate TOOL --help"""


def _unknown(name: str) -> int:
    from difflib import get_close_matches

    script = name.removesuffix(".sh").removesuffix(".bat").removeprefix("kafka-")
    close = get_close_matches(script, [*TOOLS, *_SCRIPTS, *_OPTIONS], n=1)
    hint = "'quorate --help' lists them."
    if close:
        hint = f"did you mean '{_SCRIPTS.get(close[0], close[0])}'?"
    what = "option" if name.startswith("-") else "tool"
    print(f"quorate: there is no {what} '{name}'; {hint}", file=sys.stderr)
    return USAGE


def _explain(error: Exception, refused: int) -> int:
    """Print the error on stderr, with a traceback if QUORATE_DEBUG is set; returns the exit code.

    `refused` is the exit code for errors of the operating system.
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
        "(QUORATE_DEBUG=1 shows the traceback)",
        file=sys.stderr,
    )
    return DEFECT


def _reopen_closed_streams() -> None:
    """Open /dev/null for each closed standard stream.

    Otherwise the next file would get its descriptor, and messages would be written into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - open until the exit


def _discard(stream: TextIO) -> None:
    """Let the stream lose what it has and gets: its reader has gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


class _LastingStderr(io.TextIOWrapper):
    """Messages that cannot be written end no command (`2>&1 | head`), and its exit code stays."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            return self._lost(error, len(text))

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._lost(error, 0)

    def _lost(self, error: OSError, size: int) -> int:
        if isinstance(error, BrokenPipeError):
            _discard(self)
        return size


def _keep_stderr() -> None:
    """Replace stderr by one that outlives its reader."""
    old = sys.stderr
    if isinstance(old, io.TextIOWrapper):
        encoding, errors = _not_ascii(old.encoding), old.errors
        sys.stderr = _LastingStderr(old.detach(), encoding, errors, line_buffering=True)


def _print_any_text() -> None:
    """Let stdout print escapes for what the locale's encoding does not have, instead of failing."""
    encoding = sys.stdout.encoding.lower().replace("-", "")
    if encoding != "utf8" and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=_not_ascii(sys.stdout.encoding), errors="backslashreplace")


def _not_ascii(encoding: str) -> str:
    """The encoding; for ASCII the same under another name, as click writes UTF-8 in its place."""
    found = codecs.lookup(encoding)
    if found.name != "ascii":
        return encoding
    same = codecs.CodecInfo(
        found.encode,
        found.decode,
        incrementalencoder=found.incrementalencoder,
        incrementaldecoder=found.incrementaldecoder,
        name=_ASCII,
    )
    codecs.register(lambda name: same if name == _ASCII else None)
    return _ASCII


def main() -> NoReturn:
    """The console script."""
    # Start and exit take a large part of a short command's time. Imports create many objects that stay,
    # so collect less often; `os._exit` skips the teardown of all modules.
    gc.set_threshold(_COLLECT_EVERY)
    _reopen_closed_streams()
    _keep_stderr()
    _print_any_text()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # a closed pipe; or a full disk, which `run` has reported
            continue
    os._exit(code)


if __name__ == "__main__":
    main()
