"""AlterQuorum (KIP-595) on top of KIP-853: any voter set, reached by single safe steps.

The plan is a function of where the quorum stands now. The caller executes its first step, waits
until that is committed and plans again. So the operation can stop and resume at any point, from any
client, after any change of leader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey


@dataclass(frozen=True, slots=True)
class AddStep:
    """AddRaftVoter, and wait for the commit."""

    voter: ReplicaKey

    def __str__(self) -> str:
        return f"add {self.voter}"


@dataclass(frozen=True, slots=True)
class RemoveStep:
    """RemoveRaftVoter, and wait for the commit."""

    voter: ReplicaKey

    def __str__(self) -> str:
        return f"remove {self.voter}"


Step = AddStep | RemoveStep


class AlterVotersError(QuorateError):
    """There is no safe way from here to the wanted voter set."""

    exit_code = 1


def plan(
    current: Iterable[ReplicaKey],
    target: Iterable[ReplicaKey],
    leader_id: int = -1,
    live: Collection[ReplicaKey] | None = None,
) -> tuple[Step, ...]:
    """The steps from `current` to `target`, both with directory ids; empty when there.

    - Never fewer voters than the smaller of both sets. The exception is a replaced disk (same node
      id, other directory id): the old entry must go before the new one comes.
    - Add before remove, one for one, so that the set never grows past `target` by more than one.
    - The leader goes last; of the others those that are not `live` go first (None: all are).
    - After every step a majority of the voters is live, if one is before it.

    Raises AlterVotersError in three cases. The target is empty or names an id twice. The last voter
    would have to be removed before its replacement comes. A step would leave no live majority.
    """
    voters = sorted(current)
    wanted = frozenset(target)
    _validate(wanted)
    steps: list[Step] = []
    while frozenset(voters) != wanted:
        step = _next(voters, wanted, leader_id, live)
        if isinstance(step, AddStep):
            voters = sorted([*voters, step.voter])
        else:
            before = _has_live_majority(voters, live)
            voters.remove(step.voter)
            if before and not _has_live_majority(voters, live):
                raise AlterVotersError(
                    f"'{step}' would leave {_names(voters)}, of which no majority answers; bring "
                    "voters back first, or choose another target"
                )
        steps.append(step)
    return tuple(steps)


def _validate(wanted: frozenset[ReplicaKey]) -> None:
    if not wanted:
        raise AlterVotersError("a quorum needs at least one voter; the target set is empty")
    if len({key.id for key in wanted}) < len(wanted):
        raise AlterVotersError(
            f"a node id stands twice in the target set: {_names(sorted(wanted))}"
        )


def _next(
    voters: list[ReplicaKey],
    wanted: frozenset[ReplicaKey],
    leader_id: int,
    live: Collection[ReplicaKey] | None,
) -> Step:
    ids = {key.id for key in voters}
    missing = sorted(wanted - frozenset(voters))
    free = [key for key in missing if key.id not in ids]
    if free and len(voters) <= len(wanted):
        return AddStep(free[0])
    leaving = [key for key in voters if key not in wanted]
    replaced = {key.id for key in missing}

    def urgency(key: ReplicaKey) -> tuple[bool, bool, bool, ReplicaKey]:
        alive = live is None or key in live
        return (key.id == leader_id, alive, key.id not in replaced, key)

    step = RemoveStep(min(leaving, key=urgency))
    if len(voters) == 1:
        raise AlterVotersError(
            f"{step.voter} is the only voter and cannot be removed before another one is added; "
            "add a voter with another node id first"
        )
    return step


def _has_live_majority(voters: list[ReplicaKey], live: Collection[ReplicaKey] | None) -> bool:
    return live is None or 2 * sum(key in live for key in voters) > len(voters)


def _names(keys: Iterable[ReplicaKey]) -> str:
    return "{" + ", ".join(str(key) for key in keys) + "}"
