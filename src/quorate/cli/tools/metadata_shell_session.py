"""The work of `quorate metadata-shell`: load, run commands and compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from quorate.base.errors import QuorateError
from quorate.base.garbage import without_collections
from quorate.base.times import parse_time_in_utc
from quorate.shell.commands import ShellState, complete, reads_tree, run
from quorate.shell.globs import absolute, matches
from quorate.shell.image_tree import MetadataView, root
from quorate.shell.loading import NO_END, Until, load_directory, load_snapshot
from quorate.shell.nodes import Node, NodeDifference, Redaction, differences

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer


def explore_files(
    snapshot: str | None,
    directory: str,
    until: Until,
    command: Sequence[str],
    *,
    redact: bool,
    as_json: bool,
) -> None:
    """Run a command, or those that the user types, on a snapshot or else on a directory."""
    with without_collections(freeze=True):
        whole = None if snapshot is None else load_snapshot(snapshot)
        view = whole or load_directory(directory, until, _note)
    state = ShellState(root(view), _redaction(redact))
    _serve(state, command, lambda: None, as_json=as_json)


def explore_quorum(
    live: Mapping[str, Any], command: Sequence[str], *, redact: bool, as_json: bool
) -> None:
    """Explore, as `explore_files`, the running quorum that the options `live` name."""
    # Imported here: the client costs a quarter of the time of a command on a file.
    from quorate.cli.tools.metadata_shell_live import read_on, running_quorum
    from quorate.shell.following import QuorumFollower

    with closing(QuorumFollower(running_quorum(**live))) as follower:
        with without_collections(freeze=True):
            view = follower.catch_up()
        state = ShellState(root(view), _redaction(redact))
        click.echo(f"{follower.position}.", err=True)
        _serve(state, command, lambda: read_on(follower, state), as_json=as_json)


def print_differences(
    directory: str, arguments: Sequence[str], *, redact: bool, as_json: bool
) -> None:
    """Print what differs between two points of a directory: `FROM TO [PATH]`."""
    found = _diff(directory, list(arguments), _redaction(redact))
    if as_json:
        click.echo(json.dumps([one._asdict() for one in found]))
    else:
        _print(_text_lines(found))


def _note(text: str) -> None:
    click.echo(text, err=True)


def _redaction(redact: bool) -> Redaction:
    return Redaction.NORMAL if redact else Redaction.DISABLED


def _serve(
    state: ShellState, command: Sequence[str], refresh: Callable[[], None], *, as_json: bool
) -> None:
    """Run one command, or those that the user types: before each of these, `refresh`."""
    if command and as_json:
        state.width = 1  # a name a line
        lines = list(run(state, command, interactive=False))
        click.echo(json.dumps({"command": command[0], "lines": lines}, indent=2))
        return
    if command:
        _print(run(state, command, interactive=False))
        return
    click.echo("Starting...")
    click.echo("[ Kafka Metadata Shell ]")
    _interact(state, refresh)


def until_of(at_offset: int | None, at_time: str | None) -> Until:
    """The last record to read. Raises UsageError."""
    if at_offset is not None and at_time is not None:
        raise click.UsageError("give --at-offset or --at-time, not both")
    if at_time is not None:
        return Until(timestamp_ms=_time_ms(at_time, "--at-time"))
    return NO_END if at_offset is None else Until(offset=at_offset)


def _time_ms(text: str, name: str) -> int:
    try:
        time = parse_time_in_utc(text)
    except ValueError:
        raise click.UsageError(
            f"{name}: '{text}' is not a time such as 2026-11-26T12:00:00Z or "
            "'2026-11-26 12:00:00 Europe/Berlin'"
        ) from None
    return int(time.timestamp() * 1000)


def _point(text: str) -> Until:
    """An offset (inclusive) or a time."""
    if text.isascii() and text.isdigit():
        return Until(offset=int(text))
    return Until(timestamp_ms=_time_ms(text, "diff"))


def _diff(directory: str, arguments: list[str], redaction: Redaction) -> Iterator[NodeDifference]:
    if len(arguments) not in (2, 3):
        raise click.UsageError("diff takes two offsets or times and a path: diff FROM TO [PATH]")
    with without_collections(freeze=True):
        before, after = (load_directory(directory, _point(text), _note) for text in arguments[:2])
    path = arguments[2] if len(arguments) == 3 else "/image"
    old, new = (_nodes(view, path) for view in (before, after))
    paths = sorted(old.keys() | new.keys())
    if not paths:
        raise QuorateError(f"diff: {path}: no such file or directory at either point.")
    return (
        each
        for found in paths
        for each in differences(old.get(found), new.get(found), found, redaction)
    )


def _nodes(view: MetadataView, path: str) -> dict[str, Node]:
    """What the glob matches, by absolute path."""
    return {each.absolute_path: each.node for each in matches(root(view), absolute(path, "/"))}


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
        if words and reads_tree(words[0]):
            refresh()
        _print(run(state, words, interactive=True))
        sys.stdout.flush()  # who drives the shell by pipes waits for the answer
        if state.ended:
            return


def _lines(state: ShellState) -> Iterator[str]:
    """What the user types; a pipe is read line by line."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.rstrip("\r\n")
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
