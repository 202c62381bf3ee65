"""The names of the keys of SASL, their forms for a listener and a mechanism, and Kafka's own classes.

Sources: `BrokerSecurityConfigs`, `SaslConfigs`, `ChannelBuilders.channelBuilderConfigs`,
`AbstractConfig.valuesWithPrefixOverride`, `ConfigurationUtils`, `LoginManager`, `SaslChannelBuilder`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Flag, auto
from typing import Final, NamedTuple

from quorate.config.security_settings import listener_prefix
from quorate.config.settings import Settings

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ENABLED: Final = "sasl.enabled.mechanisms"
CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
JAAS: Final = "sasl.jaas.config"
MAX_REAUTH: Final = "connections.max.reauth.ms"
MAX_RECEIVE: Final = "sasl.server.max.receive.size"
FAILURE_DELAY: Final = "connection.failed.authentication.delay.ms"
HANDLER: Final = "sasl.server.callback.handler.class"
OAUTH: Final = "sasl.oauthbearer."
JWKS_URL: Final = f"{OAUTH}jwks.endpoint.url"
JWKS_REFRESH: Final = f"{OAUTH}jwks.endpoint.refresh.ms"
JWKS_BACKOFF: Final = f"{OAUTH}jwks.endpoint.retry.backoff.ms"
JWKS_BACKOFF_MAX: Final = f"{OAUTH}jwks.endpoint.retry.backoff.max.ms"
AUDIENCE: Final = f"{OAUTH}expected.audience"
ISSUER: Final = f"{OAUTH}expected.issuer"
CLOCK_SKEW: Final = f"{OAUTH}clock.skew.seconds"
SUBJECT_CLAIM: Final = f"{OAUTH}sub.claim.name"
SCOPE_CLAIM: Final = f"{OAUTH}scope.claim.name"
TOKEN_URL: Final = f"{OAUTH}token.endpoint.url"
_PREFIX: Final = "listener.name."
_PACKAGE: Final = "org.apache.kafka.common.security."
_VALIDATOR: Final = f"{_PACKAGE}oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED: Final = (
    f"{_PACKAGE}oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
_DEFAULT_LOGIN: Final = f"{_PACKAGE}authenticator.DefaultLogin"
_DEFAULT_CLIENT: Final = f"{_PACKAGE}authenticator.SaslClientCallbackHandler"
_DEFAULT_LOGIN_HANDLER: Final = f"{_PACKAGE}authenticator.AbstractLogin$DefaultLoginCallbackHandler"
_SCRAM_SERVER: Final = f"{_PACKAGE}scram.internals.ScramServerCallbackHandler"


class Form(Flag):
    """The forms in which a node reads a key."""

    NODE = auto()
    """The plain key."""
    LISTENER = auto()
    """`listener.name.LISTENER.KEY`."""
    MECHANISM = auto()
    """`listener.name.LISTENER.MECHANISM.KEY`."""


_ALL: Final = Form.NODE | Form.LISTENER | Form.MECHANISM
FORMS: Final[Mapping[str, Form]] = {
    ENABLED: Form.NODE | Form.LISTENER,
    CONTROLLER_MECHANISM: Form.NODE,
    JAAS: Form.MECHANISM,
    MAX_REAUTH: _ALL,
    MAX_RECEIVE: Form.NODE | Form.LISTENER,
    FAILURE_DELAY: Form.NODE,
    HANDLER: Form.MECHANISM,
    "sasl.client.callback.handler.class": Form.NODE | Form.LISTENER,
    "sasl.login.class": Form.MECHANISM,
    "sasl.login.callback.handler.class": Form.MECHANISM,
    f"{OAUTH}jwt.validator.class": Form.NODE | Form.LISTENER,
    f"{OAUTH}jwt.retriever.class": Form.NODE | Form.LISTENER,
    **dict.fromkeys((JWKS_URL, JWKS_REFRESH, JWKS_BACKOFF, JWKS_BACKOFF_MAX), _ALL),
    **dict.fromkeys((AUDIENCE, ISSUER, CLOCK_SKEW, SUBJECT_CLAIM, SCOPE_CLAIM, TOKEN_URL), _ALL),
}
"""Key -> where a node reads it."""
CLASSES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    HANDLER: {
        "PLAIN": (f"{_PACKAGE}plain.internals.PlainServerCallbackHandler",),
        "SCRAM-SHA-256": (_SCRAM_SERVER,),
        "SCRAM-SHA-512": (_SCRAM_SERVER,),
        "OAUTHBEARER": (_VALIDATOR, UNSECURED),
    },
    "sasl.client.callback.handler.class": {
        **dict.fromkeys(MECHANISMS[:3], (_DEFAULT_CLIENT,)),
        "OAUTHBEARER": (f"{_PACKAGE}oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",),
    },
    "sasl.login.class": {
        **dict.fromkeys(MECHANISMS[:3], (_DEFAULT_LOGIN,)),
        "OAUTHBEARER": (f"{_PACKAGE}oauthbearer.internals.OAuthBearerRefreshingLogin",),
    },
    "sasl.login.callback.handler.class": {
        **dict.fromkeys(MECHANISMS[:3], (_DEFAULT_LOGIN_HANDLER,)),
        "OAUTHBEARER": (f"{_PACKAGE}oauthbearer.OAuthBearerLoginCallbackHandler",),
    },
    f"{OAUTH}jwt.validator.class": {
        "OAUTHBEARER": (
            f"{_PACKAGE}oauthbearer.DefaultJwtValidator",
            f"{_PACKAGE}oauthbearer.BrokerJwtValidator",
        )
    },
    f"{OAUTH}jwt.retriever.class": {
        "OAUTHBEARER": (
            f"{_PACKAGE}oauthbearer.DefaultJwtRetriever",
            f"{_PACKAGE}oauthbearer.FileJwtRetriever",
        )
    },
}
"""Key of a class -> mechanism -> Kafka's classes, which do what this side does without a class."""


class SaslKey(NamedTuple):
    """A key of a file, taken apart."""

    name: str
    """The key without prefixes."""
    listener: str | None = None
    """In lower case."""
    mechanism: str | None = None
    """In lower case."""

    @property
    def form(self) -> Form:
        if self.listener is None:
            return Form.NODE
        return Form.LISTENER if self.mechanism is None else Form.MECHANISM


def split_key(key: str) -> SaslKey | None:
    """The parts of a key of SASL; None for another key."""
    if not key.startswith(_PREFIX):
        return SaslKey(key) if key in FORMS else None
    listener, _, rest = key[len(_PREFIX) :].partition(".")
    if rest in FORMS:
        return SaslKey(rest, listener)
    mechanism, _, name = rest.partition(".")
    return SaslKey(name, listener, mechanism) if name in FORMS else None


def is_read(key: str, listeners: Collection[str]) -> bool:
    """Whether a node with these controller listeners reads the key. Prefixes are in lower case."""
    parts = split_key(key)
    if parts is None or not parts.form & FORMS[parts.name] or not _is_lower(parts):
        return False
    if parts.listener is not None and parts.listener not in {name.lower() for name in listeners}:
        return False
    mechanism = parts.mechanism
    if mechanism is not None and parts.name.startswith(OAUTH):
        return mechanism == "oauthbearer"
    return mechanism is None or mechanism.upper() in MECHANISMS


def _is_lower(parts: SaslKey) -> bool:
    prefixes = f"{parts.listener}{parts.mechanism or ''}"
    return parts.listener is None or prefixes == prefixes.lower()


def forms_of(name: str) -> str:
    """The forms of a key that are read, for a message; empty for a key of another kind."""
    texts = {
        Form.NODE: name,
        Form.LISTENER: f"{_PREFIX}<listener>.{name}",
        Form.MECHANISM: f"{_PREFIX}<listener>.<mechanism>.{name}",
    }
    return " or ".join(text for form, text in texts.items() if form & FORMS.get(name, Form(0)))


def effective(settings: Settings, name: str, listener: str, mechanism: str | None = None) -> str:
    """The key that decides for a listener and a mechanism: the most specific one of the file.

    Without any in the file it is the most general form. Every key of SASL is looked up here.
    """
    prefix, forms = listener_prefix(listener), FORMS[name]
    keys = []
    if mechanism is not None and Form.MECHANISM in forms:
        keys.append(f"{prefix}{mechanism.lower()}.{name}")
    if Form.LISTENER in forms:
        keys.append(prefix + name)
    if Form.NODE in forms:
        keys.append(name)
    return next((key for key in keys if key in settings), keys[-1])


def foreign_classes(settings: Settings, listeners: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each key that names a class of others, in any form, and the text about it."""
    own = {name.lower() for name in listeners}
    for key in settings:
        parts, value = split_key(key), settings.values.get(key)
        if parts is None or parts.name not in CLASSES or not value:
            continue
        if parts.listener is not None and parts.listener.lower() not in own:
            continue
        classes = CLASSES[parts.name]
        mechanisms = (*classes,) if parts.mechanism is None else (parts.mechanism.upper(),)
        known = dict.fromkeys(each for name in mechanisms for each in classes.get(name, ()))
        if value not in known:
            choices = f"; known are {', '.join(known)}" if known else ""
            yield key, f"{key}={value} names a Java class, which Quorate cannot run{choices}"
