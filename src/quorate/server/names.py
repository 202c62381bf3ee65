"""What a host name stands for, looked up on a thread of its own, and which address of it answers.

A loop's own look-ups share a few threads, two with uvloop, and the loop's end waits for them: a
name for which no name server answers would keep other nodes' names waiting, and the process from
ending.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from ipaddress import ip_address
from typing import TypeVar

T = TypeVar("T")


async def first_to_answer(
    host: str, patience_s: float, connect: Callable[[str], Awaitable[T]]
) -> T:
    """What `connect` gives for the first of the name's addresses at which it succeeds.

    As Kafka's client does: each has its share of the time (s), for one that is silent must not keep
    us from the others. Raises OSError, ConnectionRefusedError where nobody listens at any of them;
    ValueError where the host can be no name.
    """
    found = await _ips_of(host)
    failures: list[OSError] = []
    for ip in found:
        try:
            async with asyncio.timeout(patience_s / len(found)):
                return await connect(ip)
        except OSError as error:
            failures.append(error)
    raise min(failures, key=is_refusal)


def is_refusal(error: Exception) -> bool:
    return isinstance(error, ConnectionRefusedError)


async def _ips_of(host: str) -> tuple[str, ...]:
    """Its addresses, in the order in which to try them; at least one.

    Takes as long as the system's resolver does. Raises OSError, ValueError where it can be no name.
    """
    if _is_ip(host):
        return (host,)
    found: Future[tuple[str, ...]] = Future()
    found.set_running_or_notify_cancel()  # who waits may go away; the look-up cannot be stopped

    def look_up() -> None:
        try:
            found.set_result(_look_up(host))
        except Exception as error:
            found.set_exception(error)

    threading.Thread(target=look_up, name="quorate-names", daemon=True).start()
    return await asyncio.wrap_future(found)


def _look_up(host: str) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(str(address[0]) for *_, address in found)


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
