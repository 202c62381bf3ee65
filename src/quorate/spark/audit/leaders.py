"""At most one leader an epoch: LeaderChange records and quorum-state files of all replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from quorate.formats.files import QuorumState
from quorate.spark.audit.committed import ReplicaLog
from quorate.spark.audit.model import DAMAGE, KEEP_EVERYTHING, VIOLATION, Finding, Spot


def check_leaders(
    logs: Mapping[str, ReplicaLog],
    states: Mapping[str, QuorumState],
    findings: Mapping[str, list[Finding]],
) -> None:
    """Add to `findings` where two leaders of one epoch are named; all three are by path."""
    named: dict[int, dict[int, list[tuple[str, Spot]]]] = defaultdict(lambda: defaultdict(list))
    for path, log in logs.items():
        for control in log.controls:
            if control.leader is not None and control.spot.epoch is not None:
                named[control.spot.epoch][control.leader].append((path, control.spot))
    for path, state in states.items():
        leader, epoch = state.election.leader_id, state.election.epoch
        if leader >= 0:
            file = logs[path].replica.quorum_state
            spot = Spot(None if file is None else file.name, epoch=epoch)
            named[epoch][leader].append((path, spot))
    for epoch, leaders in named.items():
        if len(leaders) > 1:
            _two_leaders(epoch, leaders, findings)


def _two_leaders(
    epoch: int,
    leaders: Mapping[int, list[tuple[str, Spot]]],
    findings: Mapping[str, list[Finding]],
) -> None:
    """Blame those that are outnumbered, or all where none is; a log outweighs quorum-state."""
    weight = {
        leader: (
            any(spot.offset is not None for _, spot in reports),
            len({path for path, _ in reports}),
        )
        for leader, reports in leaders.items()
    }
    top = max(weight.values())
    clear = [leader for leader, known in weight.items() if known == top]
    for leader, reports in leaders.items():
        if clear == [leader]:
            continue
        others = sorted(set(leaders) - {leader})
        what = f"leader {leader} of epoch {epoch}: elsewhere that epoch's leader is {others}"
        for path, spot in reports:
            if not is_damaged(findings[path], spot.file):
                found = Finding("one-leader", VIOLATION, what, KEEP_EVERYTHING, spot)
                findings[path].append(found)


def is_damaged(findings: Iterable[Finding], file: str | None = None) -> bool:
    """Whether any of the findings is damage, of this file where one is named."""
    return any(
        one.severity == DAMAGE and (file is None or one.spot.file == file) for one in findings
    )
