"""Clients: each asks for one thing at a time, of whoever it believes leads, until it is answered.

An answer may get lost, a leader may be lost with the request in its log: then the same operation
is sent again, to the same node or another, and the machine does it once. Some clients give up
after a timeout and never learn what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.node.replica import Committed, Submit
from quorate.raft.ready import Refused
from quorate.sim.chance import Chance
from quorate.sim.machine import encode_nothing, encode_op
from quorate.sim.network import OUTSIDE
from quorate.sim.observe import ClientOp, Violation
from quorate.sim.process import Process

if TYPE_CHECKING:
    from quorate.sim.world import World

_RETRY_US: Final = 20_000
_MOST_PATIENT: Final = 4
"""So many timeouts: a node that stays down answers nobody."""
_NOBODY: Final = -1


class Client:
    """`op` is what it waits for; `attempt` numbers its requests, so that old answers are known."""

    __slots__ = (
        "attempt",
        "beside",
        "id",
        "luck",
        "op",
        "patience",
        "records",
        "refusals",
        "sequence",
        "target",
    )

    def __init__(self, seed: int, client_id: int, target: int) -> None:
        self.id = client_id
        self.luck = Chance(seed, "client", client_id)
        self.beside = Chance(seed, "beside", client_id)
        """For what it sends along."""
        self.target = target
        self.op: ClientOp | None = None
        self.records: tuple[bytes, ...] = ()
        self.sequence = 0
        self.attempt = 0
        self.refusals = 0
        """How often `op` was refused, and for good."""
        self.patience = 1
        """How many timeouts it waits for an answer now."""


class Clients:
    """All clients of a world."""

    def __init__(self, world: World) -> None:
        plan = world.plan
        self._world = world
        self._plan = plan.clients
        self._nodes = plan.voters + plan.observers
        self._all = [
            Client(plan.seed, i, 1 + i % plan.voters) for i in range(1, plan.clients.count + 1)
        ]
        self._token = 0
        self._waiting: dict[int, tuple[Client, ClientOp, int, Process]] = {}
        """By token of a Submit: who asked, for what, in which attempt, and whom."""
        self._beside: set[int] = set()
        """Tokens of Submits that nobody waits for: the checks look at what is said to them."""
        self._too_large = bytes(plan.limits.batch_bytes if plan.clients.oversized else 0)
        self._once = plan.network.duplicate == 0
        """Does a request that is answered come no second time?"""
        self._value = 0
        self._may_begin = True

    @property
    def pending(self) -> list[ClientOp]:
        return [client.op for client in self._all if client.op is not None]

    def begin(self) -> None:
        for client in self._all:
            self._think(client)

    def stop(self) -> None:
        """Nothing new is begun, and nobody gives up any more."""
        self._may_begin = False

    # -- asking -------------------------------------------------------------------------------
    def _think(self, client: Client) -> None:
        pause = int(client.luck.random() * 2 * self._plan.think_ms * 1000)
        self._world.push(self._world.now_us + 1 + pause, self._invoke, client)

    def _invoke(self, client: Client) -> None:
        if not self._may_begin:
            return
        plan, luck, world = self._plan, client.luck, self._world
        client.sequence += 1
        key, choice = luck.below(plan.keys), luck.random()
        value = expected = None
        kind = "put"
        if choice < plan.reads:
            kind = "get"
        else:
            self._value += 1
            value = self._value
            if choice < plan.reads + plan.compares:
                kind = "cas"
                expected = world.glance(key, luck)
        op = ClientOp(client.id, client.sequence, kind, key, value, expected, world.now_us)  # type: ignore[arg-type]
        client.op, client.refusals = op, 0
        record = encode_op(op, luck.below(plan.padding + 1) if plan.padding else 0)
        client.records = self._among(client, record)
        world.invoked(op)
        self._try(client)

    def _among(self, client: Client, record: bytes) -> tuple[bytes, ...]:
        """The record with some beside it that do nothing, each of them another one."""
        if self._plan.lists == 1:
            return (record,)
        luck = client.beside
        others = range(luck.below(self._plan.lists))
        records = [encode_nothing(client.id, client.sequence, i) for i in others]
        records.insert(luck.below(len(records) + 1), record)
        return tuple(records)

    def _try(self, client: Client) -> None:
        op, world = client.op, self._world
        if op is None:
            return
        client.attempt += 1
        op.attempts += 1
        attempt = client.attempt
        to = client.target
        world.network.carry(OUTSIDE, to, self._arrive, client, op, client.records, attempt, to)
        if client.beside.happens(self._plan.barriers):
            later = world.now_us + int(client.beside.random() * self._plan.think_ms * 1000)
            world.push(later, self._wait_too, client, to)
        timeout = world.now_us + self._plan.timeout_ms * 1000 * client.patience
        world.push(timeout, self._time_out, client, attempt)

    def _arrive(
        self, client: Client, op: ClientOp, records: tuple[bytes, ...], attempt: int, target: int
    ) -> None:
        """Even when the client waits for it no more."""
        process = self._world.processes[target]
        if process.replica is None:
            if process.reachable:
                self._reply(target, client, attempt, "refused", _NOBODY)
            return
        before = self._barrier(client)
        self._token += 1
        self._waiting[self._token] = (client, op, attempt, process)
        submit = Submit(self._token, records)
        behind = self._barrier(client)
        if self._too_large and client.beside.happens(self._plan.oversized):
            behind.append(self._nobodys((self._too_large,)))
        process.post(*before, submit, *behind)

    def _wait_too(self, client: Client, to: int) -> None:
        """A Submit without values, by itself."""
        process = self._world.processes[to]
        if self._may_begin and process.replica is not None:
            process.post(self._nobodys(()))

    def _barrier(self, client: Client) -> list[Submit]:
        """Now and then, one that only waits."""
        return [self._nobodys(())] if client.beside.happens(self._plan.barriers) else []

    def _nobodys(self, values: tuple[bytes, ...]) -> Submit:
        self._token += 1
        self._beside.add(self._token)
        return Submit(self._token, values)

    def _reply(
        self, source: int, client: Client, attempt: int, what: str, hint: int, result: object = None
    ) -> None:
        self._world.network.carry(
            source, OUTSIDE, self._answered, client, attempt, what, hint, result
        )

    # -- what becomes of it -------------------------------------------------------------------
    def settle(self, process: Process, outcome: Committed | Refused) -> None:
        """The replica says what became of a Submit."""
        waiting = self._waiting.pop(outcome.token, None)
        if waiting is None:
            if outcome.token not in self._beside:
                self._world.operators.settle(outcome)
            self._beside.discard(outcome.token)
            return
        client, op, attempt, _ = waiting
        if isinstance(outcome, Refused):
            what = "in doubt" if outcome.in_doubt else "refused"
            assert process.replica is not None
            hint = process.replica.core.leader.leader_id
            self._reply(process.id, client, attempt, what, hint)
            return
        known = process.machine.sessions.get(op.client, (0, 0))[0]
        if known < op.sequence:
            said = f"node {process.id} says that {op} is committed and applied, but it is not"
            raise Violation("applied", said)
        if known == op.sequence:
            result = process.machine.result(op)
            self._reply(process.id, client, attempt, "done", process.id, result)

    def hung_up(self, process: Process) -> None:
        """A process ended: whoever waits for it hears that the connection broke, or nothing."""
        gone = [token for token, waiting in self._waiting.items() if waiting[3] is process]
        for token in gone:
            client, _, attempt, _ = self._waiting.pop(token)
            if process.reachable:
                self._reply(process.id, client, attempt, "in doubt", _NOBODY)

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
            client.target = 1 + client.luck.below(self._nodes)
        client.attempt += 1
        self._world.push(self._world.now_us + _RETRY_US, self._try, client)

    def _turns_away(self, client: Client) -> bool:
        """Goes it on to something else, after a refusal?"""
        chance = self._plan.turn_away
        return chance > 0 and self._may_begin and client.beside.happens(chance)

    def _time_out(self, client: Client, attempt: int) -> None:
        op = client.op
        if op is None or attempt != client.attempt:
            return
        if self._may_begin and client.luck.happens(self._plan.give_up):
            self._over(client, op, "unknown", None)
            return
        if not self._may_begin:  # each time it asks is a record that a slow log must carry, too
            client.patience = min(2 * client.patience, _MOST_PATIENT)
            client.target = client.target % self._nodes + 1  # whoever is up has its turn
        else:
            client.target = 1 + client.luck.below(self._nodes)
        self._try(client)

    def _over(self, client: Client, op: ClientOp, outcome: str, result: int | bool | None) -> None:
        client.op = None
        client.attempt += 1
        op.outcome, op.result = outcome, result  # type: ignore[assignment]
        op.answered_us = self._world.now_us
        self._world.answered(op)
        self._think(client)
