"""Fault injection into a quorum of real processes, checked by what clients and disks recorded.

Three or five members run on loopback. A proxy in front of each member delays, holds and resets
connections. The members' disks lose at a kill what was not synced. Clients record their operations.
At the end every fault is repaired; then the checks compare the clients' history, the logs on disk
and the members' states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.nemesis.checks import Violation
    from quorate.nemesis.mixed_workload import ControllerWorkload
    from quorate.nemesis.plan import DISK_FAULT_KINDS, FAULT_KINDS, ScheduledFault, draw_faults
    from quorate.nemesis.run import (
        NemesisClient,
        NemesisOptions,
        NemesisResult,
        NemesisWorkload,
        NotEmptyError,
        run_nemesis,
    )
    from quorate.nemesis.store_workload import StoreWorkload
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "checks": "Violation",
            "mixed_workload": "ControllerWorkload",
            "plan": "DISK_FAULT_KINDS FAULT_KINDS ScheduledFault draw_faults",
            "run": "NemesisClient NemesisOptions NemesisResult NemesisWorkload NotEmptyError run_nemesis",
            "store_workload": "StoreWorkload",
        },
    )

__all__ = [
    "DISK_FAULT_KINDS",
    "FAULT_KINDS",
    "ControllerWorkload",
    "NemesisClient",
    "NemesisOptions",
    "NemesisResult",
    "NemesisWorkload",
    "NotEmptyError",
    "ScheduledFault",
    "StoreWorkload",
    "Violation",
    "draw_faults",
    "run_nemesis",
]
