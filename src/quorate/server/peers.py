"""The other nodes: a connection each, made when it is needed and made anew when it breaks.

A request that cannot be answered is reported once: DISCONNECTED, TIMED_OUT or UNSUPPORTED_VERSION.
When a connection breaks it is made anew at once; if that is refused, nobody listens there any
more, and the core is told (ConnectionLost).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Final

from quorate.base.ids import Address
from quorate.raft.inputs import Failure
from quorate.server.link import Ask, Link, Pending, fail
from quorate.server.logs import Sparing
from quorate.server.names import first_to_answer, is_refusal

_MIN_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 0.5
_MOST_TOLD: Final = 1_000
_NO_ADDRESS: Final = (ValueError, OverflowError)
"""What a host name or a port raises that cannot be one: no encoding as IDNA, or a NUL in it."""


class Peer:
    """One node that we ask. `on_lost` is called when it turns out that nobody listens there.

    It has a link, or is connecting, or waits to connect again, or rests until it is asked. What
    is asked before the link is ready waits in a queue.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        client_id: str,
        on_lost: Callable[[], None],
        log: Sparing,
        unreachable: set[Address],
        connect_timeout_s: float = 10.0,
    ) -> None:
        """`unreachable` are the addresses of which it was told, by any of the node's peers."""
        self.address = address
        self._log = log
        self._unreachable = unreachable
        self._loop = loop
        self._client_id = client_id
        self._on_lost = on_lost
        self._connect_timeout_s = connect_timeout_s
        self._queue: list[Pending] = []
        self._link: Link | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._backoff_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._next_deadline = 0.0
        self._was_up = False
        """There was a link that became ready since the address refused last."""
        self._probing = False
        """A link that had carried answers broke, and it is not clear yet whether the node lives."""
        self._closed = False
        self._asked_at = loop.time()

    def __str__(self) -> str:
        return str(self.address)

    def ask(self, ask: Ask) -> None:
        """Send as soon as there is a connection; connects when there is none."""
        self._asked_at = self._loop.time()
        item = Pending(ask, self._asked_at + ask.timeout_ms / 1000)
        if self._timer is None or item.deadline < self._next_deadline:
            self._watch(item.deadline)
        if self._link is not None and self._link.is_ready:
            self._link.send(item)
            return
        self._queue.append(item)
        if not self._is_busy:
            self._connect()

    def is_idle(self, since: float) -> bool:
        """Was it not asked for anything since then (loop time), and owes no answer?"""
        if self._link is not None and (self._link.pending or self._link.answered_at >= since):
            return False
        return self._asked_at < since and not self._queue

    def close(self) -> None:
        """Fail whatever waits, close the connection, never connect again."""
        self._closed = True
        for running in (self._timer, self._retry, self._connecting):
            if running is not None:
                running.cancel()
        self._drop()

    @property
    def _is_busy(self) -> bool:
        """There is a link, or there will be one or a refusal without more ado."""
        return not (self._link is None and self._connecting is None and self._retry is None)

    def _drop(self) -> None:
        """The link, if any, is of no use any more."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        waiting, self._queue = self._queue, []
        fail(waiting, Failure.DISCONNECTED)

    # -- connecting ---------------------------------------------------------------------------
    def _connect(self) -> None:
        self._connecting = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            link = await self._reach()
        except (OSError, *_NO_ADDRESS) as error:
            self._connecting = None
            self._refused(error)
            return
        self._connecting = None
        if self._closed:
            link.close()
        elif link.is_closed:  # before this task's turn came
            self._ended(by_peer=True)
        else:
            self._link = link
            link.start()

    async def _reach(self) -> Link:
        async def connect(ip: str) -> Link:
            _, link = await self._loop.create_connection(self._new_link, ip, self.address.port)
            return link

        return await first_to_answer(self.address.host, self._connect_timeout_s, connect)

    def _new_link(self) -> Link:
        return Link(self.address, self._client_id, self._ready, self._ended, self._log)

    def _ready(self) -> None:
        assert self._link is not None
        self._was_up, self._probing, self._backoff_s = True, False, 0.0
        if self.address in self._unreachable:
            self._unreachable.remove(self.address)
            text = f"Connected to {self}"
            self._log.log(logging.INFO, text, text)
        waiting, self._queue = self._queue, []
        for item in waiting:
            self._link.send(item)

    def _ended(self, by_peer: bool) -> None:
        """The link ended; where the other side did that, find out whether it lives."""
        link = self._link
        was_ready = link is not None and link.is_ready
        news = by_peer and link is not None and link.has_answered
        self._drop()
        if self._closed or self._is_busy:
            return
        if news:
            self._probing = True
            self._connect()
        elif self._probing or not was_ready:
            # A dying process may still accept: ask again until it is clear. And what is no node
            # answers at once, with garbage or by hanging up.
            self._retry_later()

    def _refused(self, error: Exception) -> None:
        """Nobody answered at this address; try again later if there is something to send."""
        self._tell(f"Cannot connect to {self}{self._reason(error)}")
        lost, self._was_up, self._probing = self._was_up, False, False
        self._drop()
        self._retry_later()
        if lost and is_refusal(error):
            self._on_lost()

    def _reason(self, error: Exception) -> str:
        if isinstance(error, socket.gaierror):
            return f", whose name has no address now: {error}"
        if isinstance(error, _NO_ADDRESS):
            return f", which is no address: {error}"
        if isinstance(error, OSError) and error.errno:
            return f": {os.strerror(error.errno)}"
        return f": no answer within {self._connect_timeout_s:g} s"

    def _tell(self, text: str) -> None:
        """That it is out of reach: once, until it is not any more."""
        if self.address not in self._unreachable:
            if len(self._unreachable) >= _MOST_TOLD:  # whoever would be a voter names its address
                self._unreachable.clear()
            self._unreachable.add(self.address)
            self._log.log(logging.WARNING, text, text)

    def _retry_later(self) -> None:
        self._backoff_s = min(max(self._backoff_s * 2, _MIN_BACKOFF_S), _MAX_BACKOFF_S)
        self._retry = self._loop.call_later(self._backoff_s, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        if (self._queue or self._probing) and not self._closed:
            self._connect()

    # -- deadlines ----------------------------------------------------------------------------
    def _watch(self, deadline: float) -> None:
        """One timer for all requests: most are answered long before theirs would end."""
        if self._timer is not None:
            self._timer.cancel()
        self._next_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        """Kafka's client gives up the whole connection when one request times out."""
        self._timer = None
        now = self._loop.time()
        link = self._link
        sent = {} if link is None else link.pending
        waiting = [*sent.values(), *self._queue]
        late = [item for item in waiting if item.deadline <= now]
        if late:
            silent = [key for key, item in sent.items() if item.deadline <= now]
            if silent or (link is not None and not link.is_ready):
                self._tell(f"No answer of {self} in time: closed the connection")
            for key in silent:
                del sent[key]
            self._queue = [item for item in self._queue if item.deadline > now]
            fail(late, Failure.TIMED_OUT)
            self._drop()
        elif waiting:
            self._watch(min(item.deadline for item in waiting))
