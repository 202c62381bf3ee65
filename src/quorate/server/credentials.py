"""Credentials for SCRAM: from the committed image, or from this node's disk before it is known.

Three controllers that stopped together know no high watermark, so nothing is committed for them.
Without credentials none could log in at another to elect. Until the image has a metadata.version, the
newest snapshot, the whole log and the bootstrap records count instead. A record there may turn out not
to be committed: it was written by a leader of this cluster all the same, never by a client.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from base64 import b64encode
from collections.abc import Iterable
from typing import Final, Protocol

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, values
from quorate.formats.records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
)
from quorate.metadata.image import Image, ScramCredential, ScramKey
from quorate.security.sasl.scram import TokenCredential
from quorate.security.scram_keys import MIN_ITERATIONS, Mechanism, credential_record
from quorate.storage.api import Storage
from quorate.storage.batches import log_parts, snapshot_batches

_MAX_TOKENS: Final = 10_000
_RECORDS: Final = frozenset((b"\x01\x0b", b"\x01\x16"))
"""How the values of the records of SCRAM credentials begin: keys 11 and 22."""


class ImageHolder(Protocol):
    """A node with a committed image."""

    @property
    def image(self) -> Image: ...


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
        if image.features.metadata_version is None:
            return self._local.get(key)
        if self._local:
            self._local = {}
        return image.scram.get(key)

    def token(self, mechanism: Mechanism, token_id: str) -> TokenCredential | None:
        """The credential of a delegation token that has not expired. It may take milliseconds."""
        token = self._node.image.delegation_tokens.get(token_id)
        if token is None or self._secret is None:
            return None
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


def read_local(
    storage: Storage, snapshot: OffsetAndEpoch | None, bootstrap: Iterable[object]
) -> dict[ScramKey, ScramCredential]:
    """The credentials on an open storage, whether committed or not. Raises QuorateError."""
    found: dict[ScramKey, ScramCredential] = {}
    for record in bootstrap:
        _apply(found, record)
    start = storage.start_offset
    if snapshot is not None:
        for batch in snapshot_batches(storage, snapshot):
            _values(found, batch)
        start = max(start, snapshot.offset)
    for _, batches in log_parts(storage, start, storage.end_offset):
        for batch in batches:
            _values(found, batch)
    return found


def _values(found: dict[ScramKey, ScramCredential], batch: BatchView) -> None:
    if batch.is_control:
        return
    for value in values(batch):
        # Frame version 1, then the key of the record: nothing else is decoded.
        if value[:2] in _RECORDS:
            _apply(found, decode_record(value)[0])


def _apply(found: dict[ScramKey, ScramCredential], record: object) -> None:
    if isinstance(record, UserScramCredentialRecord):
        found[ScramKey(record.mechanism, record.name)] = ScramCredential(
            bytes(record.salt),
            bytes(record.stored_key),
            bytes(record.server_key),
            record.iterations,
        )
    elif isinstance(record, RemoveUserScramCredentialRecord):
        found.pop(ScramKey(record.mechanism, record.name), None)
