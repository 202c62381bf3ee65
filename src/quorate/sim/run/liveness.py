"""The liveness phase at the end of a world: all faults end, every process starts, and progress is due.

Within bounded time there must be a leader, every voter and observer must catch up, and every client
must receive a response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.raft.alter import RemoveStep, plan
from quorate.raft.messages import AddVoterRequest
from quorate.raft.roles import Leader
from quorate.raft.values import Voter
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.process import Process
from quorate.sim.world.security_requests import overdue
from quorate.sim.world.world import World

_LOOK_US: Final = 100_000
_STEP_US: Final = 400_000
_PATIENCE: Final = 40
"""The minimum time limit of the phase, as a multiple of the longest timeout."""
_LEAST_MS: Final = 40_000
_AFTER_A_LOSS_US: Final = 10_000_000


class LivenessPhase:
    def __init__(self, world: World) -> None:
        self._world = world
        timing = world.plan.timing
        longest = max(
            timing.election_timeout_ms,
            timing.fetch_timeout_ms,
            timing.election_backoff_max_ms,
            world.plan.clients.timeout_ms,
        )
        self._patience_us = 1000 * max(_LEAST_MS, _PATIENCE * longest)
        self._deadline_us = world.now_us + self._patience_us + self._catching_up_us()
        self._busy = False
        self._is_renewed = False
        self._began_us = world.now_us

    def _catching_up_us(self) -> int:
        """An upper bound of the time to catch up: one record in each response."""
        plan = self._world.plan
        ends = [process.durable.end_offset for process in self._world.processes.values()]
        on_its_way = 2 * plan.network.delay_us + plan.network.jitter_us
        return (max(ends) - min(ends)) * (on_its_way + plan.disk.sync_us + plan.timing.cpu_us)

    def run(self) -> None:
        """Run until all conditions hold. Raises ViolationError after the time limit.

        A world whose majority was put back on old disks runs for `_AFTER_A_LOSS_US` instead: a node
        may refuse to go on.
        """
        world = self._world
        self._heal()
        if world.is_rolled_back:
            world.run_until(self._began_us + _AFTER_A_LOSS_US)
        else:
            self._wait()
        world.liveness_us = world.now_us - self._began_us

    def _heal(self) -> None:
        """End all faults and start every process."""
        world = self._world
        world.in_liveness_phase = True
        world.network.heal()
        world.clients.stop()
        world.controller_clients.stop()
        world.brokers.stop()
        world.transactions.stop()
        for process in world.processes.values():
            self._repair(process)
        world.liveness_began()

    def _wait(self) -> None:
        world = self._world
        next_step = self._began_us + _STEP_US
        while (missing := self._missing()) is not None:
            if world.now_us > self._deadline_us:
                raise ViolationError("liveness", missing)
            if world.now_us >= next_step:
                self._tidy()
                next_step = world.now_us + _STEP_US
            world.run_until(world.now_us + _LOOK_US)

    def _repair(self, process: Process) -> None:
        """End the faults of the process. Recovery reads a damaged disk, which is replaced if refused."""
        world = self._world
        process.disk.repair()
        process.machine.rest()
        process.cpu_us = world.plan.timing.cpu_us
        process.resume()
        process.down_ms = 0  # a process that is shutting down restarts at once
        if process.replica is not None and (process.damage is not None or process.is_astray):
            world.faults.kill(process)
        if process.replica is None:
            world.faults.start(process)

    # -- conditions ---------------------------------------------------------------------------
    def _missing(self) -> str | None:
        """The first condition that does not hold yet; None: all hold."""
        world = self._world
        leader = world.leader()
        if leader is None:
            return "there is no leader"
        core = leader.core
        for process in world.processes.values():
            if process.replica is None:
                if not self._may_be_down(process):
                    return f"node {process.id} is down"
                continue
            own = process.core
            if own.epoch != core.epoch or own.leader.leader_id != leader.id:
                return f"node {process.id} does not follow node {leader.id} in epoch {core.epoch}"
            if own.log_end != core.log_end or own.high_watermark != core.log_end.offset:
                return (
                    f"node {process.id} stands at {own.log_end.offset} with high watermark "
                    f"{own.high_watermark}, leader {leader.id} at {core.log_end.offset}"
                )
            if process.replica.applied.offset != core.log_end.offset:
                return f"node {process.id} has applied {process.replica.applied.offset} only"
        waiting = self._waiting(leader)
        if waiting is not None:
            return waiting
        gone = self._gone(leader)
        if gone is not None:
            return f"voter {gone} has lost its disk and is still a voter"
        if not world.plan.thorough:
            return None
        return self._wrongly_described(leader) or self._outside(leader)

    def _waiting(self, leader: Process) -> str | None:
        """A client without a response, or a broker or partition that is not in service."""
        world = self._world
        pending = world.clients.pending
        if pending:
            return f"client {pending[0].client} waits for {pending[0]}"
        waiting = world.controller_clients.pending
        if waiting:
            return f"a client of the controllers waits: {waiting[0]}"
        if leader.controller is None:
            return None
        image = leader.controller.node.image
        return world.brokers.missing(image) or overdue(image, leader.now.wall_ms)

    def _outside(self, leader: Process) -> str | None:
        """A node that should have joined with auto-join and has not.

        Nodes that cannot join are left out: its software or the leader's may be too old, and the
        leader may track fewer observers than there are.
        """
        core = leader.core
        if self._world.plan.limits.max_observers < len(self._world.processes):
            return None
        version, voters = core.voters.kraft_version, core.voters.voters or ()
        keys = {voter.key for voter in voters}
        for process in self._world.running:
            config = process.core.state.config
            may = version > 0 and config.auto_join and config.can_be_voter
            can = config.min_kraft_version <= version <= config.max_kraft_version
            if not (may and can) or process.key in keys:
                continue
            join = AddVoterRequest(config.cluster_id, process.key, config.listeners, 0, False)
            if self._world.network.can_say(process, leader, join):
                return f"node {process.id} is to join by itself, and is no voter"
        return None

    def _wrongly_described(self, leader: Process) -> str | None:
        """A voter whose entry in the voter set is out of date.

        Software that does not support the kraft.version in force cannot update its entry: the
        update is refused, as in Kafka.
        """
        version = leader.core.voters.kraft_version
        for voter in self._reported(leader):
            process = self._world.processes[voter.key.id]
            if process.replica is None:
                continue
            config = process.replica.config
            low, high = config.min_kraft_version, config.max_kraft_version
            if not low <= version <= high:
                continue
            key = ReplicaKey(process.id, process.directory_id)
            if voter != Voter(key, process.listeners, low, high):
                where = "in the voter set" if version else "known to the leader"
                real = f"{key} at {process.listeners}, kraft.version {low} to {high}"
                return f"voter {voter.key} is {where} as {voter}, and it is {real}"
        return None

    def _reported(self, leader: Process) -> Sequence[Voter]:
        """The voters of the log; at kraft.version 0 as they reported themselves."""
        voters = leader.core.voters
        if voters.kraft_version > 0:
            return voters.voters or ()
        role = leader.core.state.role
        known = role.volatile_voters if isinstance(role, Leader) else None
        return () if known is None else known.voters

    def _named(self, leader: Process) -> list[tuple[Voter, Process]]:
        """The voters of the log, each with the process that has its id."""
        voters = leader.core.voters
        if voters.kraft_version == 0:
            return []
        return [(v, self._world.processes[v.key.id]) for v in voters.voters or ()]

    def _may_be_down(self, process: Process) -> bool:
        """Whether the process may stay down: a static voter with a damaged disk cannot be replaced."""
        return process.is_refused and not self._world.budget.may_replace(process)

    def _gone(self, leader: Process) -> object | None:
        """A voter whose process has another disk now."""
        for voter, process in self._named(leader):
            if process.directory_id != voter.key.directory_id or process.replica is None:
                return voter.key
        return None

    def _tidy(self) -> None:
        """Replace refused disks, and remove voters whose disks were replaced."""
        world = self._world
        for process in world.processes.values():
            if process.is_refused and world.budget.may_replace(process):
                process.wipe()
                world.wiped(process)
                world.faults.start(process)
        leader = world.leader()
        is_late = world.plan.wire and 4 * (world.now_us - self._began_us) > self._patience_us
        if leader is None and is_late and not self._is_renewed:
            self._renew()
        if leader is None or self._busy:
            return
        if is_late:
            self._bring_back(leader)
        gone = self._gone(leader)
        if gone is None:
            return
        voters = [voter.key for voter in leader.core.voters.voters or ()]
        target = [key for key in voters if key != gone]
        try:
            steps = plan(voters, target, leader.id)
        except QuorateError:
            return
        if steps and isinstance(steps[0], RemoveStep):
            self._busy = True
            world.operators.take(leader, steps[0], lambda response: self._free())

    def _renew(self) -> None:
        """Restart all processes with software that supports pre-votes.

        Without pre-votes, an unreachable voter with a short log may end every epoch before a record
        of it commits (Raft dissertation, section 9.6; KIP-996).
        """
        world = self._world
        self._is_renewed = True
        world.fault("software renewed", ())
        world.network.renew_software()
        for process in world.running:
            world.faults.kill(process)
            world.faults.start(process)

    def _bring_back(self, leader: Process) -> None:
        """Replace the disks of observers whose epoch is later than that of every voter.

        A removed voter that does not know of its removal starts elections, which raise the epoch of
        observers without pre-votes. The leader answers UNKNOWN_LEADER_EPOCH to their Fetch, and as
        in Kafka it does not adopt their epoch. Only an operator can resolve that.
        """
        core = leader.core
        voters = core.voters
        if voters.kraft_version == 0 or core.high_watermark != core.log_end.offset:
            return
        ids = {voter.key.id for voter in voters.voters or ()}
        for process in self._world.running:
            if process.id not in ids and process.core.epoch > core.epoch:
                self._world.fault("stranded observer wiped", (process.id,))
                self._world.faults.kill(process)
                process.wipe()
                self._world.wiped(process)
                self._world.faults.start(process)

    def _free(self) -> None:
        self._busy = False
