"""Requests that are longer than this node takes: each is answered with an error from its beginning.

Kafka's controller reads a request up to `socket.request.max.bytes`, decides it, and refuses what is too
much with POLICY_VIOLATION. Here such a request becomes a Call like any other, with what its beginning
says and with the reason in `Call.too_long`. Where a response has errors only beside what the request
names, the refusal names what the beginning has.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.controller.building import Building, at_once
from quorate.node.api_row import ApiRow
from quorate.node.apis import denied, refused
from quorate.node.node_io import encoded
from quorate.node.old_versions import in_version
from quorate.node.request_limits import REFUSED_BYTES, long_request_text
from quorate.node.requests import ENVELOPE, Call
from quorate.wire.codec import decode_prefix
from quorate.wire.errors import WireError
from quorate.wire.header import WireRequest, peek_header
from quorate.wire.long_messages import lists_of
from quorate.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    EnvelopeRequest,
)
from quorate.wire.messages.headers import RequestHeader
from quorate.wire.registry import APIS, Api
from quorate.wire.schema import Message, Struct
from quorate.wire.truncated import bytes_beginning, decode_beginning

_MESSAGES: Final = 5
"""Errors of a response that have the text. It has the code beside all of them."""
_Config = DescribeConfigsResponse.DescribeConfigsResult
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic


def decode_long_request(frame: bytes, size: int) -> tuple[WireRequest, str]:
    """The request of `size` bytes that begins with `frame`, and why it is too long.

    An Envelope has the beginning of what is in it; its reason is that of the request inside, where this
    is too long by itself. Raises WireError where the request cannot be read so far, for whatever reason.
    """
    start = frame[:REFUSED_BYTES]
    try:
        return _decoded(start, size)
    except WireError:
        raise
    except Exception as error:  # bytes of a client must not end a node
        why = f"{long_request_text(start, size)} Its beginning cannot be read: {error!r:.200}"
        raise WireError(why) from error


def _decoded(start: bytes, size: int) -> tuple[WireRequest, str]:
    begin = peek_header(start)
    api = known_api(start)
    text = long_request_text(start, size)
    if api is None:  # unreached from a connection: `kept_bytes` refuses it before
        raise WireError(text)
    header, pos = decode_prefix(RequestHeader, api.request_header_version(begin.version), start, 0)
    if begin.api_key == ENVELOPE:
        inner, inner_size = bytes_beginning(start, pos)
        message: Message = EnvelopeRequest(request_data=inner)
        if known_api(inner) is not None:
            text = long_request_text(inner, inner_size) or text
    else:
        message = decode_beginning(api.request, begin.version, start, pos)
    return WireRequest(
        api.key, begin.version, begin.correlation_id, header.client_id, message
    ), text


def known_api(start: bytes) -> Api | None:
    """The API of a request that begins so; None: this package does not know it in that version."""
    if len(start) < 8:
        return None
    begin = peek_header(start)
    api = APIS.get(begin.api_key)
    return api if api is not None and api.min_version <= begin.version <= api.max_version else None


def refusal(row: ApiRow, call: Call, *, is_denied: bool) -> Message | str:
    """The response to a call that is too long, or why there is none. Raises nothing.

    is_denied: the requester has no permission to ask. There is none where the response has no place for
    an error: without one it would say that the request is done.
    """
    assert call.too_long is not None
    try:
        found = denied(row, call) if is_denied else _refusal(row, call.message, call.too_long)
        version = call.request.response_version
        response = in_version(found if isinstance(found, Message) else at_once(found), version)
        if _has_code(response, version):
            # Java's Admin waits for ever for the items that a response with such an error lacks.
            for field, _ in lists_of(response):
                setattr(response, field.name, [])
        errors = list(_errors(response, version))
        if not errors:
            return "its response has no place for an error"
        if not is_denied:
            _say(errors, call.too_long)
        encoded(call, response)
    except Exception as error:  # bytes of a client must not end a node
        return f"its response cannot be made: {error!r:.200}"
    return response


def _refusal(row: ApiRow, message: Message, text: str) -> Message | Building[Message]:
    """The code is that of Kafka's controller for a write that is too large. It refuses nothing else so."""
    if row.operation is not None:
        return refused(row, message, ErrorCode.POLICY_VIOLATION, text)
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
    return refused(row, message, error, text)


@cache
def _has_place(cls: type[Struct], version: int) -> bool:
    return any(field.name == "error_code" for field in cls.schema.untagged(version))


def _has_code(struct: Struct, version: int) -> bool:
    """It has an error that the version can say."""
    has_place = _has_place(type(struct), version)
    return has_place and getattr(struct, "error_code", ErrorCode.NONE) != ErrorCode.NONE


def _errors(struct: Struct, version: int) -> Iterator[Any]:
    """The structs with an error, from the top to the bottom."""
    if _has_code(struct, version):
        yield struct
    for _, rows in lists_of(struct):
        for row in rows:
            yield from _errors(row, version)


def _say(errors: list[Any], text: str) -> None:
    """Put the text beside the first errors, also where Kafka has the code alone.

    Beside all of them it would take long.
    """
    for struct in errors:
        if hasattr(struct, "error_message"):
            struct.error_message = None
    for struct in errors[:_MESSAGES]:  # CreateAcls and DeleteAcls repeat one struct
        if hasattr(struct, "error_message"):
            struct.error_message = text
