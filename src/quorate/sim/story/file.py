"""Story files: blocks of comment lines (`#`), command lines, `----`, and the outcome.

A block ends at an empty line. `tell` plays a story and says where it now goes another way. A file
that begins with a setting of a plan is a world of the simulator: see `worlds`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.sim.story.errors import CannotDo, StoryError
from quorate.sim.story.script import Script, parse
from quorate.sim.story.told import Difference, Told
from quorate.sim.story.worlds import is_world, tell_world

STDIN: Final = "-"
_RULE: Final = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """Comment and command lines with the outcome that is written under them; `line` from 1."""

    line: int
    head: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def commands(self) -> list[tuple[int, str]]:
        """(line, command)"""
        numbered = enumerate(self.head, self.line)
        return [(line, text) for line, text in numbered if not text.startswith("#")]


def read_story(source: str | Path) -> str:
    """The text of a story file, of whatever editor, or of the standard input where that is `-`.

    Raises StoryError where it cannot be read, and where it is a trace.
    """
    name = str(source)
    try:
        raw = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise StoryError(name, 0, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise StoryError(name, 0, "this is no text") from None
    if text.startswith("# quorate trace"):
        said = f"this is a trace: 'quorate sim replay SEED --against {name}' compares with it"
        raise StoryError(name, 1, said)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_story(text: str, name: str) -> list[Block]:
    """The blocks of a story; raises StoryError(name, line, reason) where one does not parse."""
    blocks: list[Block] = []
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            blocks.append(_block(lines, number - len(lines), name))
            lines = []
    if not any(block.commands for block in blocks):
        raise StoryError(name, 1, "a story needs at least one command")
    return blocks


def _block(lines: list[str], first: int, name: str) -> Block:
    rules = [i for i, line in enumerate(lines) if line == _RULE]
    if len(rules) > 1:
        raise StoryError(name, first + rules[1], f"a second {_RULE} in one block")
    end = rules[0] if rules else len(lines)
    block = Block(first, tuple(lines[:end]), tuple(lines[end + 1 :]))
    if rules and not block.commands:
        raise StoryError(name, first + end, f"{_RULE} without a command above it")
    for line, command in block.commands:
        try:
            parse(command)
        except CannotDo as error:
            raise StoryError(name, line, str(error)) from None
    return block


def tell(text: str, name: str) -> Told:
    """Play a story or a world; raises StoryError where it does not parse or cannot be done."""
    if is_world(text):
        return tell_world(text, name)
    script = Script()
    told: list[str] = []
    differences: list[Difference] = []
    for block in parse_story(text, name):
        found = _play(script, block, name)
        told.append("\n".join([*block.head, *([_RULE, *found] if found else [])]))
        if tuple(found) != block.outcome:
            commands = block.commands
            texts = tuple(command for _, command in commands)
            differences.append(Difference(commands[0][0], texts, block.outcome, tuple(found)))
    return Told("\n\n".join(told) + "\n", tuple(differences))


def _play(script: Script, block: Block, name: str) -> list[str]:
    outcome: list[str] = []
    for line, command in block.commands:
        try:
            outcome += script.run(command)
        except QuorateError as error:
            raise StoryError(name, line, str(error)) from error
    if len(outcome) > 1:
        outcome = [text for text in outcome if text != "ok"] or ["ok"]
    return outcome
