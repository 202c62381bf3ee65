"""The keys of SASL: `sasl.*`, and their forms for one listener or mechanism.

Sources: `BrokerSecurityConfigs`, `SaslConfigs`, `JaasContext.loadServerContext`,
`ChannelBuilders.channelBuilderConfigs`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.config.security_settings import listener_prefix
from quorate.config.settings import ConfigError, Settings

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ENABLED: Final = "sasl.enabled.mechanisms"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
JAAS: Final = "sasl.jaas.config"
MAX_REAUTH: Final = "connections.max.reauth.ms"
MAX_RECEIVE: Final = "sasl.server.max.receive.size"
FAILURE_DELAY: Final = "connection.failed.authentication.delay.ms"
_HANDLER: Final = "sasl.server.callback.handler.class"
_OAUTH: Final = "sasl.oauthbearer."
_VALIDATORS: Final = ("OAuthBearerValidatorCallbackHandler",)
_UNSECURED: Final = "OAuthBearerUnsecuredValidatorCallbackHandler"
_CLASSES: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "sasl.login.callback.handler.class",
)
_KAFKAS_LOGIN: Final = "OAuthBearerLoginCallbackHandler"
_USED_OAUTH: Final = tuple(
    _OAUTH + name
    for name in (
        "jwks.endpoint.url",
        "jwks.endpoint.refresh.ms",
        "expected.audience",
        "expected.issuer",
        "clock.skew.seconds",
        "sub.claim.name",
        "scope.claim.name",
        "token.endpoint.url",
    )
)
USED_KEYS: Final = frozenset(
    (
        *(ENABLED, CONTROLLER_MECHANISM, MAX_REAUTH, MAX_RECEIVE, FAILURE_DELAY),
        *(_HANDLER, *_CLASSES, *_USED_OAUTH),
    )
)
_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.(?:(?P<mechanism>[a-z0-9-]+)\.)?(?P<key>.+)")
_FIVE_SECONDS_MS: Final = 5_000
_HOUR_MS: Final = 3_600_000


class JaasValue(NamedTuple):
    """The JAAS text of a key, and where the key stands."""

    key: str
    text: str
    where: str


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


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """`sasl.oauthbearer.*`."""

    jwks_url: str | None = None
    refresh_ms: int = _HOUR_MS
    audience: tuple[str, ...] = ()
    issuer: str | None = None
    clock_skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    token_url: str | None = None
    """Of this node's own token, where it is the client."""


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """Everything about SASL in a node's file."""

    listeners: Mapping[str, ListenerSasl] = field(default_factory=dict)
    """By name, of the controller's listeners with SASL."""
    controller_mechanism: str = "GSSAPI"
    max_receive_bytes: int = 524_288
    failure_delay_ms: int = 100
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    problem: ConfigError | None = None
    """Why a node cannot be run with these keys, where Kafka might: the rest has no meaning then."""


def is_known(key: str) -> bool:
    """Whether a node uses the key: of SASL, alone or for one listener or mechanism."""
    if key in USED_KEYS:
        return True
    found = _LISTENER.fullmatch(key)
    if found is None:
        return False
    return found["key"] in USED_KEYS or found["key"] == JAAS or key.endswith(f".{JAAS}")


def sasl_settings(
    settings: Settings, protocols: Mapping[str, str], controllers: tuple[str, ...]
) -> SaslSettings:
    """Read the keys. The first wrong value becomes `problem`: a file may be that of a Java node.

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
    _refuse_classes(settings)
    oauth = _oauth(settings)
    listeners = {name: _listener(settings, name, oauth) for name in names}
    mechanism = settings.text(CONTROLLER_MECHANISM) or "GSSAPI"
    _check_mechanism(settings, CONTROLLER_MECHANISM, mechanism)
    first = names[0] if names[0] == controllers[0].upper() else None
    if first is not None and mechanism not in listeners[first].jaas:
        _missing_jaas(settings, first, mechanism)
    return SaslSettings(
        listeners,
        mechanism,
        _at_least(settings, MAX_RECEIVE, 524_288, 0),
        _at_least(settings, FAILURE_DELAY, 100, 0),
        oauth,
    )


def _listener(settings: Settings, name: str, oauth: OAuthSettings) -> ListenerSasl:
    prefix = listener_prefix(name)
    key = prefix + ENABLED if prefix + ENABLED in settings else ENABLED
    mechanisms = settings.distinct(key) or ("GSSAPI",)
    for mechanism in mechanisms:
        _check_mechanism(settings, key, mechanism)
    own = settings.text(CONTROLLER_MECHANISM)
    jaas = {}
    for mechanism in dict.fromkeys((*mechanisms, *((own,) if own else ()))):
        place = f"{prefix}{mechanism.lower()}.{JAAS}"
        text = settings.text(place)
        if text:
            jaas[mechanism] = JaasValue(place, text, settings.where(place))
        elif mechanism in mechanisms:
            _missing_jaas(settings, name, mechanism)
    unsecured = False
    if "OAUTHBEARER" in mechanisms:
        unsecured = _unsecured(settings, prefix, oauth)
    reauth = {m: _reauth_ms(settings, prefix, m) for m in mechanisms}
    return ListenerSasl(mechanisms, jaas, reauth, unsecured)


def _reauth_ms(settings: Settings, prefix: str, mechanism: str) -> int:
    """The time (ms) until a new login, set for the mechanism on the listener, the listener or the node."""
    for key in (f"{prefix}{mechanism.lower()}.{MAX_REAUTH}", prefix + MAX_REAUTH, MAX_REAUTH):
        if key in settings:
            value = settings.integer(key, 0, bits=64)
            return max(value or 0, 0)
    return 0


def _unsecured(settings: Settings, prefix: str, oauth: OAuthSettings) -> bool:
    """Whether Kafka's handler for unsecured tokens is named; without keys there is no other."""
    place = f"{prefix}oauthbearer.{_HANDLER}"
    named = (settings.text(place) or "").rpartition(".")[2]
    if named == _UNSECURED:
        return True
    if named and named not in _VALIDATORS:
        settings.invalid(
            place, named, f"Quorate runs no Java class; known are {_VALIDATORS[0]} and {_UNSECURED}"
        )
    if oauth.jwks_url is None:
        settings.refuse(
            _OAUTH + "jwks.endpoint.url",
            f"OAUTHBEARER needs {_OAUTH}jwks.endpoint.url (file: or https:), with whose keys tokens "
            f"are checked. Tokens without a signature need {place} with Kafka's class {_UNSECURED}",
        )
    return False


def _oauth(settings: Settings) -> OAuthSettings:
    url = settings.text(_OAUTH + "jwks.endpoint.url") or None
    if url is not None and not url.startswith(("file:", "http:", "https:")):
        settings.invalid(_OAUTH + "jwks.endpoint.url", url, "It should be a file: or https: URL")
    audience = settings.items(_OAUTH + "expected.audience") or ()
    return OAuthSettings(
        url,
        _at_least(settings, _OAUTH + "jwks.endpoint.refresh.ms", _HOUR_MS, _FIVE_SECONDS_MS, 64),
        tuple(filter(None, audience)),
        settings.text(_OAUTH + "expected.issuer") or None,
        _at_least(settings, _OAUTH + "clock.skew.seconds", 30, 0),
        settings.text(_OAUTH + "sub.claim.name") or "sub",
        settings.text(_OAUTH + "scope.claim.name") or "scope",
        settings.text(_OAUTH + "token.endpoint.url") or None,
    )


def _refuse_classes(settings: Settings) -> None:
    for key in settings:
        name = next((each for each in _CLASSES if key == each or key.endswith(f".{each}")), None)
        if name is not None and settings.text(key):
            named = (settings.text(key) or "").rpartition(".")[2]
            if named != _KAFKAS_LOGIN:
                settings.refuse(key, f"{key} names a Java class, which Quorate cannot run")
        if key == _HANDLER and settings.text(key):
            settings.refuse(key, f"{key} must be set for one listener and mechanism")


def _check_mechanism(settings: Settings, key: str, mechanism: str) -> None:
    if mechanism in MECHANISMS:
        return
    choices = ", ".join(MECHANISMS)
    if mechanism == "GSSAPI":
        default = "" if key in settings else ", Kafka's default,"
        settings.refuse(
            key,
            f"{key}: GSSAPI (Kerberos){default} is not supported: set {key} to one of {choices}",
        )
    settings.invalid(key, mechanism, f"String must be one of: {choices}")


def _missing_jaas(settings: Settings, listener: str, mechanism: str) -> None:
    key = f"{listener_prefix(listener)}{mechanism.lower()}.{JAAS}"
    hint = f" ({JAAS} without this prefix has no effect in a node)" if JAAS in settings else ""
    settings.refuse(key, f"{mechanism} on the listener {listener} needs {key}{hint}")


def _at_least(settings: Settings, key: str, default: int, least: int, bits: int = 32) -> int:
    value = settings.integer(key, default, at_least=least, bits=bits)
    return default if value is None else value
