"""Clients of a key-value store: each sends one operation at a time to the node that it takes for the leader.

A response may be lost, or the leader with the request in its log. The client then sends the same
operation again, to the same node or another one, and the state machine performs it once. Some
clients abandon an operation after a timeout, and its outcome stays unknown.
"""

from __future__ import annotations

from typing import Final

from quorate.raft.ready import Refused
from quorate.replica.replica import Committed, Submit
from quorate.sim.prng import Prng
from quorate.sim.world.client_loop import MAX_PATIENCE, RETRY_US, ClientLoop, LoopClient
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.network import Network
from quorate.sim.world.observable import OUTSIDE
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.process import Process
from quorate.sim.world.state_machine import encode_nothing, encode_op

_NO_NODE: Final = -1


class Client(LoopClient):
    """`op` is the operation that it waits for."""

    def __init__(self, seed: int, client_id: int, target: int) -> None:
        super().__init__(client_id, Prng(seed, "client", client_id), target)
        self.beside = Prng(seed, "beside", client_id)
        """The random stream of additional records and Submits."""
        self.op: ClientOp | None = None
        self.records: tuple[bytes, ...] = ()
        self.sequence = 0
        self.refusals = 0
        """How often `op` was refused with certainty."""


class Clients(ClientLoop[Client]):
    """All clients of a world without controllers."""

    def __init__(self, world: SimulatedCluster, network: Network) -> None:
        plan = world.plan
        count = 0 if plan.controllers else plan.clients.count
        clients = [Client(plan.seed, i, 1 + i % plan.voters) for i in range(1, count + 1)]
        super().__init__(world, network, clients)
        self._token = 0
        self._waiting: dict[int, tuple[Client, ClientOp, int, Process]] = {}
        """By token of a Submit: client, operation, attempt and receiver."""
        self._beside: set[int] = set()
        """Tokens of Submits without a client. Only the checks read their outcomes."""
        self._too_large = bytes(plan.limits.batch_bytes if plan.clients.oversized else 0)
        self._once = plan.network.duplicate == 0
        """Whether a request arrives at most once."""
        self._value = 0

    @property
    def pending(self) -> list[ClientOp]:
        return [client.op for client in self._all if client.op is not None]

    # -- requests -----------------------------------------------------------------------------
    def _invoke(self, client: Client) -> None:
        if not self._may_begin:
            return
        plan, rng, world = self._plan, client.rng, self._world
        client.sequence += 1
        key, choice = rng.below(plan.keys), rng.random()
        value = expected = None
        kind = "put"
        if choice < plan.reads:
            kind = "get"
        else:
            self._value += 1
            value = self._value
            if choice < plan.reads + plan.compares:
                kind = "cas"
                expected = world.read_any(key, rng)
        op = ClientOp(client.id, client.sequence, kind, key, value, expected, world.now_us)  # type: ignore[arg-type]
        client.op, client.refusals = op, 0
        record = encode_op(op, rng.below(plan.padding + 1) if plan.padding else 0)
        client.records = self._among(client, record)
        world.invoked(op)
        self._try(client)

    def _among(self, client: Client, record: bytes) -> tuple[bytes, ...]:
        """The record among additional distinct records without effect."""
        if self._plan.lists == 1:
            return (record,)
        rng = client.beside
        others = range(rng.below(self._plan.lists))
        records = [encode_nothing(client.id, client.sequence, i) for i in others]
        records.insert(rng.below(len(records) + 1), record)
        return tuple(records)

    def _try(self, client: Client) -> None:
        op, world = client.op, self._world
        if op is None:
            return
        client.attempt += 1
        op.attempts += 1
        attempt = client.attempt
        to = client.target
        self._network.carry(OUTSIDE, to, self._arrive, client, op, client.records, attempt, to)
        if client.beside.happens(self._plan.barriers):
            later = world.now_us + int(client.beside.random() * self._plan.think_ms * 1000)
            world.push(later, self._barrier_of_its_own, client, to)
        timeout = world.now_us + self._plan.timeout_ms * 1000 * client.patience
        world.push(timeout, self._time_out, client, attempt)

    def _arrive(
        self, client: Client, op: ClientOp, records: tuple[bytes, ...], attempt: int, target: int
    ) -> None:
        """A request arrives, even if its client no longer waits for it."""
        process = self._world.processes[target]
        if process.replica is None:
            if process.reachable:
                self._reply(target, client, attempt, "refused", _NO_NODE)
            return
        before = self._barrier(client)
        self._token += 1
        self._waiting[self._token] = (client, op, attempt, process)
        submit = Submit(self._token, records)
        behind = self._barrier(client)
        if self._too_large and client.beside.happens(self._plan.oversized):
            behind.append(self._without_client((self._too_large,)))
        process.post(*before, submit, *behind)

    def _barrier_of_its_own(self, client: Client, to: int) -> None:
        """A Submit without values arrives in a request of its own."""
        process = self._world.processes[to]
        if self._may_begin and process.replica is not None:
            process.post(self._without_client(()))

    def _barrier(self, client: Client) -> list[Submit]:
        """A Submit without values, at the rate of the plan."""
        return [self._without_client(())] if client.beside.happens(self._plan.barriers) else []

    def _without_client(self, values: tuple[bytes, ...]) -> Submit:
        self._token += 1
        self._beside.add(self._token)
        return Submit(self._token, values)

    def _reply(
        self, source: int, client: Client, attempt: int, what: str, hint: int, result: object = None
    ) -> None:
        self._network.carry(source, OUTSIDE, self._answered, client, attempt, what, hint, result)

    # -- outcomes -----------------------------------------------------------------------------
    def settle(self, process: Process, outcome: Committed | Refused) -> bool:
        """The replica reports the outcome of a Submit; False where no client sent it."""
        waiting = self._waiting.pop(outcome.token, None)
        if waiting is None:
            if outcome.token not in self._beside:
                return False
            self._beside.discard(outcome.token)
            return True
        client, op, attempt, _ = waiting
        if isinstance(outcome, Refused):
            what = "in doubt" if outcome.in_doubt else "refused"
            assert process.replica is not None
            hint = process.replica.core.leader.leader_id
            self._reply(process.id, client, attempt, what, hint)
            return True
        known = process.machine.sessions.get(op.client, (0, 0))[0]
        if known < op.sequence:
            said = f"node {process.id} reports {op} as committed and applied, but it is not"
            raise ViolationError("applied", said)
        if known == op.sequence:
            result = process.machine.result(op)
            self._reply(process.id, client, attempt, "done", process.id, result)
        return True

    def connections_closed(self, process: Process) -> None:
        """A process ended: the connections of waiting clients break, or stay silent."""
        gone = [token for token, waiting in self._waiting.items() if waiting[3] is process]
        for token in gone:
            client, _, attempt, _ = self._waiting.pop(token)
            if process.reachable:
                self._reply(process.id, client, attempt, "in doubt", _NO_NODE)

    def _answered(
        self, client: Client, attempt: int, what: str, hint: int, result: int | bool | None
    ) -> None:
        op = client.op
        if op is None or attempt != client.attempt:
            return
        if what == "done":
            client.target = hint
            self._over(client, op, "ok", result)
            return
        client.refusals += what == "refused"
        if self._turns_away(client):
            is_sure = self._once and client.refusals == op.attempts
            self._over(client, op, "refused" if is_sure else "unknown", None)
            return
        if 0 < hint <= self._nodes and hint != client.target:
            client.target = hint
        else:
            client.target = 1 + client.rng.below(self._nodes)
        client.attempt += 1
        self._world.push(self._world.now_us + RETRY_US, self._try, client)

    def _turns_away(self, client: Client) -> bool:
        """Whether the client abandons its operation after a refusal."""
        chance = self._plan.turn_away
        return chance > 0 and self._may_begin and client.beside.happens(chance)

    def _time_out(self, client: Client, attempt: int) -> None:
        op = client.op
        if op is None or attempt != client.attempt:
            return
        if self._may_begin and client.rng.happens(self._plan.give_up):
            self._over(client, op, "unknown", None)
            return
        if not self._may_begin:  # each attempt may add a record to a slow log
            client.patience = min(2 * client.patience, MAX_PATIENCE)
            client.target = client.target % self._nodes + 1  # the next node in turn
        else:
            client.target = 1 + client.rng.below(self._nodes)
        self._try(client)

    def _over(self, client: Client, op: ClientOp, outcome: str, result: int | bool | None) -> None:
        client.op = None
        client.attempt += 1
        op.outcome, op.result = outcome, result  # type: ignore[assignment]
        op.answered_us = self._world.now_us
        self._world.answered(op)
        self._think(client)
