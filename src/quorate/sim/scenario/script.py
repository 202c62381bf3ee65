"""Runs the commands of one scenario and returns the outcome of each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

from quorate.raft.ready import Accepted, Ready
from quorate.sim.scenario.commands import Commands
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.node import CoreNode
from quorate.sim.scenario.text import answer_text, shorten

_COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    name[4:].replace("_", "-"): function
    for name, function in vars(Commands).items()
    if name.startswith("cmd_")
}
_RENAMED: Final[Mapping[str, str]] = {"told": "reported-leader"}
"""Former names of commands, for files of earlier versions."""
_SIGNATURES: Final = {
    name: inspect.signature(function, eval_str=True) for name, function in _COMMANDS.items()
}
_MOST_OF_ANY: Final = (1 << 31) - 1
_MOST: Final = {"duration_ms": 86_400_000, "ms": 86_400_000, "disk": 255}
"""Limits: a scenario takes at most a day; a disk number is one byte of its directory id."""


class Script:
    """A cluster that takes commands as lines of text.

    The outcome of a command is what replicas note, new high watermarks, responses to clients, and
    the command's own output.
    """

    def __init__(self) -> None:
        self._do = Commands()
        self._faulted: set[int] = set()
        self.cluster = self._do.cluster
        self.cluster.observe = self._observe

    def run(self, line: str) -> list[str]:
        """The outcome of one command line; raises CommandError where the command does not exist or
        fails."""
        name, args, options = parse(line)
        self._do.lines = []
        answered = len(self.cluster.answers)
        _COMMANDS[name](self._do, *args, **options)
        for node_id, answer in self.cluster.answers[answered:]:
            self._do.lines.append(f"{node_id} answers {answer_text(answer)}")
        return [shorten(text) for text in self._do.lines] or ["ok"]

    def _observe(self, node: CoreNode, ready: Ready) -> None:
        say = self._do.lines.append
        for note in ready.notes:
            say(f"{node.id}: {note}")
        if ready.high_watermark is not None:
            say(f"{node.id}: high watermark {ready.high_watermark}")
        for proposal in ready.proposals:
            if isinstance(proposal, Accepted):
                end = proposal.end_offset
                say(f"{node.id}: accepted [{proposal.base_offset}, {end})")
            else:
                say(f"{node.id}: refused {proposal.error.name}: {proposal.message}")
        if ready.faulted and node.id not in self._faulted:
            self._faulted.add(node.id)
            say(f"{node.id}: FAULTED {ready.faulted}")


def parse(line: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Command, arguments and options (`name=value`) of a line, numbers as int; or CommandError."""
    name, *words = line.split()
    name = _RENAMED.get(name, name)
    if name not in _COMMANDS:
        close = get_close_matches(name, _COMMANDS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(_COMMANDS)}"
        raise CommandError(f"there is no command '{name}'; {hint}")
    signature = _SIGNATURES[name]
    args = [word for word in words if "=" not in word]
    options = dict(word.split("=", 1) for word in words if "=" in word)
    try:
        bound = signature.bind(None, *args, **options)
    except TypeError as error:
        usage = (_COMMANDS[name].__doc__ or "").partition(": ")[0]
        raise CommandError(f"{error}; usage: {usage}") from None
    for parameter in list(signature.parameters.values())[1:]:
        if parameter.annotation is int and parameter.name in bound.arguments:
            value = bound.arguments[parameter.name]
            many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
            bound.arguments[parameter.name] = (
                tuple(_number(parameter.name, word) for word in value)
                if many
                else _number(parameter.name, value)
            )
    return name, list(bound.args[1:]), dict(bound.kwargs)


def _number(name: str, word: str) -> int:
    most = _MOST.get(name, _MOST_OF_ANY)
    try:
        number = int(word)
    except ValueError:
        raise CommandError(f"{name}: '{word}' is not a number") from None
    if not 0 <= number <= most:
        raise CommandError(f"{name}: {word} is not from 0 to {most}")
    return number
