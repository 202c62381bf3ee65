"""One replica: the raft core, the log, the disk jobs and a state machine, without sockets or clocks.

`Replica.step` takes what happened and returns `Effects`. The owner of the disk performs its jobs
with `disk_worker`. A program's state is a `ReplicatedStateMachine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.replica.proposals import Committed, Submit
    from quorate.replica.replica import Answer, Effects, Input, MemoryLimits, Replica
    from quorate.replica.snapshot_policy import SnapshotPolicy
    from quorate.replica.state_machine import CommittedBatch, Now, ReplicatedStateMachine
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "proposals": "Committed Submit",
            "replica": "Answer Effects Input MemoryLimits Replica",
            "snapshot_policy": "SnapshotPolicy",
            "state_machine": "CommittedBatch Now ReplicatedStateMachine",
        },
    )

__all__ = [
    "Answer",
    "Committed",
    "CommittedBatch",
    "Effects",
    "Input",
    "MemoryLimits",
    "Now",
    "Replica",
    "ReplicatedStateMachine",
    "SnapshotPolicy",
    "Submit",
]
