"""Submits records that are too large to the leader of a finished world.

The probe is not in the trace, and its effects are not carried out.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Propose
from quorate.raft.ready import Refused
from quorate.replica.replica import Replica, Submit
from quorate.replica.state_machine import Now
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.process import Process
from quorate.sim.world.world import World

CHECK: Final = "what is too large is refused"
_TOKEN: Final = -7
_MOST: Final = 1 << 24
"""The content of a probe's record."""
_STEPS: Final = 10


def probe_oversized_append(world: World) -> None:
    """Probe the leader. Raises ViolationError. The world cannot be used afterwards."""
    leader = world.leader()
    if leader is None or leader.replica is None or leader.replica.leading_epoch is None:
        return
    most = leader.replica.config.limits.batch_bytes
    if most <= _MOST:
        _check(leader, most, _said_to(leader.replica, bytes(most + 1), leader.now))
    proposal = Propose(_TOKEN, leader.core.epoch, 1, most + 1, b"")
    _check(leader, most, list(leader.core.step([proposal], leader.now.monotonic_ms).proposals))


def _said_to(replica: Replica, value: bytes, now: Now) -> list[object]:
    """The outcome of a Submit, after the batching delay at most."""
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
    raise ViolationError(
        CHECK,
        f"node {leader.id} is asked to append {most + 1} bytes as one, at most {most} may be, and "
        f"says {found or 'nothing'}",
    )
