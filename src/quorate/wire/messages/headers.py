"""What stands before each message in a frame."""

from __future__ import annotations

from quorate.wire.schema import Message, int16, int32, string


class RequestHeader(Message, kind="header", versions=(1, 2), flexible=2):
    """Version 1 before classic requests, 2 before flexible ones."""

    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(nullable=0, flexible=False)


class ResponseHeader(Message, kind="header", versions=(0, 1), flexible=1):
    """Version 0 before classic responses, 1 before flexible ones."""

    correlation_id: int = int32()
