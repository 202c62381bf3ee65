"""How long a request may be, by its api, and an answer.

A node has one loop, and a short frame can name a million empty topics: what is decoded costs a
hundred times its bytes. Kafka bounds a request by `socket.request.max.bytes` alone and can afford
it, with threads of its own for requests; so this bound comes on top of that one.
"""

from __future__ import annotations

from typing import Final

from quorate.wire.errors import WireError
from quorate.wire.header import peek_header
from quorate.wire.registry import APIS

_ONE_THING: Final = 64 * 1024
"""Asks about one partition, one node or a few features."""
_MANY_THINGS: Final = {
    49: 1024 * 1024,  # AlterClientQuotas: a transaction has 10,000 records at most
    58: 1024 * 1024,  # Envelope: one of the others inside
    56: 8 * 1024 * 1024,  # AlterPartition and AssignReplicasToDirs: all partitions of a broker,
    73: 8 * 1024 * 1024,  # refused as soon as they are read
}
_BRING_BYTES: Final = (1, 59)
"""Fetch and FetchSnapshot: whatever their length, it is bytes, and only a leader is asked."""


def check_size(frame: bytes) -> None:
    """Raises WireError for a request that is longer than any of its api has reason to be."""
    if len(frame) <= _ONE_THING:
        return
    api_key = peek_header(frame).api_key
    most = _MANY_THINGS.get(api_key, _ONE_THING)
    if len(frame) > most:
        name = APIS[api_key].name if api_key in APIS else f"api {api_key}"
        raise WireError(f"a request of {name} has {most} bytes at most here, not {len(frame)}")


def check_answer_size(frame: bytes, api_key: int) -> None:
    """Raises WireError for an answer that is longer than any of its api has reason to be.

    Not only nodes of the quorum are asked: whoever sends AddRaftVoter says where.
    """
    if len(frame) > _ONE_THING and api_key not in _BRING_BYTES:
        name = APIS[api_key].name
        raise WireError(f"an answer to {name} has {_ONE_THING} bytes at most, not {len(frame)}")
