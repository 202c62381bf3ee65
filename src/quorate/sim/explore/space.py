"""Every state of a small cluster, and everything that can happen in it.

Clocks are the replicas' own and move only by an action: all timers of one replica ring (`leap`),
or just its backoff ends (`rest`). A message that is never delivered is a lost one; `fail` loses it
and tells the asker. Disks write in order, and stop anywhere in a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.raft.values import ControlState, RaftConfig
from quorate.sim.explore.laws import History, Laws, asker_of, code_of, label_of
from quorate.sim.explore.numbered import Numbered
from quorate.sim.explore.replica import Local, Outcome, Replicas
from quorate.sim.story.names import CLUSTER_ID, FIRST_PORT, directory, key, listeners, voter

BOOTSTRAP: Final = OffsetAndEpoch(0, 0)


class Budget(NamedTuple):
    """How often each of the rarer things may still happen."""

    leaps: int = 1
    """A replica's timers ring."""
    rests: int = 0
    crashes: int = 0
    fails: int = 0
    """A message is lost, and the asker is told."""
    losses: int = 0
    """A follower hears that its leader's connection broke."""
    proposals: int = 0
    changes: int = 0
    """A client asks to add or remove a voter."""


NOTHING: Final = Budget(leaps=0)


@dataclass(frozen=True, slots=True)
class Setup:
    """Voters and observers by node id; `led`: begin with a leader that has committed."""

    voters: tuple[int, ...] = (1, 2, 3)
    observers: tuple[int, ...] = ()
    led: bool = False
    behind: tuple[int, ...] = ()
    """Voters that hear nothing and are not heard until the search begins."""
    split: bool = False
    """That leader was then cut off with a record of its own, and the others follow a new one."""
    budget: Budget = NOTHING
    epochs: int = 2
    """States with a higher epoch are not looked at."""

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted((*self.voters, *self.observers)))


class Call(NamedTuple):
    """A request of one replica to another, and the answer to it."""

    asker: int
    asked: int
    """Whom the asker believes to ask: a node id, or a negative one of a bootstrap server."""
    at: int
    """The node where the request goes."""
    label: int
    """Tells the requests of one replica to another, as far as they are still about, apart."""


class Message(NamedTuple):
    """In flight, by numbers: `call` in Space.calls, `body` in Replicas.bodies."""

    call: int
    body: int
    is_response: bool


class State(NamedTuple):
    """All by numbers: the replicas by place, messages in flight, calls whose askers still wait,
    the past, and what may still happen."""

    locals: tuple[int, ...]
    net: tuple[int, ...]
    waiting: tuple[int, ...]
    history: int
    budget: int


Action = tuple[Any, ...]
"""A word and its facts: messages by their number, replicas by their node id."""


def chance(node: int) -> Callable[[], float]:
    """The chance of the stories: node 1 has the shortest timeouts."""
    return lambda: (node - 1) * 0.2 % 1


class Space:
    """The states that follow from one setup. Numbers are given in the order of discovery."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.nodes = setup.nodes
        self._place = {node: place for place, node in enumerate(self.nodes)}
        self.replicas = Replicas(
            {node: _config(setup, node) for node in self.nodes},
            {node: _snapshots(setup, node) for node in self.nodes},
            chance,
        )
        self.calls: Numbered[Call] = Numbered()
        self.messages: Numbered[Message] = Numbered()
        self.histories: Numbered[History] = Numbered()
        self.budgets: Numbered[Budget] = Numbered()
        self._laws = Laws()

    def local(self, state: State, node: int) -> Local:
        """The replica of this node in this state."""
        return self.replicas.all[state.locals[self._place[node]]]

    def epoch(self, state: State) -> int:
        """The highest that any replica is in."""
        known = self.replicas.all
        return max([known[number].epoch for number in state.locals])

    def ends(self, number: int) -> tuple[int, int]:
        """Between whom a message travels: (source, to)."""
        message = self.messages[number]
        call = self.calls[message.call]
        return (call.at, call.asker) if message.is_response else (call.asker, call.at)

    # -- the first state -----------------------------------------------------------------------
    def cold(self) -> State:
        """Nobody runs yet; what may happen includes the way to the first state."""
        blanks = tuple(self.replicas.blank(node).id for node in self.nodes)
        budget = self.setup.budget
        split = self.setup.split
        budget = budget._replace(
            leaps=budget.leaps + self.setup.led,
            proposals=budget.proposals + split,
            losses=budget.losses + split * (len(self.setup.voters) - 1),
        )
        return State(blanks, (), (), self.histories.number(History()), self.budgets.number(budget))

    def begin(self, path: list[Action]) -> State:
        """Where the search begins; the way there from `cold` is added to `path`.

        Raises Broken, with the action that broke the law last in `path`.
        """
        state = self.cold()
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
        """What is done to come to the first state, and who hears nothing meanwhile."""
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

    # -- what can happen -----------------------------------------------------------------------
    def actions(self, state: State) -> list[Action]:
        """All of it, in a fixed order."""
        budget = self.budgets.values[state.budget]
        found: list[Action] = []
        for number in state.locals:
            self._add_actions(self.replicas.all[number], budget, found)
        for number in state.net:
            found.append(("deliver", number))
            if budget.fails:
                found.append(("fail", number))
        return found

    def _add_actions(self, local: Local, budget: Budget, found: list[Action]) -> None:
        node = local.node
        if local.core is None:
            found.append(("start", node))
            return
        if local.pending:
            found.append(("persist", node))
        if budget.leaps:
            found.append(("leap", node))
        if budget.rests and local.resting:
            found.append(("rest", node))
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

    # -- and what comes of it ------------------------------------------------------------------
    def follow(self, state: State, action: Action) -> State:
        """The state after this action; raises Broken where a law does not hold there."""
        kind = action[0]
        if kind == "deliver":
            return self._deliver(state, action[1])
        if kind == "fail":
            state = self._spend(state, "fails")
            return self._tell_asker(state, _without(state.net, action[1]), action[1])
        local = self.local(state, action[1])
        if kind in ("start", "persist"):
            return self._do(state, local, (kind,), state.net)
        budget = self.budgets[state.budget]
        state = self._spend(state, _SPENDS[kind])
        if kind == "crash":
            return self._crash(state, local, action[2])
        return self._do(state, local, _deed(action, local, budget), state.net)

    def _spend(self, state: State, name: str) -> State:
        budget = self.budgets[state.budget]
        left = budget._replace(**{name: getattr(budget, name) - 1})
        return state._replace(budget=self.budgets.number(left))

    def _deliver(self, state: State, number: int) -> State:
        message = self.messages.values[number]
        call = self.calls.values[message.call]
        net = _without(state.net, number)
        if message.is_response:
            local = self.local(state, call.asker)
            return self._do(state, local, ("answered", call.asked, message.body), net)
        local = self.local(state, call.at)
        if local.core is None:
            return self._tell_asker(state, net, number)
        code = code_of(call.asker, call.label, pre_vote=self.replicas.is_pre_vote(message.body))
        return self._do(state, local, ("received", code, message.body), net)

    def _tell_asker(self, state: State, net: tuple[int, ...], number: int) -> State:
        """The connection broke: the asker, if it still waits, waits no more."""
        message = self.messages[number]
        if message.call not in state.waiting:
            return state._replace(net=net)
        call = self.calls[message.call]
        return self._do(state, self.local(state, call.asker), ("failed", call.asked), net)

    def _crash(self, state: State, local: Local, kept: int) -> State:
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

    def _do(self, state: State, local: Local, deed: tuple[Any, ...], net: tuple[int, ...]) -> State:
        outcome = self.replicas.do(local, deed)
        net, waiting = self._carry(state, local, outcome, net)
        return self._checked(state, local, outcome.local, net, waiting)

    def _checked(
        self,
        state: State,
        before: Local,
        after: Local,
        net: tuple[int, ...],
        waiting: tuple[int, ...],
    ) -> State:
        if after is before:
            return State(state.locals, net, waiting, state.history, state.budget)
        place = self._place[after.node]
        ids = (*state.locals[:place], after.id, *state.locals[place + 1 :])
        history = state.history
        if self._laws.concern(before, after):
            known = self.replicas.all
            past = self.histories[history]
            now = self._laws.check(before, after, [known[number] for number in ids], past)
            if now is not past:
                history = self.histories.number(now)
        return State(ids, net, waiting, history, state.budget)

    # -- messages ------------------------------------------------------------------------------
    def _carry(
        self, state: State, local: Local, outcome: Outcome, net: tuple[int, ...]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Put what the replica says on its way; forget answers that nobody waits for."""
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
            call = self.calls.number(Call(node, asked, at, label))
            waiting.append(call)
            left.append(self.messages.number(Message(call, body, False)))
        for code, body in outcome.replies:
            asker, label = asker_of(code), label_of(code)
            for w in waiting:
                call_of = calls[w]
                if call_of.label == label and call_of.asker == asker and call_of.at == node:
                    left.append(self.messages.number(Message(w, body, True)))
        left.sort()
        waiting.sort()
        return tuple(left), tuple(waiting)

    def _free_label(
        self, state: State, net: list[int], waiting: list[int], node: int, at: int
    ) -> int:
        """The least label that tells this request from all that are still about."""
        calls, messages = self.calls.values, self.messages.values
        about = [calls[w] for w in waiting]
        about += [calls[messages[m].call] for m in net]
        used = {call.label for call in about if call.asker == node and call.at == at}
        if at in self._place:
            owed = self.local(state, at).owed
            used |= {label_of(code) for code in owed if asker_of(code) == node}
        label = 0
        while label in used:
            label += 1
        return label


_SPENDS: Final = {
    "leap": "leaps",
    "rest": "rests",
    "crash": "crashes",
    "propose": "proposals",
    "add": "changes",
    "remove": "changes",
    "lose": "losses",
}


def _deed(action: Action, local: Local, budget: Budget) -> tuple[Any, ...]:
    """What an action is to the replica that it happens to."""
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
    """The record that is proposed when so many proposals are left."""
    return f"record{left}"


def change(kind: str, node: int) -> AddVoterRequest | RemoveVoterRequest:
    """What a client asks of the leader."""
    if kind == "add":
        return AddVoterRequest(CLUSTER_ID, key(node), listeners(node))
    return RemoveVoterRequest(CLUSTER_ID, key(node))


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
