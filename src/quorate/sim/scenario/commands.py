"""The commands of a scenario: method `cmd_x` is the command x, its docstring its usage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.raft.inputs import (
    CleanTo,
    ConnectionLost,
    Resign,
    Shutdown,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.sim.scenario.cluster import CoreCluster
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.node import CoreMessage
from quorate.sim.scenario.requests import request
from quorate.sim.scenario.text import message_text


class _ScenarioCluster(CoreCluster):
    """The random source is fixed: node 1 has the shortest timeouts, then node 2, ..."""

    def random_source(self, node_id: int) -> Callable[[], float]:
        return lambda: (node_id - 1) * 0.2 % 1


class Commands:
    """A cluster, its commands, and the output lines of the current command."""

    def __init__(self) -> None:
        self.cluster: CoreCluster = _ScenarioCluster()
        self.lines: list[str] = []

    # -- who is there --------------------------------------------------------------------------
    def cmd_dynamic(self, *ids: int, auto_join: str = "no") -> None:
        """dynamic 1 2 3 [auto_join=yes]: voters in the bootstrap snapshot, kraft.version 1"""
        self.cluster.dynamic(*_each_once(ids), auto_join=_is_yes("auto_join", auto_join))

    def cmd_static(self, *ids: int) -> None:
        """static 1 2 3: voters by configuration, kraft.version 0"""
        self.cluster.static(*_each_once(ids))

    def cmd_observer(self, node: int, knows: str, disk: int = 0, auto_join: str = "no") -> None:
        """observer 4 knows=1,2 [disk=1] [auto_join=yes]: an empty node, not started"""
        others = _numbers(knows.split(","))
        joins = _is_yes("auto_join", auto_join)
        self.cluster.observer(node, *others, disk=disk, auto_join=joins)

    def cmd_start(self, *ids: int) -> None:
        """start [1 2]: start or restart with the state of the disk; without ids there is no output"""
        self.cluster.start(*ids)
        if not ids:
            self.lines = []

    def cmd_crash(self, node: int, kept: int = 0, torn: int = 0) -> None:
        """crash 1 [kept=1] [torn=1]: kill the process; the first `kept` pending write steps reached
        the disk, and of the next one the first `torn` writes"""
        self.cluster.node(node).crash(kept, torn)

    def cmd_shutdown(self, node: int) -> None:
        """shutdown 1: shut down gracefully"""
        self.cluster.node(node).step(Shutdown())

    def cmd_fail_disk(self, node: int) -> None:
        """fail-disk 1: a write or sync fails"""
        self.cluster.node(node).step(StorageFailed("no space left"))

    def cmd_cut(self, *words: str) -> None:
        """cut 1 | 2 3: messages pass only within a group"""
        groups = " ".join(words).split("|")
        sides = [_numbers(group.split()) for group in groups]
        for node in (node for side in sides for node in side):
            self.cluster.node(node)
        self.cluster.partition(*sides)

    def cmd_damage(self, node: int) -> None:
        """damage 4: the next snapshot that it installs is corrupt"""
        self.cluster.node(node).damage_next = True

    def cmd_move(self, node: int, back: str = "no") -> None:
        """move 2 [back=yes]: change its host name; nodes that start from now on know it"""
        self.cluster.move(node, back=_is_yes("back", back))

    def cmd_heal(self) -> None:
        """heal: end all partitions"""
        self.cluster.heal()

    # -- letting things happen -----------------------------------------------------------------
    def cmd_run(self, duration_ms: int) -> None:
        """run 100: persist and deliver while this many ms pass"""
        self.cluster.run(duration_ms)

    def cmd_elect(self) -> None:
        """elect: run until a leader has committed a record of its epoch, and 10 ms more"""
        leader = self.cluster.elect()
        self.cluster.run(10)
        self.lines = [f"{leader} leads epoch {self.cluster[leader].epoch}"]

    def cmd_settle(self) -> None:
        """settle: persist and deliver until nothing changes; no time passes"""
        self.cluster.settle()

    def cmd_wait(self, duration_ms: int) -> None:
        """wait 100: time passes and timers expire, nothing is persisted or delivered"""
        self.cluster.now += duration_ms
        for node in self.cluster.running:
            if node.wake is not None and node.wake <= self.cluster.now:
                node.step()

    def cmd_leap(self, node: int, ms: int = 10_000) -> None:
        """leap 1 [ms=10000]: advance the clock of this node only; its timers expire"""
        self.cluster.node(node).skew += ms
        self.cluster.node(node).step()

    def cmd_persist(self, *ids: int, count: int = 0) -> None:
        """persist 1 2 [count=1]: their disks complete all writes, or those of this many steps"""
        for node_id in ids:
            self.cluster.node(node_id).persist(count or None)

    def cmd_deliver(self, *filters: str, which: int = 0) -> None:
        """deliver [1->2] [VoteRequest] [which=2]: all messages in flight now that match, or one"""
        for message in self._matching(filters, which):
            self.cluster.deliver_one(message)

    def cmd_fail(self, *filters: str, which: int = 0) -> None:
        """fail [1->2] [VoteRequest] [which=2]: as drop, and the senders are notified at once"""
        for message in self._matching(filters, which):
            self.cluster.fail(message)

    def _matching(self, filters: tuple[str, ...], which: int) -> list[CoreMessage]:
        found = [m for m in self.cluster.network if _chosen(m, filters)]
        if not 0 <= which <= len(found):
            raise CommandError(f"there are {len(found)} such messages, but which={which}")
        return found[which - 1 : which] if which else found

    def cmd_drop(self, *filters: str) -> None:
        """drop [1->2] [VoteRequest]: all messages in flight now that match are lost"""
        network = self.cluster.network
        gone = [m for m in network if _chosen(m, filters)]
        network[:] = [m for m in network if not any(m is g for g in gone)]
        self.lines += [f"dropped {message}" for message in gone]

    def cmd_connection_lost(self, node: int, to: int) -> None:
        """connection-lost 1 2: node 1 loses its connection to 2"""
        self.cluster.node(node).step(ConnectionLost(to))

    # -- asking --------------------------------------------------------------------------------
    def cmd_propose(self, node: int, *values: str, size: int = 0) -> None:
        """propose 1 a b [size=9000000]: records, one batch each, of this many bytes, in one step"""
        self.cluster.node(node).propose(*values, size=size or None)

    def cmd_ask(self, node: int, kind: str, **options: str) -> None:
        """ask 1 Vote candidate=2 epoch=1 ...: send a request as a client"""
        self.cluster.node(node).receive(0, 0, request(kind, options))

    def cmd_resign(self, node: int) -> None:
        """resign 1: the state machine gives up leadership"""
        self.cluster.node(node).step(Resign(self.cluster[node].epoch))

    def cmd_upgrade(self, node: int, version: int = 1) -> None:
        """upgrade 1 [version=1]: raise kraft.version"""
        self.cluster.node(node).step(UpgradeKRaftVersion(0, version))

    def cmd_snapshot(self, node: int, offset: int) -> None:
        """snapshot 1 5: a snapshot of everything before offset 5"""
        self.cluster.node(node).snapshot(offset)

    def cmd_clean(self, node: int) -> None:
        """clean 1: remove the log before the newest snapshot"""
        snapshots = self.cluster[node].snapshots
        if not snapshots:
            raise CommandError(f"node {node} has no snapshot")
        self.cluster.node(node).step(CleanTo(snapshots[-1]))

    # -- looking -------------------------------------------------------------------------------
    def cmd_status(self) -> None:
        """status: role, epoch, leader, log end and high watermark of each node that runs"""
        self.lines += self.cluster.summary()

    def cmd_reported_leader(self, *ids: int) -> None:
        """reported-leader 1 2: the leader that their state machines were last notified of"""
        for node_id in ids:
            reported = self.cluster.node(node_id).reported_leader
            leader = (
                "no leader"
                if reported is None
                else f"leader {reported.leader_id} of epoch {reported.epoch}"
            )
            self.lines.append(f"{node_id} reported {leader}")

    def cmd_messages(self) -> None:
        """messages: the messages in flight"""
        self.lines += [message_text(message) for message in self.cluster.network]

    def cmd_disk(self, node: int) -> None:
        """disk 1: the state that would survive a crash now"""
        disk = self.cluster.node(node).durable
        state = disk.election
        if state is not None:
            self.lines.append(f"epoch {state.epoch} leader {state.leader_id} voted {state.voted}")
        self.lines.append(f"log [{disk.start}, {disk.end})")

    def cmd_log(self, node: int) -> None:
        """log 1: base offset, epoch and content of each batch"""
        live = self.cluster.node(node).live
        self.lines.append(f"starts at {live.start}")
        for batch in live.batches:
            kinds = ", ".join(type(record).__name__ for record in batch.control)
            self.lines.append(f"{batch.base_offset} epoch {batch.epoch}: {batch.payload or kinds}")

    def cmd_voters(self, node: int) -> None:
        """voters 1: kraft.version and voter set in force there"""
        control = self.cluster[node].voters
        names = ", ".join(str(voter.key) for voter in control.voters or ())
        self.lines.append(f"kraft.version {control.kraft_version}, voters {names}")

    def cmd_describe(self, node: int) -> None:
        """describe 1: its DescribeQuorum response"""
        found = self.cluster[node].describe(self.cluster.now)
        if found is None:
            raise CommandError(f"node {node} does not lead")
        self.lines.append(f"leader {found.leader_id} hw {found.high_watermark}")
        for title, rows in (("voter", found.voters), ("observer", found.observers)):
            self.lines += [f"{title} {row.key} end {row.log_end_offset}" for row in rows]


def _chosen(message: CoreMessage, filters: tuple[str, ...]) -> bool:
    route = f"{message.source}->{message.to}"
    return all(f in (route, type(message.body).__name__) for f in filters)


def _each_once(ids: tuple[int, ...]) -> tuple[int, ...]:
    """The ids of voters."""
    if not ids or len(set(ids)) < len(ids):
        raise CommandError("name the voters, each once")
    return ids


def _is_yes(name: str, word: str) -> bool:
    if word not in ("yes", "no"):
        raise CommandError(f"{name}={word} is neither yes nor no")
    return word == "yes"


def _numbers(words: Sequence[str]) -> list[int]:
    for word in words:
        if not (word.isascii() and word.isdigit()):
            raise CommandError(f"'{word}' is not a node's id")
    return [int(word) for word in words]
