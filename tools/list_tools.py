"""Write docs/tools.md from the help of the operator's tools: `python tools/list_tools.py`.

A test compares the page with what this writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA
from quorate.cli.main import TOOLS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "tools.md"
_OPERATORS: Final = "quorate.cli.tools."
"""The package of the tools that an operator of a cluster uses."""
_WIDTH: Final = 100
_HEAD: Final = """\
# Tools

The help of the tools for operators, made by `python tools/list_tools.py`. [migrating.md](migrating.md) maps
Kafka's scripts to these tools.

## For every tool

| exit code | meaning |
|---|---|
| 0 | The command succeeded; also when the reader of a pipe went away. |
| 1 | Wrong options, an unreachable cluster, or a refusal by the cluster, as in Kafka's tools. |
| 70 | A defect of Quorate: please report it. |
| 130 | Interrupted by Ctrl-C. |

- An option may be written as `--option VALUE` or `--option=VALUE`. It may be shortened as long as it is
  unambiguous.
- `--json` prints one JSON document. `quorate TOOL --json-schema` prints its schema, which has a version.
  Within a version, properties may be added, but none is removed or changes its type.
- `--bootstrap-server` names brokers, `--bootstrap-controller` names controllers (KIP-919). Exactly one of
  them is given, here or as `bootstrap.servers` or `bootstrap.controllers` in the file of
  `--command-config`. An option replaces both keys of the file.
- With controllers a tool works while no broker is alive.
- A table that is wider than the terminal is printed as records, a line for each column. `COLUMNS` sets
  another width. A pipe or a file gets the whole table.
- `NO_COLOR` turns colours off. Characters that the locale's encoding lacks are printed as escapes.
- When no node answers, the error names the addresses, what happened and what to check. `--timeout` limits
  each call. For `reassign-partitions`, whose `--timeout` is Kafka's, `default.api.timeout.ms` in the file of
  `--command-config` does.
- Errors go to stderr in one line; with `QUORATE_DEBUG=1` with a traceback.

## Completion

`quorate completion SHELL` prints a completion file. It completes tools, commands, options and their fixed
values without starting Python. Print it again after an update of Quorate.

| shell | install |
|---|---|
| bash | `quorate completion bash > ~/.local/share/bash-completion/completions/quorate` |
| zsh | `quorate completion zsh > ~/.zfunc/_quorate`; `~/.zshrc` has `fpath+=~/.zfunc` before `compinit` |
| fish | `quorate completion fish > ~/.config/fish/completions/quorate.fish` |
"""


def page() -> str:
    """The page as text."""
    sections = [_HEAD]
    for name, tool in TOOLS.items():
        if not tool.place.startswith(_OPERATORS):
            continue
        module, _, attribute = tool.place.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        schema = (
            " `--json-schema` prints the schema of its JSON." if name in TOOLS_WITH_SCHEMA else ""
        )
        sections.append(f"\n## {name}\n\n{tool.help}{schema}\n")
        for context in _contexts(f"quorate {name}", command, None):
            lines = (line.rstrip() for line in context.command.get_help(context).splitlines())
            text = "\n".join(lines)
            sections.append(f"\n```\n$ {context.command_path} --help\n{text}\n```\n")
    return "".join(sections)


def _contexts(
    name: str, command: click.Command, parent: click.Context | None
) -> Iterator[click.Context]:
    """A context of a fixed width for a command and for each of its commands."""
    settings = {**command.context_settings, "terminal_width": _WIDTH, "max_content_width": _WIDTH}
    context = click.Context(command, info_name=name, parent=parent, **settings)
    yield context
    if isinstance(command, click.Group):
        for word, each in command.commands.items():
            yield from _contexts(word, each, context)


if __name__ == "__main__":
    PAGE.write_text(page())
