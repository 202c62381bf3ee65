"""Calls about many items: parts that fit into one request each, and their results together.

A controller of Quorate closes a connection whose request is larger than 1 MiB, or 64 KiB for APIs about
few things (`quorate.node.api_row`). A controller of Kafka refuses a request with more than 10,000
records (`QuorumController.MAX_RECORDS_PER_USER_OP`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from quorate.base.errors import ErrorCode
from quorate.client.admin.outcomes import PartlyDoneError, is_unknown
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError

if TYPE_CHECKING:
    from quorate.client.admin.routing import Router

BULK_BYTES: Final = 768 * 1024
"""Of the items of one request; the limit of 1 MiB is for the whole frame."""
SMALL_BYTES: Final = 48 * 1024
MAX_RECORDS: Final = 10_000
ITEM_BYTES: Final = 16
"""Of an item besides its texts, at most."""
T = TypeVar("T")
R = TypeVar("R")


def text_bytes(*texts: str | None) -> int:
    """The bytes of texts in a request, with room for their lengths and for the item around them."""
    return ITEM_BYTES + sum(len(text.encode()) + 4 for text in texts if text is not None)


def parts_of(
    items: Iterable[T],
    size: Callable[[T], int],
    records: Callable[[T], int] = lambda item: 1,
    most_bytes: int = BULK_BYTES,
    most_records: int = MAX_RECORDS,
) -> list[list[T]]:
    """The items in parts of up to `most_bytes` and `most_records`; one empty part without items.

    An item that is larger than a request is a part of its own: the node says what it thinks of it.
    """
    parts: list[list[T]] = [[]]
    bytes_left, records_left = most_bytes, most_records
    for item in items:
        needed, written = size(item), records(item)
        if parts[-1] and (needed > bytes_left or written > records_left):
            parts.append([])
            bytes_left, records_left = most_bytes, most_records
        parts[-1].append(item)
        bytes_left -= needed
        records_left -= written
    return parts


async def in_parts(
    router: Router,
    parts: Sequence[Sequence[T]],
    send: Callable[[Sequence[T]], Awaitable[R]],
    name: Callable[[T], Any] = lambda item: item,
) -> list[R]:
    """The results of `send` for each part, one after the other, within one API timeout.

    `send` makes one attempt. Raises what a call of one request raises, and PartlyDoneError where it
    happens after the first of several requests; `name` says what stands for an item in it.
    """
    found: list[R] = []
    with router.deadlines.one_call():
        for number, part in enumerate(parts):
            try:
                found.append(await router.retry(partial(send, part)))
            except ClientError as error:
                if len(parts) == 1:
                    raise
                rest = [name(item) for each in parts[number + 1 :] for item in each]
                failed = [name(item) for item in part]
                answered = [
                    (name(item), outcome)
                    for sent, result in zip(parts, found, strict=False)
                    for item, outcome in zip(sent, _errors([*map(name, sent)], result), strict=True)
                ]
                unknown = failed if is_unknown(error) else []
                not_done = rest if unknown else [*failed, *rest]
                raise PartlyDoneError(error, found, answered, unknown, not_done) from error
    return found


def _errors(names: Sequence[Any], result: Any) -> list[RequestFailedError | None]:
    """The error of each item of a part, from the result that `send` has for it."""
    outcomes = [result.get(each) for each in names] if isinstance(result, dict) else [*result]
    outcomes += [None] * (len(names) - len(outcomes))
    return [
        each if isinstance(each, RequestFailedError) else None for each in outcomes[: len(names)]
    ]


async def each_failed(
    call: Awaitable[dict[T, Any]], items: Iterable[T], *, is_only: bool
) -> dict[T, Any]:
    """The results of a call to one of several nodes; where it fails, the error of each of its items.

    So the outcome at the other nodes is not lost. The call of one node alone raises (`is_only`). A
    missing response has REQUEST_TIMED_OUT, as Kafka's client has a TimeoutException for it.
    """
    try:
        return await call
    except ClientError as error:
        if is_only:
            raise
        failure = error
        if not isinstance(failure, RequestFailedError):
            failure = RequestFailedError(ErrorCode.REQUEST_TIMED_OUT, str(error))
        done: dict[T, Any] = dict.fromkeys(items, failure)
        if isinstance(error, PartlyDoneError):
            for result in error.results:
                done |= result
        return done


def merged(results: Iterable[dict[T, R]]) -> dict[T, R]:
    """One mapping of all results."""
    found: dict[T, R] = {}
    for each in results:
        found |= each
    return found
