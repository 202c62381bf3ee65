"""After the last deed: put everything right, and see that the quorum comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quorate.base.errors import QuorateError
from quorate.client.admin import ClientError, Quorum
from quorate.nemesis.deeds import Nemesis
from quorate.nemesis.quorum import Ensemble


async def heal(ensemble: Ensemble, nemesis: Nemesis, seconds: float) -> None:
    """Every node runs and is a voter, and all have what was committed at some moment.

    Raises QuorateError, which says what was missing, when that takes too long.
    """
    missing = "nothing was tried"

    async def is_whole() -> bool:
        nonlocal missing
        await nemesis.look_after()
        if hopeless := [node.id for node in ensemble if node.is_hopeless]:
            raise QuorateError(f"the quorum is not whole: {hopeless} fall whenever they start")
        missing = await _mend(ensemble)
        return not missing

    await until(is_whole, seconds, lambda: f"the quorum is not whole: {missing}")


async def _mend(ensemble: Ensemble) -> str:
    """One step towards the whole; what is missing yet, or nothing."""
    view = await ensemble.view()
    if view is None:
        return "no leader"
    voters = {voter.key for voter in view.voters}
    for node in ensemble:
        key = ensemble.keys[node.id]
        if key not in voters:
            try:
                await ensemble.add(node)
            except ClientError as error:
                return f"node {node.id} cannot be added: {error}"
            return f"node {node.id} was just added"
    return _behind(view)


def _behind(view: Quorum) -> str:
    """Who lacks what is committed."""
    late = [
        f"node {voter.key.id} has {voter.log_end_offset} of {view.high_watermark}"
        for voter in view.voters
        if voter.log_end_offset < view.high_watermark
    ]
    return "; ".join(late)


async def settle(ensemble: Ensemble, seconds: float = 30.0) -> int:
    """Wait until every voter has acknowledged all that the leader has now, and it is committed.

    Its end offset. Raises QuorateError.
    """
    epoch, target = -1, -1

    async def is_settled() -> bool:
        nonlocal epoch, target
        view = await ensemble.view()
        if view is None:
            return False
        ends = {voter.key.id: voter.log_end_offset for voter in view.voters}
        if view.leader_id not in ends:
            return False
        if view.leader_epoch != epoch:
            epoch, target = view.leader_epoch, ends[view.leader_id]
        return min(*ends.values(), view.high_watermark) >= target

    await until(is_settled, seconds, "not every voter has the whole log")
    return target


async def until(
    condition: Callable[[], Awaitable[bool]], seconds: float, what: str | Callable[[], str]
) -> None:
    """Ask every 100 ms until it holds. Raises QuorateError with `what`."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not await condition():
        if loop.time() > end:
            why = what if isinstance(what, str) else what()
            raise QuorateError(f"after {seconds:.0f} s: {why}")
        await asyncio.sleep(0.1)
