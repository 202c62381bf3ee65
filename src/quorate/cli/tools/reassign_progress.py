"""`quorate reassign-partitions --wait`: shows what is moving until nothing of the plan is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from quorate.client.admin.reassignments import PartitionName, Reassignment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.cli.tools.reassign_files import ReassignmentPlan
    from quorate.client import Admin

_POLL_S: Final = 0.5
_SHOWN: Final = 5
"""Most partitions that a line of progress names."""


def wait(admin: Admin, plan: ReassignmentPlan) -> None:
    """Return when no partition of the plan is being reassigned; prints progress on stderr.

    An interruption ends the waiting, not the reassignment.
    """
    partitions = dict(plan.targets)
    shown = None
    try:
        while True:
            moving = admin.list_partition_reassignments(partitions)
            if not moving:
                return
            line = progress_line(len(partitions), moving)
            if line != shown:
                click.echo(line, err=True)
                shown = line
            time.sleep(_POLL_S)
    except KeyboardInterrupt:
        click.echo("The reassignment goes on: --verify shows how far it is", err=True)
        raise


def progress_line(count: int, moving: Mapping[PartitionName, Reassignment]) -> str:
    """Return `2 of 5 partitions are done; moving: t-0 (+3 -1), ...`."""
    texts = [f"{each} ({_change(move)})" for each, move in sorted(moving.items())]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return (
        f"{count - len(moving)} of {count} partitions are done; moving: "
        f"{', '.join(texts[:_SHOWN])}{more}"
    )


def _change(move: Reassignment) -> str:
    return " ".join(
        [*(f"+{each}" for each in move.adding), *(f"-{each}" for each in move.removing)]
    )
