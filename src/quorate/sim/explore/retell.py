"""The way to a state as a story, for `quorate sim scenario` and for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.sim.explore.laws import Broken
from quorate.sim.explore.search import Result, Violation
from quorate.sim.explore.space import Action, Setup, Space, State, proposal
from quorate.sim.story.file import tell
from quorate.sim.story.node import Message
from quorate.sim.story.script import Script

_ENDING: Final = ("status", "messages")


def retell(result: Result) -> str:
    """The story of a violation, its outcomes as they are now."""
    assert result.violation is not None
    return story_of(result.space, result.violation)


def story_of(space: Space, violation: Violation) -> str:
    """Comments with the broken law, every action as a command, and what is there at the end."""
    lines = commands(space, violation.path)
    ending = [*_ENDING, *(f"log {node}" for node in space.nodes)]
    text = "\n\n".join(
        [f"# Found by exploration. {violation.law}:\n# {violation.message}", *lines, *ending]
    )
    return tell(text + "\n", "exploration").text


def commands(space: Space, path: Sequence[Action]) -> list[str]:
    """The commands of a story that does what this path does.

    The story is played along, so that a message is found among those in flight there.
    """
    teller = _Teller(space)
    for action in path:
        teller.take(action)
    return teller.lines


class _Teller:
    def __init__(self, space: Space) -> None:
        self._space = space
        self._script = Script()
        self._messages: dict[int, Message] = {}
        self._state: State | None = None
        self.lines: list[str] = []
        for line in _cast(space.setup):
            self._say(line)

    def take(self, action: Action) -> None:
        before = self._state or self._space.cold()
        self._say(self._command(before, action))
        try:
            self._state = self._space.follow(before, action)
        except Broken:
            return
        taken = action[1] if action[0] in ("deliver", "fail") else None
        for number in self._state.net:
            if number not in before.net or number == taken:
                self._messages[number] = self._newest(number)

    def _say(self, line: str) -> None:
        self.lines.append(line)
        self._script.run(line)

    def _newest(self, number: int) -> Message:
        """The message of the story that is this one of the space.

        The space has only answers that somebody waits for; the story may have equal ones, late.
        """
        source, to = self._space.ends(number)
        body = self._space.replicas.bodies[self._space.messages[number].body]
        found = [m for m in self._script.cluster.network if (m.source, m.to) == (source, to)]
        return next(m for m in reversed(found) if m.body == body and self._awaited(m))

    def _awaited(self, message: Message) -> bool:
        asker = self._script.cluster.nodes[message.to]
        if not message.response or asker.core is None:
            return not message.response
        flights = asker.core._state.requests._by_correlation
        return message.life == asker.life and message.correlation in flights

    def _command(self, state: State, action: Action) -> str:
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
        return f"leap {subject} ms=25" if kind == "rest" else f"{kind} {subject}"

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

    def _kept(self, state: State, node: int, writes: int) -> tuple[int, int]:
        """So many writes as whole steps of writing, and the rest."""
        kept = 0
        for _, step in self._space.local(state, node).pending:
            if len(step) > writes:
                break
            writes -= len(step)
            kept += 1
        return kept, writes


def _cast(setup: Setup) -> list[str]:
    known = ",".join(map(str, setup.voters))
    voters = " ".join(map(str, setup.voters))
    return [f"dynamic {voters}", *(f"observer {node} knows={known}" for node in setup.observers)]
