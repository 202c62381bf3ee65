"""Responses to DescribeConfigs of many resources, most of which have the same configs.

Ten thousand topics have the same thirty configs, byte for byte, where they have none of their own. Such
bytes are decoded once: the results share one list.
"""

from __future__ import annotations

from typing import Final

from quorate.formats.varint import read_unsigned
from quorate.wire import codec
from quorate.wire.errors import WireError
from quorate.wire.header import decode_response
from quorate.wire.messages.configs import DescribeConfigsResponse
from quorate.wire.messages.headers import ResponseHeader
from quorate.wire.schema import Message, array

_VERSION: Final = 4
"""The flexible version, that of every Kafka since 2.7."""
_HEADER_VERSION: Final = 1
Result = DescribeConfigsResponse.DescribeConfigsResult


class _ResultEnd(Message, kind="data", versions=(_VERSION, _VERSION), flexible=_VERSION):
    """What stands behind the name in a result: its end is found by decoding it."""

    configs: list[Result.DescribeConfigsResourceResult] = array(
        Result.DescribeConfigsResourceResult
    )


class _ResponseEnd(Message, kind="data", versions=(_VERSION, _VERSION), flexible=_VERSION):
    """The tagged fields of the response."""


def decode_config_response(frame: bytes, key: int, version: int) -> tuple[int, Message]:
    """Decode a DescribeConfigsResponse as `decode_response` does. Results may share their `configs`."""
    if version != _VERSION:
        return decode_response(frame, key, version)
    try:
        header, pos = codec.decode_prefix(ResponseHeader, _HEADER_VERSION, frame, 0)
        throttle_time_ms = int.from_bytes(frame[pos : pos + 4], "big", signed=True)
        count, pos = read_unsigned(frame, pos + 4)
        results = []
        same, shared = b"", _ResultEnd()
        for _ in range(count - 1):
            error_code = int.from_bytes(frame[pos : pos + 2], "big", signed=True)
            error_message, pos = _text(frame, pos + 2)
            resource_type = int.from_bytes(frame[pos : pos + 1], "big", signed=True)
            resource_name, start = _text(frame, pos + 1)
            if same and frame.startswith(same, start):
                pos = start + len(same)
            else:
                shared, pos = codec.decode_prefix(_ResultEnd, _VERSION, frame, start)
                same = frame[start:pos]
            results.append(
                Result(
                    error_code=error_code,
                    error_message=error_message,
                    resource_type=resource_type,
                    resource_name=resource_name or "",
                    configs=shared.configs,
                    unknown_tags=shared.unknown_tags,
                )
            )
        response_end, pos = codec.decode_prefix(_ResponseEnd, _VERSION, frame, pos)
    except (IndexError, ValueError) as error:
        raise WireError(f"DescribeConfigsResponse v{version}: {error}") from None
    if count < 1 or pos != len(frame):
        return decode_response(frame, key, version)  # it says what is wrong
    response = DescribeConfigsResponse(
        throttle_time_ms=throttle_time_ms, results=results, unknown_tags=response_end.unknown_tags
    )
    return header.correlation_id, response


def _text(frame: bytes, pos: int) -> tuple[str | None, int]:
    """A compact string that may be null. Raises IndexError or ValueError where the frame ends in it."""
    size, pos = read_unsigned(frame, pos)
    if size == 0:
        return None, pos
    stop = pos + size - 1
    if stop > len(frame):
        raise ValueError("the bytes end inside a text")
    return frame[pos:stop].decode(), stop
