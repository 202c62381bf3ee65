"""A request on its way through a node."""

from __future__ import annotations

from typing import Final

from quorate.base.frozen import frozen
from quorate.node.old_versions import in_version
from quorate.node.raft_rpc_inbound import Asked
from quorate.security.authorizer import Requester
from quorate.security.principal import ANONYMOUS
from quorate.wire.header import WireRequest, encode_response, response_frame
from quorate.wire.messages import EnvelopeResponse
from quorate.wire.schema import Message

ENVELOPE: Final = 58
_LENGTH: Final = 4
"""Bytes of a frame's length."""
LONG_REQUEST_BYTES: Final = 16 * 1024
"""A longer request may have so many items that its response is encoded in several steps."""


@frozen
class Call:
    """One request: `token` is the driver's, `listener` the name it came on, upper case.

    `envelope` is the call around it when a broker forwarded it.
    """

    token: int
    request: WireRequest
    listener: str
    envelope: Call | None = None
    principal: str = ANONYMOUS
    """Who asks, as `type:name`."""
    host: str = ""
    """The client's IP address; inside an Envelope that of the broker's client."""
    token_authenticated: bool = False
    """The principal has logged in with a delegation token."""
    work_ns: int = 0
    """How long it took to decode the request."""
    size: int = 0
    """Bytes of the request."""
    too_long: str | None = None
    """Why it is too long, for its client; then its message has what its beginning says. None: it is not."""

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
        answer = in_version(answer, request.response_version)
        frame = encode_response(
            answer, request.api_key, request.response_version, request.correlation_id
        )
        return self._enclosed(frame)

    def frame(self, body: bytes) -> bytes:
        """The frame that answers this call with a message that is encoded already."""
        request = self.request
        return self._enclosed(
            response_frame(body, request.api_key, request.response_version, request.correlation_id)
        )

    def _enclosed(self, frame: bytes) -> bytes:
        if self.envelope is None:
            return frame
        return self.envelope.encode(EnvelopeResponse(response_data=frame[_LENGTH:]))


def requester_of(call: Call) -> Requester:
    """Who asks, as the authorizer sees it."""
    return Requester(call.principal, call.host, call.request.api_key)
