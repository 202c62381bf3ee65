"""A request that a broker passes on to the controller for its client (KIP-590)."""

from __future__ import annotations

from quorate.wire.schema import Message, binary, boolean, int16, string


class EnvelopeRequest(Message, kind="request", key=58, versions=(0, 0)):
    """The request with its header, who sent it and from where."""

    request_data: bytes = binary()
    request_principal: bytes | None = binary(nullable=0)
    client_host_address: bytes = binary()


class EnvelopeResponse(Message, kind="response", key=58, versions=(0, 0)):
    """The response with its header."""

    response_data: bytes | None = binary(nullable=0, default=None)
    error_code: int = int16()


class DefaultPrincipalData(Message, kind="data", versions=(0, 0)):
    """Who sent the request inside an envelope."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()
