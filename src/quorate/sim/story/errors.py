"""What a story can get wrong."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class CannotDo(QuorateError):
    """The cluster cannot do what was asked of it: no such node, a node that is down, no rest."""


class StoryError(QuorateError):
    """A story does not parse or asks for what there is not; `line` counts from 1, 0: the file."""

    exit_code = 2

    def __init__(self, file: str, line: int, reason: str) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
