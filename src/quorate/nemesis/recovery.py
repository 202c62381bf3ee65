"""The liveness phase after the last fault: the quorum must become whole again by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quorate.base.errors import QuorateError
from quorate.client import ClientError, QuorumInfo
from quorate.nemesis.faults import FaultInjector
from quorate.nemesis.quorum import NemesisQuorum

_POLL_S = 0.1


async def recover(quorum: NemesisQuorum, injector: FaultInjector, seconds: float) -> None:
    """Wait until every node runs, is a voter, and has reached a committed offset.

    Raises QuorateError, which names what is missing, after `seconds`.
    """
    missing = "nothing was tried"

    async def is_whole() -> bool:
        nonlocal missing
        await injector.restart_ended_nodes()
        if failing := [node.id for node in quorum if node.fails_at_every_start]:
            raise QuorateError(f"the quorum is not whole: {failing} end at every start")
        missing = await _recovery_step(quorum)
        return not missing

    await wait_until(is_whole, seconds, lambda: f"the quorum is not whole: {missing}")


async def _recovery_step(quorum: NemesisQuorum) -> str:
    """Complete one voter change that a fault has left undone; what is still missing, or ""."""
    info = await quorum.describe()
    if info is None:
        return "no leader"
    voters = {voter.key for voter in info.voters}
    for node in quorum:
        if quorum.keys[node.id] not in voters:
            try:
                await quorum.add(node)
            except ClientError as error:
                return f"node {node.id} cannot be added: {error}"
            return f"node {node.id} was just added"
    return _lagging(info)


def _lagging(info: QuorumInfo) -> str:
    """The voters that lack committed records."""
    late = [
        f"node {voter.key.id} has {voter.log_end_offset} of {info.high_watermark}"
        for voter in info.voters
        if voter.log_end_offset < info.high_watermark
    ]
    return "; ".join(late)


async def wait_replicated(quorum: NemesisQuorum, seconds: float = 30.0) -> int:
    """Wait until every voter has acknowledged, and committed, what the leader has now.

    Returns the leader's log end offset. Raises QuorateError after `seconds`.
    """
    epoch, target = -1, -1

    async def is_replicated() -> bool:
        nonlocal epoch, target
        info = await quorum.describe()
        if info is None:
            return False
        ends = {voter.key.id: voter.log_end_offset for voter in info.voters}
        if info.leader_id not in ends:
            return False
        # A new leader may lack what the last one had not committed: its log is the new target.
        if info.leader_epoch != epoch:
            epoch, target = info.leader_epoch, ends[info.leader_id]
        return min(*ends.values(), info.high_watermark) >= target

    await wait_until(is_replicated, seconds, "not every voter has the whole log")
    return target


async def wait_until(
    condition: Callable[[], Awaitable[bool]], seconds: float, missing: str | Callable[[], str]
) -> None:
    """Poll the condition until it holds. Raises QuorateError with `missing` after `seconds`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await condition():
        if loop.time() > end:
            text = missing if isinstance(missing, str) else missing()
            raise QuorateError(f"after {seconds:.0f} s: {text}")
        await asyncio.sleep(_POLL_S)
