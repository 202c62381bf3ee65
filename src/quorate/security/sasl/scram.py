"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677), with Kafka's extension `tokenauth`.

As in Kafka's `ScramFormatter`, user names and passwords are UTF-8 without SASLprep. So a password
that a Java node stored is accepted here (decision 19).
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from quorate.metadata.image import ScramCredential
from quorate.security.sasl.mechanism import SaslError, shown_error
from quorate.security.scram_keys import MECHANISMS, MIN_ITERATIONS, Mechanism

# Linear, and without a step back: a client that has not logged in chooses what is matched.
_SASLNAME: Final = r"(?:[^\0,=]++|=2C|=3D)++"
_PRINTABLE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_MORE: Final = r"(?:,[A-Za-z]+=[^,]+)*"
_CLIENT_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_SASLNAME}))?,(?P<bare>(?:m={_PRINTABLE},)?n=(?P<user>{_SASLNAME})"
    rf",r=(?P<nonce>{_PRINTABLE})(?P<more>{_MORE}))",
    re.DOTALL,
)
_SERVER_FIRST: Final = re.compile(
    rf"(?:m={_PRINTABLE},)?r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64})"
    rf",i=(?P<iterations>[0-9]{{1,9}}){_MORE}"
)
_CLIENT_FINAL: Final = re.compile(
    rf"(?P<bare>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_MORE}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL: Final = re.compile(rf"(?:e=(?P<error>[^,]+)|v=(?P<signature>{_BASE64})){_MORE}")
_NO_CHANNEL_BINDING: Final = b64encode(b"n,,").decode()
_MAX_ITERATIONS: Final = 1_000_000
"""What a server may ask of a client: this takes a second or so."""
MAX_MESSAGE_BYTES: Final = 8192
"""Of a client's message. A name in the log of failed logins stays small, too."""
TOKEN_AUTH: Final = "tokenauth"  # noqa: S105 - an extension


class TokenCredential(NamedTuple):
    """What authenticates by a delegation token."""

    credential: ScramCredential
    owner: str
    """Name of the token's owner, without its type."""
    expires_at_ms: int


CredentialLookup = Callable[[Mechanism, str], ScramCredential | None]
TokenLookup = Callable[[Mechanism, str], TokenCredential | None]
"""By mechanism and token id; it may take milliseconds."""


class ScramServer:
    """The server's side (`ScramSaslServer`)."""

    def __init__(self, name: str, lookup: CredentialLookup, token_lookup: TokenLookup) -> None:
        self.name = name
        self.principal: str | None = None
        self.expires_at_ms: int | None = None
        self.by_token = False
        self._mechanism = MECHANISMS[name]
        self._lookup = lookup
        self._token_lookup = token_lookup
        self._user = ""
        self._credential: ScramCredential | None = None
        self._first_messages = ""
        self._nonce = ""
        self._expiry: int | None = None

    def is_slow(self, response: bytes) -> bool:
        """The keys of a delegation token are derived when it is first used."""
        is_first = self._credential is None and len(response) <= MAX_MESSAGE_BYTES
        return is_first and TOKEN_AUTH.encode() in response

    def evaluate(self, response: bytes) -> bytes:
        if len(response) > MAX_MESSAGE_BYTES:
            raise SaslError(f"Invalid SCRAM message format: {len(response)} bytes")
        return self._final(response) if self._credential is not None else self._first(response)

    def _first(self, response: bytes) -> bytes:
        found = _CLIENT_FIRST.fullmatch(_text(response))
        if found is None:
            raise SaslError("Invalid SCRAM client first message format")
        user = _unescaped(found["user"])
        extensions = dict(item.split("=", 1) for item in found["more"].split(",") if item)
        if extensions.get(TOKEN_AUTH, "").lower() == "true":
            token = self._token_lookup(self._mechanism, user)
            if token is None:
                raise SaslError(f"Token Authentication failed: Invalid tokenId : {user!r}")
            credential: ScramCredential | None = token.credential
            self._user, self._expiry, self.by_token = token.owner, token.expires_at_ms, True
        else:
            credential = self._lookup(self._mechanism, user)
            self._user = user
        if credential is None:
            raise SaslError(f"Authentication failed: no {self.name} credential of user {user!r}")
        if found["authzid"] and _unescaped(found["authzid"]) != user:
            raise shown_error(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        if credential.iterations < MIN_ITERATIONS:
            raise SaslError(
                f"Iterations {credential.iterations} is less than the minimum {MIN_ITERATIONS}"
            )
        self._credential = credential
        self._nonce = found["nonce"] + secrets.token_urlsafe(24)
        salt = b64encode(credential.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._first_messages = f"{found['bare']},{server_first}"
        return server_first.encode()

    def _final(self, response: bytes) -> bytes:
        assert self._credential is not None
        found = _CLIENT_FINAL.fullmatch(_text(response))
        if found is None:
            raise SaslError("Invalid SCRAM client final message format")
        if found["nonce"] != self._nonce:
            raise SaslError("Invalid client nonce in the final client message.")
        hash_name, credential = self._mechanism.hash, self._credential
        message = f"{self._first_messages},{found['bare']}".encode()
        signature = hmac.digest(credential.stored_key, message, hash_name)
        proof = _decoded(found["proof"])
        key = _xor(signature, proof) if len(proof) == len(signature) else b""
        if not hmac.compare_digest(hashlib.new(hash_name, key).digest(), credential.stored_key):
            raise SaslError(f"Invalid client credentials of user {self._user!r}")
        self.principal, self.expires_at_ms = self._user, self._expiry
        verifier = hmac.digest(credential.server_key, message, hash_name)
        return b"v=" + b64encode(verifier)


class ScramClient:
    """The client's side. `token`: user and password are id and HMAC of a delegation token."""

    def __init__(self, name: str, user: str, password: str, *, token: bool = False) -> None:
        self.name = name
        self._mechanism = MECHANISMS[name]
        self._user, self._password = user, password
        self._nonce = secrets.token_urlsafe(24)
        more = f",{TOKEN_AUTH}=true" if token else ""
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={escaped},r={self._nonce}{more}"
        self._verifier = b""

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        if not self._verifier:
            return self._final(challenge)
        self._check_server(challenge)
        return None

    def _final(self, challenge: bytes) -> bytes:
        text = _text(challenge)
        found = _SERVER_FIRST.fullmatch(text)
        if found is None:
            refused = _SERVER_FINAL.fullmatch(text)
            why = f": {refused['error']}" if refused is not None and refused["error"] else ""
            raise SaslError(f"the server's first {self.name} message is invalid{why}")
        iterations = int(found["iterations"])
        if not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise SaslError("Invalid server nonce: does not start with client nonce")
        if not MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
            raise SaslError(
                f"the server asks for {iterations} iterations of {self.name}; allowed are "
                f"{MIN_ITERATIONS} to {_MAX_ITERATIONS}"
            )
        hash_name = self._mechanism.hash
        salted = hashlib.pbkdf2_hmac(
            hash_name, self._password.encode(), _decoded(found["salt"]), iterations
        )
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        bare = f"c={_NO_CHANNEL_BINDING},r={found['nonce']}"
        message = f"{self._first_bare},{text},{bare}".encode()
        stored_key = hashlib.new(hash_name, client_key).digest()
        proof = _xor(client_key, hmac.digest(stored_key, message, hash_name))
        self._verifier = hmac.digest(
            hmac.digest(salted, b"Server Key", hash_name), message, hash_name
        )
        return f"{bare},p=".encode() + b64encode(proof)

    def _check_server(self, challenge: bytes) -> None:
        found = _SERVER_FINAL.fullmatch(_text(challenge))
        if found is None or not found["signature"]:
            why = found["error"] if found is not None else "invalid message"
            raise SaslError(f"the server did not finish {self.name}: {why}")
        if not hmac.compare_digest(_decoded(found["signature"]), self._verifier):
            raise SaslError(
                "Invalid server signature in server final message: the server does not know the "
                "credential of this user"
            )


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("a SCRAM message is not UTF-8") from None


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise SaslError("a SCRAM message has invalid base64") from None


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
