"""Requests that are longer than this node takes: each is answered with an error from its beginning.

Kafka's controller reads a request up to `socket.request.max.bytes`, decides it, and refuses what is too
much with POLICY_VIOLATION. Where a response has errors only beside what the request names, it names
what the kept beginning of the request has.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.configs import IncrementalAlterConfigs
from quorate.node.api_row import ApiRow
from quorate.node.apis import API_TABLE, refused
from quorate.node.old_versions import in_version
from quorate.node.request_limits import request_limit, size_refusal
from quorate.node.requests import ENVELOPE
from quorate.wire.codec import decode_prefix
from quorate.wire.errors import WireError
from quorate.wire.header import RequestStart, encode_response, peek_header
from quorate.wire.long_messages import lists_of
from quorate.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    EnvelopeResponse,
    IncrementalAlterConfigsRequest,
)
from quorate.wire.messages.headers import RequestHeader
from quorate.wire.registry import APIS
from quorate.wire.schema import Message, Struct
from quorate.wire.truncated import bytes_beginning, decode_beginning

_LENGTH: Final = 4
"""Bytes of a frame's length."""
_Config = DescribeConfigsResponse.DescribeConfigsResult
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def long_request_response(start: bytes, size: int) -> bytes:
    """The frame that refuses a request of `size` bytes, which begins with `start`.

    Nobody's permission is asked for: the response says nothing but what the request says, and the limit.
    Raises WireError where the request cannot be read so far, or names nothing that could have an error.
    """
    text = _text_of(start, size)
    begin = peek_header(start)
    if begin.api_key != ENVELOPE:
        return _refused(start, text)
    _, pos = decode_prefix(RequestHeader, APIS[ENVELOPE].request_header_version(0), start, 0)
    inner, inner_size = bytes_beginning(start, pos)
    return _encoded(begin, envelope_of_long_request(inner, inner_size, text))


def envelope_of_long_request(start: bytes, size: int, text: str = "") -> EnvelopeResponse:
    """The response to an Envelope around a request that is too long. The broker passes on what is in it.

    start: the beginning of the request inside, of `size` bytes. text: why the Envelope is refused, where the
    request inside is not too long by itself.
    """
    invalid = EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        if size_refusal(start, size) is not None:
            text = _text_of(start, size)
        begin = peek_header(start)
        row = API_TABLE.get(begin.api_key)
        if row is None or not row.forwardable:
            return invalid
        api = APIS[begin.api_key]
        if not api.min_version <= begin.version <= api.max_version:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        return EnvelopeResponse(response_data=_refused(start, text)[_LENGTH:])
    except WireError:
        return invalid  # UNSUPPORTED_VERSION would close the client's connection


def _text_of(start: bytes, size: int) -> str:
    most, name = request_limit(start)
    return f"A request of {name} has {most} bytes at most here, not {size}."


def _refused(start: bytes, text: str) -> bytes:
    begin = peek_header(start)
    api = APIS[begin.api_key]
    _, pos = decode_prefix(RequestHeader, api.request_header_version(begin.version), start, 0)
    message = decode_beginning(api.request, begin.version, start, pos)
    response = in_version(_refusal(API_TABLE[begin.api_key], message, text), begin.version)
    if not _say(response, text):
        raise WireError(text)  # a response without an error would say that the request is done
    return _encoded(begin, response)


def _encoded(begin: RequestStart, response: Message) -> bytes:
    return encode_response(response, begin.api_key, begin.version, begin.correlation_id)


def _refusal(row: ApiRow, message: Message, text: str) -> Message:
    """The code is that of Kafka's controller for a write that is too large. It refuses nothing else so."""
    if row.operation is None:
        response = _refused_read(row, message, text)
    else:
        request: object = message
        if isinstance(message, IncrementalAlterConfigsRequest):
            request = IncrementalAlterConfigs(message)
        failed = row.operation.failed(request, ErrorCode.POLICY_VIOLATION, text)
        response = failed if isinstance(failed, Message) else at_once(failed)
    return response


def _refused_read(row: ApiRow, message: Message, text: str) -> Message:
    error = ErrorCode.INVALID_REQUEST
    if isinstance(message, DescribeConfigsRequest):
        return DescribeConfigsResponse(
            results=[
                _Config(
                    error_code=error,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                )
                for asked in message.resources
            ]
        )
    if isinstance(message, DescribeTopicPartitionsRequest):
        return DescribeTopicPartitionsResponse(
            topics=[_Topic(error_code=error, name=asked.name) for asked in message.topics]
        )
    response = refused(row, message, error, text)
    return response if isinstance(response, Message) else at_once(response)


def _say(struct: Struct, text: str) -> bool:
    """Put the text beside each error, also where Kafka has the code alone. Returns whether there is one."""
    has_error = getattr(struct, "error_code", ErrorCode.NONE) != ErrorCode.NONE
    if has_error and hasattr(struct, "error_message"):
        struct.error_message = text
    for _, rows in lists_of(struct):
        for row in rows:
            has_error = _say(row, text) or has_error
    return has_error
