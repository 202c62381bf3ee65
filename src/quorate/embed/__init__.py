"""A replicated state machine for other programs: durable, elected, with members that change.

    from quorate.embed import Member, create

    founders = {1: "127.0.0.1:7001", 2: "127.0.0.1:7002", 3: "127.0.0.1:7003"}
    create("data-1", 1, "counters", founders)  # once
    async with await Member.start("data-1", Counter(), founders[1]) as member:
        print(await member.propose(b"+1"))

`propose` returns when the entry is synced to the disks of a majority and applied here. Every error
of this package is a QuorateError; an argument of a wrong type is a TypeError.
"""

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.embed.errors import (
    ChangeFailed,
    EntryTooLarge,
    InDoubt,
    MemberStopped,
    NotLeader,
    Overloaded,
)
from quorate.embed.founding import create
from quorate.embed.local import LocalCluster, local_cluster
from quorate.embed.machine import MAX_ENTRY_BYTES, StateMachine
from quorate.embed.member import Member

__all__ = [
    "MAX_ENTRY_BYTES",
    "ChangeFailed",
    "EntryTooLarge",
    "InDoubt",
    "LocalCluster",
    "Member",
    "MemberStopped",
    "NotLeader",
    "Overloaded",
    "QuorateError",
    "ReplicaKey",
    "StateMachine",
    "create",
    "local_cluster",
]
