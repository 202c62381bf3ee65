"""The clients of the load: RESP to our key-value example, etcd's gRPC, Kafka's protocol."""

from __future__ import annotations

import asyncio
import os
import struct
from collections import deque
from collections.abc import Sequence
from typing import cast

from bench.load import Client, RefusedError

HOST = "127.0.0.1"


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _text(value: bytes) -> bytes:
    return _uvarint(len(value) + 1) + value


class Framed(asyncio.Protocol):
    """Length-prefixed frames, one awaited at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[bytes] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < 4:
            return
        size = int.from_bytes(self._buffer[:4], "big")
        if len(self._buffer) >= 4 + size and self._answer is not None:
            frame, self._buffer = self._buffer[4 : 4 + size], self._buffer[4 + size :]
            if not self._answer.done():
                self._answer.set_result(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the connection was closed"))

    async def ask(self, frame: bytes) -> bytes:
        if self.transport is None or self.transport.is_closing():
            raise ConnectionError("the connection was closed")
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(frame)
        return await self._answer


class KafkaClient:
    """Kafka's protocol on one connection; a subclass says which request is a durable put."""

    api_key = -1
    version = -1
    error_at = -1
    """Where the error code stands in the answer, after the length."""

    def __init__(self, protocol: Framed) -> None:
        self._protocol = protocol

    @classmethod
    async def connect(cls, port: int) -> Client:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(Framed, HOST, port)
        return cls(protocol)

    def body(self, key: bytes, value: bytes) -> bytes:
        raise AssertionError("a subclass writes the request")

    async def put(self, key: bytes, value: bytes) -> None:
        await self._ask(self.body(key, value))

    @classmethod
    def frame(cls, body: bytes) -> bytes:
        """The whole request."""
        header = struct.pack(">hhih5sB", cls.api_key, cls.version, 1, 5, b"bench", 0)
        return struct.pack(">i", len(header) + len(body)) + header + body

    async def _ask(self, body: bytes) -> None:
        answer = await self._protocol.ask(self.frame(body))
        (error,) = struct.unpack_from(">h", answer, self.error_at)
        if error:
            raise RefusedError(f"error code {error}")

    def close(self) -> None:
        if self._protocol.transport is not None:
            self._protocol.transport.close()


class QuotaClient(KafkaClient):
    """AlterClientQuotas v1: one client quota, a record of about 200 B."""

    api_key, version, error_at = 49, 1, 4 + 1 + 4 + 1
    MOST = 100
    """Quotas of one request whose answer has its first error there."""

    def body(self, key: bytes, value: bytes) -> bytes:
        return self.of_users([key + value[:120]])

    async def put_many(self, users: Sequence[bytes]) -> None:
        """One request with a quota for each of MOST; the first one's error counts for all."""
        await self._ask(self.of_users(users))

    @staticmethod
    def of_users(users: Sequence[bytes]) -> bytes:
        """The body of a request with a quota for each of these users."""
        entries = []
        for user in users:
            entity = _uvarint(2) + _text(b"user") + _text(user) + b"\0"
            rate = struct.pack(">d?", 1000.0 + int.from_bytes(os.urandom(2), "big"), False)
            ops = _uvarint(2) + _text(b"producer_byte_rate") + rate + b"\0"
            entries.append(entity + ops + b"\0")
        return _uvarint(len(users) + 1) + b"".join(entries) + b"\0" + b"\0"


class RespClient(asyncio.Protocol):
    """`SET` of the key-value example over RESP; many may be on their way on one connection."""

    def __init__(self) -> None:
        self._rest = b""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def connect(cls, port: int) -> Client:
        _, protocol = await asyncio.get_running_loop().create_connection(cls, HOST, port)
        return protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        while self._waiting:
            if not (waiting := self._waiting.popleft()).done():
                waiting.set_exception(ConnectionError("the connection was closed"))

    async def put(self, key: bytes, value: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError("the connection was closed")
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._transport.write(self.command(key, value))
        await done

    def command(self, key: bytes, value: bytes) -> bytes:
        """The request; its answer is a line."""
        return b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (
            len(key),
            key,
            len(value),
            value,
        )

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        for line in lines:
            waiting = self._waiting.popleft()
            if waiting.done():
                continue
            if line.startswith(b"-"):
                waiting.set_exception(RefusedError(line.decode()))
            else:
                waiting.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class QuotaHopsClient(RespClient):
    """The bytes of QuotaClient's request to `bench.hops`, which answers any bytes with a line."""

    def command(self, key: bytes, value: bytes) -> bytes:
        return QuotaClient.frame(QuotaClient.of_users([key + value[:120]]))


# etcd: gRPC is HTTP/2 with length-prefixed messages. The request's header block is the same for
# every put, so it is written once, as HPACK literals; of the answer only success matters: a DATA
# frame before the trailers.

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _END_HEADERS, _ACK = 1, 4, 1


def _literal(name: bytes, value: bytes) -> bytes:
    """A header field as an HPACK literal without indexing, all lengths under 127."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


_PUT_HEADERS = b"".join(
    _literal(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/etcdserverpb.KV/Put"),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


class EtcdClient(asyncio.Protocol):
    """`etcdserverpb.KV/Put` over one HTTP/2 connection, a stream for each put."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._next = 1
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._succeeded: set[int] = set()
        self._unacknowledged = 0
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def connect(cls, port: int) -> Client:
        _, protocol = await asyncio.get_running_loop().create_connection(cls, HOST, port)
        return protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(_PREFACE + _frame(_SETTINGS, 0, 0, b""))

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the connection was closed"))
        self._waiting.clear()

    async def put(self, key: bytes, value: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionError("the connection was closed")
        stream, self._next = self._next, self._next + 2
        done = self._waiting[stream] = asyncio.get_running_loop().create_future()
        message = b"\x0a" + _uvarint(len(key)) + key + b"\x12" + _uvarint(len(value)) + value
        self._transport.write(
            _frame(_HEADERS, _END_HEADERS, stream, _PUT_HEADERS)
            + _frame(_DATA, _END_STREAM, stream, struct.pack(">BI", 0, len(message)) + message)
        )
        await done

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        position = 0
        while len(buffer) - position >= 9:
            size = int.from_bytes(buffer[position : position + 3], "big")
            if len(buffer) - position < 9 + size:
                break
            kind, flags, stream = struct.unpack_from(">BBI", buffer, position + 3)
            self._handle(kind, flags, stream, bytes(buffer[position + 9 : position + 9 + size]))
            position += 9 + size
        del buffer[:position]

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        assert self._transport is not None
        if kind == _DATA:
            self._succeeded.add(stream)
            self._unacknowledged += len(payload)
            if self._unacknowledged > 16_384:
                window = struct.pack(">I", self._unacknowledged)
                self._transport.write(_frame(_WINDOW, 0, 0, window))
                self._unacknowledged = 0
        elif kind == _PING and not flags & _ACK:
            self._transport.write(_frame(_PING, _ACK, 0, payload))
        elif kind == _SETTINGS and not flags & _ACK:
            self._transport.write(_frame(_SETTINGS, _ACK, 0, b""))
        elif kind == _GOAWAY:
            self._transport.close()
        if kind == _RST or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            self._finish(stream)

    def _finish(self, stream: int) -> None:
        waiting = self._waiting.pop(stream, None)
        if waiting is None or waiting.done():
            return
        if stream in self._succeeded:
            self._succeeded.discard(stream)
            waiting.set_result(None)
        else:
            waiting.set_exception(RefusedError("etcd answered without a result"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
