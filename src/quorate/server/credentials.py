"""Credentials for SCRAM: from the committed image, or from this node's disk before it is known.

Until the image holds what the disk had at the start, what `read_local` found counts instead
(`local_security`): an image from a snapshot lacks the changes after it.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from base64 import b64encode
from typing import Final, Protocol

from quorate.metadata.image import Image, ScramCredential, ScramKey
from quorate.security.sasl.scram import TokenCredential
from quorate.security.scram_keys import MIN_ITERATIONS, Mechanism, credential_record

_MAX_TOKENS: Final = 10_000


class ImageHolder(Protocol):
    """A node with a committed image."""

    @property
    def image(self) -> Image: ...

    @property
    def is_behind_disk(self) -> bool:
        """The disk has more than the image."""


class Credentials:
    """Lookups of both kinds; any thread may call them."""

    def __init__(
        self,
        node: ImageHolder,
        local: dict[ScramKey, ScramCredential],
        token_secret: str | None,
    ) -> None:
        """local: what `read_local` found; token_secret: `delegation.token.secret.key`."""
        self._node = node
        self._local = local
        self._secret = None if token_secret is None else token_secret.encode()
        self._derived: dict[tuple[str, str], ScramCredential] = {}
        self._lock = threading.Lock()

    def scram(self, mechanism: Mechanism, user: str) -> ScramCredential | None:
        """The credential of a user, None for none."""
        image = self._node.image
        key = ScramKey(mechanism.type, user)
        if image.features.metadata_version is None or self._node.is_behind_disk:
            return self._local.get(key)
        if self._local:
            self._local = {}
        return image.scram.get(key)

    def token(self, mechanism: Mechanism, token_id: str) -> TokenCredential | None:
        """The credential of a delegation token that has not expired. It may take milliseconds."""
        token = self._node.image.delegation_tokens.get(token_id)
        if token is None or self._secret is None or self._node.is_behind_disk:
            return None  # behind: the token may be removed since
        if token.expiration_timestamp <= time.time() * 1000:
            return None
        key = mechanism.name, token_id
        with self._lock:
            credential = self._derived.get(key)
        if credential is None:
            credential = token_credential(self._secret, mechanism, token_id)
            with self._lock:
                if len(self._derived) >= _MAX_TOKENS:
                    self._derived.clear()
                self._derived[key] = credential
        owner = token.owner.partition(":")[2]
        return TokenCredential(credential, owner, token.expiration_timestamp)


def token_credential(secret: bytes, mechanism: Mechanism, token_id: str) -> ScramCredential:
    """The password of a token is its HMAC in base64 (KIP-48, `DelegationTokenManager`)."""
    password = b64encode(hmac.digest(secret, token_id.encode(), "sha512"))
    salt = hmac.digest(secret, f"salt of {token_id}".encode(), "sha256")
    salted = hashlib.pbkdf2_hmac(mechanism.hash, password, salt, MIN_ITERATIONS)
    made = credential_record(mechanism, token_id, salt, salted, MIN_ITERATIONS)
    return ScramCredential(salt, bytes(made.stored_key), bytes(made.server_key), MIN_ITERATIONS)
