"""SASL on a node's connections: runs the pure exchange of `security.sasl` on the loop.

An evaluation that may take milliseconds runs on one thread of its own, each connection has at most one
there. The interpreter hands the loop its lock back after 0.2 ms (`server.app`), and hashing does not
hold it. So a flood of logins delays other logins, not the quorum.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.config.node_config import NodeConfig
from quorate.config.sasl_settings import JaasValue, ListenerSasl
from quorate.node.apis import API_TABLE
from quorate.node.request_context import NodeView
from quorate.node.requests import Call
from quorate.security.jaas import JaasText, parse_jaas
from quorate.security.sasl.login import Login, login_of
from quorate.security.sasl.mechanism import SaslError, ServerMechanism
from quorate.security.sasl.oauthbearer import (
    OAuthBearerServer,
    Validator,
    signed_validator,
    unsecured_rules,
    unsecured_validator,
)
from quorate.security.sasl.plain import PlainServer
from quorate.security.sasl.scram import ScramServer
from quorate.security.sasl.server import SaslAnswer, SaslServer, SaslServerConfig
from quorate.security.sasl.token_claims import TokenRules
from quorate.server.authentication import ConnectionInfo, Done, Fail, ListenerSecurity, Send
from quorate.server.credentials import Credentials
from quorate.server.jwks import JwksKeys, JwksTimes
from quorate.wire.header import WireRequest
from quorate.wire.registry import API_VERSIONS
from quorate.wire.schema import Message

Keys = dict[tuple[str, JwksTimes], JwksKeys]

_FAILURES_A_SECOND: Final = 500
_LONGEST_WAIT_MS: Final = 4_000


class FailureDelay:
    """How long the answer to each failed login of a node waits.

    At least `connection.failed.authentication.delay.ms`, as with Kafka. Answers also keep a distance of
    2 ms, for at most four seconds more. A flood of logins that wait for their answers then comes evenly and
    takes a tenth of a core. Equal delays would bring all of its connections back at the same moment.
    """

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms = delay_ms
        self._last_ms = 0.0

    def next_s(self, now_ms: int) -> float:
        """The delay of a login that fails now, in s; 0 where no delay is configured."""
        if not self._delay_ms:
            return 0.0
        soonest = now_ms + self._delay_ms
        spaced = self._last_ms + 1_000 / _FAILURES_A_SECOND
        self._last_ms = min(max(soonest, spaced), soonest + _LONGEST_WAIT_MS)
        return (self._last_ms - now_ms) / 1_000


class SaslAuthenticator:
    """`ConnectionAuthenticator` of a listener with SASL."""

    def __init__(
        self,
        config: SaslServerConfig,
        pool: ThreadPoolExecutor,
        now: Callable[[], tuple[int, int]],
        failure_delay: FailureDelay,
    ) -> None:
        """now: monotonic and wall time, in ms; failure_delay: shared by the connections of the node."""
        self._failure_delay = failure_delay
        self._server = SaslServer(config)
        self._pool = pool
        self._now = now

    @property
    def by_token(self) -> bool:
        return self._server.by_token

    def takes(self, frame: bytes) -> bool:
        return not self._server.is_complete or self._begins_again(frame) or self._has_expired()

    def _begins_again(self, frame: bytes) -> bool:
        server = self._server
        return server.expires_at_ms is not None and server.begins_again(frame, self._now()[0])

    def _has_expired(self) -> bool:
        expires = self._server.expires_at_ms
        return self._server.is_complete and expires is not None and self._now()[0] >= expires

    def on_frame(self, frame: bytes, send: Send, done: Done, fail: Fail) -> None:
        def answer(found: SaslAnswer) -> None:
            if found.failure is not None:
                fail(found.failure, found.frame, self._failure_delay.next_s(self._now()[0]))
                return
            if found.is_authenticated:
                done(self._server.principal)
            send(found.frame)

        if self._has_expired() and not self._begins_again(frame):
            fail("the session expired without a re-authentication (KIP-368)", b"", 0)
            return

        def evaluated(outcome: bytes | SaslError) -> None:
            answer(self._server.evaluated(outcome, *self._now()))

        step = self._server.take(frame, self._now()[0])
        if isinstance(step, SaslAnswer):
            answer(step)
        elif not step.is_slow:
            evaluated(_outcome(step.run))
        else:
            waiting = asyncio.get_running_loop().run_in_executor(self._pool, _outcome, step.run)
            waiting.add_done_callback(lambda future: evaluated(_result(future)))


def _outcome(run: Callable[[], bytes]) -> bytes | SaslError:
    try:
        return run()
    except SaslError as error:
        return error


def _result(future: asyncio.Future[Any]) -> bytes | SaslError:
    if future.cancelled():
        return SaslError("the node shuts down")
    error = future.exception()
    if error is not None:
        return SaslError(f"internal error, please report it: {type(error).__name__}: {error}")
    found: bytes | SaslError = future.result()
    return found


class SaslListeners:
    """The authenticators of a node's listeners; `close` ends their threads."""

    def __init__(
        self,
        config: NodeConfig,
        node: NodeView,
        credentials: Credentials,
        now: Callable[[], tuple[int, int]],
    ) -> None:
        """Read the logins. Raises JaasError for a JAAS text that cannot be used."""
        self._settings = config.sasl
        self._failure_delay = FailureDelay(config.sasl.failure_delay_ms)
        self._now = now
        self._pool = ThreadPoolExecutor(1, "sasl")
        self._keys: Keys = {}
        self._configs = {
            name: _server_config(config, name, listener, node, credentials, self._keys)
            for name, listener in config.sasl.listeners.items()
        }

    def secured(self, listener: str, security: ListenerSecurity) -> ListenerSecurity:
        """`security` with the listener's authenticator, where it has SASL."""
        config = self._configs.get(listener)
        if config is None:
            return security

        def authenticator(connection: ConnectionInfo) -> SaslAuthenticator:
            return SaslAuthenticator(config, self._pool, self._now, self._failure_delay)

        return replace(
            security,
            authenticator=authenticator,
            max_frame_bytes=self._settings.listeners[listener].max_receive_bytes,
        )

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for keys in self._keys.values():
            keys.close()


def peer_login(config: NodeConfig) -> Login | None:
    """How this node logs in at other controllers; None without SASL. Raises JaasError."""
    name = config.controller_listener_names[0].upper()
    listener = config.sasl.listeners.get(name)
    if listener is None:
        return None
    mechanism = config.sasl.controller_mechanism
    return login_of(mechanism, _text(listener.jaas[mechanism]), listener.oauth.token_url)


def check_sasl(config: NodeConfig) -> None:
    """Raise JaasError for a JAAS text that cannot be used."""
    for _, problem in sasl_problems(config):
        raise problem


def sasl_problems(config: NodeConfig) -> Iterator[tuple[str, QuorateError]]:
    """Every JAAS text that cannot be used: its key, and the JaasError. A missing one is left out."""
    for listener in config.sasl.listeners.values():
        for mechanism in filter(listener.jaas.__contains__, listener.mechanisms):
            try:
                _check_login(listener, mechanism)
            except QuorateError as problem:
                yield listener.jaas[mechanism].key, problem
    own = config.sasl.listeners.get(config.controller_listener_names[0].upper())
    if own is not None and config.sasl.controller_mechanism in own.jaas:
        try:
            peer_login(config)
        except QuorateError as problem:
            yield own.jaas[config.sasl.controller_mechanism].key, problem


def _check_login(listener: ListenerSasl, mechanism: str) -> None:
    jaas = _text(listener.jaas[mechanism])
    module = parse_jaas(jaas, mechanism)
    if mechanism == "OAUTHBEARER" and listener.unsecured_tokens:
        unsecured_rules(jaas, module.options, TokenRules())


def _text(value: JaasValue) -> JaasText:
    return JaasText(*value)


def _server_config(
    config: NodeConfig,
    name: str,
    listener: ListenerSasl,
    node: NodeView,
    credentials: Credentials,
    keys: Keys,
) -> SaslServerConfig:
    def api_versions(request: WireRequest) -> Message:
        handler = API_TABLE[API_VERSIONS].handler
        assert handler is not None
        answer = handler(node, Call(0, request, name))
        assert isinstance(answer, Message)
        return answer

    mechanisms: dict[str, Callable[[], ServerMechanism]] = {}
    for mechanism in listener.mechanisms:
        jaas = _text(listener.jaas[mechanism])
        module = parse_jaas(jaas, mechanism)
        if mechanism == "PLAIN":
            mechanisms[mechanism] = _plain(module.options)
        elif mechanism == "OAUTHBEARER":
            mechanisms[mechanism] = _oauth(_validator(listener, jaas, module.options, keys))
        else:
            mechanisms[mechanism] = _scram(mechanism, credentials)
    return SaslServerConfig(mechanisms, listener.max_reauth_ms, api_versions)


def _plain(options: Mapping[str, str]) -> Callable[[], ServerMechanism]:
    return lambda: PlainServer(options)


def _scram(name: str, credentials: Credentials) -> Callable[[], ServerMechanism]:
    return lambda: ScramServer(name, credentials.scram, credentials.token)


def _oauth(validate: Validator) -> Callable[[], ServerMechanism]:
    return lambda: OAuthBearerServer(validate)


def _validator(
    listener: ListenerSasl, jaas: JaasText, options: Mapping[str, str], keys: Keys
) -> Validator:
    """`keys` gets what must be closed: listeners with the same URL and times share it."""
    oauth = listener.oauth
    rules = TokenRules(
        oauth.audience, oauth.issuer, oauth.clock_skew_s, oauth.subject_claim, oauth.scope_claim
    )
    if listener.unsecured_tokens:
        return unsecured_validator(unsecured_rules(jaas, options, rules))
    assert oauth.jwks_url is not None, "sasl_settings refuses OAUTHBEARER without it"
    times = JwksTimes(
        oauth.refresh_ms / 1000, oauth.retry_backoff_ms / 1000, oauth.retry_backoff_max_ms / 1000
    )
    source = oauth.jwks_url, times
    if source not in keys:
        keys[source] = JwksKeys(*source)
    return signed_validator(keys[source], rules)
