"""From any voter set to any other, by single steps that are safe one by one (KIP-595, KIP-853).

`plan` is pure. `alter` plans anew before each step from what the leader says then, so that a
leader change, a cancelled run or another operator's change only alters what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, uuid_to_text
from quorate.client.admin import Admin, Quorum

LIVE_WITHIN_MS: Final = 10_000
"""A replica that fetched so recently counts as alive; Kafka's fetch timeout is 2000 ms."""


class AlterError(QuorateError):
    """The target cannot be reached safely; says what to do first."""


class Target(NamedTuple):
    """A wanted voter; without an address it must be a voter already."""

    key: ReplicaKey
    address: Address | None = None


class Step(NamedTuple):
    """One change of the voter set."""

    add: bool
    key: ReplicaKey
    address: Address | None = None

    def __str__(self) -> str:
        text = f"controller {self.key.id} with directory id {uuid_to_text(self.key.directory_id)}"
        return f"add {text} at {self.address}" if self.add else f"remove {text}"


def plan(voters: Iterable[ReplicaKey], target: Sequence[Target], leader_id: int) -> list[Step]:
    """The steps, in order; empty when the target is reached.

    First the new ids are added, while the old voters still carry the quorum; then a voter whose
    directory changed is removed and added again, for one id cannot be twice in the set; then
    the others are removed. What takes the leader out comes last: until then it does the work.
    """
    current = {key.id: key for key in voters}
    wanted = {entry.key.id: entry for entry in target}
    adds = [Step(True, *entry) for entry in target if entry.key.id not in current]
    swaps, removes = [], []
    for node_id in sorted(current, key=lambda node_id: (node_id == leader_id, node_id)):
        key, entry = current[node_id], wanted.get(node_id)
        if entry is None:
            removes.append(Step(False, key))
        elif entry.key != key:
            swap = [Step(False, key), Step(True, *entry)]
            if node_id == leader_id:
                removes += swap
            else:
                swaps += swap
    removes.sort(key=lambda step: step.key.id == leader_id)
    return [*sorted(adds, key=lambda step: step.key.id), *swaps, *removes]


def check(quorum: Quorum, step: Step) -> None:
    """Raise AlterError when `step` could not commit now: nobody there, or no live majority."""
    now_ms = quorum.leader.last_fetch_ms
    rows = {replica.key: replica for replica in (*quorum.voters, *quorum.observers)}
    live = {key for key, row in rows.items() if now_ms - row.last_fetch_ms <= LIVE_WITHIN_MS}
    if step.add and step.key not in live:
        raise AlterError(
            f"Cannot {step}: the leader does not hear from it. Format it with "
            "--no-initial-controllers, start it, and check that 'describe --replication' shows it "
            "as an observer with this directory id"
        )
    after = {voter.key for voter in quorum.voters} ^ {step.key}
    if len(after & live) <= len(after) // 2:
        raise AlterError(
            f"Cannot {step}: only {len(after & live)} of the {len(after)} voters that would be "
            "left are alive, and the change could never commit. Start the others first"
        )


def alter(
    admin: Admin,
    target: Sequence[Target],
    on_step: Callable[[Step, list[Step]], None],
    on_done: Callable[[Step], None],
) -> Quorum:
    """Reach the target; the quorum as it is then.

    `on_step` is told each step and what follows it before it is taken, `on_done` when it is
    committed. Raises AlterError or ClientError; what was committed until then stays.
    """
    while True:
        quorum = admin.describe_quorum()
        steps = plan((voter.key for voter in quorum.voters), target, quorum.leader_id)
        if not steps:
            return quorum
        step = steps[0]
        check(quorum, step)
        on_step(step, steps[1:])
        if step.add:
            admin.add_voter(step.key, (_listener(quorum, step),))
        else:
            admin.remove_voter(step.key)
        on_done(step)


def _listener(quorum: Quorum, step: Step) -> Listener:
    """The new voter's listener has the name of the leader's first."""
    listeners = quorum.listeners.get(quorum.leader_id, ())
    if step.address is None or not listeners:
        raise AlterError(f"Cannot {step}: its address or the leader's listener is not known")
    return Listener(listeners[0].name, *step.address)
