"""`quorate metadata-shell`: look around in the metadata of a snapshot, a log directory or a quorum.

Commands, tree and texts are those of Kafka's kafka-metadata-shell (`org.apache.kafka.shell`). Live
controllers (`-C`, `--config`) are what KIP-631 describes. Reading a directory, `--at-offset`,
`--at-time`, `diff` and `--redact` are ours.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import CONTEXT, ToolCommand, json_option
from quorate.shell.commands import ShellState, complete, run
from quorate.shell.differences import NodeDifference, differences
from quorate.shell.globs import absolute, matches
from quorate.shell.image_tree import MetadataView, root
from quorate.shell.loading import NO_END, Until, load_directory, load_snapshot
from quorate.shell.nodes import Node, Redaction

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

_DIFF: Final = "diff"


@click.command(
    cls=ToolCommand,
    context_settings={**CONTEXT, "ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="""\b
Without a command the shell is interactive: type help there.
Examples:
  quorate metadata-shell -s 00000000000000000228-0000000003.checkpoint
  quorate metadata-shell -s FILE.checkpoint cat /image/topics/byName/orders/0
  quorate metadata-shell -d /var/lib/kafka/metadata ls '/image/topics/byName/order*'
  quorate metadata-shell -d DIR --at-offset 1000 tree /image/configs
  quorate metadata-shell -d DIR diff 1000 2000 /image/topics
  quorate metadata-shell -C localhost:9093 cat /image/cluster/3
  quorate metadata-shell -C localhost:9093 --config client.properties""",
)
@click.option("-s", "--snapshot", metavar="FILE", help="The metadata snapshot file to read.")
@click.option(
    "-d",
    "--directory",
    metavar="DIR",
    help="A metadata log directory: its newest snapshot, and the log from there. "
    "A node may be running in it. The newest records may not be committed yet.",
)
@click.option(
    "-C",
    "-q",
    "--controllers",
    "--bootstrap-controller",
    "--bootstrap-controllers",
    "controllers",
    metavar="HOST:PORT,...",
    help="Controllers of a running quorum: the snapshot and the committed log of their leader. "
    "The interactive shell reads on before each command.",
)
@click.option(
    "--config",
    "--command-config",
    "config",
    metavar="FILE",
    help="Client properties for --controllers: security, or bootstrap.controllers itself.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a leader.",
)
@click.option(
    "--at-offset", type=click.IntRange(0), metavar="N", help="Show the state after the record N."
)
@click.option(
    "--at-time",
    metavar="TIME",
    help="Show the state at a time, e.g. 2026-11-26T12:00:00Z; UTC where no zone is given.",
)
@click.option("--redact", is_flag=True, help="Hide credentials, tokens and sensitive configs.")
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def metadata_shell(
    snapshot: str | None,
    directory: str | None,
    at_offset: int | None,
    at_time: str | None,
    redact: bool,
    as_json: bool,
    command: tuple[str, ...],
    **live: Any,
) -> int:
    """Explore cluster metadata as a tree of directories and files.

    COMMAND is one of cat, find, ls and tree, or `diff FROM TO [PATH]` with two offsets or times.
    """
    until = _until(at_offset, at_time)
    is_live = live["controllers"] is not None or live["config"] is not None
    if (snapshot is not None) + (directory is not None) + is_live != 1:
        raise click.UsageError(
            "give either --snapshot FILE or --directory DIR, or --controllers HOST:PORT,..."
        )
    if directory is None and until is not NO_END:
        raise click.UsageError(
            "--at-offset and --at-time need --directory: a snapshot and a running quorum have one end"
        )
    if as_json and command[:1] != (_DIFF,):
        raise click.UsageError("--json is for diff")
    redaction = Redaction.NORMAL if redact else Redaction.DISABLED
    if command[:1] == (_DIFF,):
        if directory is None or until is not NO_END:
            raise click.UsageError("diff needs --directory, and names both points itself")
        found = _diff(directory, list(command[1:]), redaction)
        if as_json:
            click.echo(json.dumps([one._asdict() for one in found]))
        else:
            _print(_text_lines(found))
        return 0
    if not command:
        click.echo("Loading...")
    if is_live:
        # Imported here: the client costs a quarter of the time of a command on a file.
        from quorate.cli.tools.metadata_shell_live import read_on, running_quorum
        from quorate.shell.following import QuorumFollower

        with closing(QuorumFollower(running_quorum(**live))) as follower:
            state = ShellState(root(follower.catch_up()), redaction)
            click.echo(f"{follower.position}.", err=True)
            _serve(state, command, lambda: read_on(follower, state))
        return 0
    view = (
        load_snapshot(snapshot) if snapshot is not None else load_directory(directory or "", until)
    )
    _serve(ShellState(root(view), redaction), command, lambda: None)
    return 0


def _serve(state: ShellState, command: tuple[str, ...], refresh: Callable[[], None]) -> None:
    """Run one command, or those that the user types: before each of these, `refresh`."""
    if command:
        _print(run(state, command, interactive=False))
        return
    click.echo("Starting...")
    click.echo("[ Kafka Metadata Shell ]")
    _interact(state, refresh)


def _until(at_offset: int | None, at_time: str | None) -> Until:
    if at_offset is not None and at_time is not None:
        raise click.UsageError("give --at-offset or --at-time, not both")
    if at_time is not None:
        return Until(timestamp_ms=_time_ms(at_time, "--at-time"))
    return NO_END if at_offset is None else Until(offset=at_offset)


def _time_ms(text: str, name: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"{name}: '{text}' is not a time such as 2026-11-26T12:00:00Z"
        ) from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _point(text: str) -> Until:
    """An offset (inclusive) or a time."""
    if text.isascii() and text.isdigit():
        return Until(offset=int(text))
    return Until(timestamp_ms=_time_ms(text, _DIFF))


def _diff(directory: str, arguments: list[str], redaction: Redaction) -> Iterator[NodeDifference]:
    if len(arguments) not in (2, 3):
        raise click.UsageError("diff takes two offsets or times and a path: diff FROM TO [PATH]")
    before, after = (load_directory(directory, _point(text)) for text in arguments[:2])
    path = arguments[2] if len(arguments) == 3 else "/image"
    old, new = (_node(view, path) for view in (before, after))
    if old is None and new is None:
        raise QuorateError(f"diff: {path}: no such file or directory at either point.")
    return differences(old, new, path, redaction)


def _node(view: MetadataView, path: str) -> Node | None:
    found = list(matches(root(view), absolute(path, "/")))
    return found[0].node if found else None


def _text_lines(found: Iterable[NodeDifference]) -> Iterator[str]:
    for one in found:
        if one.before is not None:
            yield f"- {one.path}: {one.before}"
        if one.after is not None:
            yield f"+ {one.path}: {one.after}"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _interact(state: ShellState, refresh: Callable[[], None]) -> None:
    """Read and run commands until `exit` or the end of the input."""
    import shlex

    for line in _lines(state):
        state.history.append(line)
        try:
            words = shlex.split(line)
        except ValueError as error:
            click.echo(f"{line}: {error}")
            continue
        refresh()
        _print(run(state, words, interactive=True))
        sys.stdout.flush()  # who drives the shell by pipes waits for the answer
        if state.ended:
            return


def _lines(state: ShellState) -> Iterator[str]:
    """What the user types; a pipe is read line by line."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.rstrip("\n")
        return
    from prompt_toolkit import PromptSession

    session: PromptSession[str] = PromptSession(completer=_completer(state))
    while True:
        try:
            line = session.prompt(">> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        state.width = session.output.get_size().columns
        yield line


def _completer(state: ShellState) -> Completer:
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class Paths(Completer):
        def get_completions(self, document: Document, _: object) -> Iterator[Completion]:
            before = document.text_before_cursor
            start = -len(before.rpartition(" ")[2])
            for word in complete(state, before):
                yield Completion(word, start, display=word.rstrip("/").rpartition("/")[2] or word)

    return Paths()
