"""The mechanisms of SCRAM, and the keys that a credential keeps (RFC 5802). Pure."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

from quorate.formats.records import UserScramCredentialRecord


class Mechanism(NamedTuple):
    """A SCRAM mechanism: `type` is its id in the record, `hash` its name in hashlib."""

    type: int
    name: str
    hash: str

    @property
    def label(self) -> str:
        """The name of Kafka's enum constant, as it occurs in messages."""
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


def credential_record(
    mechanism: Mechanism, name: str, salt: bytes, salted_password: bytes, iterations: int
) -> UserScramCredentialRecord:
    """The record of a credential: the keys are derived, the salted password is not kept.

    RFC 5802, section 3: StoredKey = H(HMAC(SaltedPassword, "Client Key")).
    """
    client_key = hmac.digest(salted_password, b"Client Key", mechanism.hash)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism.type,
        salt=salt,
        stored_key=hashlib.new(mechanism.hash, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", mechanism.hash),
        iterations=iterations,
    )
