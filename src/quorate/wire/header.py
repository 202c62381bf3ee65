"""Requests and responses with their headers, as frames.

The versions of the headers follow from api and version (`ApiKeys.requestHeaderVersion`).
ApiVersions is the exception that lets any two nodes begin: its response always has header version
0. A server answers a request in a version that it does not know, in version 0 (KIP-511).
"""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct as Layout
from typing import Final

from quorate.base.frozen import frozen
from quorate.wire.codec import decode_prefix, decode_prefix_in_steps, encode
from quorate.wire.errors import EncodeError, WireError
from quorate.wire.messages.headers import RequestHeader, ResponseHeader
from quorate.wire.registry import API_VERSIONS, APIS, Api
from quorate.wire.schema import Message

_START: Final = Layout(">hhi")
_LENGTH: Final = Layout(">i")


@frozen
class RequestStart:
    """The first 8 bytes of every request; they have the same form in all versions."""

    api_key: int
    version: int
    correlation_id: int


@frozen
class WireRequest:
    """A request as it came.

    message: None only for ApiVersions in a version that this package does not know; answer it
        with UNSUPPORTED_VERSION in version 0 (`response_version`)
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    message: Message | None

    @property
    def response_version(self) -> int:
        """The version in which to answer."""
        return self.version if self.message is not None else 0


def encode_request(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The frame, length included, of a request. Raises EncodeError."""
    api = _api_of(message, "request")
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return _frame(header, api.request_header_version(version), message, version)


def encode_response(message: Message, api_key: int, version: int, correlation_id: int) -> bytes:
    """The frame, length included, of a response. Raises EncodeError."""
    api = _api_of(message, "response")
    if api.key != api_key:
        raise EncodeError(f"{type(message).__name__} answers api {api.key}, not {api_key}")
    header = ResponseHeader(correlation_id=correlation_id)
    return _frame(header, api.response_header_version(version), message, version)


def response_frame(body: bytes, api_key: int, version: int, correlation_id: int) -> bytes:
    """The frame, length included, of a response that is encoded already."""
    header = ResponseHeader(correlation_id=correlation_id)
    head = encode(header, APIS[api_key].response_header_version(version))
    return b"".join((_LENGTH.pack(len(head) + len(body)), head, body))


def peek_header(frame: bytes) -> RequestStart:
    """Api, version and correlation id of any request, known or not. Raises WireError."""
    if len(frame) < _START.size:
        raise WireError(f"a request begins with 8 bytes, but its frame has {len(frame)}")
    return RequestStart(*_START.unpack_from(frame))


def decode_request(frame: bytes) -> WireRequest:
    """The request in a frame (without its length).

    Raises WireError; also for apis and versions that this package does not know, which
    `peek_header` recognizes, except ApiVersions (see WireRequest).
    """
    start = peek_header(frame)
    api = _api_in_version(start)
    if api is None:
        return WireRequest(start.api_key, start.version, start.correlation_id, None, None)
    header, pos = decode_prefix(RequestHeader, api.request_header_version(start.version), frame, 0)
    message, pos = decode_prefix(api.request, start.version, frame, pos)
    _check_end(api, start.version, frame, pos)
    return WireRequest(api.key, start.version, start.correlation_id, header.client_id, message)


def decode_request_in_steps(frame: bytes) -> Generator[None, None, WireRequest]:
    """Decode as `decode_request` does, with pauses where the frame is long."""
    start = peek_header(frame)
    api = _api_in_version(start)
    if api is None:
        return WireRequest(start.api_key, start.version, start.correlation_id, None, None)
    header, pos = decode_prefix(RequestHeader, api.request_header_version(start.version), frame, 0)
    message, pos = yield from decode_prefix_in_steps(api.request, start.version, frame, pos)
    _check_end(api, start.version, frame, pos)
    return WireRequest(api.key, start.version, start.correlation_id, header.client_id, message)


def _api_in_version(start: RequestStart) -> Api | None:
    """The api of a request; None: ApiVersions in a version that is not known. Raises WireError."""
    api = APIS.get(start.api_key)
    if api is None:
        raise WireError(f"api key {start.api_key} is not known")
    if not api.min_version <= start.version <= api.max_version:
        if api.key == API_VERSIONS:
            return None
        raise WireError(
            f"{api.name} has versions {api.min_version} to {api.max_version}, not {start.version}"
        )
    return api


def decode_response(frame: bytes, api_key: int, version: int) -> tuple[int, Message]:
    """Correlation id and message of the response in a frame (without its length).

    An ApiVersions response that begins with UNSUPPORTED_VERSION is read in version 0, as every
    server writes it then. Raises WireError.
    """
    api = APIS[api_key]
    header, pos = decode_prefix(ResponseHeader, api.response_header_version(version), frame, 0)
    if api_key == API_VERSIONS and frame[pos : pos + 2] == _UNSUPPORTED_VERSION:
        version = 0
    message, pos = decode_prefix(api.response, version, frame, pos)
    _check_end(api, version, frame, pos)
    return header.correlation_id, message


def correlation_id_of(frame: bytes) -> int:
    """The correlation id with which every response begins. Raises WireError."""
    if len(frame) < _LENGTH.size:
        raise WireError(f"a response begins with 4 bytes, but its frame has {len(frame)}")
    (found,) = _LENGTH.unpack_from(frame)
    return int(found)


_UNSUPPORTED_VERSION: Final = (35).to_bytes(2, "big")


def _api_of(message: Message, kind: str) -> Api:
    schema = type(message).schema
    if schema.kind != kind or schema.key is None:
        raise EncodeError(f"{schema.name} is not a {kind}")
    return APIS[schema.key]


def _frame(header: Message, header_version: int, message: Message, version: int) -> bytes:
    head, body = encode(header, header_version), encode(message, version)
    return b"".join((_LENGTH.pack(len(head) + len(body)), head, body))


def _check_end(api: Api, version: int, frame: bytes, pos: int) -> None:
    if pos != len(frame):
        raise WireError(
            f"{api.name} v{version}: the message ends at byte {pos}, the frame at {len(frame)}"
        )
