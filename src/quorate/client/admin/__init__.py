"""The admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.client.admin.async_client import AsyncAdmin
    from quorate.client.admin.client import Admin
    from quorate.client.admin.outcomes import PartlyDoneError
    from quorate.client.admin.routing import (
        ClientConfig,
        NoReachableNodeError,
        NotLoadedError,
    )
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "async_client": "AsyncAdmin",
            "client": "Admin",
            "outcomes": "PartlyDoneError",
            "routing": "ClientConfig NoReachableNodeError NotLoadedError",
        },
    )

__all__ = [
    "Admin",
    "AsyncAdmin",
    "ClientConfig",
    "NoReachableNodeError",
    "NotLoadedError",
    "PartlyDoneError",
]
