"""Errors of proposals and membership changes."""

from __future__ import annotations

from quorate.base.errors import ErrorCode, QuorateError


class NotLeaderError(QuorateError):
    """This member is not the leader; nothing was appended.

    `leader_id` is -1 and `address` None while no leader is known.
    """

    def __init__(self, leader_id: int, address: str | None) -> None:
        known = leader_id >= 0 and address
        leader = f"member {leader_id} at {address}" if known else "unknown"
        super().__init__(f"This member is not the leader; the leader is {leader}")
        self.leader_id = leader_id
        self.address = address


class EntryTooLargeError(QuorateError):
    """The entry, or the entries proposed together, do not fit one batch; nothing was appended.

    `size` is the number of bytes passed, `limit` the most for this number of entries.
    """

    def __init__(self, size: int, count: int, limit: int) -> None:
        what = f"An entry of {size} bytes"
        if count > 1:
            what = f"{count} entries of {size} bytes together"
        fit = f"the limit is {limit} bytes"
        if limit < 0:
            fit = "so many entries never fit, whatever their size"
        super().__init__(f"{what} cannot be proposed as one batch: {fit}")
        self.size = size
        self.limit = max(limit, 0)


class OverloadedError(QuorateError):
    """Too many bytes of entries are outstanding; nothing was appended. `propose` waits instead."""


class InDoubtError(QuorateError):
    """Leadership was lost, or the member stopped, before the outcome was known.

    The entry or change may still be committed. Repeat it only if applying it twice is harmless.
    """


class MembershipChangeError(QuorateError):
    """The membership change failed. `error` is Kafka's error code.

    `retriable`: the change timed out, because the new member lags or another change is pending. A
    change that timed out may still be committed; repeating it is harmless.
    """

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(f"{message or 'The members were not changed'} ({error.name})")
        self.error = error
        self.retriable = error == ErrorCode.REQUEST_TIMED_OUT


class MemberStoppedError(QuorateError):
    """The member has stopped. The message gives the reason."""
