"""The high watermark: what a majority holds, for ever, and the same for all."""

from __future__ import annotations

from quorate.raft.values import Voter
from quorate.sim.checks.history import UNCOMMITTED, Entry, History
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import matches, names
from quorate.sim.observe import Violation


class Commits:
    """Watches each high watermark move."""

    def __init__(self, history: History, twins: dict[int, Twin]) -> None:
        self.history = history
        self.twins = twins
        self.lost: list[Twin] = []
        """Disks that were taken away: as voters they had what they had, and will never vote again,
        so that what they said counts as long as they are in the voter set."""
        self._masks: dict[int, tuple[tuple[Voter, ...], int]] = {}

    def forget_masks(self) -> None:
        """A disk came or went."""
        self._masks.clear()

    def moved(self, twin: Twin, high_watermark: int, before: tuple[Voter, ...]) -> None:
        """A replica's high watermark moved; `before`: the voters before this step."""
        if high_watermark < twin.high_watermark:
            raise Violation(
                "high watermark is monotonic",
                f"{twin}: from {twin.high_watermark} to {high_watermark}",
            )
        entry = twin.high
        pending = twin.pending
        while entry.end < high_watermark and pending:
            entry = pending.popleft()
        if entry.end != high_watermark:
            raise Violation(
                "high watermark within the log",
                f"{twin}: high watermark {high_watermark}, log up to {twin.tip}, nearest {entry}",
            )
        twin.high_watermark = high_watermark
        twin.high = entry
        if entry.committed_in == UNCOMMITTED:
            self._commit(twin, entry, before)

    def _commit(self, twin: Twin, entry: Entry, before: tuple[Voter, ...]) -> None:
        """Nobody knew this to be committed: then the leader of its epoch has counted."""
        history = self.history
        reign = history.reigns.get(entry.epoch)
        if reign is None or reign.node_id != twin.id or reign.life != twin.life:
            raise Violation(
                "durable majority",
                f"{twin} takes {entry} for committed, but leads not in that epoch: only entries "
                "of its own epoch are counted (Raft, figure 8), and only by the leader",
            )
        voters = twin.voters
        if not self.holds(voters, entry) and not (
            before is not voters and self.holds(before, entry)
        ):
            raise Violation(
                "durable majority",
                f"{twin} commits {entry}; of the voters {names(voters)} only "
                f"{self._holders(voters, entry)} would still have it after a crash",
            )
        history.commit(entry, twin)
        if entry.epoch < history.newest_reign:
            self._check_later_leaders(twin, entry)

    def _check_later_leaders(self, twin: Twin, entry: Entry) -> None:
        for epoch, later in self.history.reigns.items():
            if epoch > entry.epoch and not later.log.holds(entry):
                raise Violation(
                    "leader completeness",
                    f"{twin} commits {entry}, which the leader of epoch {epoch}, node "
                    f"{later.node_id}, does not have",
                )

    def holds(self, voters: tuple[Voter, ...], entry: Entry) -> bool:
        """Would a majority of these voters still have the entry if all crashed now?"""
        known = self._masks.get(id(voters))
        if known is None or known[0] is not voters:
            known = self._masks[id(voters)] = (voters, self._mask(voters))
        return (entry.durable_on & known[1]).bit_count() > len(voters) // 2

    def _mask(self, voters: tuple[Voter, ...]) -> int:
        mask = 0
        for voter in voters:
            twin = self.twins.get(voter.key.id)
            if twin is not None and matches(voter.key, twin.key):
                mask |= twin.bit
            for lost in self.lost:
                if lost.key == voter.key:
                    mask |= lost.bit
        return mask

    def _holders(self, voters: tuple[Voter, ...], entry: Entry) -> list[int]:
        held = entry.durable_on & self._mask(voters)
        return [v.key.id for v in voters if held & self.twins[v.key.id].bit]
