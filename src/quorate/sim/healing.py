"""The end of a world: all faults stop, everybody comes back, and progress is owed.

A leader within bounded time, every voter and observer caught up, every client answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.raft.alter import RemoveStep, plan
from quorate.raft.messages import AddVoterRequest
from quorate.raft.roles import Leader
from quorate.raft.values import Voter
from quorate.sim.observe import Violation
from quorate.sim.process import Process

if TYPE_CHECKING:
    from quorate.sim.world import World

_LOOK_US: Final = 100_000
_STEP_US: Final = 400_000
_PATIENCE: Final = 40
"""Times the longest of the timeouts, at the least."""
_LEAST_MS: Final = 40_000


class Healing:
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
        self.took_us = 0

    def _catching_up_us(self) -> int:
        """Until who is the furthest behind has all, were each answer to bring it one record."""
        plan = self._world.plan
        ends = [process.durable.end_offset for process in self._world.processes.values()]
        on_its_way = 2 * plan.network.delay_us + plan.network.jitter_us
        return (max(ends) - min(ends)) * (on_its_way + plan.disk.sync_us + plan.timing.cpu_us)

    def run(self) -> None:
        """Until all that is owed is done; raises Violation when it takes too long."""
        world = self._world
        world.network.heal()
        world.clients.stop()
        for process in world.processes.values():
            self._mend(process)
        world.healed()
        next_step = self._began_us + _STEP_US
        while (missing := self._missing()) is not None:
            if world.now_us > self._deadline_us:
                raise Violation("liveness", missing)
            if world.now_us >= next_step:
                self._tidy()
                next_step = world.now_us + _STEP_US
            world.run_until(world.now_us + _LOOK_US)
        self.took_us = world.now_us - self._began_us

    def _mend(self, process: Process) -> None:
        """Its faults stop; a disk with damage is looked at by recovery, and replaced if refused."""
        world = self._world
        process.drive.mend()
        process.machine.rest()
        process.cpu_us = world.plan.timing.cpu_us
        process.go_on()
        process.down_ms = 0  # who is about to stop, as it was told, comes back at once
        if process.replica is not None and (process.damage is not None or process.is_astray):
            world.faults.kill(process)
        if process.replica is None:
            world.faults.start(process)

    # -- what is owed -------------------------------------------------------------------------
    def _missing(self) -> str | None:
        """What is not as it should be yet."""
        world = self._world
        leader = world.leader()
        if leader is None:
            return "nobody leads"
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
        pending = world.clients.pending
        if pending:
            return f"client {pending[0].client} waits for {pending[0]}"
        gone = self._gone(leader)
        if gone is not None:
            return f"voter {gone} has lost its disk and is still a voter"
        if not world.plan.thorough:
            return None
        return self._mistaken(leader) or self._outside(leader)

    def _outside(self, leader: Process) -> str | None:
        """Who is to join by itself, can (its software and the leader's may be too old, and the
        leader may have room for fewer observers than there are), and has not."""
        core = leader.core
        if self._world.plan.limits.max_observers < len(self._world.processes):
            return None
        version, voters = core.voters.kraft_version, core.voters.voters or ()
        keys = {voter.key for voter in voters}
        for process in self._world.running:
            config = process.core._state.config
            may = version > 0 and config.auto_join and config.can_be_voter
            can = config.min_kraft_version <= version <= config.max_kraft_version
            if not (may and can) or process.key in keys:
                continue
            join = AddVoterRequest(config.cluster_id, process.key, config.listeners, 0, False)
            if self._world.network.can_say(process, leader, join):
                return f"node {process.id} is to join by itself, and is no voter"
        return None

    def _mistaken(self, leader: Process) -> str | None:
        """A voter that stands in the voter set with what is not so (any more).

        One whose software is too old for the kraft.version in force cannot say so: its update is
        refused, as in Kafka.
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
        """The voters as the log has them; at kraft.version 0 as they reported themselves."""
        voters = leader.core.voters
        if voters.kraft_version > 0:
            return voters.voters or ()
        role = leader.core._state.role
        known = role.volatile_voters if isinstance(role, Leader) else None
        return () if known is None else known.voters

    def _named(self, leader: Process) -> list[tuple[Voter, Process]]:
        """The voters that the log names, and the process that has the id of each."""
        voters = leader.core.voters
        if voters.kraft_version == 0:
            return []
        return [(v, self._world.processes[v.key.id]) for v in voters.voters or ()]

    def _may_be_down(self, process: Process) -> bool:
        """A static voter whose disk is spoiled cannot be replaced."""
        return process.is_refused and not self._world.ledger.may_replace(process)

    def _gone(self, leader: Process) -> object | None:
        """A voter that is no process any more."""
        for voter, process in self._named(leader):
            if process.directory_id != voter.key.directory_id or process.replica is None:
                return voter.key
        return None

    def _tidy(self) -> None:
        """Give a new disk to who needs one, and remove voters that are gone."""
        world = self._world
        for process in world.processes.values():
            if process.is_refused and world.ledger.may_replace(process):
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
        """Let everybody begin anew, with software that knows pre-votes.

        Without them a voter that cannot be reached and lacks most of the log may end every other
        one's epoch before anything of it is committed (Raft, section 9.6; KIP-996).
        """
        world = self._world
        self._is_renewed = True
        world.fault("software renewed", ())
        world.network.renew_software()
        for process in world.running:
            world.faults.kill(process)
            world.faults.start(process)

    def _bring_back(self, leader: Process) -> None:
        """Give a new disk to observers whose epoch no voter knows.

        A removed voter that has not heard of it, and whose peers know no pre-votes, takes them
        there by asking for their votes. The leader answers UNKNOWN_LEADER_EPOCH to their Fetch,
        and as in Kafka it does not follow them: only an operator can help.
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
