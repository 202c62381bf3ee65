"""A path as a scenario, for `quorate sim scenario` and for readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.sim.explore.invariants import InvariantViolationError
from quorate.sim.explore.search import InvariantViolation, SearchResult
from quorate.sim.explore.setups import Setup
from quorate.sim.explore.space import Action, ClusterState, Space, proposal
from quorate.sim.scenario.file import run_scenario
from quorate.sim.scenario.node import CoreMessage
from quorate.sim.scenario.script import Script

_ENDING: Final = ("status", "messages")


def violation_scenario(result: SearchResult) -> str:
    """The scenario of a violation, with its present outcomes."""
    assert result.violation is not None
    return scenario_text(result.space, result.violation)


def scenario_text(space: Space, violation: InvariantViolation) -> str:
    """Comments with the violated invariant, every action as a command, and the final state."""
    lines = commands(space, violation.path)
    ending = [*_ENDING, *(f"log {node}" for node in space.nodes)]
    text = "\n\n".join(
        [f"# Found by exploration. {violation.invariant}:\n# {violation.message}", *lines, *ending]
    )
    return run_scenario(text + "\n", "exploration").text


def commands(space: Space, path: Sequence[Action]) -> list[str]:
    """The commands of a scenario that follows this path.

    The scenario is run along the path, so that each message is found among those in flight there.
    """
    writer = _ScenarioWriter(space)
    for action in path:
        writer.take(action)
    return writer.lines


class _ScenarioWriter:
    def __init__(self, space: Space) -> None:
        self._space = space
        self._script = Script()
        self._messages: dict[int, CoreMessage] = {}
        self._state: ClusterState | None = None
        self.lines: list[str] = []
        for line in _setup_commands(space.setup):
            self._say(line)

    def take(self, action: Action) -> None:
        before = self._state or self._space.formatted()
        self._say(self._command(before, action))
        try:
            self._state = self._space.follow(before, action)
        except InvariantViolationError:
            return
        taken = action[1] if action[0] in ("deliver", "fail") else None
        for number in self._state.net:
            if number not in before.net or number == taken:
                self._messages[number] = self._newest(number)

    def _say(self, line: str) -> None:
        self.lines.append(line)
        self._script.run(line)

    def _newest(self, number: int) -> CoreMessage:
        """The message of the scenario that corresponds to this one of the space.

        The space keeps only awaited responses; the scenario may have equal ones that are late.
        """
        source, to = self._space.ends(number)
        body = self._space.replicas.bodies[self._space.messages[number].body]
        found = [m for m in self._script.cluster.network if (m.source, m.to) == (source, to)]
        return next(m for m in reversed(found) if m.body == body and self._awaited(m))

    def _awaited(self, message: CoreMessage) -> bool:
        asker = self._script.cluster.nodes[message.to]
        if not message.response or asker.core is None:
            return not message.response
        flights = asker.core.state.requests.by_correlation
        return message.incarnation == asker.incarnation and message.correlation in flights

    def _command(self, state: ClusterState, action: Action) -> str:
        kind, subject = action[0], action[1]
        if kind in ("deliver", "fail"):
            return self._message_command(kind, subject)
        if kind == "persist":
            return f"persist {subject} count=1"
        if kind == "crash":
            kept, torn = self._kept(state, subject, action[2])
            options = [f"kept={kept}"] * (kept > 0) + [f"torn={torn}"] * (torn > 0)
            return " ".join([f"crash {subject}", *options])
        if kind == "propose":
            left = self._space.budgets[state.budget].proposals
            return f"propose {subject} {proposal(left)}"
        if kind in ("add", "remove"):
            return f"ask {subject} {kind.capitalize()} voter={action[2]}"
        if kind == "lose":
            return f"connection-lost {subject} {self._space.local(state, subject).leader}"
        return f"leap {subject} ms=25" if kind == "backoff" else f"{kind} {subject}"

    def _message_command(self, kind: str, number: int) -> str:
        message = self._messages[number]
        name = type(message.body).__name__
        alike = [
            m
            for m in self._script.cluster.network
            if (m.source, m.to, type(m.body)) == (message.source, message.to, type(message.body))
        ]
        line = f"{kind} {message.source}->{message.to} {name}"
        if len(alike) == 1:
            return line
        return f"{line} which={next(i for i, m in enumerate(alike, 1) if m is message)}"

    def _kept(self, state: ClusterState, node: int, writes: int) -> tuple[int, int]:
        """The number of writes as (whole write steps, remaining writes)."""
        kept = 0
        for _, step in self._space.local(state, node).pending:
            if len(step) > writes:
                break
            writes -= len(step)
            kept += 1
        return kept, writes


def _setup_commands(setup: Setup) -> list[str]:
    known = ",".join(map(str, setup.voters))
    voters = " ".join(map(str, setup.voters))
    return [f"dynamic {voters}", *(f"observer {node} knows={known}" for node in setup.observers)]
