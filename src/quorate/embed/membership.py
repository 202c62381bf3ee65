"""Repeat a voter change until it is committed or refused for good."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.embed.errors import (
    InDoubtError,
    MembershipChangeError,
    MemberStoppedError,
    NotLeaderError,
)

_PAUSE_S: Final = 0.05

Answer = tuple[ErrorCode, str | None]


async def change_until_committed(
    ask: Callable[[], Awaitable[Answer]],
    already: Callable[[ErrorCode, bool], bool],
    timeout_s: float,
) -> None:
    """Ask until the change is committed, refused for good, or `timeout_s` is over.

    1. REQUEST_TIMED_OUT is retried: the new member still lags, or another change is pending.
    2. Without a message it is the leader's own timeout: the change may still be committed, so the
       outcome is uncertain from then on. With a message the attempt was refused and changed nothing.
    3. After an uncertain attempt, a refusal may mean success, e.g. DUPLICATE_VOTER. `already(error,
       uncertain)` decides that.

    Raises MembershipChangeError; InDoubtError when leadership was lost or the member stopped after an
    uncertain attempt; otherwise what `ask` raises.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + timeout_s
    uncertain = False
    while True:
        try:
            error, message = await ask()
        except (NotLeaderError, MemberStoppedError) as ended:
            if not uncertain:
                raise
            raise InDoubtError(
                f"{ended}; an earlier attempt timed out: it may or may not commit"
            ) from ended
        if error == ErrorCode.NONE or already(error, uncertain):
            return
        if error != ErrorCode.REQUEST_TIMED_OUT or loop.time() >= until:
            raise MembershipChangeError(error, message)
        uncertain |= error.is_all_of(message)
        await asyncio.sleep(_PAUSE_S)
