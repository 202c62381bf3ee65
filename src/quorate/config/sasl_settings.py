"""The keys of SASL: `sasl.*`, and their forms for one listener or mechanism.

Sources: `BrokerSecurityConfigs`, `SaslConfigs`, `JaasContext.loadServerContext`. The forms of a key for
one listener or mechanism are in `sasl_keys`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.config import sasl_keys as keys
from quorate.config.sasl_keys import effective, foreign_classes
from quorate.config.security_settings import listener_prefix
from quorate.config.settings import ConfigError, Settings

_FIVE_SECONDS_MS: Final = 5_000
_HOUR_MS: Final = 3_600_000


class JaasValue(NamedTuple):
    """The JAAS text of a key, and where the key stands."""

    key: str
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """`sasl.oauthbearer.*`, as they hold for one listener."""

    jwks_url: str | None = None
    refresh_ms: int = _HOUR_MS
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    audience: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    token_url: str | None = None
    """Of this node's own token, where it is the client."""


@dataclass(frozen=True, slots=True)
class ListenerSasl:
    """One listener's mechanisms."""

    mechanisms: tuple[str, ...]
    """`sasl.enabled.mechanisms`"""
    jaas: Mapping[str, JaasValue] = field(repr=False)
    """Mechanism -> its JAAS text; also of the mechanism towards other controllers."""
    max_reauth_ms: Mapping[str, int]
    """Mechanism -> `connections.max.reauth.ms`; 0: sessions do not expire."""
    unsecured_tokens: bool = False
    """OAUTHBEARER takes tokens without a signature."""
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    max_receive_bytes: int = 524_288


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """Everything about SASL in a node's file."""

    listeners: Mapping[str, ListenerSasl] = field(default_factory=dict)
    """By name, of the controller's listeners with SASL."""
    controller_mechanism: str = "GSSAPI"
    failure_delay_ms: int = 100
    problem: ConfigError | None = None
    """Why a node cannot be run with these keys, where Kafka might: the rest has no meaning then."""


def sasl_settings(
    settings: Settings, protocols: Mapping[str, str], controllers: tuple[str, ...]
) -> SaslSettings:
    """Read the keys. The first wrong value becomes `problem`: a file may be that of a Java node.

    Settings that collect faults have each wrong value, and the result is what is left.

    `protocols`: listener name (upper case) -> security protocol; `controllers`: names of the
    controller's listeners. Without a listener with SASL among them nothing is checked.
    """
    names = [n.upper() for n in controllers if protocols.get(n.upper(), "").startswith("SASL_")]
    if not names:
        return SaslSettings()
    try:
        return _checked(settings, names, controllers)
    except ConfigError as error:
        return SaslSettings(problem=error)


def _checked(settings: Settings, names: list[str], controllers: tuple[str, ...]) -> SaslSettings:
    settings.each(lambda foreign: settings.refuse(*foreign), foreign_classes(settings, names))
    listeners = {name: _listener(settings, name) for name in names}
    mechanism = settings.values.get(keys.CONTROLLER_MECHANISM) or "GSSAPI"
    first = names[0]

    def check_own() -> None:
        settings.needs(keys.CONTROLLER_MECHANISM)
        _check_mechanism(settings, keys.CONTROLLER_MECHANISM, mechanism)
        if mechanism not in listeners[first].jaas:
            _missing_jaas(settings, first, mechanism)

    if first == controllers[0].upper():  # the peers are asked through their first listener
        settings.guarded(check_own, None)
    delay_ms = _at_least(settings, keys.FAILURE_DELAY, 100, 0)
    return SaslSettings(listeners, mechanism, delay_ms)


def _listener(settings: Settings, name: str) -> ListenerSasl:
    mechanisms = _mechanisms(settings, name)
    own = settings.values.get(keys.CONTROLLER_MECHANISM)
    jaas = {}

    def read_jaas(mechanism: str) -> None:
        place = effective(settings, keys.JAAS, name, mechanism)
        text = settings.text(place)
        if text:
            jaas[mechanism] = JaasValue(place, text, settings.where(place))
        elif mechanism in mechanisms:
            _missing_jaas(settings, name, mechanism)

    settings.each(read_jaas, dict.fromkeys((*mechanisms, *((own,) if own else ()))))
    oauth = _oauth(settings, name)
    return ListenerSasl(
        mechanisms,
        jaas,
        {mechanism: _reauth_ms(settings, name, mechanism) for mechanism in mechanisms},
        "OAUTHBEARER" in mechanisms
        and settings.guarded(lambda: _unsecured(settings, name, oauth), False),
        oauth,
        _at_least(settings, effective(settings, keys.MAX_RECEIVE, name), 524_288, 0),
    )


def _mechanisms(settings: Settings, listener: str) -> tuple[str, ...]:
    """`sasl.enabled.mechanisms` of a listener, those without a fault."""
    key = effective(settings, keys.ENABLED, listener)

    def checked(mechanism: str) -> str:
        _check_mechanism(settings, key, mechanism)
        return mechanism

    found = settings.guarded(lambda: settings.distinct(key) or ("GSSAPI",), ())
    return tuple(settings.each(checked, found))


def _reauth_ms(settings: Settings, listener: str, mechanism: str) -> int:
    """The time (ms) until a new login."""
    key = effective(settings, keys.MAX_REAUTH, listener, mechanism)
    return max(settings.guarded(lambda: settings.integer(key, 0, bits=64), 0) or 0, 0)


def _unsecured(settings: Settings, listener: str, oauth: OAuthSettings) -> bool:
    """Whether Kafka's handler for unsecured tokens is named; without keys there is no other."""
    place = effective(settings, keys.HANDLER, listener, "OAUTHBEARER")
    if settings.text(place) == keys.UNSECURED:
        return True
    settings.needs(effective(settings, keys.JWKS_URL, listener, "OAUTHBEARER"))
    if oauth.jwks_url is None:
        settings.refuse(
            keys.JWKS_URL,
            f"OAUTHBEARER needs {keys.JWKS_URL} (file: or https:), with whose keys tokens are checked. "
            f"Tokens without a signature need {place} with Kafka's class {keys.UNSECURED}",
        )
    return False


def _oauth(settings: Settings, listener: str) -> OAuthSettings:
    def key(name: str) -> str:
        return effective(settings, name, listener, "OAUTHBEARER")

    def text(name: str) -> str | None:
        return settings.guarded(lambda: settings.text(key(name)), None) or None

    url = text(keys.JWKS_URL)

    def check_url() -> None:
        if url is not None and not url.startswith(("file:", "http:", "https:")):
            settings.invalid(key(keys.JWKS_URL), url, "It should be a file: or https: URL")

    settings.guarded(check_url, None)
    audience = settings.guarded(lambda: settings.items(key(keys.AUDIENCE)), None)
    return OAuthSettings(
        url,
        _at_least(settings, key(keys.JWKS_REFRESH), _HOUR_MS, _FIVE_SECONDS_MS, 64),
        _at_least(settings, key(keys.JWKS_BACKOFF), 100, 0, 64),
        _at_least(settings, key(keys.JWKS_BACKOFF_MAX), 10_000, 0, 64),
        tuple(filter(None, audience or ())),
        text(keys.ISSUER),
        _at_least(settings, key(keys.CLOCK_SKEW), 30, 0),
        text(keys.SUBJECT_CLAIM) or "sub",
        text(keys.SCOPE_CLAIM) or "scope",
        text(keys.TOKEN_URL),
    )


def _check_mechanism(settings: Settings, key: str, mechanism: str) -> None:
    if mechanism in keys.MECHANISMS:
        return
    choices = ", ".join(keys.MECHANISMS)
    if mechanism == "GSSAPI":
        default = "" if key in settings else ", Kafka's default,"
        settings.refuse(
            key,
            f"{key}: GSSAPI (Kerberos){default} is not supported: set {key} to one of {choices}",
        )
    settings.invalid(key, mechanism, f"String must be one of: {choices}")


def _missing_jaas(settings: Settings, listener: str, mechanism: str) -> None:
    key = f"{listener_prefix(listener)}{mechanism.lower()}.{keys.JAAS}"
    hint = (
        f" ({keys.JAAS} without this prefix has no effect in a node)"
        if keys.JAAS in settings
        else ""
    )
    settings.refuse(key, f"{mechanism} on the listener {listener} needs {key}{hint}")


def _at_least(settings: Settings, key: str, default: int, least: int, bits: int = 32) -> int:
    value = settings.guarded(
        lambda: settings.integer(key, default, at_least=least, bits=bits), default
    )
    return default if value is None else value
