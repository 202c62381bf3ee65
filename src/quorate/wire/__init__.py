"""Kafka's protocol: message classes from Kafka's definitions, headers, frames and the codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.wire.codec import decode, decode_prefix, encode
    from quorate.wire.errors import EncodeError, UnsupportedFieldError, WireError
    from quorate.wire.frame import FrameReader
    from quorate.wire.header import (
        RequestStart,
        WireRequest,
        correlation_id_of,
        decode_request,
        decode_response,
        encode_request,
        encode_response,
        peek_header,
    )
    from quorate.wire.registry import API_VERSIONS, APIS, CONTROLLER_API_VERSIONS, Api, api
    from quorate.wire.schema import Field, Message, Struct
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "codec": "decode decode_prefix encode",
            "errors": "EncodeError UnsupportedFieldError WireError",
            "frame": "FrameReader",
            "header": "RequestStart WireRequest correlation_id_of decode_request decode_response "
            "encode_request encode_response peek_header",
            "registry": "APIS API_VERSIONS Api CONTROLLER_API_VERSIONS api",
            "schema": "Field Message Struct",
        },
    )

__all__ = [
    "APIS",
    "API_VERSIONS",
    "CONTROLLER_API_VERSIONS",
    "Api",
    "EncodeError",
    "Field",
    "FrameReader",
    "Message",
    "RequestStart",
    "Struct",
    "UnsupportedFieldError",
    "WireError",
    "WireRequest",
    "api",
    "correlation_id_of",
    "decode",
    "decode_prefix",
    "decode_request",
    "decode_response",
    "encode",
    "encode_request",
    "encode_response",
    "peek_header",
]
