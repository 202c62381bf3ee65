"""What the leader is asked when all is over: questions that no client of a world has.

Nothing of it is in the trace, and what comes of it is not carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.errors import ErrorCode
from quorate.node.machine import Now
from quorate.node.replica import Replica, Submit
from quorate.raft.inputs import Propose
from quorate.raft.ready import Refused
from quorate.sim.observe import Violation
from quorate.sim.process import Process

if TYPE_CHECKING:
    from quorate.sim.world import World

CHECK: Final = "what is too large is refused"
_TOKEN: Final = -7
_MOST: Final = 1 << 24
"""Of bytes that are made up for a question."""
_STEPS: Final = 10


def examine(world: World) -> None:
    """Raises Violation. The replicas are of no other use afterwards."""
    leader = world.leader()
    if leader is None or leader.replica is None or leader.replica.leading_epoch is None:
        return
    most = leader.replica.config.limits.batch_bytes
    if most <= _MOST:
        _check(leader, most, _said_to(leader.replica, bytes(most + 1), leader.now))
    proposal = Propose(_TOKEN, leader.core.epoch, 1, most + 1, b"")
    _check(leader, most, list(leader.core.step([proposal], leader.now.monotonic_ms).proposals))


def _said_to(replica: Replica, value: bytes, now: Now) -> list[object]:
    """What is said to a Submit, which may wait for company first."""
    effects = replica.step([Submit(_TOKEN, (value,))], now)
    said: list[object] = list(effects.outcomes)
    for _ in range(_STEPS):
        if said or effects.wake_at_ms is None:
            break
        now = Now(max(effects.wake_at_ms, now.monotonic_ms), now.wall_ms)
        effects = replica.step([], now)
        said += effects.outcomes
    return said


def _check(leader: Process, most: int, said: list[object]) -> None:
    found = [one for one in said if getattr(one, "token", None) == _TOKEN]
    for one in found:
        if isinstance(one, Refused) and (
            one.error == ErrorCode.RECORD_LIST_TOO_LARGE or leader.core.role != "leader"
        ):
            return  # too large, or it has resigned meanwhile
    raise Violation(
        CHECK,
        f"node {leader.id} is asked to append {most + 1} bytes as one, at most {most} may be, and "
        f"says {found or 'nothing'}",
    )
