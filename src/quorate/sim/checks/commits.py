"""The high watermark: durable on a majority, monotonic, and the same prefix on every replica."""

from __future__ import annotations

from quorate.raft.values import Voter
from quorate.sim.checks.history import UNCOMMITTED, ClusterHistory, LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import matches, names
from quorate.sim.world.observer import ViolationError


class CommitCheck:
    """Checks each advance of a high watermark."""

    def __init__(self, history: ClusterHistory, models: dict[int, ReplicaModel]) -> None:
        self.history = history
        self.models = models
        self.retired: list[ReplicaModel] = []
        """Models of removed disks. Such a voter never votes again, so its acknowledgements count
        for as long as it is in the voter set."""
        self._masks: dict[int, tuple[tuple[Voter, ...], int]] = {}

    def disks_changed(self) -> None:
        """A disk was added or removed."""
        self._masks.clear()

    def high_watermark_moved(
        self, model: ReplicaModel, high_watermark: int, before: tuple[Voter, ...]
    ) -> None:
        """The high watermark of a replica changed. `before` are the voters before this step.

        KIP-595: the high watermark is monotonic on each replica and lies within the log, at the end
        of a batch.
        """
        if high_watermark < model.high_watermark:
            raise ViolationError(
                "high watermark is monotonic",
                f"{model}: from {model.high_watermark} to {high_watermark}",
            )
        entry = model.committed_tip
        pending = model.uncommitted
        while entry.end < high_watermark and pending:
            entry = pending.popleft()
        if entry.end != high_watermark:
            raise ViolationError(
                "high watermark within the log",
                f"{model}: high watermark {high_watermark}, log up to {model.tip}, nearest {entry}",
            )
        model.high_watermark = high_watermark
        model.committed_tip = entry
        if entry.committed_epoch == UNCOMMITTED:
            self._commit(model, entry, before)

    def _commit(self, model: ReplicaModel, entry: LoggedBatch, before: tuple[Voter, ...]) -> None:
        """Commit a batch that no replica has committed yet: its leader has counted a majority.

        Raft, section 5.4.2: "only log entries from the leader's current term are committed by
        counting replicas". The count needs a majority of the voters in force. Where this step
        changed the voters, a majority of either set is accepted.
        """
        history = self.history
        leadership = history.leaderships.get(entry.epoch)
        if (
            leadership is None
            or leadership.node_id != model.id
            or leadership.incarnation != model.incarnation
        ):
            raise ViolationError(
                "durable majority",
                f"{model} commits {entry}, but does not lead that epoch: only entries "
                "of its own epoch are counted (Raft, figure 8), and only by the leader",
            )
        voters = model.voters
        if not self.is_on_majority(voters, entry) and not (
            before is not voters and self.is_on_majority(before, entry)
        ):
            raise ViolationError(
                "durable majority",
                f"{model} commits {entry}; of the voters {names(voters)} only "
                f"{self._holders(voters, entry)} would still have it after a crash",
            )
        history.commit(entry, model)
        if entry.epoch < history.newest_led_epoch:
            self._check_later_leaders(model, entry)

    def _check_later_leaders(self, model: ReplicaModel, entry: LoggedBatch) -> None:
        for epoch, later in self.history.leaderships.items():
            if epoch > entry.epoch and not later.log.holds(entry):
                raise ViolationError(
                    "leader completeness",
                    f"{model} commits {entry}, which the leader of epoch {epoch}, node "
                    f"{later.node_id}, does not have",
                )

    def is_on_majority(self, voters: tuple[Voter, ...], entry: LoggedBatch) -> bool:
        """Whether a majority of these voters would still have the batch if all crashed now."""
        known = self._masks.get(id(voters))
        if known is None or known[0] is not voters:
            known = self._masks[id(voters)] = (voters, self._mask(voters))
        return (entry.durable_disks & known[1]).bit_count() > len(voters) // 2

    def _mask(self, voters: tuple[Voter, ...]) -> int:
        mask = 0
        for voter in voters:
            model = self.models.get(voter.key.id)
            if model is not None and matches(voter.key, model.key):
                mask |= model.disk_bit
            for lost in self.retired:
                if lost.key == voter.key:
                    mask |= lost.disk_bit
        return mask

    def _holders(self, voters: tuple[Voter, ...], entry: LoggedBatch) -> list[int]:
        held = entry.durable_disks & self._mask(voters)
        return [v.key.id for v in voters if held & self.models[v.key.id].disk_bit]
