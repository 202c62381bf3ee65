"""What a proposal or a change of members may end with."""

from __future__ import annotations

from quorate.base.errors import ErrorCode, QuorateError


class NotLeader(QuorateError):
    """Nothing was appended: ask the leader instead. `leader_id` is -1 while there is none."""

    def __init__(self, leader_id: int, address: str | None) -> None:
        known = leader_id >= 0 and address
        where = f"member {leader_id} at {address} does" if known else "nobody is known to"
        super().__init__(f"This member does not lead; {where}")
        self.leader_id = leader_id
        self.address = address


class EntryTooLarge(QuorateError):
    """Nothing was appended: the entry, or the entries proposed together, fit no batch of the log.

    `size` and `limit`: the bytes that were passed, and the most that as many entries can have.
    """

    def __init__(self, size: int, count: int, limit: int) -> None:
        what, fit = f"An entry of {size} bytes", f"{limit} bytes fit"
        if count > 1:
            what, fit = f"{count} entries of {size} bytes together", f"so many can have {limit}"
        if limit < 0:
            fit = "so many do not fit one batch, whatever their size"
        super().__init__(f"{what} cannot be proposed at once: {fit}")
        self.size = size
        self.limit = max(limit, 0)


class Overloaded(QuorateError):
    """Nothing was appended: more is on the way than a member keeps in memory. `propose` waits."""


class InDoubt(QuorateError):
    """Leadership was lost, or the member stopped, with the entry or change on its way.

    It may be committed and applied, or never be: ask for it again only if that is harmless.
    """


class ChangeFailed(QuorateError):
    """The members were not changed. `error` is the reason in Kafka's terms.

    `retriable`: only time was missing (the joiner lags behind, or another change is under way). A
    change that timed out may still be committed; to ask for it again is harmless.
    """

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(f"{message or 'The members were not changed'} ({error.name})")
        self.error = error
        self.retriable = error == ErrorCode.REQUEST_TIMED_OUT


class MemberStopped(QuorateError):
    """The member was stopped, or stopped itself, before this call; the message says why."""
