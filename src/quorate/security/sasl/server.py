"""The server's side of a connection's authentication, as states (KIP-43, KIP-152, KIP-368). Pure.

Source: `SaslServerAuthenticator`. A frame goes in, an SaslAnswer comes out, or an Evaluation: work that the
caller runs, in a thread when it is slow, and reports with `evaluated`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.security.sasl.mechanism import SaslError, ServerMechanism
from quorate.wire.errors import WireError
from quorate.wire.header import WireRequest, decode_request, encode_response, peek_header
from quorate.wire.messages.cluster import ApiVersionsRequest
from quorate.wire.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.wire.registry import API_VERSIONS, APIS
from quorate.wire.schema import Message

HANDSHAKE: Final = 17
AUTHENTICATE: Final = 36
_MOST_VERSIONS: Final = 10
"""Requests for ApiVersions before a login: clients send one, and another where it is too new.

Kafka has no limit, but takes one request of a connection in each round of its loop.
"""
_MIN_RENEWAL_MS: Final = 1_000
"""Between the beginnings of two re-authentications (`KafkaChannel.maybeBeginServerReauthentication`)."""
_WITH_LIFETIME: Final = 1
"""From this version of SaslAuthenticate on, the client can authenticate again."""


@dataclass(frozen=True, slots=True)
class SaslAnswer:
    """What follows from a frame."""

    frame: bytes = b""
    """To send, with its length; empty: nothing."""
    is_authenticated: bool = False
    failure: str | None = None
    """Why the connection must be closed, after the failure delay and after `frame`."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A token to evaluate: `run` returns the challenge or raises SaslError."""

    run: Callable[[], bytes]
    is_slow: bool


@dataclass(frozen=True, slots=True)
class SaslServerConfig:
    """One listener's mechanisms."""

    mechanisms: Mapping[str, Callable[[], ServerMechanism]]
    """Name -> makes the mechanism of one exchange. The order is that of the response."""
    max_reauth_ms: Mapping[str, int]
    """Mechanism -> `connections.max.reauth.ms`; 0: the session does not expire."""
    api_versions: Callable[[WireRequest], Message]
    """Answers ApiVersions."""


class _SaslState(Enum):
    INITIAL = auto()
    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    BAD_MECHANISM = auto()
    """Re-authentication with another mechanism: the next token is refused."""
    COMPLETE = auto()
    FAILED = auto()


class SaslServer:
    """The authentication of one connection, and its repetition."""

    def __init__(self, config: SaslServerConfig) -> None:
        self.principal = ""
        """`User:NAME` of the last complete exchange."""
        self.by_token = False
        self.expires_at_ms: int | None = None
        """When the session expires, in the clock of `now_ms`; None: never."""
        self.mechanism_name = "?"
        """Of the exchange under way or the last one."""
        self._config = config
        self._state = _SaslState.INITIAL
        self._mechanism: ServerMechanism | None = None
        self._with_headers = False
        """Tokens come in SaslAuthenticate requests (SaslHandshake v1)."""
        self._request: WireRequest | None = None
        """Of the token under evaluation; None for one without a header."""
        self._again = False
        self._began_again_ms: int | None = None
        self._asked_versions = 0
        self._bad_mechanism = ""

    @property
    def is_complete(self) -> bool:
        """Whether requests may be served."""
        return self._state is _SaslState.COMPLETE

    def begins_again(self, frame: bytes, monotonic_ms: int) -> bool:
        """Whether this request of an authenticated client begins a re-authentication (KIP-368).

        It does once a second at most. Another SaslHandshake is answered as a request, with
        ILLEGAL_SASL_STATE.
        """
        last = self._began_again_ms
        return (
            self.is_complete
            and self.expires_at_ms is not None
            and frame[:2] == HANDSHAKE.to_bytes(2, "big")
            and (last is None or monotonic_ms - last >= _MIN_RENEWAL_MS)
        )

    def take(self, frame: bytes, monotonic_ms: int) -> SaslAnswer | Evaluation:
        """Take the next frame, without its length."""
        if self._state is _SaslState.COMPLETE:
            self._again, self._began_again_ms = True, monotonic_ms
            self._state = _SaslState.HANDSHAKE
        try:
            if self._state is _SaslState.AUTHENTICATE:
                return self._token(frame)
            if self._state is _SaslState.BAD_MECHANISM:
                return self._wrong_mechanism(frame)
            return self._kafka_request(frame)
        except WireError as error:
            why = f"Invalid request during SASL {self._what}: {error}"
            if self._state is _SaslState.INITIAL:
                why = (
                    "Invalid request, potential reasons: kafka client configured with the wrong "
                    "security protocol, it does not support KIP-43 or it is not a kafka client"
                )
            return self._fail(why)

    def evaluated(self, outcome: bytes | SaslError, monotonic_ms: int, wall_ms: int) -> SaslAnswer:
        """The result of an Evaluation. Times in ms: monotonic, and since 1970."""
        request, mechanism = self._request, self._mechanism
        assert mechanism is not None
        if isinstance(outcome, SaslError):
            return self._refused(outcome)
        if mechanism.principal is None:
            return SaslAnswer(self._challenge(request, outcome, 0))
        principal = f"User:{mechanism.principal}"
        if self._again and principal != self.principal:
            old, new = self.principal.replace(":", ".", 1), principal.replace(":", ".", 1)
            text = f"Cannot change principals during re-authentication from {old}: {new}"
            return self._refused(SaslError(text, text))
        self.principal, self.by_token = principal, mechanism.by_token
        lifetime = self._lifetime_ms(mechanism, wall_ms)
        self.expires_at_ms = None if lifetime is None else monotonic_ms + lifetime
        self._state, self._mechanism = _SaslState.COMPLETE, None
        frame = self._challenge(request, outcome, lifetime or 0)
        return SaslAnswer(frame, is_authenticated=True)

    @property
    def _what(self) -> str:
        return "re-authentication" if self._again else "authentication"

    def _lifetime_ms(self, mechanism: ServerMechanism, wall_ms: int) -> int | None:
        limits = []
        most = self._config.max_reauth_ms.get(mechanism.name, 0)
        if most > 0:
            limits.append(most)
        if mechanism.expires_at_ms is not None:
            limits.append(mechanism.expires_at_ms - wall_ms)
        return max(min(limits), 0) if limits else None

    # -- before the tokens --------------------------------------------------------------------
    def _kafka_request(self, frame: bytes) -> SaslAnswer:
        key = peek_header(frame).api_key
        if key not in (API_VERSIONS, HANDSHAKE):
            name = APIS[key].name if key in APIS else f"api key {key}"
            if self._state is _SaslState.INITIAL and key not in APIS:
                raise WireError("no request")
            return self._fail(f"Unexpected Kafka request of type {name} during SASL handshake.")
        request = decode_request(frame)
        if self._state is _SaslState.INITIAL:
            self._state = _SaslState.HANDSHAKE_OR_VERSIONS
        if key == API_VERSIONS:
            return self._api_versions(request)
        message = request.message
        assert isinstance(message, SaslHandshakeRequest)
        return self._handshake(request, message.mechanism)

    def _api_versions(self, request: WireRequest) -> SaslAnswer:
        if self._state is not _SaslState.HANDSHAKE_OR_VERSIONS:
            return self._fail(
                "Unexpected ApiVersions request received during SASL authentication state "
                f"{self._state.name}"
            )
        self._asked_versions += 1
        if self._asked_versions > _MOST_VERSIONS:
            return self._fail(f"more than {_MOST_VERSIONS} ApiVersions requests before the login")
        response = self._config.api_versions(request)
        if getattr(response, "error_code", 0) == ErrorCode.NONE and isinstance(
            request.message, ApiVersionsRequest
        ):
            self._state = _SaslState.HANDSHAKE
        return SaslAnswer(self._encode(request, response))

    def _handshake(self, request: WireRequest, name: str) -> SaslAnswer:
        enabled = list(self._config.mechanisms)
        self._with_headers = self._with_headers or request.version >= 1
        if name not in enabled:
            response = SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled
            )
            shown = name[:64]
            return self._fail(
                f"Unsupported SASL mechanism {shown!r}; enabled: {', '.join(enabled)}",
                self._encode(request, response),
            )
        if self._again and name != self.mechanism_name:
            self._state = _SaslState.BAD_MECHANISM
            self._bad_mechanism = name
        else:
            self.mechanism_name = name
            self._mechanism = self._config.mechanisms[name]()
            self._state = _SaslState.AUTHENTICATE
        return SaslAnswer(self._encode(request, SaslHandshakeResponse(mechanisms=enabled)))

    def _wrong_mechanism(self, frame: bytes) -> SaslAnswer:
        text = (
            f"SASL mechanism '{self._bad_mechanism}' requested by client is not supported for "
            f"re-authentication of mechanism '{self.mechanism_name}'"
        )
        return self._fail(text)

    # -- tokens -------------------------------------------------------------------------------
    def _token(self, frame: bytes) -> SaslAnswer | Evaluation:
        mechanism = self._mechanism
        assert mechanism is not None
        if not self._with_headers:
            self._request, token = None, frame
        else:
            key = peek_header(frame).api_key
            if key != AUTHENTICATE:
                return self._illegal(frame, key)
            self._request = decode_request(frame)
            message = self._request.message
            assert isinstance(message, SaslAuthenticateRequest)
            token = bytes(message.auth_bytes)
        return Evaluation(lambda: mechanism.evaluate(token), mechanism.is_slow(token))

    def _illegal(self, frame: bytes, key: int) -> SaslAnswer:
        """A request that is not SaslAuthenticate is answered with ILLEGAL_SASL_STATE."""
        name = APIS[key].name if key in APIS else f"api key {key}"
        why = f"Unexpected Kafka request of type {name} during SASL authentication."
        request = decode_request(frame)
        response = APIS[key].response()
        for field, value in (("error_code", ErrorCode.ILLEGAL_SASL_STATE), ("error_message", why)):
            if hasattr(response, field):
                setattr(response, field, value)
        return self._fail(why, self._encode(request, response))

    def _challenge(self, request: WireRequest | None, token: bytes, lifetime_ms: int) -> bytes:
        if request is None:
            return len(token).to_bytes(4, "big") + token
        response = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return self._encode(request, response)

    def _refused(self, error: SaslError) -> SaslAnswer:
        text = error.shown or (
            f"Authentication failed during {self._what} due to invalid credentials with SASL "
            f"mechanism {self.mechanism_name}"
        )
        frame = b""
        if self._request is not None:
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=text
            )
            frame = self._encode(self._request, response)
        return self._fail(str(error), frame)

    def _fail(self, why: str, frame: bytes = b"") -> SaslAnswer:
        self._state, self._mechanism = _SaslState.FAILED, None
        return SaslAnswer(frame, failure=why)

    @staticmethod
    def _encode(request: WireRequest, response: Message) -> bytes:
        return encode_response(
            response, request.api_key, request.response_version, request.correlation_id
        )
