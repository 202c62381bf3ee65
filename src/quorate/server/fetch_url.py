"""Read a URL within a total time, however slowly its server sends."""

from __future__ import annotations

import socket
import threading
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.request import HTTPHandler, HTTPSHandler, Request, build_opener


def fetch_url(url: str, total_s: float, max_bytes: int) -> bytes:
    """The content of a `file:`, `http:` or `https:` URL, which must come within `total_s`.

    Not in this limit: the time to look the host name up, and to find out that an address does not answer.
    Raises OSError, and ValueError for a larger content.
    """
    sockets = _Sockets(total_s)
    opener = build_opener(*_handlers(sockets))
    try:
        with opener.open(url, timeout=total_s) as page:
            data: bytes = page.read(max_bytes + 1)
    except (HTTPException, OSError) as error:
        if sockets.is_late:
            raise TimeoutError(f"no answer within {total_s:g} s") from None
        if isinstance(error, OSError):
            raise
        raise OSError(f"the answer is not complete: {type(error).__name__}") from error
    finally:
        sockets.close()
    if sockets.is_late:
        raise TimeoutError(f"no whole answer within {total_s:g} s")
    if len(data) > max_bytes:
        raise ValueError(f"it has more than {max_bytes} bytes")
    return data


class _Sockets:
    """The connections of one fetch, which are shut down when its time is over.

    A time limit of a socket is one for each of its reads: a server that sends a byte now and then meets it.
    """

    def __init__(self, total_s: float) -> None:
        self.is_late = False
        self._lock = threading.Lock()
        self._copies: list[socket.socket] = []
        self._timer = threading.Timer(total_s, self._stop)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, made: socket.socket) -> None:
        """Shut the connection down when the time is over, also after TLS took its descriptor over."""
        with self._lock:
            self._copies.append(made.dup())
        if self.is_late:
            raise TimeoutError

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            while self._copies:
                self._copies.pop().close()

    def _stop(self) -> None:
        self.is_late = True
        with self._lock:
            for copy in self._copies:
                try:
                    copy.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


def _handlers(sockets: _Sockets) -> tuple[HTTPHandler, HTTPSHandler]:
    """Handlers whose connections are watched from their begin on, before a handshake of TLS."""

    class Watched(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.watch(self.sock)

    class WatchedTls(HTTPSConnection, Watched):
        """`HTTPSConnection.connect` begins with that of the next class, which is `Watched`."""

    class PlainHandler(HTTPHandler):
        def http_open(self, req: Request) -> HTTPResponse:
            return self.do_open(Watched, req)

    class TlsHandler(HTTPSHandler):
        def https_open(self, req: Request) -> HTTPResponse:
            return self.do_open(WatchedTls, req)

    return PlainHandler(), TlsHandler()
