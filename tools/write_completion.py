"""Write the completion files of the shells from the tools' commands: `python tools/write_completion.py`.

A test compares the files with what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

import click

from quorate.cli.json_schemas import TOOLS_WITH_SCHEMA
from quorate.cli.main import TOOLS
from quorate.cli.tools.acl_entries import OPERATIONS
from quorate.cli.tools.config_entities import TYPES
from quorate.formats.versions import FEATURES
from quorate.nemesis.plan import FAULT_KINDS
from quorate.shell.commands import COMMANDS

FOLDER: Final = Path(__file__).resolve().parents[1] / "src" / "quorate" / "cli" / "completion"
_MADE: Final = "made by: python tools/write_completion.py"


_CHECKED: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("quorate configs", "--entity-type"): TYPES,
    ("quorate acls", "--operation"): tuple(OPERATIONS),
    ("quorate features disable", "--feature"): tuple(FEATURES),
    ("quorate sim nemesis", "--only"): ("help", *FAULT_KINDS),
}
"""Options whose fixed values the tool checks itself."""


class Option(NamedTuple):
    """An option of a command, in one of its spellings."""

    name: str
    help: str
    valued: bool = False
    choices: tuple[str, ...] = ()


class Node(NamedTuple):
    """A command: what may follow it."""

    commands: Mapping[str, str]
    """Name and purpose of each command below it."""
    options: tuple[Option, ...]


def tree() -> dict[str, Node]:
    """Every command by its words, `quorate storage format`, in the order of the help."""
    root = Node(
        {name: tool.help for name, tool in TOOLS.items()},
        (
            Option("-h", "Show the help."),
            Option("--help", "Show the help."),
            Option("--version", "Show the version."),
        ),
    )
    nodes = {"quorate": root}
    for name, tool in TOOLS.items():
        module, _, attribute = tool.place.partition(":")
        nodes.update(_nodes(f"quorate {name}", getattr(import_module(module), attribute)))
        node = nodes[f"quorate {name}"]
        own = []
        if all(option.name != "--version" for option in node.options):
            own.append(Option("--version", "Show the version."))
        if name in TOOLS_WITH_SCHEMA:
            own.append(Option("--json-schema", "Show the schema of the JSON."))
        nodes[f"quorate {name}"] = node._replace(options=(*node.options, *own))
    shell = nodes["quorate metadata-shell"]
    below = {name: each.help for name, each in COMMANDS.items() if not each.shell_only}
    below["diff"] = "Show what differs between two points."
    nodes["quorate metadata-shell"] = shell._replace(commands=below)
    return nodes


def _nodes(
    words: str, command: click.Command, parent: click.Context | None = None
) -> Iterator[tuple[str, Node]]:
    # With its parent: the names of the help option come from there, as in a run.
    context = click.Context(command, parent=parent, **command.context_settings)
    below = command.commands if isinstance(command, click.Group) else {}
    options = tuple(
        Option(name, _first_sentence(param.help or ""), _valued(param), _values(words, param))
        for param in command.get_params(context)
        if isinstance(param, click.Option) and not param.hidden
        for name in (*param.opts, *param.secondary_opts)
    )
    arguments = {
        choice: ""
        for param in command.params
        if isinstance(param, click.Argument)
        for choice in _choices(param.type)
    }
    helps = {name: each.get_short_help_str(1000) for name, each in below.items()}
    yield words, Node(helps | arguments, options)
    for name, each in below.items():
        yield from _nodes(f"{words} {name}", each, context)


def _valued(option: click.Option) -> bool:
    return not (option.is_flag or option.count)


def _values(words: str, option: click.Option) -> tuple[str, ...]:
    """The fixed values of an option: those of its type, or those that the tool checks itself."""
    return _choices(option.type) or _CHECKED.get((words, option.opts[0]), ())


def _choices(kind: click.ParamType) -> tuple[str, ...]:
    """The values as the help spells them: in lower case where case does not matter."""
    if not isinstance(kind, click.Choice):
        return ()
    return tuple(str(c) if kind.case_sensitive else str(c).lower() for c in kind.choices)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.;:])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".;:")


def _words(names: Iterable[str]) -> str:
    return " ".join(names)


def _quoted(text: str) -> str:
    """A word of bash or zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _choice_cases(nodes: Mapping[str, Node]) -> list[str]:
    """Lines of `case COMMAND OPTION in`, of bash and zsh."""
    return [
        f'    "{words} {option.name}") choices={_quoted(_words(option.choices))} ;;'
        for words, node in nodes.items()
        for option in node.options
        if option.choices
    ]


def bash(nodes: Mapping[str, Node]) -> str:
    """The file for bash 3.2 and newer."""
    cases = [
        f'    "{words}")\n'
        f"      commands={_quoted(_words(node.commands))}\n"
        f"      flags={_quoted(_words(o.name for o in node.options if not o.valued))}\n"
        f"      valued={_quoted(_words(o.name for o in node.options if o.valued))} ;;"
        for words, node in nodes.items()
    ]
    return _BASH.format(made=_MADE, cases="\n".join(cases), choices="\n".join(_choice_cases(nodes)))


_BASH: Final = """\
# Completion of quorate for bash, {made}

# Set commands, flags and valued (options with a value) to what may follow the command $1.
_quorate_command() {{
  case $1 in
{cases}
  esac
}}

# Set choices to the values of the option $2 of the command $1.
_quorate_choices() {{
  choices=
  case "$1 $2" in
{choices}
  esac
}}

_quorate() {{
  local place=quorate option= head= word i commands flags valued choices words
  local cur=${{COMP_WORDS[COMP_CWORD]}}
  _quorate_command quorate
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ $word == '=' ]]; then
      continue  # bash splits --option=VALUE into three words
    elif [[ -n $option ]]; then
      option=
    elif [[ " $valued " == *" $word "* ]]; then
      option=$word
    elif [[ " $commands " == *" $word "* ]]; then
      place+=" $word"
      commands= flags= valued=
      _quorate_command "$place"
    fi
  done
  [[ $cur == '=' ]] && cur=
  if [[ -z $option && $cur == --*=* ]]; then
    option=${{cur%%=*}} head=${{cur%%=*}}= cur=${{cur#*=}}  # where COMP_WORDBREAKS has no '='
  fi
  if [[ -n $option ]]; then
    _quorate_choices "$place" "$option"
    words=$choices
  elif [[ $cur == -* ]]; then
    words="$valued $flags"
  else
    words=$commands
  fi
  COMPREPLY=($(compgen -P "$head" -W "$words" -- "$cur"))
}}

# Without a word of ours, bash offers the names of files.
complete -o default -F _quorate quorate
"""


def zsh(nodes: Mapping[str, Node]) -> str:
    """The file for zsh, `_quorate` in a folder of its fpath."""

    def described(name: str, text: str) -> str:
        return _quoted(name.replace(":", "\\:") + (f":{text}" if text else ""))

    cases = [
        f'    "{words}")\n'
        f"      below=({_words(described(*item) for item in node.commands.items())})\n"
        f"      flags=({_words(described(o.name, o.help) for o in node.options if not o.valued)})\n"
        f"      valued=({_words(described(o.name, o.help) for o in node.options if o.valued)}) ;;"
        for words, node in nodes.items()
    ]
    return _ZSH.format(made=_MADE, cases="\n".join(cases), choices="\n".join(_choice_cases(nodes)))


_ZSH: Final = """\
#compdef quorate
# Completion of quorate for zsh, {made}

# Set below (commands), flags and valued (options with a value) to what may follow the command $1.
_quorate_command() {{
  below=() flags=() valued=()
  case $1 in
{cases}
  esac
}}

# Set choices to the values of the option $2 of the command $1.
_quorate_choices() {{
  choices=
  case "$1 $2" in
{choices}
  esac
}}

_quorate() {{
  local place=quorate option= word choices
  local -a below flags valued
  _quorate_command quorate
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ -n $option ]]; then
      option=
    elif (( ${{valued[(I)$word:*]}} )); then
      option=$word
    elif (( ${{below[(I)$word|$word:*]}} )); then
      place+=" $word"
      _quorate_command "$place"
    fi
  done
  if [[ -z $option && $PREFIX == -*=* ]]; then
    option=${{PREFIX%%=*}}
    compset -P '*='
  fi
  if [[ -n $option ]]; then
    _quorate_choices "$place" "$option"
    if [[ -n $choices ]]; then
      compadd -- ${{=choices}}
    else
      _files
    fi
  elif [[ $PREFIX == -* ]]; then
    _describe -o option valued -- flags
  elif (( $#below )); then
    _describe command below
  else
    _files
  fi
}}

_quorate "$@"
"""


def fish(nodes: Mapping[str, Node]) -> str:
    """The file for fish 3 and newer."""
    lines = []
    for words, node in nodes.items():
        at = f"complete -c quorate -n '__quorate_at {_fish_path(words)}'"
        lines += [
            f"{at} -f -a {_fish(name)}{_fish_help(text)}" for name, text in node.commands.items()
        ]
        for option in node.options:
            kind = (
                f" -l {option.name[2:]}"
                if option.name.startswith("--")
                else f" -s {option.name[1:]}"
            )
            if option.choices:
                kind += f" -x -a {_fish(_words(option.choices))}"
            elif option.valued:
                kind += " -r"
            lines.append(f"{at}{kind}{_fish_help(option.help)}")
    groups = [node for node in nodes.values() if node.commands]
    valued = {o.name: None for node in groups for o in node.options if o.valued}
    return _FISH.format(
        made=_MADE,
        places=_words(_fish(_fish_path(words)) for words in nodes if words != "quorate"),
        valued=_words(valued),
        lines="\n".join(lines),
    )


def _fish_path(words: str) -> str:
    return words.removeprefix("quorate").strip().replace(" ", "/")


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_help(text: str) -> str:
    return f" -d {_fish(text)}" if text else ""


_FISH: Final = """\
# Completion of quorate for fish, {made}

# Whether the words so far name the command $argv: storage/format.
function __quorate_at
    set -l place
    set -l skip
    for word in (commandline -opc)[2..-1]
        if test -n "$skip"
            set skip
        else if contains -- $word {valued}
            set skip 1
        else if contains -- (string join -- / $place $word) {places}
            set place (string join -- / $place $word)
        end
    end
    test "$place" = "$argv"
end

{lines}
"""
WRITERS: Final = {"bash": bash, "zsh": zsh, "fish": fish}


def completions() -> dict[str, str]:
    """The text of each file, by the shell's name."""
    nodes = tree()
    return {shell: write(nodes) for shell, write in WRITERS.items()}


if __name__ == "__main__":
    for shell, text in completions().items():
        (FOLDER / f"quorate.{shell}").write_text(text, "utf-8")
