"""The observer that runs all checks. A step in which little happened costs little."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.raft.inputs import Received, UpgradeKRaftVersion
from quorate.raft.roles import Follower, Leader, Resigned
from quorate.replica.disk_jobs import (
    Installed,
    InstallRefused,
    SnapshotFailed,
    SnapshotWritten,
    Surveyed,
    WriteSnapshot,
)
from quorate.replica.replica import Submit
from quorate.sim.checks.auto_join import AutoJoinCheck
from quorate.sim.checks.check_quorum import CheckQuorumMajorityCheck
from quorate.sim.checks.clients import ClientCheck
from quorate.sim.checks.cluster_id import ForeignClusterCheck
from quorate.sim.checks.commits import CommitCheck
from quorate.sim.checks.control_records import (
    check_control_in_force,
    check_new_voter_changes,
    check_snapshot_control,
)
from quorate.sim.checks.describe_quorum import DescribeQuorumCheck
from quorate.sim.checks.disk_stalls import DiskStallCheck
from quorate.sim.checks.elections import (
    ElectionCheck,
    check_electable,
    check_installed,
    check_installing_replica_waits,
    check_no_candidate_beside_leader,
)
from quorate.sim.checks.endpoints import EndpointCheck
from quorate.sim.checks.epoch_notifications import EpochNotificationCheck
from quorate.sim.checks.fetch_responses import FetchResponseCheck
from quorate.sim.checks.history import ClusterHistory
from quorate.sim.checks.kraft_version import KRaftUpgradeCheck
from quorate.sim.checks.leader_duties import LeaderDutyCheck
from quorate.sim.checks.log_lookups import check_batch_borders, check_fetch_positions
from quorate.sim.checks.message_checks import MessageChecks
from quorate.sim.checks.orphan_snapshots import OrphanSnapshotCheck
from quorate.sim.checks.proposals import ProposalCheck
from quorate.sim.checks.recovery import recover
from quorate.sim.checks.replica_model import UNKNOWN, ReplicaModel
from quorate.sim.checks.restored_disks import RestoredDiskCheck
from quorate.sim.checks.retention import RetentionCheck, check_age
from quorate.sim.checks.retry_backoff import RetryBackoffCheck
from quorate.sim.checks.state_machines import (
    StateMachineCheck,
    check_batch_times,
    check_machine_follows,
)
from quorate.sim.checks.times import FOREVER
from quorate.sim.checks.voter_changes import VoterChangeCheck
from quorate.sim.checks.wakeups import check_election_timers, check_nothing_left, check_wake_time
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.raft.values import Voter
    from quorate.replica.replica import Effects, Input
    from quorate.storage.api import Recovered

RECHECK_PERIOD: Final = 32
"""One step in so many is stepped a second time: this check costs the most."""


class Checks(Observer):
    """All checks of a world; raises ViolationError at the event that violates a check."""

    def __init__(self) -> None:
        self.history = ClusterHistory()
        self.models: dict[int, ReplicaModel] = {}
        self.commits = CommitCheck(self.history, self.models)
        self.elections = ElectionCheck(self.history)
        self.leader_duties = LeaderDutyCheck()
        self.describe_quorum = DescribeQuorumCheck()
        self.state_machines = StateMachineCheck(self.history)
        self.clients = ClientCheck(self.history)
        self.proposals = ProposalCheck(self.history)
        self.voter_changes = VoterChangeCheck()
        self.kraft_upgrades = KRaftUpgradeCheck(self.voter_changes)
        self.epoch_notifications = EpochNotificationCheck()
        self.endpoints = EndpointCheck()
        self.check_quorum = CheckQuorumMajorityCheck()
        self.retry_backoff = RetryBackoffCheck()
        self.restored_disks = RestoredDiskCheck()
        self.fetch_responses = FetchResponseCheck()
        self.auto_join = AutoJoinCheck()
        self.orphan_snapshots = OrphanSnapshotCheck()
        self.retention = RetentionCheck()
        self.foreign_cluster = ForeignClusterCheck()
        self._steps = 0
        self.disk_stalls = DiskStallCheck()
        self._states: dict[int, RaftState] = {}
        """What each running core has in memory: read, never written."""
        self._disks = 0
        self.messages = MessageChecks(
            self.history,
            self.elections,
            self.leader_duties,
            self.clients,
            self.voter_changes,
            self.fetch_responses,
            self.foreign_cluster,
        )

    # -- incarnations of a node ---------------------------------------------------------------
    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        model = self.models.get(process.id)
        if model is None or model.key.directory_id != process.directory_id:
            if model is not None:
                self.commits.retired.append(model)
            model = self.models[process.id] = ReplicaModel(process, self.history, 1 << self._disks)
            self._disks += 1
        self.commits.disks_changed()
        core = process.core
        self._states[process.id] = core.state
        log = recovered.log
        first = log.snapshot_control if log.snapshots and log.snapshots[-1].offset == 0 else None
        before = model.initial_voters
        model.initial_voters = (first and first.voters) or core.state.controls.static_voters.voters
        model.initial_kraft_version = 0 if first is None else first.kraft_version
        recover(model, process, recovered)
        self.elections.recovered(model, model.initial_voters or before)
        self.proposals.process_started(model)
        self.kraft_upgrades.process_started(model)
        self.voter_changes.process_started(model, core.state.config)
        self.epoch_notifications.process_started(model)
        self.endpoints.process_started(model)
        self.retry_backoff.process_started(model)
        self.restored_disks.process_started(model)
        self.foreign_cluster.process_started(model)
        self.messages.process_started(model)
        self.disk_stalls.process_started(model)
        self.retention.process_started(model, process.replica)
        self.fetch_responses.process_started(model, core.state)
        self.orphan_snapshots.process_started(model, process.storage.disk)

    def restored(self, process: SimulatedNode) -> None:
        """A restored copy may have less. The fault budget allows that only where no quorum needs it."""
        model = self.models[process.id]
        model.restored = True
        model.votes_forgotten_to = max(model.votes_forgotten_to, model.vote.epoch)

    def durable(self, process: SimulatedNode, seq: int) -> None:
        model = self.models[process.id]
        saved = model.writes_persisted(seq)
        if saved:
            self.elections.became_durable(model, saved)

    # -- steps --------------------------------------------------------------------------------
    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        node_id = process.id
        model = self.models[node_id]
        state = self._states[node_id]
        alone = len(happened) == 1
        for item in happened:
            if isinstance(
                item, Received | Installed | InstallRefused | Submit | UpgradeKRaftVersion
            ):
                self._input_taken(model, item, effects, state, alone)
            if isinstance(
                item, Surveyed | Installed | InstallRefused | SnapshotWritten | SnapshotFailed
            ):
                self._disk_reported(model, process, item, effects if alone else None)
        before = model.tip
        if effects.jobs:
            model.jobs_submitted(effects.jobs)
        if state.election is not model.election:
            if alone:  # after several it may have followed, and lost, a leader since
                self.leader_duties.vote_given(model, state)
            self.elections.state_changed(model, state.election, happened)
        if state.high_watermark != model.high_watermark:
            self.commits.high_watermark_moved(
                model, state.high_watermark, before.voters or model.initial_voters
            )
        if model.tip is not before and (
            model.tip.voters is not before.voters or model.tip.kraft_version != before.kraft_version
        ):
            self._voters_changed(model, before.voters or model.initial_voters, state)
        check_electable(model, effects, state)
        if effects.sends or effects.answers:
            self.messages.sent(model, effects, state)
        if process.machine.trail or effects.jobs or effects.outcomes:
            self._results(model, process, effects, state)
        self.disk_stalls.after_step(model, happened, effects, state)
        check_installed(model, happened, effects, state)
        self._role(model, process, happened, effects, state)
        self.foreign_cluster.after_step(model, effects, state)
        self.epoch_notifications.after_step(model, happened, effects, state)
        self.endpoints.after_step(model, happened, effects, state)
        self.retry_backoff.after_step(model, happened, effects, state)
        self.auto_join.after_step(model, happened, effects, state)
        self.orphan_snapshots.after_step(model, effects, state)
        self.voter_changes.after_step(model, effects, state)
        self._replica(model, process, effects, state)
        check_wake_time(model, effects, state)
        self._steps += 1
        if self._steps % RECHECK_PERIOD == 0:
            check_nothing_left(model, process, effects, state)
            check_election_timers(model, state)

    def _disk_reported(
        self,
        model: ReplicaModel,
        process: SimulatedNode,
        item: Surveyed | Installed | InstallRefused | SnapshotWritten | SnapshotFailed,
        effects: Effects | None,
    ) -> None:
        """Check a disk's report. `effects`: of a step in which nothing else happened."""
        if not isinstance(item, Surveyed):
            self.orphan_snapshots.check_parts(model, process.storage.disk)
            model.log_start = UNKNOWN
        if not isinstance(item, InstallRefused):
            self.retention.disk_reported(model, item)
        if isinstance(item, Surveyed) and effects is not None and not effects.is_over:
            self.retention.check_survey(model, item, effects, process)

    def _role(
        self,
        model: ReplicaModel,
        process: SimulatedNode,
        happened: Sequence[Input],
        effects: Effects,
        state: RaftState,
    ) -> None:
        role = state.role
        if isinstance(role, Leader):
            if not effects.stopped:
                self.restored_disks.after_step(model, happened, effects, state)
                self.leader_duties.after_leader_step(model, state)
                self.check_quorum.after_step(model, role)
                self.describe_quorum.after_step(model, role, state, process.core.describe)
            model.leader_known_until_ms, model.was_leader = FOREVER, True
            return
        if model.was_leader and isinstance(role, Resigned):
            self.leader_duties.resigned(model, happened, effects, state)
        self.restored_disks.leadership_ended(model, effects, state)
        self.leader_duties.after_other_step(model, state)
        check_installing_replica_waits(model, role)
        check_no_candidate_beside_leader(model, state)
        model.leader_known_until_ms = 0
        if isinstance(role, Follower) and role.has_fetched:
            model.leader_known_until_ms = role.fetch_deadline
        model.was_leader = False

    def _replica(
        self, model: ReplicaModel, process: SimulatedNode, effects: Effects, state: RaftState
    ) -> None:
        replica = process.replica
        if replica is None:
            return
        if state.log.start_offset != model.log_start and not effects.is_over:
            is_empty = model.tip.end == state.log.start_offset
            model.log_start = UNKNOWN if is_empty else state.log.start_offset
            check_fetch_positions(model, state.log)
        if model.newly_appended and not effects.is_over:
            check_batch_borders(model, state.log)
        trail = process.machine.trail
        self.retention.after_step(model, effects, replica, state.now)
        self.retention.check_bytes_applied(model, effects, replica.applier, trail, self.history)
        self.fetch_responses.after_step(model, effects, replica, state)
        self.proposals.after_step(model, effects, replica, state.now)
        leading = replica.leading_epoch
        if leading is None and not effects.is_over:
            check_machine_follows(model, process.machine.led)
        if leading != model.machine_epoch or (
            leading is not None and not isinstance(state.role, Leader)
        ):
            self.state_machines.leadership_reported(
                model, leading, replica.applied.offset, state.role
            )

    def _input_taken(
        self, model: ReplicaModel, item: Input, effects: Effects, state: RaftState, alone: bool
    ) -> None:
        """What must be known of the messages that the step took."""
        if isinstance(item, Received):
            self.messages.received(model, item, effects, state, alone)
        elif isinstance(item, Installed):
            model.installed(item.snapshot_id)
        elif isinstance(item, Submit):
            self.proposals.proposal_received(model, item, state.now)
        elif isinstance(item, UpgradeKRaftVersion):
            self.kraft_upgrades.request_received(model, item, state)
        else:
            model.installing = None

    def _results(
        self, model: ReplicaModel, process: SimulatedNode, effects: Effects, state: RaftState
    ) -> None:
        """What was applied, what clients receive, and what a snapshot contains."""
        trail = process.machine.trail
        if trail:
            self.state_machines.applied(model, trail)
            self.state_machines.check_time(model, process.machine.newest)
        if isinstance(state.role, Leader) and effects.jobs:
            check_batch_times(model, effects, process.now.wall_ms)
        if effects.outcomes:
            self.clients.outcomes_reported(model, effects.outcomes)
            replica = process.replica
            assert replica is not None
            others = self.kraft_upgrades.outcomes_reported(
                model, effects, replica.applied.offset, state
            )
            self.proposals.outcomes_reported(model, others, replica, is_over=effects.is_over)
        for job in effects.jobs:
            if isinstance(job, WriteSnapshot):
                entry = model.committed_snapshot(job.snapshot_id)
                check_age(model, entry, job)
                check_snapshot_control(model, entry, job)

    def _voters_changed(
        self, model: ReplicaModel, before: tuple[Voter, ...], state: RaftState
    ) -> None:
        """The newest Voters record of the log is in force, and no record that was truncated."""
        model.received.voters_named(before, model.voters)
        newest = model.tip.voters_entry
        if newest is not None and newest in model.new_voter_batches:
            self.voter_changes.voters_written(model, newest)
        model.new_voter_batches.clear()
        check_new_voter_changes(model, state.now, state.config.limits.caught_up_within_ms)
        check_control_in_force(model, state)

    # -- clients and the end ------------------------------------------------------------------
    def invoked(self, op: ClientOp) -> None:
        self.clients.ops.append(op)

    def _finish_nodes(self, world: ObservableWorld) -> None:
        for process in world.nodes.values():
            if process.replica is not None:
                model, state = self.models[process.id], self._states[process.id]
                self.proposals.finish(model, state.now)
                self.kraft_upgrades.finish(model, state.now)
                self.orphan_snapshots.check_parts(model, process.storage.disk)

    def finished(self, world: ObservableWorld) -> None:
        committed = self.history.committed
        for process in world.nodes.values():
            model = self.models.get(process.id)
            if model is None or process.replica is None:
                continue
            if model.committed_tip is committed:
                if not self.commits.is_on_majority(model.voters, committed):
                    raise ViolationError(
                        "durable majority", f"at the end {committed} is not held by a majority"
                    )
                if process.replica.applied.offset == committed.end:
                    self._finish_nodes(world)
                    self.clients.finish(process.machine.values, world.now_us)
                    return
        raise ViolationError("liveness", f"at the end no replica has applied {committed}")
