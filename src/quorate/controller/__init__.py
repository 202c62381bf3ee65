"""What the active controller decides: pure functions of the head image.

`result` has the contract of a decision. The other modules are the domains: among them `configs`,
`features`, `quotas`, `registration`, `topics` and `activation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.controller.activation import Bootstrap
    from quorate.controller.context import Context, ControllerConfig, Rng
    from quorate.controller.head import Head
    from quorate.controller.head_view import HeadView
    from quorate.controller.result import (
        ApiError,
        Decision,
        KRaftVersionChange,
        Result,
        Steps,
        WriteOperation,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "activation": "Bootstrap",
            "context": "Context ControllerConfig Rng",
            "head": "Head",
            "head_view": "HeadView",
            "result": "ApiError Decision KRaftVersionChange Result Steps WriteOperation",
        },
    )

__all__ = [
    "ApiError",
    "Bootstrap",
    "Context",
    "ControllerConfig",
    "Decision",
    "Head",
    "HeadView",
    "KRaftVersionChange",
    "Result",
    "Rng",
    "Steps",
    "WriteOperation",
]
