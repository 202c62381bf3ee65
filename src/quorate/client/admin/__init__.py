"""The admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.client.admin.absent_nodes import (
        NoActiveControllerError,
        NoReachableNodeError,
        NotLoadedError,
    )
    from quorate.client.admin.async_client import AsyncAdmin
    from quorate.client.admin.client import Admin
    from quorate.client.admin.outcomes import PartlyDoneError
    from quorate.client.admin.pool import ClientClosedError, ClientConfig
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "absent_nodes": "NoActiveControllerError NoReachableNodeError NotLoadedError",
            "async_client": "AsyncAdmin",
            "client": "Admin",
            "outcomes": "PartlyDoneError",
            "pool": "ClientClosedError ClientConfig",
        },
    )

__all__ = [
    "Admin",
    "AsyncAdmin",
    "ClientClosedError",
    "ClientConfig",
    "NoActiveControllerError",
    "NoReachableNodeError",
    "NotLoadedError",
    "PartlyDoneError",
]
