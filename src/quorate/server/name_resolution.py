"""Resolve a host name on a thread of its own, and connect to the first address that accepts.

The loop's own resolver shares a few threads (two with uvloop), and closing the loop waits for them. A
name whose name server does not answer would delay other names and the end of the process.
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


async def connect_to_first(
    host: str, patience_s: float, connect: Callable[[str], Awaitable[T]]
) -> T:
    """Resolve `host` and return the result of `connect` for the first address that accepts.

    Each address gets an equal share of `patience_s`, so that a silent one does not use up the time of
    the others (KIP-302). Raises OSError, preferably ConnectionRefusedError; ValueError for an invalid
    host name.
    """
    found = await ips_of(host)
    failures: list[OSError] = []
    for ip in found:
        try:
            async with asyncio.timeout(patience_s / len(found)):
                return await connect(ip)
        except OSError as error:
            failures.append(error)
    raise min(failures, key=is_refusal)


def is_refusal(error: Exception) -> bool:
    """Whether the host is up and no process listens on the port."""
    return isinstance(error, ConnectionRefusedError)


async def ips_of(host: str) -> tuple[str, ...]:
    """The addresses of a name, at least one, in the order in which to try them.

    Takes as long as the system's resolver. Raises OSError; ValueError for an invalid host name.
    """
    if _is_ip(host):
        return (host,)
    found: Future[tuple[str, ...]] = Future()
    found.set_running_or_notify_cancel()  # a cancelled caller must not cancel the future

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
