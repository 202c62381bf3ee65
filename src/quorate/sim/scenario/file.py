"""Scenario files: blocks of comment lines (`#`), command lines, `----`, and the outcome.

A block ends at an empty line. `run_scenario` runs a scenario and reports outcomes that differ. A
file that begins with a setting of a plan is a world of the simulator: see `worlds`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.sim.scenario.errors import CommandError, ScenarioError
from quorate.sim.scenario.rewrite import Difference, ScenarioRun
from quorate.sim.scenario.script import Script, parse
from quorate.sim.scenario.worlds import is_world, run_world

STDIN: Final = "-"
_RULE: Final = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """Comment and command lines with the expected outcome; `line` from 1."""

    line: int
    head: tuple[str, ...]
    outcome: tuple[str, ...]

    @property
    def commands(self) -> list[tuple[int, str]]:
        """(line, command)"""
        numbered = enumerate(self.head, self.line)
        return [(line, text) for line, text in numbered if not text.startswith("#")]


def read_scenario(source: str | Path) -> str:
    """The text of a scenario file, or of the standard input where `source` is `-`.

    Raises ScenarioError where it cannot be read, and where it is a trace.
    """
    name = str(source)
    try:
        raw = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(name, 0, error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise ScenarioError(name, 0, "this is not a text file") from None
    if text.startswith("# quorate trace"):
        said = f"this is a trace: 'quorate sim replay SEED --against {name}' compares with it"
        raise ScenarioError(name, 1, said)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_scenario(text: str, name: str) -> list[Block]:
    """The blocks of a scenario; raises ScenarioError(name, line, reason) where one does not parse."""
    blocks: list[Block] = []
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            lines.append(line.rstrip())
        elif lines:
            blocks.append(_block(lines, number - len(lines), name))
            lines = []
    if not any(block.commands for block in blocks):
        raise ScenarioError(name, 1, "a scenario needs at least one command")
    return blocks


def _block(lines: list[str], first: int, name: str) -> Block:
    rules = [i for i, line in enumerate(lines) if line == _RULE]
    if len(rules) > 1:
        raise ScenarioError(name, first + rules[1], f"a second {_RULE} in one block")
    end = rules[0] if rules else len(lines)
    block = Block(first, tuple(lines[:end]), tuple(lines[end + 1 :]))
    if rules and not block.commands:
        raise ScenarioError(name, first + end, f"{_RULE} without a command above it")
    for line, command in block.commands:
        try:
            parse(command)
        except CommandError as error:
            raise ScenarioError(name, line, str(error)) from None
    return block


def run_scenario(text: str, name: str) -> ScenarioRun:
    """Run a scenario or a world; raises ScenarioError where it does not parse or a command fails."""
    if is_world(text):
        return run_world(text, name)
    script = Script()
    text_blocks: list[str] = []
    differences: list[Difference] = []
    for block in parse_scenario(text, name):
        found = _run_block(script, block, name)
        text_blocks.append("\n".join([*block.head, *([_RULE, *found] if found else [])]))
        if tuple(found) != block.outcome:
            commands = block.commands
            texts = tuple(command for _, command in commands)
            differences.append(Difference(commands[0][0], texts, block.outcome, tuple(found)))
    return ScenarioRun("\n\n".join(text_blocks) + "\n", tuple(differences))


def _run_block(script: Script, block: Block, name: str) -> list[str]:
    outcome: list[str] = []
    for line, command in block.commands:
        try:
            outcome += script.run(command)
        except QuorateError as error:
            raise ScenarioError(name, line, str(error)) from error
    if len(outcome) > 1:
        outcome = [text for text in outcome if text != "ok"] or ["ok"]
    return outcome
