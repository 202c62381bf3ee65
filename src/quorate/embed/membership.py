"""Carrying a voter change through: asked again while all that is missing is time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.embed.errors import ChangeFailed, InDoubt, MemberStopped, NotLeader

_PAUSE_S: Final = 0.05

Answer = tuple[ErrorCode, str | None]


async def carry_through(
    ask: Callable[[], Awaitable[Answer]],
    already: Callable[[ErrorCode, bool], bool],
    timeout_s: float,
) -> None:
    """Ask until the change is committed, or refused for good, or `timeout_s` has gone by.

    An earlier attempt that ran out of time may have been committed after all: `already` says
    whether a refusal means that, told whether there was one. One that was refused for now (another
    change is under way) is none. Raises ChangeFailed; InDoubt where leadership was lost, or the
    member stopped, after an attempt that may yet commit; else what `ask` raises.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    uncertain = False
    while True:
        try:
            error, message = await ask()
        except (NotLeader, MemberStopped) as ended:
            if not uncertain:
                raise
            raise InDoubt(
                f"{ended}; an earlier attempt had run out of time: it may or may not commit"
            ) from ended
        if error == ErrorCode.NONE or already(error, uncertain):
            return
        if error != ErrorCode.REQUEST_TIMED_OUT or loop.time() >= until:
            raise ChangeFailed(error, message)
        uncertain |= error.is_all_of(message)
        await asyncio.sleep(_PAUSE_S)
