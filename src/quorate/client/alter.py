"""Carrying out a plan to reach another voter set (KIP-595's AlterQuorum over KIP-853's steps).

Before each step the plan is made anew from what the leader says then: a leader change, a cancelled
run or another operator's change only alters what is left to do.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, uuid_to_text
from quorate.client.admin import Admin, Quorum
from quorate.raft.alter import AddStep, Step, plan

LIVE_WITHIN_MS: Final = 10_000
"""A replica that fetched so recently counts as alive; Kafka's fetch timeout is 2000 ms."""

PATIENCE_S: Final = 5.0
"""How long a replica may be silent before it counts as gone: a new leader hears of the old one's
voters and observers when they have found it, which takes a fetch timeout."""
COMMITTED_WITHIN_S: Final = 30.0
"""How long the last change in a log may stay uncommitted: a leader that no majority follows has
resigned by then."""
_LOOK_S: Final = 0.1

Targets = Mapping[ReplicaKey, Address | None]
"""The wanted voters; those that are voters already need no address."""


class AlterError(QuorateError):
    """A step could not be taken; says what to do first."""


def steps_to(quorum: Quorum, targets: Targets) -> tuple[Step, ...]:
    """The steps from the quorum as it is, in order; empty when the target is reached.

    Raises CannotAlter when there is no safe way.
    """
    voters = (voter.key for voter in quorum.voters)
    return plan(voters, targets, quorum.leader_id, live(quorum))


class View:
    """A quorum in the eyes of a leader that has had the time to hear of its voters.

    A new leader has heard of nobody: for a moment all the others look dead, and the majority that
    a plan must keep looks lost.
    """

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self._epoch = -1
        self._until = 0.0
        self._newest: tuple[int, frozenset[ReplicaKey]] | None = None
        self._newest_end = 0

    def look(self) -> Quorum:
        """The quorum as it is; waits PATIENCE_S at most, once a leader, for who never fetched."""
        while True:
            quorum = self.admin.describe_quorum()
            if quorum.leader_epoch != self._epoch:
                self._epoch = quorum.leader_epoch
                self._until = time.monotonic() + PATIENCE_S
            heard = all(voter.last_fetch_ms >= 0 for voter in quorum.voters)
            if heard or time.monotonic() >= self._until:
                return quorum
            time.sleep(_LOOK_S)

    def is_committed(self, quorum: Quorum) -> bool:
        """Will this voter set stay? A leader tells of the newest in its log, committed or not.

        It was in the log when it was first seen under this leader, so behind that log's end then.
        """
        seen = quorum.leader_epoch, frozenset(voter.key for voter in quorum.voters)
        if seen != self._newest:
            self._newest, self._newest_end = seen, quorum.leader.log_end_offset
        return quorum.high_watermark >= self._newest_end


def live(quorum: Quorum) -> frozenset[ReplicaKey]:
    """The replicas that the leader heard from lately, itself included."""
    now_ms = quorum.leader.last_fetch_ms
    rows = (*quorum.voters, *quorum.observers)
    return frozenset(row.key for row in rows if now_ms - row.last_fetch_ms <= LIVE_WITHIN_MS)


def unheard(quorum: Quorum, steps: Iterable[Step]) -> tuple[AddStep, ...]:
    """The steps that would fail now, as the leader does not hear from whom they add."""
    heard = live(quorum)
    return tuple(step for step in steps if isinstance(step, AddStep) and step.voter not in heard)


def why_unheard(step: AddStep, targets: Targets) -> str:
    """What is missing for the step, and what to do."""
    return (
        f"Cannot {step_text(step, targets)}: the leader does not hear from it. Format it with "
        "--no-initial-controllers, start it, and check that 'describe --replication' shows it "
        "as an observer with this directory id"
    )


def why_uncommitted(quorum: Quorum) -> str:
    """What the log has and the quorum has not, and what to do."""
    return (
        f"The log of leader {quorum.leader_id} has the voters that are wanted, but the quorum has "
        f"committed it to offset {quorum.high_watermark} only, for {COMMITTED_WITHIN_S:.0f} s: see "
        "'describe --replication' for who does not fetch, and give the same command again"
    )


def step_text(step: Step, targets: Targets) -> str:
    """`add controller 4 with directory id ... at host:port`."""
    key = step.voter
    text = f"controller {key.id} with directory id {uuid_to_text(key.directory_id)}"
    if isinstance(step, AddStep):
        return f"add {text} at {targets[key]}"
    return f"remove {text}"


def addresses_to_know(
    bootstrap: Iterable[Address], quorum: Quorum, targets: Targets
) -> tuple[Address, ...]:
    """Where the voters of `targets` are, if `bootstrap` leads to voters now and to none of them.

    Else empty: also when nobody is known at the addresses of `bootstrap`, as behind a proxy.
    """
    staying: list[Address] = [address for address in targets.values() if address is not None]
    leaving: list[Address] = []
    for voter in quorum.voters:
        side = staying if voter.key in targets else leaving
        side += [listener.address for listener in quorum.listeners.get(voter.key.id, ())]
    asked = tuple(bootstrap)
    if _meet(asked, staying) or not _meet(asked, leaving):
        return ()
    return tuple(dict.fromkeys(staying))


def _meet(some: Iterable[Address], others: Iterable[Address]) -> bool:
    return any(_is_same(one, other) for one in some for other in others)


def _is_same(one: Address, other: Address) -> bool:
    """By name, or by what the names stand for here."""
    if one == other:
        return True
    return one.port == other.port and not _ips(one.host).isdisjoint(_ips(other.host))


def _ips(host: str) -> frozenset[str]:
    try:
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return frozenset()


def alter(
    view: View,
    targets: Targets,
    on_step: Callable[[Step, int], None],
    on_done: Callable[[Step], None],
) -> Quorum:
    """Reach the target; the quorum as it is then.

    `on_step` is told each step and how many follow before it is taken, `on_done` when it is
    committed. Whoever is to be added and is not heard of is waited for before any step, so that no
    voter goes for one that never comes. Raises AlterError, CannotAlter or ClientError; what was
    committed until then stays.
    """
    began = time.monotonic()
    while True:
        quorum = view.look()
        steps = steps_to(quorum, targets)
        if not steps:
            if view.is_committed(quorum):
                return quorum
            if time.monotonic() >= began + COMMITTED_WITHIN_S:
                raise AlterError(why_uncommitted(quorum))
            time.sleep(_LOOK_S)
            continue
        absent = unheard(quorum, steps)
        if absent and time.monotonic() < began + PATIENCE_S:
            time.sleep(_LOOK_S)
            continue
        if absent:
            raise AlterError(why_unheard(absent[0], targets))
        step = steps[0]
        if isinstance(step, AddStep):
            listener = _listener(quorum, step, targets)
            on_step(step, len(steps) - 1)
            view.admin.add_voter(step.voter, (listener,))
        else:
            on_step(step, len(steps) - 1)
            view.admin.remove_voter(step.voter)
        on_done(step)
        began = time.monotonic()


def _listener(quorum: Quorum, step: AddStep, targets: Targets) -> Listener:
    """Where the new voter is; its listener has the name of the leader's first.

    Raises AlterError when that is not known.
    """
    address = targets[step.voter]
    listeners = quorum.listeners.get(quorum.leader_id, ())
    if address is None or not listeners:
        raise AlterError(
            f"Cannot {step_text(step, targets)}: its address or the leader's listener is not known"
        )
    return Listener(listeners[0].name, *address)
