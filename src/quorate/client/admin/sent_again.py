"""A change that was sent again, because the outcome of an earlier attempt is unknown.

That attempt may have made the change. The next one then meets its own work: the topic exists, or is
gone. Kafka's client says no more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.client.admin.outcomes import is_unknown
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError, errors_of

_NO_CONTROLLER: Final = "No controller appears to be active."
"""Of a controller that resigned while the change was not committed yet; the next one may commit it
(`ControllerExceptions.newWrongControllerException`). A node without a leader says the same."""
_UNKNOWN: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class _Refusal(NamedTuple):
    """What a controller says of a change that is made already, and what the change is."""

    codes: tuple[ErrorCode, ...]
    made: str


_REFUSALS: Final[Mapping[int, _Refusal]] = {
    19: _Refusal((ErrorCode.TOPIC_ALREADY_EXISTS,), "created the topic"),
    20: _Refusal(_UNKNOWN, "deleted the topic"),
    37: _Refusal((ErrorCode.INVALID_PARTITIONS,), "added the partitions"),
    40: _Refusal((ErrorCode.DELEGATION_TOKEN_NOT_FOUND,), "expired the token"),
    43: _Refusal((ErrorCode.ELECTION_NOT_NEEDED,), "elected the leader"),
    45: _Refusal((ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,), "cancelled the reassignment"),
    51: _Refusal((ErrorCode.RESOURCE_NOT_FOUND,), "deleted the credential"),
}
"""By API key. The other changes succeed when they are made twice, or have `Router.change`."""
_HIDDEN: Final[Mapping[int, tuple[str, Callable[[Any], bool]]]] = {
    31: (
        "removed ACLs that this result does not list",
        lambda outcome: any(each == () for each in outcome),
    ),
    38: (
        "created another token: quorate delegation-tokens --describe lists it",
        lambda outcome: True,
    ),
    43: (
        "elected leaders that this result does not list as elected",
        lambda outcome: not outcome or any(error and error.note for error in outcome.values()),
    ),
}
"""By API key: what a result without an error leaves out, and whether a result may have left it out."""


class Lost(NamedTuple):
    """An attempt whose outcome is unknown."""

    key: int
    """The API key of the change."""
    why: str


def lost_attempt(failure: ClientError, key: int | None) -> Lost | None:
    """The attempt that failed in this way; None where it made no change. `key`: of what it sent."""
    if key is None:
        return None
    if isinstance(failure, RequestFailedError):
        if failure.code == ErrorCode.NOT_CONTROLLER and failure.reason == _NO_CONTROLLER:
            return Lost(key, "the active controller changed during an earlier attempt")
        if is_unknown(failure):
            return Lost(key, "an earlier attempt timed out")
    elif is_unknown(failure):
        return Lost(key, "the response to an earlier attempt was lost")
    return None


def note_lost_attempt(outcome: Any, lost: Lost) -> str | None:
    """Add a note to each error in `outcome` that the lost attempt may be the cause of.

    outcome: what the last attempt returned or raised. Returns a line for a result that does not show
    what the lost attempt may have done.
    """
    may_have = f"{lost.why}, and that attempt may have"
    refusal = _REFUSALS.get(lost.key)
    if refusal is not None:
        for _, error in errors_of(outcome):
            if isinstance(error, RequestFailedError) and error.code in refusal.codes:
                error.note = f"{may_have} {refusal.made} itself"
    if lost.key in _HIDDEN and not isinstance(outcome, Exception):
        left_out, may_leave_out = _HIDDEN[lost.key]
        if may_leave_out(outcome):
            return f"Note: {may_have} {left_out}"
    return None
