"""Reach another voter set by single steps: KIP-595's AlterQuorum with the requests of KIP-853.

The plan is computed again before each step, from the current state of the quorum. So the client
keeps no state: after a leader change, an interrupted run or another operator's change, it plans only
the steps that remain (docs/decisions/0004).
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, uuid_to_text
from quorate.client.admin.client import Admin
from quorate.client.results import QuorumInfo
from quorate.raft.alter import AddStep, Step, plan

LIVE_WITHIN_MS: Final = 10_000
"""A replica that fetched within this time counts as alive; Kafka's fetch timeout is 2000 ms."""

FETCH_WAIT_S: Final = 5.0
"""How long to wait for a replica's first Fetch to a new leader.

Voters and observers of the old leader find the new one after a fetch timeout."""
COMMIT_WAIT_S: Final = 30.0
"""How long to wait until a voter set is committed: by then a leader without a majority resigned."""
_POLL_S: Final = 0.1

Targets = Mapping[ReplicaKey, Address | None]
"""The target voter set; a key that is a voter already needs no address."""


class AlterError(QuorateError):
    """A step cannot be taken. The message says what to do first."""


def steps_to(quorum: QuorumInfo, targets: Targets) -> tuple[Step, ...]:
    """The remaining steps in order; empty when the target is reached.

    Raises AlterVotersError when no safe order of steps exists.
    """
    voters = (voter.key for voter in quorum.voters)
    return plan(voters, targets, quorum.leader_id, live_replicas(quorum))


class QuorumView:
    """The quorum as described by a leader that its voters had time to reach.

    A new leader has received no Fetch yet: every other voter looks dead, and the majority that a plan
    must preserve looks lost. `look` waits for the first Fetches.
    """

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self._epoch = -1
        self._until = 0.0
        self._newest: tuple[int, frozenset[ReplicaKey]] | None = None
        self._newest_end = 0

    def look(self) -> QuorumInfo:
        """Describe the quorum; waits once per leader, up to FETCH_WAIT_S, for every voter's Fetch."""
        while True:
            quorum = self.admin.describe_quorum()
            if quorum.leader_epoch != self._epoch:
                self._epoch = quorum.leader_epoch
                self._until = time.monotonic() + FETCH_WAIT_S
            all_fetched = all(voter.last_fetch_ms >= 0 for voter in quorum.voters)
            if all_fetched or time.monotonic() >= self._until:
                return quorum
            time.sleep(_POLL_S)

    def is_committed(self, quorum: QuorumInfo) -> bool:
        """Whether this voter set is committed. `quorum` must come from `look`.

        A leader describes the newest voter set in its log, even an uncommitted one (KIP-853). The set
        was in the log when this leader first described it, so it lies below the log end offset of
        that moment. It is committed when the high watermark reaches that offset.
        """
        seen = quorum.leader_epoch, frozenset(voter.key for voter in quorum.voters)
        if seen != self._newest:
            self._newest, self._newest_end = seen, quorum.leader.log_end_offset
        return quorum.high_watermark >= self._newest_end


def live_replicas(quorum: QuorumInfo) -> frozenset[ReplicaKey]:
    """The replicas that fetched from the leader within LIVE_WITHIN_MS, and the leader itself."""
    now_ms = quorum.leader.last_fetch_ms
    rows = (*quorum.voters, *quorum.observers)
    return frozenset(row.key for row in rows if now_ms - row.last_fetch_ms <= LIVE_WITHIN_MS)


def steps_without_fetches(quorum: QuorumInfo, steps: Iterable[Step]) -> tuple[AddStep, ...]:
    """The steps that would fail now because the new voter does not fetch from the leader."""
    live = live_replicas(quorum)
    return tuple(step for step in steps if isinstance(step, AddStep) and step.voter not in live)


def no_fetch_message(step: AddStep, targets: Targets) -> str:
    """Why the step cannot be taken, and what to do."""
    return (
        f"Cannot {step_text(step, targets)}: it does not fetch from the leader. Format it with "
        "--no-initial-controllers, start it, and check that 'describe --replication' shows it "
        "as an observer with this directory id"
    )


def not_committed_message(quorum: QuorumInfo) -> str:
    """Why the target voter set is not committed, and what to do."""
    return (
        f"The log of leader {quorum.leader_id} holds the target voters, but for "
        f"{COMMIT_WAIT_S:.0f} s the high watermark has stayed at {quorum.high_watermark}: see "
        "'describe --replication' for replicas that do not fetch, and run the command again"
    )


def step_text(step: Step, targets: Targets) -> str:
    """The step as text: `add controller 4 with directory id ... at host:port`."""
    key = step.voter
    text = f"controller {key.id} with directory id {uuid_to_text(key.directory_id)}"
    if isinstance(step, AddStep):
        return f"add {text} at {targets[key]}"
    return f"remove {text}"


def new_bootstrap_addresses(
    bootstrap: Iterable[Address], quorum: QuorumInfo, targets: Targets
) -> tuple[Address, ...]:
    """The target voters' addresses, if `bootstrap` names current voters but no target voter.

    Empty otherwise: also when `bootstrap` names no known voter, as behind a proxy.
    """
    staying: list[Address] = [address for address in targets.values() if address is not None]
    leaving: list[Address] = []
    for voter in quorum.voters:
        side = staying if voter.key in targets else leaving
        side += [listener.address for listener in quorum.listeners.get(voter.key.id, ())]
    known = tuple(bootstrap)
    if _overlap(known, staying) or not _overlap(known, leaving):
        return ()
    return tuple(dict.fromkeys(staying))


def _overlap(some: Iterable[Address], others: Iterable[Address]) -> bool:
    return any(_is_same(one, other) for one in some for other in others)


def _is_same(one: Address, other: Address) -> bool:
    """Whether both have the same port, and the same host name or a common IP address."""
    if one == other:
        return True
    return one.port == other.port and not _ips(one.host).isdisjoint(_ips(other.host))


def _ips(host: str) -> frozenset[str]:
    try:
        return frozenset(str(found[4][0]) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return frozenset()


def alter(
    view: QuorumView,
    targets: Targets,
    on_step: Callable[[Step, int], None],
    on_done: Callable[[Step], None],
) -> QuorumInfo:
    """Take steps until the voter set is `targets`; returns the quorum of that moment.

    `on_step` gets each step before it is taken, and the number of steps after it; `on_done` gets it
    when it is committed. Raises AlterError, AlterVotersError or ClientError; steps that are committed
    stay.
    """
    began = time.monotonic()
    while True:
        # 1. Plan again: the leader or the voter set may have changed since the last step.
        quorum = view.look()
        steps = steps_to(quorum, targets)
        # 2. The target is reached once it is committed, not when it is in the leader's log.
        if not steps:
            if view.is_committed(quorum):
                return quorum
            if time.monotonic() >= began + COMMIT_WAIT_S:
                raise AlterError(not_committed_message(quorum))
            time.sleep(_POLL_S)
            continue
        # 3. Wait until every new voter fetches, before the first step: else a voter would be removed
        #    for a replacement that never joins.
        absent = steps_without_fetches(quorum, steps)
        if absent and time.monotonic() < began + FETCH_WAIT_S:
            time.sleep(_POLL_S)
            continue
        if absent:
            raise AlterError(no_fetch_message(absent[0], targets))
        # 4. Take one step; the request returns when it is committed.
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


def _listener(quorum: QuorumInfo, step: AddStep, targets: Targets) -> Listener:
    """The new voter's listener, named like the leader's first one.

    Raises AlterError when the address or the leader's listener is unknown.
    """
    address = targets[step.voter]
    listeners = quorum.listeners.get(quorum.leader_id, ())
    if address is None or not listeners:
        raise AlterError(
            f"Cannot {step_text(step, targets)}: its address or the leader's listener is not known"
        )
    return Listener(listeners[0].name, *address)
