"""How long a request and a response may be, by API.

A node has one loop, and a short frame can name a million empty topics; the limits of requests are a
column of the table of APIs.
"""

from __future__ import annotations

from typing import Final

from quorate.node.api_row import SMALL_REQUEST_BYTES
from quorate.node.apis import API_TABLE
from quorate.wire.errors import WireError
from quorate.wire.header import peek_header
from quorate.wire.registry import APIS

REFUSED_BYTES: Final = 512
"""What is kept of a request that is too long: its response names the items at its beginning. They may have
one byte each, and the response is built at once."""


def request_limit(start: bytes) -> tuple[int, str]:
    """How long a request that begins so may be, in bytes, and the name of its API. Raises WireError."""
    api_key = peek_header(start).api_key
    row = API_TABLE.get(api_key)
    name = APIS[api_key].name if api_key in APIS else f"api {api_key}"
    return SMALL_REQUEST_BYTES if row is None else row.max_bytes, name


def size_refusal(start: bytes, size: int) -> str | None:
    """Why a request of `size` bytes is too long; None: it has the size that its API needs.

    start: its first 8 bytes at least. Raises WireError where it is a shorter request.
    """
    if size <= SMALL_REQUEST_BYTES:
        return None
    most, name = request_limit(start)
    return (
        None if size <= most else f"a request of {name} has {most} bytes at most here, not {size}"
    )


def long_request_text(start: bytes, size: int) -> str:
    """Why a request of `size` bytes is too long, for its client; empty: it is not. Raises WireError."""
    why = size_refusal(start, size)
    return "" if why is None else f"A{why[1:]}."


def kept_bytes(start: bytes, size: int) -> int:
    """How many bytes of a request are kept while it arrives: all, or the beginning if it is too long.

    start: its first 8 bytes at least. Raises WireError where a request that is too long has no response.
    """
    why = size_refusal(start, size)
    if why is None:
        return size
    begin = peek_header(start)
    api = APIS.get(begin.api_key)
    if begin.api_key not in API_TABLE or api is None:
        raise WireError(why)
    if not api.min_version <= begin.version <= api.max_version:
        raise WireError(why)
    return REFUSED_BYTES


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
