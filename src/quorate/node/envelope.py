"""Envelope (KIP-590): a request that a broker forwards, with the principal of its client."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.java_address import java_address
from quorate.controller.building import Building
from quorate.node.apis import API_TABLE
from quorate.node.long_requests import decode_long_request, known_api
from quorate.node.request_limits import size_refusal
from quorate.node.requests import Call
from quorate.wire.codec import decode_prefix
from quorate.wire.errors import WireError
from quorate.wire.header import decode_request_in_steps
from quorate.wire.messages import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse

_VERSION: Final = 2
"""Bytes of the version before a principal."""


def unwrap(call: Call) -> Building[Call | ErrorCode]:
    """The request inside an Envelope, or why it is refused (`EnvelopeUtils`). A long one takes steps.

    The principal is behind the request. An Envelope that is too long itself is cut before it, and the
    call inside has that of the broker.
    """
    message = call.message
    assert isinstance(message, EnvelopeRequest)
    data, size = message.request_data, len(message.request_data)
    principal, host, by_token = call.principal, call.host, False
    if call.too_long is None:
        found = _principal(message.request_principal)
        if found is None:
            return ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
        if len(message.client_host_address) not in (4, 16):
            return ErrorCode.INVALID_REQUEST
        principal, by_token = f"{found.type}:{found.name}", found.token_authenticated
        host = java_address(str(ip_address(message.client_host_address)))
    if known_api(data) is None:
        return ErrorCode.UNSUPPORTED_VERSION
    too_long = call.too_long
    if too_long is None and size_refusal(data, size) is None:
        try:
            request = yield from decode_request_in_steps(data)
        except WireError:
            return ErrorCode.UNSUPPORTED_VERSION
    else:
        try:
            request, text = decode_long_request(data, size)
        except WireError:
            return ErrorCode.INVALID_REQUEST
        too_long = too_long or text
    row = API_TABLE.get(request.api_key)
    if row is None or not row.forwardable:
        return ErrorCode.INVALID_REQUEST
    return Call(
        call.token,
        request,
        call.listener,
        call,
        principal,
        host,
        by_token,
        call.work_ns,
        size if call.too_long is None else call.size,
        too_long,
    )


def _principal(data: bytes | None) -> DefaultPrincipalData | None:
    """The principal of an Envelope; None where it cannot be read.

    It is a version and then DefaultPrincipalData (`DefaultKafkaPrincipalBuilder`).
    """
    if data is None or data[:_VERSION] != bytes(_VERSION):
        return None
    try:
        found, _ = decode_prefix(DefaultPrincipalData, 0, data, _VERSION)
    except WireError:
        return None
    return found


def envelope_error(call: Call, error: ErrorCode) -> bytes:
    """The frame that refuses the Envelope around `call`."""
    assert call.envelope is not None
    return call.envelope.encode(EnvelopeResponse(error_code=error))
