"""A node in a thread with scripted responses, also those that a real node never sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.wire.frame import FrameReader
from quorate.wire.header import WireRequest, decode_request, encode_response
from quorate.wire.messages import ApiVersionsResponse
from quorate.wire.registry import CONTROLLER_API_VERSIONS
from quorate.wire.schema import Message

HANG_UP = object()
"""A response that closes the connection instead."""
SILENCE = object()
"""A response that is never sent."""

Answer = Message | bytes | object


class FakeNode:
    """Listens on a free port of the loopback address; a context manager.

    `answers` maps a request class's name to a function of the request, or to a list of answers
    to be given one after the other, the last one for ever. Bytes are sent as they are.
    """

    def __init__(
        self,
        answers: dict[str, Any],
        versions: dict[int, tuple[int, int]] | None = None,
    ) -> None:
        self.answers = answers
        self.versions = dict(CONTROLLER_API_VERSIONS) if versions is None else versions
        self.requests: list[WireRequest] = []
        self._order = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = [self._server]
        self.address = Address(*self._server.getsockname()[:2])
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> FakeNode:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            finally:
                each.close()

    def hang_up(self) -> None:
        """Close all connections; new ones are accepted."""
        _, *accepted = self._open
        for each in accepted:
            each.shutdown(socket.SHUT_RDWR)
            self._open.remove(each)

    def asked(self, name: str) -> list[Any]:
        """The requests of a class that came, in order."""
        found = [request.message for request in self.requests]
        return [message for message in found if type(message).__name__ == name]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reader = FrameReader()
        with connection:
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    return
                if not data:
                    return
                for frame in reader.feed(data):
                    if not self._reply(connection, frame):
                        return

    def _reply(self, connection: socket.socket, frame: bytes) -> bool:
        request = decode_request(frame)
        # A test that sees the request may send the next one: its answer is the next of the list.
        with self._order:
            answer = self._answer(request)
            self.requests.append(request)
        if callable(answer):
            answer = answer(request.message)
        if answer is HANG_UP:
            return False
        if isinstance(answer, Message):
            version = request.response_version
            unknown = getattr(answer, "error_code", 0) == ErrorCode.UNSUPPORTED_VERSION
            if unknown and isinstance(answer, ApiVersionsResponse):
                version = 0
            answer = encode_response(answer, request.api_key, version, request.correlation_id)
        if isinstance(answer, bytes):
            try:
                connection.sendall(answer)
            except OSError:  # the client, or the test, has closed it
                return False
        return True

    def _answer(self, request: WireRequest) -> Answer | Callable[[Message], Answer]:
        name = type(request.message).__name__
        if name == "ApiVersionsRequest" and name not in self.answers:
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in self.versions.items()
                ]
            )
        found = self.answers[name]
        if callable(found):
            return found
        return found.pop(0) if len(found) > 1 else found[0]
