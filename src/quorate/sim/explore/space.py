"""The states of a small cluster, and all actions in each.

Each replica has its own clock, which only an action moves: `leap` expires all its timers, `backoff`
ends its retry backoff. A message that is never delivered is lost; `fail` loses it and notifies its
sender. Disks write in order, and a crash stops them anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, TypeVar

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.raft.values import ControlState, RaftConfig
from quorate.sim.explore.invariants import (
    HistoryVariables,
    StepInvariants,
    asker_of,
    code_of,
    label_of,
)
from quorate.sim.explore.local_state import LocalState, StepOutcome
from quorate.sim.explore.replica_states import ReplicaStates
from quorate.sim.explore.setups import Budget, Setup
from quorate.sim.scenario.names import CLUSTER_ID, FIRST_PORT, directory, key, listeners, voter

BOOTSTRAP: Final = OffsetAndEpoch(0, 0)
T = TypeVar("T", bound=Hashable)


class PendingCall(NamedTuple):
    """A request of one replica to another, and its response."""

    asker: int
    asked: int
    """The intended receiver: a node id, or a negative number for a bootstrap server."""
    at: int
    """The node that receives the request."""
    label: int
    """Distinguishes the open requests of one replica to another."""


class InFlightMessage(NamedTuple):
    """A message in flight, by numbers: `call` in Space.calls, `body` in ReplicaStates.bodies."""

    call: int
    body: int
    is_response: bool


class ClusterState(NamedTuple):
    """All by numbers: replica states by position, messages in flight, calls that await a response,
    history variables and budget."""

    locals: tuple[int, ...]
    net: tuple[int, ...]
    waiting: tuple[int, ...]
    history: int
    budget: int


Action = tuple[Any, ...]
"""A name and its arguments: messages by number, replicas by node id."""


def fixed_random(node: int) -> Callable[[], float]:
    """The random source of scenarios: node 1 has the shortest timeouts."""
    return lambda: (node - 1) * 0.2 % 1


class Space:
    """The states that are reachable from one setup. Numbers are assigned in order of discovery."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.nodes = setup.nodes
        self._place = {node: place for place, node in enumerate(self.nodes)}
        self.replicas = ReplicaStates(
            {node: _config(setup, node) for node in self.nodes},
            {node: _snapshots(setup, node) for node in self.nodes},
            fixed_random,
        )
        self.calls: Numbered[PendingCall] = Numbered()
        self.messages: Numbered[InFlightMessage] = Numbered()
        self.histories: Numbered[HistoryVariables] = Numbered()
        self.budgets: Numbered[Budget] = Numbered()
        self._invariants = StepInvariants()

    def local(self, state: ClusterState, node: int) -> LocalState:
        """The replica state of this node in this state."""
        return self.replicas.all[state.locals[self._place[node]]]

    def epoch(self, state: ClusterState) -> int:
        """The highest epoch of any replica."""
        known = self.replicas.all
        return max([known[number].epoch for number in state.locals])

    def ends(self, number: int) -> tuple[int, int]:
        """The (source, receiver) of a message."""
        message = self.messages[number]
        call = self.calls[message.call]
        return (call.at, call.asker) if message.is_response else (call.asker, call.at)

    # -- the first state -----------------------------------------------------------------------
    def formatted(self) -> ClusterState:
        """All processes are down. The budget includes the actions that lead to the first state."""
        blanks = tuple(self.replicas.blank(node).id for node in self.nodes)
        budget = self.setup.budget
        split = self.setup.split
        budget = budget._replace(
            leaps=budget.leaps + self.setup.led,
            proposals=budget.proposals + split,
            losses=budget.losses + split * (len(self.setup.voters) - 1),
        )
        return ClusterState(
            blanks, (), (), self.histories.number(HistoryVariables()), self.budgets.number(budget)
        )

    def begin(self, path: list[Action]) -> ClusterState:
        """The first state of the search. The path from `formatted` to it is appended to `path`.

        Raises InvariantViolationError, with the violating action last in `path`.
        """
        state = self.formatted()
        for opening, deaf in self._openings():
            while opening:
                path.append(opening.pop(0))
                state = self.follow(state, path[-1])
                if not opening and self.setup.led:
                    # Persist and deliver until nothing moves.
                    going = (a for a in self.actions(state) if self._goes_on(a, deaf))
                    opening = list(islice(going, 1))
        return state

    def _openings(self) -> list[tuple[list[Action], set[int]]]:
        """The actions that lead to the first state, and the nodes that are partitioned meanwhile."""
        setup = self.setup
        first, *others = setup.voters
        opening: list[Action] = [("start", node) for node in self.nodes]
        if setup.led:
            opening.append(("leap", first))
        openings = [(opening, set(setup.behind))]
        if setup.split:
            lost: list[Action] = [("lose", other) for other in others]
            openings.append(([("propose", first), *lost], {first}))
        return openings

    def _goes_on(self, action: Action, deaf: set[int]) -> bool:
        if action[0] == "deliver":
            return not deaf.intersection(self.ends(action[1]))
        return bool(action[0] == "persist")

    # -- actions -------------------------------------------------------------------------------
    def actions(self, state: ClusterState) -> list[Action]:
        """All actions in this state, in a fixed order."""
        budget = self.budgets.values[state.budget]
        found: list[Action] = []
        for number in state.locals:
            self._add_actions(self.replicas.all[number], budget, found)
        for number in state.net:
            found.append(("deliver", number))
            if budget.fails:
                found.append(("fail", number))
        return found

    def _add_actions(self, local: LocalState, budget: Budget, found: list[Action]) -> None:
        node = local.node
        if local.core is None:
            found.append(("start", node))
            return
        if local.pending:
            found.append(("persist", node))
        if budget.leaps:
            found.append(("leap", node))
        if budget.backoffs and local.backing_off:
            found.append(("backoff", node))
        if budget.crashes:
            writes = sum(len(writes) for _, writes in local.pending)
            found += [("crash", node, kept) for kept in range(writes + 1)]
        if local.role == "leader":
            if budget.proposals:
                found.append(("propose", node))
            if budget.changes:
                inside = {key.id for key in local.voters}
                found += [
                    ("remove" if other in inside else "add", node, other) for other in self.nodes
                ]
        elif budget.losses and local.role == "follower":
            found.append(("lose", node))

    # -- successor states ----------------------------------------------------------------------
    def follow(self, state: ClusterState, action: Action) -> ClusterState:
        """The state after this action; raises InvariantViolationError where an invariant is
        violated in it."""
        kind = action[0]
        if kind == "deliver":
            return self._deliver(state, action[1])
        if kind == "fail":
            state = self._spend(state, "fails")
            return self._notify_sender(state, _without(state.net, action[1]), action[1])
        local = self.local(state, action[1])
        if kind in ("start", "persist"):
            return self._do(state, local, (kind,), state.net)
        budget = self.budgets[state.budget]
        state = self._spend(state, _SPENDS[kind])
        if kind == "crash":
            return self._crash(state, local, action[2])
        return self._do(state, local, _local_event(action, local, budget), state.net)

    def _spend(self, state: ClusterState, name: str) -> ClusterState:
        budget = self.budgets[state.budget]
        left = budget._replace(**{name: getattr(budget, name) - 1})
        return state._replace(budget=self.budgets.number(left))

    def _deliver(self, state: ClusterState, number: int) -> ClusterState:
        message = self.messages.values[number]
        call = self.calls.values[message.call]
        net = _without(state.net, number)
        if message.is_response:
            local = self.local(state, call.asker)
            return self._do(state, local, ("answered", call.asked, message.body), net)
        local = self.local(state, call.at)
        if local.core is None:
            return self._notify_sender(state, net, number)
        code = code_of(call.asker, call.label, pre_vote=self.replicas.is_pre_vote(message.body))
        return self._do(state, local, ("received", code, message.body), net)

    def _notify_sender(
        self, state: ClusterState, net: tuple[int, ...], number: int
    ) -> ClusterState:
        """The connection broke: a sender that still awaits the response is notified."""
        message = self.messages[number]
        if message.call not in state.waiting:
            return state._replace(net=net)
        call = self.calls[message.call]
        return self._do(state, self.local(state, call.asker), ("failed", call.asked), net)

    def _crash(self, state: ClusterState, local: LocalState, kept: int) -> ClusterState:
        node, calls, messages = local.node, self.calls.values, self.messages.values
        waiting = tuple([w for w in state.waiting if calls[w].asker != node])
        net = tuple(
            [
                m
                for m in state.net
                if not messages[m].is_response or calls[messages[m].call].asker != node
            ]
        )
        return self._checked(state, local, self.replicas.crash(local, kept), net, waiting)

    def _do(
        self, state: ClusterState, local: LocalState, event: tuple[Any, ...], net: tuple[int, ...]
    ) -> ClusterState:
        outcome = self.replicas.do(local, event)
        net, waiting = self._carry(state, local, outcome, net)
        return self._checked(state, local, outcome.local, net, waiting)

    def _checked(
        self,
        state: ClusterState,
        before: LocalState,
        after: LocalState,
        net: tuple[int, ...],
        waiting: tuple[int, ...],
    ) -> ClusterState:
        if after is before:
            return ClusterState(state.locals, net, waiting, state.history, state.budget)
        place = self._place[after.node]
        ids = (*state.locals[:place], after.id, *state.locals[place + 1 :])
        history = state.history
        if self._invariants.concern(before, after):
            known = self.replicas.all
            past = self.histories[history]
            now = self._invariants.check(before, after, [known[number] for number in ids], past)
            if now is not past:
                history = self.histories.number(now)
        return ClusterState(ids, net, waiting, history, state.budget)

    # -- messages ------------------------------------------------------------------------------
    def _carry(
        self, state: ClusterState, local: LocalState, outcome: StepOutcome, net: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Send the replica's messages; drop responses that no sender awaits."""
        node, calls, messages = local.node, self.calls.values, self.messages.values
        gone = [
            w
            for w in state.waiting
            if calls[w].asker == node and calls[w].asked not in outcome.kept
        ]
        if not gone and not outcome.sends and not outcome.replies:
            return net, state.waiting
        waiting = [w for w in state.waiting if w not in gone]
        left = [m for m in net if not (messages[m].is_response and messages[m].call in gone)]
        for asked, at, body in outcome.sends:
            label = self._free_label(state, left, waiting, node, at)
            call = self.calls.number(PendingCall(node, asked, at, label))
            waiting.append(call)
            left.append(self.messages.number(InFlightMessage(call, body, False)))
        for code, body in outcome.replies:
            asker, label = asker_of(code), label_of(code)
            for w in waiting:
                call_of = calls[w]
                if call_of.label == label and call_of.asker == asker and call_of.at == node:
                    left.append(self.messages.number(InFlightMessage(w, body, True)))
        left.sort()
        waiting.sort()
        return tuple(left), tuple(waiting)

    def _free_label(
        self, state: ClusterState, net: list[int], waiting: list[int], node: int, at: int
    ) -> int:
        """The smallest label that distinguishes this request from all open ones."""
        calls, messages = self.calls.values, self.messages.values
        about = [calls[w] for w in waiting]
        about += [calls[messages[m].call] for m in net]
        used = {call.label for call in about if call.asker == node and call.at == at}
        if at in self._place:
            unanswered = self.local(state, at).unanswered
            used |= {label_of(code) for code in unanswered if asker_of(code) == node}
        label = 0
        while label in used:
            label += 1
        return label


_SPENDS: Final = {
    "leap": "leaps",
    "backoff": "backoffs",
    "crash": "crashes",
    "propose": "proposals",
    "add": "changes",
    "remove": "changes",
    "lose": "losses",
}


def _local_event(action: Action, local: LocalState, budget: Budget) -> tuple[Any, ...]:
    """The event of an action at its replica."""
    kind = action[0]
    if kind == "propose":
        return "propose", proposal(budget.proposals)
    if kind == "lose":
        return "lost", local.leader
    if kind in ("add", "remove"):
        return "asked", change(kind, action[2])
    return (kind,)


def _without(net: tuple[int, ...], number: int) -> tuple[int, ...]:
    place = net.index(number)
    return (*net[:place], *net[place + 1 :])


def proposal(left: int) -> str:
    """The record that is proposed with this many proposals left."""
    return f"record{left}"


def change(kind: str, node: int) -> AddVoterRequest | RemoveVoterRequest:
    """The request of a client to the leader."""
    if kind == "add":
        return AddVoterRequest(CLUSTER_ID, key(node), listeners(node))
    return RemoveVoterRequest(CLUSTER_ID, key(node))


class Numbered(Generic[T]):
    """Gives equal values one number, from 0; `values` has them by number."""

    __slots__ = ("_numbers", "values")

    def __init__(self) -> None:
        self._numbers: dict[T, int] = {}
        self.values: list[T] = []

    def __getitem__(self, number: int) -> T:
        return self.values[number]

    def __len__(self) -> int:
        return len(self.values)

    def number(self, value: T) -> int:
        """The number of this value; a new one where it was never seen."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


def _config(setup: Setup, node: int) -> RaftConfig:
    config = RaftConfig(CLUSTER_ID, node, directory(node), listeners=listeners(node))
    if node in setup.voters:
        return config
    servers = tuple((f"host{other}", FIRST_PORT + other) for other in setup.voters)
    return replace(config, bootstrap_servers=servers)


def _snapshots(setup: Setup, node: int) -> dict[OffsetAndEpoch, ControlState]:
    if node not in setup.voters:
        return {}
    return {BOOTSTRAP: ControlState(1, tuple(voter(other) for other in setup.voters))}
