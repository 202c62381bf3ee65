"""What a proposal may end with."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class NotLeader(QuorateError):
    """Nothing was appended: propose to the leader. `leader_id` is -1 while there is none."""

    def __init__(self, leader_id: int, address: str | None) -> None:
        known = leader_id >= 0 and address
        where = f"member {leader_id} at {address} does" if known else "nobody is known to"
        super().__init__(f"This member does not lead; {where}")
        self.leader_id = leader_id
        self.address = address


class InDoubt(QuorateError):
    """Leadership was lost, or the member stopped, with the entry on its way.

    It may be committed and applied, or never be: propose it again only if that is harmless.
    """


class MemberStopped(QuorateError):
    """The member was stopped, or stopped itself, before this call; the message says why."""
