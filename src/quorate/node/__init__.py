"""One controller without sockets, threads or clocks: APIs, the write queue, raft requests.

`apis` is the one table of APIs; `write_queue` is the path of a write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.node.api_row import ApiRow, Kind
    from quorate.node.apis import API_TABLE
    from quorate.node.controller_node import ControllerNode
    from quorate.node.metadata_machine import MetadataMachine
    from quorate.node.node_io import NodeEffects, NodeInput
    from quorate.node.registration import Registrant
    from quorate.node.requests import Call
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "api_row": "ApiRow Kind",
            "apis": "API_TABLE",
            "controller_node": "ControllerNode",
            "metadata_machine": "MetadataMachine",
            "node_io": "NodeEffects NodeInput",
            "registration": "Registrant",
            "requests": "Call",
        },
    )

__all__ = [
    "API_TABLE",
    "ApiRow",
    "Call",
    "ControllerNode",
    "Kind",
    "MetadataMachine",
    "NodeEffects",
    "NodeInput",
    "Registrant",
]
