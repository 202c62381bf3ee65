"""Operators: voter changes, upgrades and snapshots, requested from the leader with retries.

Each command is a separate task, so two of them may conflict. No operator takes a step that leaves a
voter set without a recoverable majority (`fault_budget`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.raft.alter import AddStep, AlterVotersError, RemoveStep, Step, plan
from quorate.raft.inputs import CleanTo, Resign, UpgradeKRaftVersion
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Response,
)
from quorate.raft.ready import Refused
from quorate.raft.roles import Leader
from quorate.replica.replica import Committed
from quorate.sim.plan.plan import INVALID_REQUESTS, LEADER
from quorate.sim.prng import Prng
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.fault_budget import FaultBudget, place_of
from quorate.sim.world.invalid_requests import ANSWER_MS, VoterRequest, make
from quorate.sim.world.network import Network
from quorate.sim.world.observable import CLUSTER_ID
from quorate.sim.world.process import Process

_PAUSE_US: Final = 300_000
_TRIES: Final = 12
_LATE_US: Final = 30_000_000
"""How long an unanswered voter change counts as possible."""
_FIRST_TOKEN: Final = 1 << 40
"""The first token of operators' proposals, distinct from those of clients."""

Want = Callable[[Process], Step | None]
"""The next step for the present leader; None: nothing is left to do."""


class Operators:
    def __init__(self, world: SimulatedCluster, network: Network, budget: FaultBudget) -> None:
        self._world = world
        self._network = network
        self._budget = budget
        self._rng = Prng(world.plan.seed, "operators")
        self._token = _FIRST_TOKEN
        self.done = 0
        """The number of voter changes that were answered with NONE."""

    def leader(self) -> Process | None:
        """The leader in the newest epoch."""
        return self._world.leader()

    def node(self, node_id: int) -> Process | None:
        return self.leader() if node_id == LEADER else self._world.processes[node_id]

    # -- commands -----------------------------------------------------------------------------
    def add(self, node_id: int) -> None:
        process = self.node(node_id)
        if process is not None and process.can_be_voter:
            self._run(lambda leader: _add(leader, process), _TRIES)

    def add_unacked(self, node_id: int) -> None:
        """Add a voter without waiting for the commit of the new voter set (KIP-1186)."""
        process = self.node(node_id)
        if process is not None and process.can_be_voter:
            self._run(lambda leader: _add(leader, process), _TRIES, acked=False)

    def remove(self, node_id: int) -> None:
        process = self.node(node_id)
        if process is not None:
            self._run(lambda leader: _remove(leader, process.id), _TRIES)

    def replace(self, process: Process) -> None:
        """The process has a new disk: remove its old directory, then add the new one."""
        self._run(lambda leader: _remove_old(leader, process) or _add(leader, process), 2 * _TRIES)

    def alter(self, mask: int) -> None:
        """Change voters until this voter set is reached (AlterQuorum)."""
        wanted = [p for p in self._world.processes.values() if mask >> p.id & 1 and p.can_be_voter]
        if wanted:
            self._run(lambda leader: self._next_step(leader, wanted), 3 * _TRIES)

    def _next_step(self, leader: Process, wanted: list[Process]) -> Step | None:
        voters = leader.core.voters.voters or ()
        live = [p.key for p in self._world.running]
        try:
            steps = plan((v.key for v in voters), (p.key for p in wanted), leader.id, live)
        except AlterVotersError:
            return None
        return steps[0] if steps else None

    def upgrade(self) -> None:
        """Request kraft.version 1, once each voter has reported the disk that it has now."""
        leader = self.leader()
        if leader is not None and self._knows_the_disks(leader):
            self._token += 1
            leader.post(UpgradeKRaftVersion(self._token, 1))

    def insist(self, times: int, period_ms: int) -> None:
        """Request the upgrade repeatedly until it is done."""
        world, leader = self._world, self.leader()
        if times == 0 or world.in_liveness_phase:
            return
        if leader is not None and leader.view.kraft_version > 0:
            return
        self.upgrade()
        world.push(world.now_us + period_ms * 1000, self.insist, times - 1, period_ms)

    def _knows_the_disks(self, leader: Process) -> bool:
        """Whether the leader knows of no voter with a disk that was exchanged since."""
        role = leader.core.state.role
        known = role.volatile_voters if isinstance(role, Leader) else None
        return known is None or all(
            voter.key.directory_id in (ZERO_UUID, self._world.processes[voter.key.id].directory_id)
            for voter in known.voters
        )

    def snapshot(self, node_id: int) -> None:
        process = self.node(node_id)
        if process is not None:
            process.want_snapshot()

    def clean(self, node_id: int) -> None:
        """Remove all snapshots before a random one."""
        process = self.node(node_id)
        if process is None or process.replica is None:
            return
        known = [s for s in process.core.snapshots if s.offset <= process.replica.applied.offset]
        if known:
            process.post(CleanTo(self._rng.pick(known)))

    def resign(self, node_id: int) -> None:
        process = self.node(node_id)
        if process is not None and process.replica is not None:
            process.post(Resign(process.core.epoch))

    def err(self, node_id: int, how: int) -> None:
        """Send an invalid request, once."""
        invalid_request = make(self._world, INVALID_REQUESTS[how], node_id)
        if invalid_request is None:
            return
        request, to = invalid_request
        if self.may_ask(request):
            self._ask(to, request, lambda response: None)

    def may_ask(self, request: VoterRequest) -> bool:
        """Whether the quorum keeps a recoverable majority after this change."""
        world, budget = self._world, self._budget
        adds = isinstance(request, AddVoterRequest)
        number = budget.begin("add" if adds else "remove", request.voter)
        fine = all(budget.may_become(keys) for keys in budget.sets())
        process = world.processes.get(request.voter.id)
        if isinstance(request, AddVoterRequest) and process is not None:
            found = place_of(request.listeners) == process.place
            fine = fine and (found or budget.may_lose(process))
        budget.settle(number)
        return fine

    def settle(self, outcome: Committed | Refused) -> None:
        """The outcome of an upgrade."""
        if isinstance(outcome, Committed):
            self._world.fault("upgraded", (outcome.end_offset,))

    # -- one task -----------------------------------------------------------------------------
    def _run(self, want: Want, tries: int, *, acked: bool = True) -> None:
        """Take one step after another until nothing is left to do."""
        world = self._world
        if tries == 0 or world.in_liveness_phase:
            return
        leader = self.leader()
        step = None
        again = partial(self._run, want, tries - 1, acked=acked)
        if leader is not None:
            step = want(leader)
            if step is None:
                return
        if leader is None or step is None or not self._may_take(leader, step):
            world.push(world.now_us + _PAUSE_US, again)
            return
        self.take(leader, step, lambda response: self._pause(again), acked=acked)

    def _pause(self, again: Callable[[], None]) -> None:
        pause = int(self._rng.random() * _PAUSE_US)
        self._world.push(self._world.now_us + pause, again)

    def _may_take(self, leader: Process, step: Step) -> bool:
        return self.may_ask(self._request(step)) and leader.view.kraft_version > 0

    def take(
        self,
        leader: Process,
        step: Step,
        done: Callable[[Response | None], None],
        *,
        acked: bool = True,
    ) -> None:
        """Request one step; `done` receives the response, None where there was none."""
        self._world.fault("asked", (str(step), leader.id))
        self._ask(leader.id, self._request(step, acked), done)

    def _request(self, step: Step, acked: bool = True) -> VoterRequest:
        if isinstance(step, AddStep):
            listeners = self._world.processes[step.voter.id].listeners
            return AddVoterRequest(CLUSTER_ID, step.voter, listeners, ANSWER_MS, acked)
        return RemoveVoterRequest(CLUSTER_ID, step.voter)

    def _ask(
        self,
        to: int,
        request: VoterRequest,
        done: Callable[[Response | None], None],
    ) -> None:
        world, budget = self._world, self._budget
        adds = isinstance(request, AddVoterRequest)
        number = budget.begin("add" if adds else "remove", request.voter)
        is_final = not isinstance(request, AddVoterRequest) or request.ack_when_committed

        def answered(response: Response | None) -> None:
            assert response is None or isinstance(response, AddVoterResponse | RemoveVoterResponse)
            if response is not None and response.error == ErrorCode.NONE:
                self.done += 1
            if response is not None and response.error == ErrorCode.NONE and is_final:
                budget.settle(number)
            else:
                world.push(world.now_us + _LATE_US, budget.settle, number)
            done(response)

        self._network.ask(to, request, ANSWER_MS, answered)


def _voter(leader: Process, node_id: int) -> ReplicaKey | None:
    for voter in leader.core.voters.voters or ():
        if voter.key.id == node_id:
            return voter.key
    return None


def _add(leader: Process, process: Process) -> Step | None:
    return None if _voter(leader, process.id) is not None else AddStep(process.key)


def _remove(leader: Process, node_id: int) -> Step | None:
    key = _voter(leader, node_id)
    return None if key is None else RemoveStep(key)


def _remove_old(leader: Process, process: Process) -> Step | None:
    key = _voter(leader, process.id)
    return None if key is None or key == process.key else _remove(leader, process.id)
