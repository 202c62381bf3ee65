"""How long a request and a response may be, by API.

A node has one loop, and a short frame can name a million empty topics; the limits of requests are a
column of the table of APIs.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.node.api_row import SMALL_REQUEST_BYTES
from quorate.node.apis import API_TABLE
from quorate.node.requests import ENVELOPE
from quorate.wire.errors import WireError
from quorate.wire.header import encode_response, peek_header
from quorate.wire.messages import EnvelopeResponse
from quorate.wire.registry import APIS

_ENVELOPE_VERSION: Final = 0
"""The only one."""


def check_size(frame: bytes) -> str | None:
    """Why an Envelope is longer than its limit; None: the request has the size that its API needs.

    Raises WireError where a request of another API is longer than its limit. A broker forwards the requests
    of all its clients over one connection, and sends again what it lost with that connection for a minute
    (`NodeToControllerRequestThread`). So the connection stays, and `long_envelope_response` answers.
    """
    if len(frame) <= SMALL_REQUEST_BYTES:
        return None
    start = peek_header(frame)
    row = API_TABLE.get(start.api_key)
    most = SMALL_REQUEST_BYTES if row is None else row.max_bytes
    if len(frame) <= most:
        return None
    name = APIS[start.api_key].name if start.api_key in APIS else f"api {start.api_key}"
    why = f"a request of {name} has {most} bytes at most here, not {len(frame)}"
    if start.api_key == ENVELOPE and start.version == _ENVELOPE_VERSION:
        return why
    raise WireError(why)


def long_envelope_response(frame: bytes) -> bytes:
    """The frame that refuses an Envelope that is too long, without a look at its sender.

    The broker answers its client with UNKNOWN_SERVER_ERROR, as for every error of an Envelope but
    UNSUPPORTED_VERSION and NOT_CONTROLLER (`ForwardingManagerImpl`): clients do not retry it.
    """
    refusal = EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    correlation_id = peek_header(frame).correlation_id
    return encode_response(refusal, ENVELOPE, _ENVELOPE_VERSION, correlation_id)


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
