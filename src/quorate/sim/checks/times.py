"""Times of the protocol, as the checks know them: from KIPs, not from the code that they check."""

from __future__ import annotations

from typing import Final

FOREVER: Final = 1 << 50
"""ms: later than any time of a world. A deadline that late is none."""


def check_quorum_ms(fetch_timeout_ms: int) -> int:
    """How long a leader may lead without fetches of a majority, in ms: one and a half fetch timeouts.

    KIP-595 gives it the fetch timeout; Kafka adds a half, so that followers give up before the leader
    (KAFKA-15489, `LeaderState`). A fraction of a millisecond is dropped.
    """
    return fetch_timeout_ms * 3 // 2
