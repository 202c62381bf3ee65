"""Errors in scenarios."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import QuorateError

_MOST: Final = 400
"""Longest reason in characters: it may quote a line of any length."""


class CommandError(QuorateError):
    """The cluster cannot execute a command: no such node, a node that is down, or a cluster that
    does not settle."""


class ScenarioError(QuorateError):
    """A scenario does not parse, or a command fails; `line` counts from 1, 0: the file."""

    exit_code = 2

    def __init__(self, file: str, line: int, reason: str) -> None:
        if len(reason) > _MOST:
            reason = f"{reason[:_MOST]}... ({len(reason)} characters)"
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
