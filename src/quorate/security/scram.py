"""Parse `--add-scram` into the metadata records of a new cluster's SCRAM credentials.

Syntax and messages are those of Kafka's `ScramParser`, but no message repeats what may be a part of a
password, e.g. of one with a comma. The keys are derived as in RFC 5802.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import secrets
from base64 import b64decode
from typing import Final

from quorate.base.errors import QuorateError
from quorate.formats.records import UserScramCredentialRecord
from quorate.security.scram_keys import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    Mechanism,
    credential_record,
)

_KEYS: Final = ("name", "password", "salt", "saltedpassword", "iterations")
_HINT: Final = " (a password cannot hold a comma)"


class ScramError(QuorateError):
    """An invalid --add-scram argument."""


def parse_scram(argument: str) -> UserScramCredentialRecord:
    """Parse `SCRAM-SHA-256=[name=alice,password=secret]`.

    `saltedpassword` and `salt` (base64) replace a password. `iterations` (4096 to 16384) and `salt`
    are optional beside a password. Raises ScramError.
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
        raise ScramError(f"Unknown SCRAM configurations; there are {', '.join(_KEYS)}{_HINT}")
    salt = secrets.token_bytes(32) if salt is None else salt
    if password is not None:
        salted = hashlib.pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)
    else:
        salted = _base64(salted_text or "", "saltedPassword")
    if password == "" or not salted:
        raise ScramError("Empty key: the password of a SCRAM credential must not be empty")
    return credential_record(mechanism, name, salt, salted, iterations)


def _split(argument: str) -> tuple[Mechanism, dict[str, str]]:
    name, equals, text = argument.strip().partition("=")
    if not equals:
        raise ScramError("Failed to find equals sign in SCRAM argument")
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        raise ScramError(f"The add-scram mechanism {name} is not supported.")
    for edge, found in (("start with [", text.startswith("[")), ("end with ]", text[-1:] == "]")):
        if not found:
            raise ScramError(f"Expected configuration string to {edge}")
    components = {}
    for number, component in enumerate(text[1:-1].split(","), 1):
        key, equals, value = component.partition("=")
        if not equals:
            raise ScramError(f"No equals sign found in SCRAM component {number}{_HINT}")
        quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        components[key] = value[1:-1] if quoted else value
    return mechanism, components


def _base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ScramError(f"Failed to decode given {what}: it is not base64") from None


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
