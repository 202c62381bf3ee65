"""SCRAM credentials for a new cluster: the text of `--add-scram` as metadata records.

The syntax and its messages are those of Kafka's `ScramParser`; the keys those of RFC 5802.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import secrets
from base64 import b64decode
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.formats.records import UserScramCredentialRecord


class ScramError(QuorateError):
    """An --add-scram argument that cannot be used."""


class Mechanism(NamedTuple):
    type: int
    name: str
    hash: str

    @property
    def label(self) -> str:
        return self.name.replace("-", "_")


MECHANISMS: Final = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism(1, "SCRAM-SHA-256", "sha256"),
        Mechanism(2, "SCRAM-SHA-512", "sha512"),
    )
}
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384


def parse_scram(argument: str) -> UserScramCredentialRecord:
    """The record of `SCRAM-SHA-256=[name=alice,password=secret]`.

    Instead of a password: `saltedpassword` and `salt` in base64; `iterations` (4096 to 16384) and
    `salt` may be given in both forms. Raises ScramError.
    """
    mechanism, components = _split(argument)
    name = components.pop("name", None)
    if name is None:
        raise ScramError("You must supply 'name' to add-scram")
    salt_text = components.pop("salt", None)
    salt = None if salt_text is None else _base64(salt_text, "salt")
    iterations = _iterations(components.pop("iterations", str(MIN_ITERATIONS)), mechanism)
    password = components.pop("password", None)
    salted_text = components.pop("saltedpassword", None)
    if password is None and salted_text is None:
        raise ScramError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if password is None and salt is None:
        raise ScramError("You must supply 'salt' with 'saltedpassword' to add-scram")
    if components:
        raise ScramError(f"Unknown SCRAM configurations: {', '.join(sorted(components))}")
    salt = secrets.token_bytes(32) if salt is None else salt
    if password is not None:
        salted = hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)
    else:
        salted = _base64(salted_text or "", "saltedPassword")
    if password == "" or not salted:
        raise ScramError("Empty key: the password of a SCRAM credential must not be empty")
    client_key = hmac.digest(salted, b"Client Key", mechanism.hash)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", mechanism.hash),
        iterations=iterations,
    )


def _split(argument: str) -> tuple[Mechanism, dict[str, str]]:
    name, equals, text = argument.strip().partition("=")
    if not equals:
        raise ScramError(f"Failed to find equals sign in SCRAM argument '{argument.strip()}'")
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        raise ScramError(f"The add-scram mechanism {name} is not supported.")
    for edge, found in (("start with [", text.startswith("[")), ("end with ]", text[-1:] == "]")):
        if not found:
            raise ScramError(f"Expected configuration string to {edge}")
    components = {}
    for component in text[1:-1].split(","):
        key, equals, value = component.partition("=")
        if not equals:
            raise ScramError(f"No equals sign found in SCRAM component: {component}")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        components[key] = value[1:-1] if quoted else value
    return mechanism, components


def _base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ScramError(f"Failed to decode given {what}: {text}") from None


def _iterations(text: str, mechanism: Mechanism) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text, re.ASCII):
        raise ScramError(f"Failed to parse iterations count: {text}")
    count = int(text)
    if count < MIN_ITERATIONS:
        bound = f">= {MIN_ITERATIONS}"
    elif count > MAX_ITERATIONS:
        bound = f"<= {MAX_ITERATIONS}"
    else:
        return count
    raise ScramError(
        f"The 'iterations' value must be {bound} for add-scram using {mechanism.label}"
    )
