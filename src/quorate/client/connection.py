"""One blocking connection to a node: what a command line tool needs, and quick to start."""

from __future__ import annotations

import socket
import time
from typing import Final, TypeVar

from quorate import __version__
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import Address
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from quorate.wire.registry import API_VERSIONS, api
from quorate.wire.schema import Message

_CHUNK: Final = 65536
_NO_KAFKA: Final = (
    " (before its first answer: is it a listener with TLS, or no Kafka at all? Only PLAINTEXT is "
    "spoken here)"
)
M = TypeVar("M", bound=Message)


class ClientError(QuorateError):
    """A request got no answer, or not the one that was hoped for."""


class ConnectError(ClientError):
    """No connection could be made: the request was surely not received."""


class NoAnswer(ClientError):
    """The connection broke or was silent after sending: the request may have been done."""


class UnsupportedVersion(ClientError):
    """The node does not know the request, or not in a version that can say what is meant."""


class Connection:
    """Requests and answers, one after the other. Close it, or use it as a context manager."""

    def __init__(self, address: Address, client_id: str, timeout_ms: int) -> None:
        """Connect and learn the node's versions, within `timeout_ms`.

        Raises ConnectError, or NoAnswer when the node does not speak the protocol.
        """
        self.address = address
        self._client_id = client_id
        self._correlation = 0
        self._reader = FrameReader()
        try:
            self._socket = socket.create_connection(address, timeout_ms / 1000)
        except (OSError, UnicodeError) as error:  # a node told of a host that can be no name
            why = getattr(error, "strerror", None) or error
            raise ConnectError(f"Cannot connect to {address}: {why}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.features = self._negotiate(timeout_ms)
        except BaseException:
            self.close()
            raise
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version)
            for entry in self.features.api_keys
        }

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, request: Message, answer: type[M], timeout_ms: int, at_least: int = 0) -> M:
        """Send in the newest version that both sides know; the answer within `timeout_ms`.

        `at_least` is the first version that can carry the request. Raises NoAnswer or
        UnsupportedVersion.
        """
        key = type(request).schema.key
        assert key is not None, "only requests have an api key"
        version = self._version(key, at_least)
        return self._exchange(request, answer, key, version, timeout_ms)

    def supports(self, key: int, version: int) -> bool:
        low, high = self._versions.get(key, (0, -1))
        return low <= version <= high

    def _version(self, key: int, at_least: int) -> int:
        own = api(key)
        low, high = self._versions.get(key, (0, -1))
        version = min(high, own.max_version)
        if version < max(low, own.min_version, at_least):
            raise UnsupportedVersion(
                f"{self.address} does not support {own.name}"
                + (f" in version {at_least} or later" if at_least and high >= 0 else "")
            )
        return version

    def _negotiate(self, timeout_ms: int) -> ApiVersionsResponse:
        """The node's ApiVersions; asked again in version 0 where it does not know ours."""
        request = ApiVersionsRequest(
            client_software_name="quorate", client_software_version=__version__
        )
        for version in (api(API_VERSIONS).max_version, 0):
            found = self._exchange(request, ApiVersionsResponse, API_VERSIONS, version, timeout_ms)
            if found.error_code == ErrorCode.NONE:
                return found
            if found.error_code != ErrorCode.UNSUPPORTED_VERSION:
                break
        code = ErrorCode.of(found.error_code)
        raise NoAnswer(f"{self.address} refused to tell its versions: {code.name}")

    def _exchange(
        self, request: Message, answer: type[M], key: int, version: int, timeout_ms: int
    ) -> M:
        self._correlation += 1
        frame = encode_request(request, version, self._correlation, self._client_id)
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            self._socket.settimeout(max(timeout_ms, 1) / 1000)
            self._socket.sendall(frame)
            correlation, message = decode_response(self._read_frame(deadline), key, version)
        except TimeoutError:
            raise NoAnswer(f"{self.address} did not answer within {timeout_ms} ms") from None
        except OSError as error:
            why = f"{error.strerror or error}{self._hint()}"
            raise NoAnswer(f"The connection to {self.address} broke: {why}") from None
        except WireError as error:
            raise NoAnswer(
                f"{self.address} sent what is no answer: {error}{self._hint()}"
            ) from None
        if correlation != self._correlation or not isinstance(message, answer):
            raise NoAnswer(f"{self.address} answered something that was not asked")
        return message

    def _hint(self) -> str:
        """What a failure may mean that comes before any answer."""
        return _NO_KAFKA if self._correlation == 1 else ""

    def _read_frame(self, deadline: float) -> bytes:
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining)
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("the node closed it")
            frames = self._reader.feed(data)
            if frames:
                return frames[0]
