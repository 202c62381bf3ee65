"""Large requests, which are decoded in steps: one step of one of them in each turn of the loop.

The requesters take turns, and each has one request that is decoded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.turns import Turns
from quorate.node.long_requests import decode_long_request
from quorate.server.connections import InboundConnection, ResponseSlot
from quorate.wire.header import WireRequest, decode_request_in_steps

LARGE_BYTES: Final = 32_768
"""A longer request may take more than 20 ms to decode."""


class LargeRequest:
    """A request that is decoded, or the beginning of one that is too long."""

    def __init__(self, slot: ResponseSlot, frame: bytes, size: int, *, is_too_long: bool) -> None:
        self.slot = slot
        self.size = size
        self.too_long: str | None = None
        """Why it is too long, once it is decoded; None: it is not."""
        self.steps: Generator[None, None, WireRequest] = (
            self._beginning(frame) if is_too_long else decode_request_in_steps(frame)
        )
        self.work_ns = 0
        """How long the steps have taken."""

    def _beginning(self, frame: bytes) -> Generator[None, None, WireRequest]:
        request, self.too_long = decode_long_request(frame, self.size)
        return request
        yield  # it is a generator


class LargeRequests:
    """Decodes those of each requester in the order of arrival."""

    def __init__(
        self,
        call_soon: Callable[[Callable[[], None]], object],
        decoded: Callable[[LargeRequest, WireRequest], None],
    ) -> None:
        """decoded: gets each request when it is decoded."""
        self._call_soon = call_soon
        self._decoded = decoded
        self._waiting: Turns[LargeRequest] = Turns()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, slot: ResponseSlot, frame: bytes, size: int, *, is_too_long: bool) -> None:
        """Decode the frame of `size` bytes. Until that is done its connection hands over no other one.

        is_too_long: its beginning is enough. It has its turn too, since many may be complete at once.
        """
        slot.connection.is_decoding = True
        principal = slot.connection.authentication.principal
        self._waiting.add(principal, LargeRequest(slot, frame, size, is_too_long=is_too_long))
        if len(self._waiting) == 1:
            self._call_soon(self._turn)

    def close(self) -> None:
        """Decode nothing any more."""
        self._waiting.clear()

    def _turn(self) -> None:
        if not self._waiting:
            return
        principal = self._waiting.next_name()
        item = self._waiting.oldest(principal)
        connection = item.slot.connection
        began_ns = time.perf_counter_ns()
        try:
            if connection.is_open:
                next(item.steps)
            else:
                self._end(principal, connection)
        except StopIteration as end:
            item.work_ns += time.perf_counter_ns() - began_ns
            self._decoded(item, end.value)
            self._end(principal, connection)
        except QuorateError as error:
            connection.refuse(error)
            self._end(principal, connection)
        else:
            item.work_ns += time.perf_counter_ns() - began_ns
            self._waiting.pass_on(principal)
        if self._waiting:
            self._call_soon(self._turn)

    def _end(self, principal: str, connection: InboundConnection) -> None:
        self._waiting.take(principal)
        connection.is_decoding = False
        connection.resume()
