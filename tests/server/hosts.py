"""Host names with several addresses, and a silent address."""

from __future__ import annotations

import contextlib
import socket


@contextlib.contextmanager
def silent_host(port):
    """An address at which connections are neither accepted nor refused: its backlog is full."""
    host = "127.0.0.2"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield host


def name_of(*hosts):
    """As socket.getaddrinfo where one name has all these addresses."""
    real = socket.getaddrinfo

    def look_up(host, port, *args, **more):
        asked = hosts if host == "several.test" else (host,)
        return [found for each in asked for found in real(each, port, *args, **more)]

    return look_up
