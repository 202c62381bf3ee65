"""A made-up write API of a key that nobody else has: its messages, its decision and its row.

All that a new API takes is a file like this and one row of the table. The name in the request says
what to write and how.
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import ApiError, Decision, Result, Steps, WriteOperation
from quorate.formats.records import ConfigRecord
from quorate.node.api_row import ALTER, BULK_REQUEST_BYTES, ApiRow, Audit, Kind
from quorate.wire.registry import Api
from quorate.wire.schema import Message, boolean, int16, int32, string

KEY = 9000
METRICS = 16
"""ConfigRecords of client metrics are written: no node objects to any name."""


class MadeUpRequest(Message, kind="request", key=KEY, versions=(0, 2), flexible=1):
    """Without a name it asks for nothing."""

    name: str | None = string(nullable=0, default=None)
    count: int = int32()
    validate_only: bool = boolean()
    timeout_ms: int = int32(default=500)


class MadeUpResponse(Message, kind="response", key=KEY, versions=(0, 2), flexible=1):
    """The error of the whole request; the text also of a success."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0, default=None)


def command(name: str, count: int = 1, *, validate_only: bool = False) -> MadeUpRequest:
    return MadeUpRequest(name=name, count=count, validate_only=validate_only)


def records_of(name: str, count: int) -> list[ConfigRecord]:
    return [
        ConfigRecord(resource_type=METRICS, resource_name=name, name=str(number), value="x")
        for number in range(count)
    ]


def respond(text: str | None, error: ErrorCode = ErrorCode.NONE) -> MadeUpResponse:
    return MadeUpResponse(error_code=error, error_message=text)


def decide(head: HeadView, request: MadeUpRequest, context: Context) -> Decision[MadeUpResponse]:
    """`known`, `refused`, `broken`, `slow` and `parts` are commands; all else is atomic."""
    name, count = request.name or "", request.count
    known = sum(len(v) for k, v in head.image.configs.items() if k.type == METRICS)
    if name == "refused":
        raise ApiError(ErrorCode.POLICY_VIOLATION, "refused")
    if name == "broken":
        raise ZeroDivisionError("a defect")
    if name == "slow":
        return slowly(name, count, known)
    if name == "known" or request.validate_only:
        return Result((), respond(f"{known} known"))
    return Result(records_of(name, count), respond(f"{known} before"), atomic=name != "parts")


def slowly(name: str, count: int, known: int) -> Steps[MadeUpResponse]:
    found = []
    for record in records_of(name, count):
        found.append(record)
        yield None
    return Result(found, respond(f"{known} before"))


def failed(request: MadeUpRequest, error: ErrorCode, message: str | None) -> MadeUpResponse:
    return respond(message, error)


def empty(request: MadeUpRequest) -> MadeUpResponse | None:
    return None if request.name else MadeUpResponse()


OPERATION = WriteOperation(
    "MadeUp", decide, failed, empty, timeout_ms=lambda request: request.timeout_ms
)
ROW = ApiRow(
    KEY,
    "MadeUp",
    Kind.WRITE,
    None,
    OPERATION,
    BULK_REQUEST_BYTES,
    ALTER,
    forwardable=True,
    audit=Audit.CHANGES,
)
API = Api(KEY, "MadeUp", MadeUpRequest, MadeUpResponse, 0, 2, 1)
