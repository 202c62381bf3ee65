"""A made-up write API: all that a new API takes is one file like this and one row of the table.

A CreateTopics request is the command: the names of its topics say what to write and how.
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.controller.context import Context
from quorate.controller.head import Head
from quorate.controller.result import ApiError, Decision, Result, Steps, WriteOperation
from quorate.formats.records import ConfigRecord
from quorate.node.api_row import ALTER, BULK_REQUEST_BYTES, ApiRow, Kind
from quorate.wire.messages import CreateTopicsRequest, CreateTopicsResponse

KEY = 19
METRICS = 16
"""ConfigRecords of client metrics are written: no node objects to any name."""


def command(name: str, count: int = 1, *, validate_only: bool = False) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count)
    return CreateTopicsRequest(topics=[topic], validate_only=validate_only, timeout_ms=500)


def records_of(name: str, count: int) -> list[ConfigRecord]:
    return [
        ConfigRecord(resource_type=METRICS, resource_name=name, name=str(number), value="x")
        for number in range(count)
    ]


def respond(text: str | None, error: ErrorCode = ErrorCode.NONE) -> CreateTopicsResponse:
    result = CreateTopicsResponse.CreatableTopicResult(error_code=error, error_message=text)
    return CreateTopicsResponse(topics=[result])


def decide(
    head: Head, request: CreateTopicsRequest, context: Context
) -> Decision[CreateTopicsResponse]:
    """`known`, `refused`, `broken`, `slow` and `parts` are commands; all else is atomic."""
    topic = request.topics[0]
    name, count = topic.name, topic.num_partitions
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


def slowly(name: str, count: int, known: int) -> Steps[CreateTopicsResponse]:
    found = []
    for record in records_of(name, count):
        found.append(record)
        yield None
    return Result(found, respond(f"{known} before"))


def failed(
    request: CreateTopicsRequest, error: ErrorCode, message: str | None
) -> CreateTopicsResponse:
    return respond(message, error)


def empty(request: CreateTopicsRequest) -> CreateTopicsResponse | None:
    return None if request.topics else CreateTopicsResponse()


OPERATION = WriteOperation(
    "MadeUp", decide, failed, empty, timeout_ms=lambda request: request.timeout_ms
)
ROW = ApiRow(KEY, "MadeUp", Kind.WRITE, None, OPERATION, BULK_REQUEST_BYTES, ALTER)
