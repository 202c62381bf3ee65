"""How long a request and a response may be, by API.

A node has one loop, and a short frame can name a million empty topics; the limits of requests are a
column of the table of APIs.
"""

from __future__ import annotations

from quorate.node.api_row import SMALL_REQUEST_BYTES
from quorate.node.apis import API_TABLE
from quorate.wire.errors import WireError
from quorate.wire.header import peek_header
from quorate.wire.registry import APIS


def check_size(frame: bytes) -> None:
    """Check a request: raises WireError where it is longer than the limit of its API."""
    if len(frame) <= SMALL_REQUEST_BYTES:
        return
    api_key = peek_header(frame).api_key
    row = API_TABLE.get(api_key)
    most = SMALL_REQUEST_BYTES if row is None else row.max_bytes
    if len(frame) > most:
        name = APIS[api_key].name if api_key in APIS else f"api {api_key}"
        raise WireError(f"a request of {name} has {most} bytes at most here, not {len(frame)}")


def check_response_size(frame: bytes, api_key: int) -> None:
    """Check a response: raises WireError where it is longer than one of its API can need.

    A response may come from any address: AddRaftVoter names that of a new voter.
    """
    row = API_TABLE.get(api_key)
    carries_data = row is not None and row.carries_data
    if len(frame) > SMALL_REQUEST_BYTES and not carries_data:
        name = APIS[api_key].name
        raise WireError(
            f"a response to {name} has {SMALL_REQUEST_BYTES} bytes at most, not {len(frame)}"
        )
