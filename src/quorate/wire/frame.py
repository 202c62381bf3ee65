"""Frames: a 4-byte big-endian length, then that many bytes. Sans-IO: bytes in, frames out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.wire.errors import TlsBytesError, WireError
from quorate.wire.truncated import TruncatedFrame

MAX_FRAME_SIZE: Final = 104_857_600
"""Kafka's socket.request.max.bytes, in bytes."""
LONG_FRAME_BYTES: Final = 65_536
"""A frame up to this length is always kept whole."""
START_BYTES: Final = 8
"""What `kept` of a FrameReader gets of a longer one: API key, version and correlation id of a request."""
_TLS: Final = 0x1603
"""How a TLS handshake begins: its type and the version."""
_TLS_ALERT: Final = 0x1503
"""How a node answers plaintext on a port of TLS."""
_HTTP: Final = int.from_bytes(b"HTTP", "big")
"""What the first words of a web server are as a length."""


class FrameReader:
    """Cuts a stream into frames, however it is chopped.

    A length is checked before anything is kept for it, and a byte that waits costs a byte, in
    however small pieces it came. After an error the stream is lost: close the connection.
    """

    __slots__ = (
        "_dropping",
        "_kept",
        "_kept_bytes",
        "_max_size",
        "_missing",
        "_size",
        "_start",
        "_waiting",
    )

    def __init__(
        self, max_size: int = MAX_FRAME_SIZE, kept: Callable[[bytes, int], int] | None = None
    ) -> None:
        """kept: how many bytes are kept of a long frame, given its first START_BYTES and its size. It may
        raise WireError. A frame of which fewer are kept becomes a TruncatedFrame. None: all are."""
        self._max_size = max_size
        self._kept = kept
        self._kept_bytes = -1
        """Of the frame under way; -1: not known yet."""
        self._start: bytes | None = None
        """What is kept of the frame under way while the rest of it is dropped."""
        self._dropping = 0
        """Bytes of that frame that must still come."""
        self._waiting = bytearray()
        self._missing = 4
        """Bytes that must still come before something can be cut off."""
        self._size: int | None = None
        """Length of the frame under way; None while its prefix is incomplete."""

    @property
    def buffered(self) -> int:
        """Bytes held of a frame that is not complete."""
        return len(self._waiting) + (0 if self._start is None else len(self._start))

    def limit(self, max_size: int) -> None:
        """Allow frames up to `max_size` bytes from now on; one under way keeps its length."""
        self._max_size = max_size

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """Take the next bytes of the stream; the frames they complete, without their lengths.

        Raises WireError for a length that is negative or over the limit, TlsBytesError where it is none.
        """
        if len(data) < self._missing:
            self._waiting += data
            self._missing -= len(data)
            return []
        if not self._waiting:
            return self._cut(bytes(data))
        whole, self._waiting = self._waiting, bytearray()
        whole += data
        return self._cut(bytes(whole))

    def _cut(self, buf: bytes) -> list[bytes]:
        frames: list[bytes] = []
        pos = 0
        while True:
            if self._start is not None:
                gone = min(self._dropping, len(buf) - pos)
                pos += gone
                self._dropping -= gone
                if self._dropping:
                    self._missing = 1
                    break
                assert self._size is not None
                frames.append(TruncatedFrame.of(self._start, self._size))
                self._start = self._size = None
            if self._size is None:
                if len(buf) - pos < 4:
                    self._missing = 4 - (len(buf) - pos)
                    break
                self._size = self._checked(int.from_bytes(buf[pos : pos + 4], "big", signed=True))
                pos += 4
                self._kept_bytes = self._size
                if self._kept is not None and self._size > LONG_FRAME_BYTES:
                    self._kept_bytes = -1
            if self._kept_bytes < 0:
                if len(buf) - pos < START_BYTES:
                    self._missing = START_BYTES - (len(buf) - pos)
                    break
                assert self._kept is not None
                wanted = self._kept(buf[pos : pos + START_BYTES], self._size)
                self._kept_bytes = min(wanted, self._size)
            stop = pos + self._kept_bytes
            if stop > len(buf):
                self._missing = stop - len(buf)
                break
            if self._kept_bytes < self._size:
                self._start, self._dropping = buf[pos:stop], self._size - self._kept_bytes
            else:
                frames.append(buf[pos:stop])
                self._size = None
            pos = stop
        if pos < len(buf):
            self._waiting += buf[pos:]
        return frames

    def _checked(self, size: int) -> int:
        if 0 <= size <= self._max_size:
            return size
        said = f"a frame of {size} bytes is announced; allowed are 0 to {self._max_size}"
        compare = "compare the security protocols"
        if size >> 16 == _TLS:
            raise TlsBytesError(
                f"{said} (the peer speaks TLS, but this port is PLAINTEXT: {compare})"
            )
        if size >> 16 == _TLS_ALERT:
            raise TlsBytesError(f"{said} (the peer speaks TLS, but this side PLAINTEXT: {compare})")
        if size == _HTTP:
            raise WireError(f"{said} (the peer speaks HTTP: is this the port of a metrics page?)")
        raise WireError(f"{said} (is the peer a Kafka node, and not using TLS?)")
