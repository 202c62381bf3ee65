"""A replicated state machine for other programs: durable, elected, with members that change.

    from quorate.embed import Member, create

    founders = {1: "127.0.0.1:7001", 2: "127.0.0.1:7002", 3: "127.0.0.1:7003"}
    create("data-1", 1, "counters", founders)  # once
    async with await Member.start("data-1", Counter(), founders[1]) as member:
        print(await member.propose(b"+1"))

`propose` returns when the entry is synced to the disks of a majority and applied here. Every error
of this package is a QuorateError; an argument of a wrong type is a TypeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.embed.errors import (
        EntryTooLargeError,
        InDoubtError,
        MembershipChangeError,
        MemberStoppedError,
        NotLeaderError,
        OverloadedError,
    )
    from quorate.embed.founding import create
    from quorate.embed.local import LocalCluster, local_cluster
    from quorate.embed.machine import MAX_ENTRY_BYTES, StateMachine
    from quorate.embed.member import Member
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "errors": "EntryTooLargeError InDoubtError MembershipChangeError "
            "MemberStoppedError NotLeaderError OverloadedError",
            "founding": "create",
            "local": "LocalCluster local_cluster",
            "machine": "MAX_ENTRY_BYTES StateMachine",
            "member": "Member",
        },
    )

__all__ = [
    "MAX_ENTRY_BYTES",
    "EntryTooLargeError",
    "InDoubtError",
    "LocalCluster",
    "Member",
    "MemberStoppedError",
    "MembershipChangeError",
    "NotLeaderError",
    "OverloadedError",
    "QuorateError",
    "ReplicaKey",
    "StateMachine",
    "create",
    "local_cluster",
]
