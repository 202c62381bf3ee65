"""The process of a node: event loop, sockets, disk thread, logs, metrics and health pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.server.app import NodeFaultError, open_storage
    from quorate.server.driver import DrivenNode, Driver
    from quorate.server.limits import ConnectionLimits
    from quorate.server.listener import Acceptor
    from quorate.server.logs import LOG, RateLimitedLog
    from quorate.server.ports import LOOPBACK, free_ports
    from quorate.server.sockets import BoundSockets, ListenError, bind, bind_metrics
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "app": "NodeFaultError open_storage",
            "driver": "DrivenNode Driver",
            "limits": "ConnectionLimits",
            "listener": "Acceptor",
            "logs": "LOG RateLimitedLog",
            "ports": "LOOPBACK free_ports",
            "sockets": "BoundSockets ListenError bind bind_metrics",
        },
    )

__all__ = [
    "LOG",
    "LOOPBACK",
    "Acceptor",
    "BoundSockets",
    "ConnectionLimits",
    "DrivenNode",
    "Driver",
    "ListenError",
    "NodeFaultError",
    "RateLimitedLog",
    "bind",
    "bind_metrics",
    "free_ports",
    "open_storage",
]
