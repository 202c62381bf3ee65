"""Cluster stories: commands, `----`, and exactly what happened.

A story is a text file of blocks. A block is comment lines (`#`), command lines, `----`, and the
outcome up to the next empty line. With QUORATE_REWRITE=1 in the environment the outcomes are
written anew. The outcome of a command is what every replica notes, where its high watermark goes,
what clients are told, and what the command itself shows.

Chance is fixed so that stories are readable: node 1 has the shortest timeouts, then node 2, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, uuid_to_text
from quorate.raft.inputs import (
    CleanTo,
    ConnectionLost,
    Resign,
    Shutdown,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    Request,
    Response,
    UpdateVoterRequest,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Accepted, Ready
from raft.cluster import CLUSTER_ID, Cluster, Message, Node, directory, key, listeners

_SHORT = {
    f"-{uuid_to_text(directory(node, disk))}": "'" * disk for node in range(10) for disk in range(2)
}


class _Story(Cluster):
    def chance(self, node_id: int) -> Callable[[], float]:
        return lambda: (node_id - 1) * 0.2 % 1


class Script:
    """Runs the commands of one story."""

    def __init__(self) -> None:
        self.cluster: Cluster = _Story()
        self.cluster.observe = self._observe
        self.lines: list[str] = []
        self.faulted: set[int] = set()
        self.commands: dict[str, Callable[..., None]] = {
            name[4:].replace("_", "-"): getattr(self, name)
            for name in dir(self)
            if name.startswith("cmd_")
        }

    def run(self, line: str) -> list[str]:
        """The outcome of one command line."""
        self.lines = []
        told = len(self.cluster.answers)
        name, *words = line.split()
        args = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self.commands[name](*args, **options)
        for node_id, answer in self.cluster.answers[told:]:
            self.lines.append(f"{node_id} answers {_answer(answer)}")
        return [_shorten(text) for text in self.lines] or ["ok"]

    def _observe(self, node: Node, ready: Ready) -> None:
        say = self.lines.append
        for note in ready.notes:
            say(f"{node.id}: {note}")
        if ready.high_watermark is not None:
            say(f"{node.id}: high watermark {ready.high_watermark}")
        for proposal in ready.proposals:
            if isinstance(proposal, Accepted):
                end = proposal.end_offset
                say(f"{node.id}: accepted [{proposal.base_offset}, {end})")
            else:
                say(f"{node.id}: refused {proposal.error.name}: {proposal.message}")
        if ready.faulted and node.id not in self.faulted:
            self.faulted.add(node.id)
            say(f"{node.id}: FAULTED {ready.faulted}")

    def _node(self, word: str) -> Node:
        return self.cluster.nodes[int(word)]

    # -- who is there --------------------------------------------------------------------------
    def cmd_dynamic(self, *ids: str) -> None:
        """dynamic 1 2 3: voters in the bootstrap snapshot, kraft.version 1"""
        self.cluster.dynamic(*map(int, ids))

    def cmd_static(self, *ids: str) -> None:
        """static 1 2 3: voters by configuration, kraft.version 0"""
        self.cluster.static(*map(int, ids))

    def cmd_observer(self, node: str, knows: str, disk: str = "0", **options: str) -> None:
        """observer 4 knows=1,2 [disk=1] [auto_join=yes]: an empty node, not started"""
        auto_join = options.get("auto_join") == "yes"
        others = map(int, knows.split(","))
        self.cluster.observer(int(node), *others, disk=int(disk), auto_join=auto_join)

    def cmd_start(self, *ids: str) -> None:
        """start [1 2]: begin, or begin again, with what is on the disk; quietly without ids"""
        self.cluster.start(*map(int, ids))
        if not ids:
            self.lines = []

    def cmd_crash(self, node: str, kept: str = "0") -> None:
        """crash 1 [kept=1]: stop dead; of the pending writes the first `kept` reached the disk"""
        self._node(node).crash(int(kept))

    def cmd_shutdown(self, node: str) -> None:
        self._node(node).step(Shutdown())

    def cmd_fail_disk(self, node: str) -> None:
        self._node(node).step(StorageFailed("no space left"))

    def cmd_cut(self, *words: str) -> None:
        """cut 1 | 2 3: messages pass only within a group"""
        groups = " ".join(words).split("|")
        self.cluster.partition(*([int(w) for w in group.split()] for group in groups))

    def cmd_damage(self, node: str) -> None:
        """damage 4: the next snapshot that it installs is found damaged"""
        self._node(node).damage_next = True

    def cmd_heal(self) -> None:
        self.cluster.heal()

    # -- letting things happen -----------------------------------------------------------------
    def cmd_run(self, duration_ms: str) -> None:
        """run 100: persist, deliver and let the clock go on by itself"""
        self.cluster.run(int(duration_ms))

    def cmd_elect(self) -> None:
        """elect: run until a leader has committed a record of its epoch, and 10 ms more"""
        leader = self.cluster.elect()
        self.cluster.run(10)
        self.lines = [f"{leader} leads epoch {self.cluster[leader].epoch}"]

    def cmd_settle(self) -> None:
        """settle: persist and deliver until nothing moves; no time passes"""
        self.cluster.settle()

    def cmd_wait(self, duration_ms: str) -> None:
        """wait 100: time passes, alarms ring, nothing is persisted or delivered"""
        self.cluster.now += int(duration_ms)
        for node in self.cluster.running:
            if node.wake is not None and node.wake <= self.cluster.now:
                node.step()

    def cmd_persist(self, *ids: str) -> None:
        for node_id in ids:
            self._node(node_id).persist()

    def cmd_deliver(self, *filters: str) -> None:
        """deliver [1->2] [VoteRequest]: all messages in flight now that match"""
        for message in [m for m in self.cluster.network if _chosen(m, filters)]:
            self.cluster.deliver(lambda m, wanted=message: m is wanted)  # type: ignore[misc]

    def cmd_drop(self, *filters: str) -> None:
        network = self.cluster.network
        gone = [m for m in network if _chosen(m, filters)]
        network[:] = [m for m in network if m not in gone]
        self.lines += [f"dropped {message}" for message in gone]

    def cmd_connection_lost(self, node: str, to: str) -> None:
        self._node(node).step(ConnectionLost(int(to)))

    # -- asking --------------------------------------------------------------------------------
    def cmd_propose(self, node: str, *values: str) -> None:
        self._node(node).propose(*values)

    def cmd_ask(self, node: str, kind: str, **options: str) -> None:
        """ask 1 Vote candidate=2 epoch=1 ...: a request, as a client sends it"""
        self._node(node).receive(0, 0, _request(kind, options))

    def cmd_resign(self, node: str) -> None:
        self._node(node).step(Resign(self.cluster[int(node)].epoch))

    def cmd_upgrade(self, node: str, version: str = "1") -> None:
        self._node(node).step(UpgradeKRaftVersion(0, int(version)))

    def cmd_snapshot(self, node: str, offset: str) -> None:
        self._node(node).snapshot(int(offset))

    def cmd_clean(self, node: str) -> None:
        """clean 1: drop the log before the newest snapshot"""
        self._node(node).step(CleanTo(self.cluster[int(node)].snapshots[-1]))

    # -- looking -------------------------------------------------------------------------------
    def cmd_status(self) -> None:
        self.lines += self.cluster.summary()

    def cmd_messages(self) -> None:
        self.lines += [_describe(message) for message in self.cluster.network]

    def cmd_disk(self, node: str) -> None:
        """disk 1: what a crash now would leave"""
        disk = self._node(node).durable
        state = disk.election
        if state is not None:
            self.lines.append(f"epoch {state.epoch} leader {state.leader_id} voted {state.voted}")
        self.lines.append(f"log [{disk.start}, {disk.end})")

    def cmd_log(self, node: str) -> None:
        """log 1: base offset, epoch and content of each batch"""
        self.lines.append(f"starts at {self._node(node).live.start}")
        for batch in self._node(node).live.batches:
            kinds = ", ".join(type(record).__name__ for record in batch.control)
            self.lines.append(f"{batch.base_offset} epoch {batch.epoch}: {batch.payload or kinds}")

    def cmd_voters(self, node: str) -> None:
        control = self.cluster[int(node)].voters
        names = ", ".join(str(voter.key) for voter in control.voters or ())
        self.lines.append(f"kraft.version {control.kraft_version}, voters {names}")

    def cmd_describe(self, node: str) -> None:
        found = self.cluster[int(node)].describe(self.cluster.now)
        assert found is not None
        self.lines.append(f"leader {found.leader_id} hw {found.high_watermark}")
        for title, rows in (("voter", found.voters), ("observer", found.observers)):
            self.lines += [f"{title} {row.key} end {row.log_end_offset}" for row in rows]


def _shorten(text: str) -> str:
    for long, short in _SHORT.items():
        text = text.replace(long, short)
    return re.sub(r"ReplicaKey\(id=(\d+), directoryId=\S+?\)", r"<\1>", text)


def _chosen(message: Message, filters: tuple[str, ...]) -> bool:
    route = f"{message.source}->{message.to}"
    return all(f in (route, type(message.body).__name__) for f in filters)


def _describe(message: Message) -> str:
    body = message.body
    text = str(message)
    if isinstance(body, VoteRequest):
        kind = "pre-vote" if body.pre_vote else "vote"
        return f"{text} {kind} epoch {body.epoch} log ({body.last_offset}, {body.last_epoch})"
    if isinstance(body, FetchRequest):
        return f"{text} epoch {body.epoch} at ({body.offset}, {body.last_fetched_epoch})"
    if isinstance(body, Response):
        return f"{text} {_answer(body).split(' ', 1)[1]}"
    return text


def _answer(answer: Response) -> str:
    text = f"{type(answer).__name__} {answer.error.name}"
    if isinstance(answer, VoteResponse) and answer.error == 0:
        text += " granted" if answer.granted else " refused"
    if isinstance(answer, FetchResponse):
        if answer.diverging is not None:
            text += f" diverging {tuple(answer.diverging)}"
        if answer.snapshot_id is not None:
            text += f" snapshot {tuple(answer.snapshot_id)}"
        text += f" hw {answer.high_watermark} batches {[b.base_offset for b in answer.batches]}"
    message = getattr(answer, "message", None)
    return f"{text}: {message}" if message else text


def _request(kind: str, options: dict[str, str]) -> Request:
    number = {name: int(value) for name, value in options.items() if value.lstrip("-").isdigit()}
    who = key(number.get("voter", 0), number.get("disk", 0))
    where = listeners(number.get("voter", 0))
    if kind == "Add":
        ack = options.get("ack") != "append"
        return AddVoterRequest(CLUSTER_ID, who, where, ack_when_committed=ack)
    if kind == "Remove":
        return RemoveVoterRequest(CLUSTER_ID, who)
    if kind == "Update":
        return UpdateVoterRequest(CLUSTER_ID, number["epoch"], who, where, 0, number.get("max", 1))
    if kind == "Begin":
        leader = LeaderAndEpoch(number["leader"], number["epoch"])
        return BeginQuorumEpochRequest(CLUSTER_ID, None, leader, listeners(leader.leader_id))
    if kind == "Fetch":
        epoch, last = number["epoch"], number["last"]
        replica = key(number["replica"], number.get("disk", 0))
        offset = number["offset"]
        return FetchRequest(CLUSTER_ID, replica, epoch, offset, last, 0, 1 << 20, -1)
    assert kind in ("Vote", "PreVote"), kind
    end = OffsetAndEpoch(number["offset"], number["last"])
    candidate = key(number["candidate"], number.get("disk", 0))
    pre_vote = kind == "PreVote"
    return VoteRequest(
        CLUSTER_ID, None, number["epoch"], candidate, end.epoch, end.offset, pre_vote
    )


def play(path: Path) -> str:
    """The whole story with the outcomes that it has now."""
    script = Script()
    told: list[str] = []
    for block in path.read_text().strip().split("\n\n"):
        head = block.split("\n----")[0].split("\n")
        commands = [line for line in head if line and not line.startswith("#")]
        outcome = [text for line in commands for text in script.run(line)]
        if len(outcome) > 1:
            outcome = [text for text in outcome if text != "ok"] or ["ok"]
        told.append("\n".join([*head, *(["----", *outcome] if commands else [])]))
    return "\n\n".join(told) + "\n"
