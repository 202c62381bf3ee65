"""Where this side is the client: from a login module to the exchange that logs in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorate.base.file_errors import shown, why
from quorate.base.file_url import path_of
from quorate.security.jaas import JaasError, JaasText, LoginModule, parse_jaas
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.mechanism import GSSAPI_REFUSED, MECHANISMS, ClientMechanism, SaslError
from quorate.security.sasl.oauthbearer import OAuthBearerClient
from quorate.security.sasl.plain import PlainClient
from quorate.security.sasl.scram import TOKEN_AUTH, ScramClient

Login = Callable[[], SaslClient]
"""Begins an exchange, once per connection and re-authentication."""
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - a key

_UNSECURED_LOGIN: Final = "unsecuredLogin"


def login_of(mechanism: str, jaas: JaasText, token_url: str | None = None) -> Login:
    """The login of a client. Raises JaasError.

    `token_url`: `sasl.oauthbearer.token.endpoint.url`, a `file:` URL with the token of OAUTHBEARER.
    """
    if mechanism not in MECHANISMS:
        why = GSSAPI_REFUSED if mechanism == "GSSAPI" else f"it is not one of {MECHANISMS}"
        raise JaasError(f"The SASL mechanism {mechanism} cannot be used: {why} ({jaas.where})")
    module = parse_jaas(jaas, mechanism)
    if mechanism == "OAUTHBEARER":
        for name in module.options:
            if name.startswith(_UNSECURED_LOGIN):
                raise JaasError(
                    f"Invalid value for configuration {jaas.key}: the option {name} makes a token, and "
                    f"this side takes its token from the file of {TOKEN_URL} ({jaas.where})"
                )
        path = _token_file(jaas, token_url)
        return lambda: SaslClient(OAuthBearerClient(lambda: _read_token(path)))
    user, password = _option(jaas, module, "username"), _option(jaas, module, "password")
    by_token = module.options.get(TOKEN_AUTH, "").lower() == "true"

    def begin() -> SaslClient:
        exchange: ClientMechanism
        if mechanism == "PLAIN":
            exchange = PlainClient(user, password)
        else:
            exchange = ScramClient(mechanism, user, password, token=by_token)
        return SaslClient(exchange)

    return begin


def user_of(mechanism: str, jaas: JaasText) -> str | None:
    """Who logs in; None where only the node knows: the owner of a token. Raises JaasError."""
    options = parse_jaas(jaas, mechanism).options
    if options.get(TOKEN_AUTH, "").lower() == "true":
        return None
    return options.get("username")


def _option(jaas: JaasText, module: LoginModule, name: str) -> str:
    found = module.options.get(name)
    if not found:
        raise JaasError(
            f"Invalid value for configuration {jaas.key}: the option {name} of {module.name} is "
            f"missing, which this side logs in with ({jaas.where})"
        )
    return found


def _token_file(jaas: JaasText, url: str | None) -> Path:
    path = path_of(url)
    if path is None:
        raise JaasError(
            f"OAUTHBEARER takes its token from a file: set {TOKEN_URL}=file:///PATH; a program of "
            f"your own may renew the file ({jaas.where})"
        )
    return Path(path)


def _read_token(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise SaslError(
            f"cannot read the token of OAUTHBEARER in {shown(str(path))}: {why(error)}"
        ) from None
