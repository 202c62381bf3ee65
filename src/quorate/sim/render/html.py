"""A run as one self-contained HTML page, for `quorate sim replay --html`.

The page contains the facts as JSON, with times in µs of the world, and draws the visible part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from quorate.base.plural import pluralize
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import Request, Response, VoteRequest, VoteResponse
from quorate.sim.plan.plan import FAULT_EVENTS, LEADER, argument_text, members
from quorate.sim.render.text import describe_op
from quorate.sim.run.version import code_version
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.message_text import describe_message
from quorate.sim.world.observable import OUTSIDE, ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    from quorate.raft.ready import Send
    from quorate.replica.replica import Effects, Input
    from quorate.sim.run.run import WorldOutcome
    from quorate.storage.api import Recovered

_LASTS: Final = ("for_ms", "down_ms")
_ON_LINKS: Final = frozenset({"lost", "duplicated", "held", "reordered", "held by a partition"})

_Asked = tuple[int, int, int]
"""(id, turn) of the sender, and the correlation id of the request."""


class Picture(Observer):
    """Collects the facts of the page; `page` returns the page."""

    def __init__(self) -> None:
        self._world: ObservableWorld | None = None
        self._lanes: dict[int, _Lane] = {}
        self._texts: dict[str, int] = {}
        self._messages: list[list[int]] = []
        """[sent, arrived (-1: never), from, to, kind, whether it is a response, text]"""
        self._kinds: dict[str, int] = {}
        self._requests: dict[_Asked, list[int]] = {}
        self._answers: dict[_Asked, int] = {}
        """When the response to a request was sent."""
        self._faults: list[list[Any]] = []
        """[at, until (-1: at once), node (0: the world), kind, text, whether the plan has it]"""
        self._ops: list[list[int]] = []
        """[client, invoked, answered (-1: never), outcome, text]"""
        self._pending: dict[tuple[int, int], list[int]] = {}
        self._healed_us = -1

    @property
    def _now(self) -> int:
        assert self._world is not None
        return self._world.now_us

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    # -- incarnations -------------------------------------------------------------------------
    def began(self, world: ObservableWorld) -> None:
        self._world = world
        for node_id in world.nodes:
            self._lanes[node_id] = _Lane()

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        lane = self._lanes[process.id]
        log = recovered.log
        held = f"starts incarnation {process.incarnation} with log {log.start_offset}..{log.end_offset}"
        lane.notes.append([self._now, self._text("; ".join([held, *recovered.notes]))])
        lane.see(self._now, process)

    def refused(self, process: SimulatedNode, reason: str) -> None:
        lane = self._lanes[process.id]
        lane.notes.append([self._now, self._text(f"cannot start: {reason}")])
        lane.band(self._now, "refused", 0)

    def crashed(self, process: SimulatedNode) -> None:
        self._lanes[process.id].down(self._now)

    def wiped(self, process: SimulatedNode) -> None:
        lane = self._lanes[process.id]
        lane.notes.append([self._now, self._text(f"has a new disk: {process.key}")])
        lane.down(self._now)

    def restored(self, process: SimulatedNode) -> None:
        self._lanes[process.id].notes.append([self._now, self._text(f"was {process.foreign}")])

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        lane = self._lanes[process.id]
        for note in effects.notes:
            lane.notes.append([self._now, self._text(note)])
        if effects.faulted is not None:
            lane.notes.append([self._now, self._text(f"stops: {effects.faulted}")])
        for answer in effects.answers:
            request = process.request_of(answer.reply_to)
            if request is not None:
                self._answers[request] = self._now
        lane.see(self._now, process)

    # -- messages -----------------------------------------------------------------------------
    def _message(
        self, sent: int, arrived: int, ends: tuple[int, int], message: Request | Response
    ) -> list[int]:
        is_answer = isinstance(message, Response)
        kind = type(message).__name__.removesuffix("Response" if is_answer else "Request")
        if isinstance(message, VoteRequest | VoteResponse) and getattr(message, "pre_vote", False):
            kind = "PreVote"
        number = self._kinds.setdefault(kind, len(self._kinds))
        text = self._text(describe_message(message))
        row = [sent, arrived, *ends, number, int(is_answer), text]
        self._messages.append(row)
        return row

    def sent(self, process: SimulatedNode, send: Send) -> None:
        assert self._world is not None
        to = self._world.addresses.get(send.address)
        if to is not None:
            row = self._message(self._now, -1, (process.id, to), send.request)
            self._requests[process.id, process.turn, send.correlation] = row

    def delivered(self, source: int, to: SimulatedNode, message: Received | Answered) -> None:
        now = self._now
        if isinstance(message, Answered):
            left = self._answers.get((to.id, to.turn, message.correlation), now)
            row = self._message(left, now, (source, to.id), message.response)
            asked = self._requests.get((to.id, to.turn, message.correlation))
            if asked is not None:
                row[4] = asked[4]
            return
        request = to.request_of(message.reply_to)
        if request is None:
            self._message(now, now, (OUTSIDE, to.id), message.request)
            return
        row = self._requests[request]
        if row[1] < 0:
            row[1] = now
        else:
            self._messages.append([row[0], now, *row[2:]])

    # -- clients and faults -------------------------------------------------------------------
    def invoked(self, op: ClientOp) -> None:
        row = [op.client, self._now, -1, 0, self._text(describe_op(op))]
        self._ops.append(row)
        self._pending[op.client, op.sequence] = row

    def answered(self, op: ClientOp) -> None:
        row = self._pending.pop((op.client, op.sequence))
        found = "" if op.result is None else f", {op.result}"
        tries = f", {op.attempts} attempts" if op.attempts > 1 else ""
        row[2], row[3] = self._now, ("pending", "ok", "unknown", "refused").index(op.outcome)
        row[4] = self._text(f"{describe_op(op)}: {op.outcome}{found}{tries}")

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        if kind in _ON_LINKS:
            source, to = details
            text = f"{kind}: {source or 'outside'} to {to or 'outside'}"
            self._faults.append([self._now, -1, source, kind, self._text(text), 0])
            return
        named = dict(zip(FAULT_EVENTS.get(kind, ()), details, strict=False))
        lasts = next((named[name] for name in _LASTS if name in named), None)
        until = -1 if lasts is None else self._now + int(str(lasts)) * 1000
        place = self._where(kind, named, details)
        self._faults.append([self._now, until, *place, int(kind in FAULT_EVENTS)])

    def _where(
        self, kind: str, named: dict[str, Any], details: tuple[object, ...]
    ) -> tuple[int, str, int]:
        node = named.get("node", 0)
        described = " ".join(map(str, details))
        if named:
            if node == LEADER and "node" in named:
                assert self._world is not None
                leader = self._world.leader()
                node = leader.id if leader is not None else 0
                named["node"] = node or "leader (no node leads)"
            if "nodes" in named:
                named["nodes"] = ",".join(map(str, members(named["nodes"])))
            if "what" in named:
                named["what"] = argument_text("what", named["what"])
            described = " ".join(f"{name}={value}" for name, value in named.items())
        elif details and details[0] in self._lanes and isinstance(details[0], int):
            node = details[0]
        return node, kind, self._text(f"{kind} {described}")

    def liveness_began(self) -> None:
        self._healed_us = self._now

    # -- the page -----------------------------------------------------------------------------
    def page(self, outcome: WorldOutcome) -> str:
        """The page of a world that has ended."""
        facts = self.facts(outcome)
        data = json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
        template = files("quorate.sim.render").joinpath("picture.html").read_text(encoding="utf-8")
        return (
            template.replace("{{title}}", escape(f"{facts['title']}: {facts['subtitle']}"))
            .replace("{{hash}}", outcome.trace_hash)
            .replace("{{data}}", data.replace("<", "\\u003c"))
        )

    def facts(self, outcome: WorldOutcome) -> dict[str, Any]:
        """The facts of the page. The attributes describe the rows."""
        assert self._world is not None
        plan, failure = outcome.plan, outcome.failure
        nodes = [
            {
                "id": node_id,
                "kind": "voter" if node_id <= plan.voters else "observer",
                **lane.facts(),
            }
            for node_id, lane in self._lanes.items()
        ]
        members = pluralize(plan.voters, "voter")
        if plan.observers:
            members += f", {pluralize(plan.observers, 'observer')}"
        return {
            "title": f"seed {plan.seed}",
            "subtitle": f"{members}, {pluralize(plan.clients.count, 'client')}, "
            f"{pluralize(len(plan.fault_events), 'fault event')}",
            "version": code_version(),
            "format": plan.format,
            "trace": outcome.trace_hash,
            "events": outcome.events,
            "end": max(self._now, 1),
            "healed": self._healed_us,
            "failure": None
            if failure is None
            else {"check": failure.check, "message": failure.message, "at": self._now},
            "nodes": nodes,
            "kinds": list(self._kinds),
            "messages": sorted(self._messages),
            "faults": self._faults,
            "ops": self._ops,
            "texts": list(self._texts),
        }


class _Lane:
    """The states of one node: rows with a start time, each valid until the next."""

    def __init__(self) -> None:
        self.bands: list[list[Any]] = [[0, "down", 0]]
        self.high: list[list[int]] = []
        self.ends: list[list[int]] = []
        self.voters: list[list[Any]] = []
        self.notes: list[list[int]] = []

    def band(self, now: int, role: str, epoch: int) -> None:
        if self.bands[-1][1:] != [role, epoch]:
            self.bands.append([now, role, epoch])

    def down(self, now: int) -> None:
        self.band(now, "down", 0)
        self.high.append([now, -1])
        self.ends.append([now, -1])

    def see(self, now: int, process: SimulatedNode) -> None:
        core = process.core
        role = core.role if core.is_voter or core.role != "follower" else "observer"
        self.band(now, role, core.epoch)
        for rows, value in ((self.high, core.high_watermark), (self.ends, core.log_end.offset)):
            if not rows or rows[-1][1] != value:
                rows.append([now, value])
        voters = ",".join(str(voter.key.id) for voter in core.voters.voters or ())
        if not self.voters or self.voters[-1][1] != voters:
            self.voters.append([now, voters])

    def facts(self) -> dict[str, Any]:
        return {
            "bands": self.bands,
            "high": self.high,
            "ends": self.ends,
            "voters": self.voters,
            "notes": self.notes,
        }
