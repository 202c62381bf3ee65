"""Checks of a running replica against its medium, with rules of their own.

The simulator runs them after each step, a node where `QUORATE_VERIFY_LOG` is set. Of the code that
they check they import data types only: a rule that both shared would hide its own mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.verify.log_audit import LogAudit, LogBeliefError
    from quorate.verify.medium import Medium, PathDirectory
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "log_audit": "LogAudit LogBeliefError",
            "medium": "Medium PathDirectory",
        },
    )

__all__ = [
    "LogAudit",
    "LogBeliefError",
    "Medium",
    "PathDirectory",
]
