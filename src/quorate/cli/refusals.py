"""What an authorizer refused to the tool that runs: a second line after the text of Kafka's tool."""

from __future__ import annotations

from typing import Final

_NOTED: Final[dict[str, None]] = {}


def note_refusal(line: str) -> None:
    """Remember a line for the end of the tool; a tool may go on in spite of a refusal."""
    _NOTED[line] = None


def noted_refusals() -> tuple[str, ...]:
    """The lines since the last call."""
    found = tuple(_NOTED)
    _NOTED.clear()
    return found
