"""The contract of a decision: what a write operation is, and what it results in.

A domain module decides: `decide(head, request, context)` reads the head image and gives a Result. Where
a request names what its requester needs a permission for, `authorize(request, context)` comes before: it
reads the committed image and runs outside of the write queue (`ControllerApis` of Kafka). Either
changes nothing but what it counts through the context: the tokens of the requester's quota and the
decisions of the authorizer. The write queue of the node applies the records to `head`, proposes them,
and releases the response when they are committed (`QuorumController.ControllerWriteEvent`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.frozen import frozen
from quorate.controller.building import Building
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import LivenessChange
from quorate.wire.schema import Message

Q = TypeVar("Q")
R = TypeVar("R")
T = TypeVar("T")

MAX_RECORDS: Final = 10_000
"""Most records of one atomic result, and of one part of another (`MAX_RECORDS_PER_BATCH`)."""


class ApiError(QuorateError):
    """The request is refused: the client gets this code and message (`ApiException`).

    Any other exception of a decision is a fault: the client gets UNKNOWN_SERVER_ERROR, and
    `OnException` says what follows.
    """

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error

    @classmethod
    def of(cls, error: ErrorCode) -> ApiError:
        """Return the error with the code's own text."""
        return cls(error, error.message or "")


@frozen
class Result(Generic[R]):
    """The records to write, in order, and the response when they are committed.

    Without records the response is released when everything is committed that was decided before:
    it may depend on that. An atomic result has at most MAX_RECORDS records, which commit together or
    not at all. Another one is split into parts of MAX_RECORDS, and each part must leave an image
    that is consistent.
    """

    records: Sequence[Message]
    response: R
    atomic: bool = True
    notes: tuple[str, ...] = ()
    """Lines for the log of the node, written when the records are proposed."""
    liveness: tuple[LivenessChange, ...] = ()
    """What the active controller then knows of brokers beyond the image."""


@dataclass(frozen=True, slots=True)
class KRaftVersionChange:
    """A request to the raft layer, yielded by a decision: raise kraft.version (KIP-853).

    The decision is resumed when the change is committed; a refusal is raised in it as ApiError.
    """

    version: int
    validate_only: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a result that is not atomic, yielded by a decision: they are written now.

    Each part leaves an image that is consistent. The response waits for the last one. A decision
    refuses the request before its first part: a later ApiError counts as a fault. A Part that is no
    Turn is for records that nothing may come between, as in a metadata transaction.
    """

    records: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Turn(Part):
    """A part after which other writes are decided, before the decision goes on.

    The decision then reads `head` and the liveness of brokers anew: both may have changed.
    """

    liveness: tuple[LivenessChange, ...] = ()
    """What the other writes must know of brokers while the decision goes on."""


Steps = Generator[KRaftVersionChange | Part | None, None, Result[R]]
"""A decision in bounded steps. It yields None or a Part for a pause, so that no step takes more than
a few milliseconds. Except at a Turn it holds the write queue until it returns: no other write is decided
meanwhile, so `head` does not change under it. Reads and raft requests go on."""

Decision = Result[R] | Steps[R]


@dataclass(frozen=True, slots=True)
class Permitted(Generic[Q, T]):
    """What the authorization leaves of a request: the decision looks at nothing else."""

    request: Q
    rows: list[Any]
    """Of the response, in its order; None where the decision gives the row."""
    left: list[tuple[int, T]]
    """Each item that the requester may ask for, behind the index of its row."""

    def filled(self, decided: Iterable[Any]) -> list[Any]:
        """All rows. decided: those of `left`, in its order."""
        rows = list(self.rows)
        for (index, _), row in zip(self.left, decided, strict=True):
            rows[index] = row
        return rows


PAUSE_EVERY: Final = 250
"""Topics, partitions, entries that a decision looks at in one step: some milliseconds of work."""


def error_text(error: ErrorCode, message: str | None) -> str | None:
    """The text beside the code of a failed request; None: the code says it all.

    The cause of UNKNOWN_SERVER_ERROR stays in the log (`ApiError.fromThrowable`).
    """
    is_bare = error is ErrorCode.UNKNOWN_SERVER_ERROR or error.is_all_of(message)
    return None if is_bare else message


def _never_empty(request: Any) -> None:
    return None


def _no_timeout(request: Any) -> None:
    return None


def _nothing_counts(head: HeadView, request: Any) -> tuple[LivenessChange, ...]:
    return ()


class OnException(Enum):
    """What an unexpected exception of a decision does. Each kind counts as a fault.

    Source: `EventHandlerExceptionInfo.fromInternal`.
    """

    RESIGN = "resign"
    """The state may be wrong: another node is to lead."""
    TRY_AGAIN = "try again"
    """A periodic task fails and stays due; the leadership goes on."""
    END_NODE = "end the node"
    """The activation: a node that cannot begin to lead ends."""


@dataclass(frozen=True, slots=True)
class WriteOperation(Generic[Q, R]):
    """One kind of write: an API of the table, or a write of the controller's own."""

    name: str
    decide: Callable[[HeadView, Any, Context], Decision[R]]
    """Takes the request, or what `authorize` leaves of it."""
    failed: Callable[[Q, ErrorCode, str | None], R | Building[R]]
    """The response that says of the whole request that it failed. It is built in steps where it has a row
    for each item. Takes the code and the text of
    the exception, None for none. Which text the response has is up to the API: `getErrorResponse`
    of Kafka's request classes."""
    empty: Callable[[Q], R | None] = _never_empty
    """The response to a request that asks for nothing, which also a standby gives; None where it
    asks for something."""
    timeout_ms: Callable[[Q], int | None] = _no_timeout
    """How long the request may wait in the write queue; None: for ever."""
    expired: Callable[[HeadView, Q], tuple[LivenessChange, ...]] = _nothing_counts
    """What counts of a request that has waited for too long."""
    on_exception: OnException = OnException.RESIGN
    authorize: Callable[[Q, Context], Building[Any]] | None = None
    """What comes before the write queue, in bounded steps: permissions by the committed image, and checks
    of the request alone. It returns what `decide` takes, or the Result of a request of which nothing is
    left. ApiError refuses the whole request. None: `decide` takes the request."""


def _task_failed(request: None, error: ErrorCode, message: str | None) -> bool:
    return False


def controller_task(
    name: str, decide: Callable[[HeadView, None, Context], Decision[bool]]
) -> WriteOperation[None, bool]:
    """A task that the active controller runs of its own accord. Its response: there is more to do.

    Where it fails it stays due: the next run decides on the head as it is then.
    """
    return WriteOperation(name, decide, _task_failed, on_exception=OnException.TRY_AGAIN)
