"""What is known of a change whose response is missing, and of a call that was sent in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError
from quorate.wire.schema import Message

READS: Final = frozenset({3, 16, 17, 18, 29, 32, 35, 36, 41, 46, 48, 50, 55, 60, 74, 75})
"""Requests that change nothing, by API key."""
_CHECKS: Final = {
    19: "the topics",
    20: "the topics",
    30: "the ACLs",
    31: "the ACLs",
    33: "the configs",
    34: "the log directories",
    37: "the partitions of the topics",
    38: "the delegation tokens",
    39: "the delegation tokens",
    40: "the delegation tokens",
    43: "the leaders of the partitions",
    44: "the configs",
    45: "the reassignments",
    49: "the quotas",
    51: "the SCRAM credentials",
    57: "the features",
    64: "the registered brokers",
    80: "the voters",
    81: "the voters",
    94: "the registered controllers",
}
"""What shows whether a change was made, by API key."""
_FEW_NAMES: Final = 5


def change_of(request: Message) -> int | None:
    """The API key of a request that changes something, else None."""
    key = type(request).schema.key
    return None if key in READS or getattr(request, "validate_only", False) else key


def note_of(request: Message) -> str | None:
    """Say what a request without a response may have done; None for one that changes nothing."""
    key = change_of(request)
    if key is None:
        return None
    return f"the change may have been applied: check {_CHECKS.get(key, 'it')} before you repeat it"


class PartlyDoneError(ClientError):
    """A call about many items was sent in several requests, and one of them failed.

    `results` are those of the requests before it, and `answered` has each of their items with its error,
    None where it was changed. `unknown` has the items of the failed request if they may have been
    changed. `not_done` has the items that were not changed.
    """

    def __init__(
        self,
        cause: ClientError,
        results: Sequence[Any],
        answered: Sequence[tuple[Any, RequestFailedError | None]],
        unknown: Sequence[Any],
        not_done: Sequence[Any],
    ) -> None:
        self.cause = cause
        self.results = tuple(results)
        self.answered = tuple(answered)
        self.unknown = tuple(unknown)
        self.not_done = tuple(not_done)
        parts = [f"{len(answered)} were answered before"]
        if unknown:
            parts.append(f"{len(unknown)} may have been changed: {_some(unknown)}")
        if not_done:
            parts.append(f"{len(not_done)} were not changed: {_some(not_done)}")
        total = len(answered) + len(unknown) + len(not_done)
        super().__init__(f"{cause}. Of {total} items {'; '.join(parts)}")


def is_unknown(failure: ClientError) -> bool:
    """Whether the items of a request that failed in this way may have been changed."""
    if isinstance(failure, RequestFailedError):
        return failure.is_bare and failure.code.retriable
    return bool(getattr(failure, "note", ""))


def _some(items: Sequence[Any]) -> str:
    shown = ", ".join(map(str, items[:_FEW_NAMES]))
    return shown if len(items) <= _FEW_NAMES else f"{shown} and {len(items) - _FEW_NAMES} more"
