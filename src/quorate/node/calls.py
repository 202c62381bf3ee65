"""A request on its way through a node, and what handlers may do with it."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.node.sizes import check_size
from quorate.node.translate import Asked
from quorate.wire.codec import decode_prefix
from quorate.wire.errors import WireError
from quorate.wire.header import WireRequest, decode_request, encode_response
from quorate.wire.messages import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse
from quorate.wire.schema import Message

ENVELOPE: Final = 58
_LENGTH: Final = 4
_VERSION: Final = 2
"""Bytes."""


@frozen
class Call:
    """One request: `token` is the driver's, `listener` the name it came on, upper case.

    `envelope` is the call around it when a broker passed it on.
    """

    token: int
    request: WireRequest
    listener: str
    envelope: Call | None = None

    @property
    def asked(self) -> Asked:
        return Asked(self.request.response_version, self.listener)

    @property
    def message(self) -> Message:
        """The decoded request; ApiVersions in an unknown version has none."""
        assert self.request.message is not None
        return self.request.message

    def encode(self, answer: Message) -> bytes:
        """The frame that answers this call."""
        request = self.request
        frame = encode_response(
            answer, request.api_key, request.response_version, request.correlation_id
        )
        if self.envelope is None:
            return frame
        return self.envelope.encode(EnvelopeResponse(response_data=frame[_LENGTH:]))


_PASSED_ON: Final = frozenset(
    (19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81)
)
"""What Kafka's brokers pass on (`ApiKeys.forwardable`)."""


def unwrap(call: Call, forwardable: Container[int]) -> Call | ErrorCode:
    """The request inside an Envelope, or why it is refused (`EnvelopeUtils`)."""
    message = call.message
    assert isinstance(message, EnvelopeRequest)
    if not _is_principal(message.request_principal):
        return ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    if len(message.client_host_address) not in (4, 16):
        return ErrorCode.INVALID_REQUEST
    try:
        check_size(message.request_data)
        request = decode_request(message.request_data)
    except WireError:
        return ErrorCode.UNSUPPORTED_VERSION
    if request.api_key not in forwardable:
        # Not INVALID_REQUEST, of which a broker makes UNKNOWN_SERVER_ERROR: at this one it closes
        # its client's connection, and the client asks anew who serves what.
        passed_on = request.api_key in _PASSED_ON
        return ErrorCode.UNSUPPORTED_VERSION if passed_on else ErrorCode.INVALID_REQUEST
    return Call(call.token, request, call.listener, call)


def _is_principal(data: bytes | None) -> bool:
    """Its version, and then DefaultPrincipalData (`DefaultKafkaPrincipalBuilder`)."""
    if data is None or data[:_VERSION] != bytes(_VERSION):
        return False
    try:
        decode_prefix(DefaultPrincipalData, 0, data, _VERSION)
    except WireError:
        return False
    return True


def envelope_error(call: Call, error: ErrorCode) -> bytes:
    """The frame that refuses the Envelope around `call`."""
    assert call.envelope is not None
    return call.envelope.encode(EnvelopeResponse(error_code=error))
