"""The commands of the shell (`org.apache.kafka.shell.command`): words in, lines of text out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.shell.globs import absolute, matches
from quorate.shell.nodes import Directory, Leaf, Node, Redaction, print_node

MAX_HISTORY: Final = 0x7FFFFFFF
_COLUMN_GAP: Final = 2
_LEAST_COLUMN: Final = 4
_DIFF: Final = "diff"
"""A command of the tool that the shell does not run."""


@dataclass
class ShellState:
    """What commands look at and change."""

    root: Directory
    redaction: Redaction = Redaction.DISABLED
    working_directory: str = "/"
    width: int | None = None
    """Columns of the terminal; None: one name a line."""
    history: list[str] = field(default_factory=list)
    ended: bool = False
    """`exit` was given."""


class CommandLineError(Exception):
    """A command line that cannot be run; the text is Kafka's."""


@dataclass(frozen=True)
class Command:
    """A command: its help, its arguments, and what it prints."""

    help: str
    run: Callable[[ShellState, Sequence[str]], Iterable[str]]
    least: int
    """Fewest arguments."""
    most: int | None
    """Most arguments; None: any number."""
    usage: str = ""
    argument: str = ""
    argument_help: str = ""
    shell_only: bool = False
    """Not a command of `quorate metadata-shell ... COMMAND`."""

    @property
    def takes_paths(self) -> bool:
        return self.argument.startswith("target") or self.argument == "paths"


def run(state: ShellState, words: Sequence[str], *, interactive: bool) -> Iterator[str]:
    """The lines that a command prints. What cannot be run gives Kafka's line about it."""
    given = list(words)
    while given and not given[-1]:
        given.pop()
    if not given:
        return
    try:
        command, arguments = _parse(given, interactive=interactive)
        yield from command.run(state, arguments)
    except CommandLineError as error:
        yield str(error)


def reads_tree(name: str) -> bool:
    """Whether the command shows what is in the tree, or goes there."""
    return name in COMMANDS and COMMANDS[name].takes_paths


def _parse(words: list[str], *, interactive: bool) -> tuple[Command, list[str]]:
    """The command and its arguments; raises CommandLineError with the parser's text (argparse4j)."""
    known = [name for name, one in COMMANDS.items() if interactive or not one.shell_only]
    name, arguments = words[0], words[1:]
    if name.startswith("-") and name != "-":
        raise CommandLineError(f"unrecognized arguments: '{name}'")
    found = [one for one in known if one.startswith(name)] if name not in known else [name]
    if not found:
        if name == _DIFF and interactive:
            raise CommandLineError(
                "diff runs outside of the shell: quorate metadata-shell -d DIR diff FROM TO [PATH]"
            )
        choices = ", ".join(
            f"'{one}'" for one in sorted([*known, *([] if interactive else [_DIFF])])
        )
        raise CommandLineError(f"invalid choice: '{name}' (choose from {choices})")
    if len(found) > 1:
        raise CommandLineError(f"ambiguous command: {name} could match {', '.join(found)}")
    command = COMMANDS[found[0]]
    for option in arguments:
        if option.startswith("-") and option != "-":
            raise CommandLineError(f"unrecognized arguments: '{option}'")
    if len(arguments) < command.least:
        raise CommandLineError("too few arguments")
    if command.most is not None and len(arguments) > command.most:
        raise CommandLineError(f"unrecognized arguments: '{arguments[command.most]}'")
    if found[0] != name:
        raise CommandLineError(f"invalid choice: '{name}': did you mean '{found[0]}'?")
    return command, arguments


def _effective(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if path] or ["."]


def _found(state: ShellState, path: str) -> Iterator[tuple[str, str, Node]]:
    """(last name, absolute path, node) of what the glob matches."""
    for match in matches(state.root, absolute(path, state.working_directory)):
        yield match.last_name, match.absolute_path, match.node


def _cat(state: ShellState, targets: Sequence[str]) -> Iterator[str]:
    for target in targets:
        found = False
        for _, _, node in _found(state, target):
            found = True
            if isinstance(node, Leaf):
                yield node.text(state.redaction)
            else:
                yield f"cat: {target}: Is a directory"
        if not found:
            yield f"cat: {target}: No such file or directory."


def _tree(state: ShellState, targets: Sequence[str]) -> Iterator[str]:
    for target in targets:
        found = False
        for _, _, node in _found(state, target):
            found = True
            yield from print_node(node, state.redaction)
        if not found:
            yield f"tree: {target}: No such file or directory."


def _cd(state: ShellState, targets: Sequence[str]) -> Iterator[str]:
    target = targets[0] if targets else "/"
    found = False
    for _, path, node in _found(state, target):
        found = True
        if isinstance(node, Directory):
            state.working_directory = path
        else:
            yield f"cd: {target}: not a directory."
    if not found:
        yield f"cd: {target}: no such directory."


def _find(state: ShellState, paths: Sequence[str]) -> Iterator[str]:
    for path in _effective(paths):
        found = False
        for _, _, node in _found(state, path):
            found = True
            yield from _paths(path, node)
        if not found:
            yield f"find: {path}: no such file or directory."


def _paths(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, Directory):
        for name, child in node.children():
            yield from _paths(path + name if path == "/" else f"{path}/{name}", child)


def _ls(state: ShellState, targets: Sequence[str]) -> Iterator[str]:
    """Files first, then each directory; several directories have a title each."""
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    for target in _effective(targets):
        found = False
        for name, _, node in _found(state, target):
            found = True
            if isinstance(node, Directory):
                directories.append((name, node.sorted_names()))
            else:
                files.append(name)
        if not found:
            yield f"ls: {target}: no such file or directory."
    yield from _columns(files, state.width)
    first = not files
    for name, names in directories:
        if not names:
            first = False
            continue
        if files or len(directories) > 1:
            if not first:
                yield ""
            yield f"{name}:"
            first = False
        yield from _columns(names, state.width)


def _columns(names: list[str], width: int | None) -> Iterator[str]:
    """The names in as many columns as fit, filled from top to bottom."""
    if not names:
        return
    widths, rows = _layout(names, width)
    for row in range(rows):
        line = names[row::rows]
        padded = [name.ljust(size) for name, size in zip(line, widths, strict=False)]
        if len(line) == len(widths):
            padded[-1] = line[-1]
        yield "".join(padded)


def _layout(names: list[str], width: int | None) -> tuple[list[int], int]:
    """(widths of the columns, number of rows): the most columns that fit."""
    most = 1 if width is None else max(width // _LEAST_COLUMN, 1)
    for columns in range(most, 1, -1):
        rows = -(-len(names) // columns)
        widths = [
            max(map(len, names[start : start + rows])) + _COLUMN_GAP
            for start in range(0, len(names), rows)
        ]
        if len(widths) == columns and width is not None and sum(widths) <= width:
            return widths, rows
    return [0], len(names)


def _pwd(state: ShellState, _: Sequence[str]) -> Iterator[str]:
    yield state.working_directory


def _exit(state: ShellState, _: Sequence[str]) -> Iterator[str]:
    state.ended = True
    return iter(())


def _history(state: ShellState, arguments: Sequence[str]) -> Iterator[str]:
    count = MAX_HISTORY
    if arguments:
        try:
            count = int(arguments[0])
        except ValueError:
            raise CommandLineError(
                f"argument numEntriesToShow: could not convert '{arguments[0]}' to Integer "
                f'(For input string: "{arguments[0]}")'
            ) from None
    first = max(len(state.history) - max(count, 0), 0)
    for index in range(first, len(state.history)):
        yield f"{index: 5d}  {state.history[index]}"


def _man(_: ShellState, arguments: Sequence[str]) -> Iterator[str]:
    name = arguments[0]
    command = COMMANDS.get(name)
    if command is None:
        yield f"man: unknown command {name}. Type help to get a list of commands."
        return
    yield f"{name}: {command.help}"
    yield ""
    yield f"usage: {name} {command.usage}".rstrip()
    if command.argument:
        yield ""
        yield "positional arguments:"
        yield f"  {command.argument:<23}{command.argument_help}"


def _help(_: ShellState, __: Sequence[str]) -> Iterator[str]:
    names = "{" + ",".join(COMMANDS) + "}"
    yield "Welcome to the Apache Kafka metadata shell."
    yield ""
    yield f"usage:  {names} ..."
    yield ""
    yield "positional arguments:"
    yield f"  {names}"
    for name, command in COMMANDS.items():
        yield f"    {name:<21}{command.help}"


COMMANDS: Final[Mapping[str, Command]] = {
    "cat": Command(
        "Show the contents of metadata files.",
        _cat,
        1,
        None,
        "targets [targets ...]",
        "targets",
        "The metadata files to display.",
    ),
    "cd": Command(
        "Set the current working directory.",
        _cd,
        0,
        1,
        "[target]",
        "target",
        "The directory to change to.",
        shell_only=True,
    ),
    "exit": Command("Exit the metadata shell.", _exit, 0, 0, shell_only=True),
    "find": Command(
        "Search for nodes in the directory hierarchy.",
        _find,
        0,
        None,
        "[paths [paths ...]]",
        "paths",
        "The paths to start at.",
    ),
    "help": Command("Display this help message.", _help, 0, 0, shell_only=True),
    "history": Command(
        "Print command history.",
        _history,
        0,
        1,
        "[numEntriesToShow]",
        "numEntriesToShow",
        "The number of entries to show.",
        shell_only=True,
    ),
    "ls": Command(
        "List metadata nodes.",
        _ls,
        0,
        None,
        "[targets [targets ...]]",
        "targets",
        "The metadata node paths to list.",
    ),
    "man": Command(
        "Show the help text for a specific command.",
        _man,
        1,
        1,
        "cmd",
        "cmd",
        "The command to get help text for.",
        shell_only=True,
    ),
    "pwd": Command("Print the current working directory.", _pwd, 0, 0, shell_only=True),
    "tree": Command(
        "Show the contents of metadata nodes in a tree structure.",
        _tree,
        1,
        None,
        "targets [targets ...]",
        "targets",
        "The metadata nodes to display.",
    ),
}
"""By name, in the order of `help`."""


def complete(state: ShellState, line: str) -> list[str]:
    """The words that may stand in place of the last one of `line` (`CommandUtils`)."""
    words = line.split(" ")
    last = words[-1]
    if len(words) == 1 or (words[0] == "man" and len(words) == 2):
        return [name for name in COMMANDS if name.startswith(last)]
    command = COMMANDS.get(words[0])
    return complete_path(state, last) if command is not None and command.takes_paths else []


def complete_path(state: ShellState, prefix: str) -> list[str]:
    """Paths that begin with `prefix`; those of directories end with a slash."""
    above, slash, start = prefix.rpartition("/")
    node: Node | None = state.root
    for name in absolute(above + slash, state.working_directory):
        node = node.child(name) if isinstance(node, Directory) else None
    if not isinstance(node, Directory):
        return []
    return [
        f"{above}{slash}{name}{'/' if isinstance(node.child(name), Directory) else ''}"
        for name in node.sorted_names()
        if name.startswith(start)
    ]
