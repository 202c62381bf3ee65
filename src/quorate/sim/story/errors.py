"""What a story can get wrong."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import QuorateError

_MOST: Final = 400
"""Characters of a reason: it may quote a line of any length."""


class CannotDo(QuorateError):
    """The cluster cannot do what was asked of it: no such node, a node that is down, no rest."""


class StoryError(QuorateError):
    """A story does not parse or asks for what there is not; `line` counts from 1, 0: the file."""

    exit_code = 2

    def __init__(self, file: str, line: int, reason: str) -> None:
        if len(reason) > _MOST:
            reason = f"{reason[:_MOST]}... ({len(reason)} characters)"
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason
