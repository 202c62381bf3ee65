"""The broker's side of KIP-631, without a broker: to drive controllers in tests and simulations.

See `quorate.broker.lifecycle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "lifecycle": "BrokerIdentity BrokerLifecycle BrokerState",
        },
    )

__all__ = [
    "BrokerIdentity",
    "BrokerLifecycle",
    "BrokerState",
]
