"""What the log says of ACLs, SCRAM credentials, delegation tokens and producer ids, record by record.

The rules are those of KIP-140 and KIP-801 (ACLs), KIP-554 (SCRAM), KIP-48 and KIP-900 (tokens) and KIP-730
(producer ids).
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from quorate.base.ids import Uuid
from quorate.formats.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.security_requests import HMAC_KEY
from quorate.wire.schema import Message

K = TypeVar("K")
V = TypeVar("V")

ACLS: Final = "acls"
CREDENTIALS: Final = "scram credentials"
TOKENS: Final = "delegation tokens"
PRODUCER_IDS: Final = "producer ids"
SCRAM_LEVEL: Final = 11
"""metadata.version 3.5-IV2, the first with SCRAM credentials."""
TOKEN_LEVEL: Final = 14
"""metadata.version 3.6-IV2, the first with delegation tokens."""
BLOCK: Final = 1_000
"""Producer ids of one block."""
_ITERATIONS: Final = range(4096, 16385)
_HASHES: Final = {1: "sha256", 2: "sha512"}
"""By mechanism."""

Acl = tuple[int, str, int, str, str, int, int]
"""Resource type and name, pattern type, principal, host, operation, permission type."""
Credential = tuple[bytes, bytes, bytes, int]
"""Salt, stored key, server key, iterations."""


class TokenState(NamedTuple):
    """Times are in ms since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    max_ms: int
    expires_ms: int

    @property
    def deadline_ms(self) -> int:
        return min(self.max_ms, self.expires_ms)


@dataclass(frozen=True, slots=True)
class SecurityState:
    """Everything of these domains at one offset. Nothing changes a mapping."""

    version: int = 0
    """metadata.version"""
    acls: Mapping[Uuid, Acl] = field(default_factory=dict)
    credentials: Mapping[tuple[int, str], Credential] = field(default_factory=dict)
    """By mechanism and user."""
    tokens: Mapping[str, TokenState] = field(default_factory=dict)
    next_producer_id: int = -1
    epochs: Mapping[int, int] = field(default_factory=dict)
    """By broker: its epoch."""

    def token_of(self, secret: bytes) -> tuple[str, TokenState] | None:
        """The token with this secret, and its id."""
        found = (item for item in self.tokens.items() if secret_of(item[0]) == secret)
        return next(found, None)


def require(holds: bool, check: str, message: str) -> None:
    """Raise ViolationError unless a rule holds."""
    if not holds:
        raise ViolationError(check, message)


def secret_of(token_id: str) -> bytes:
    """The HMAC of a token id with the key of the cluster (KIP-48, "Token details")."""
    return hmac.digest(HMAC_KEY.encode(), token_id.encode(), hashlib.sha512)


def derived(mechanism: int, salt: bytes, salted_password: bytes, iterations: int) -> Credential:
    """The credential that an upsertion makes (RFC 5802, section 3)."""
    name = _HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    server_key = hmac.digest(salted_password, b"Server Key", name)
    return salt, hashlib.new(name, client_key).digest(), server_key, iterations


class SecurityModel:
    """All records of these domains that any controller has applied, and the states between them."""

    def __init__(self) -> None:
        self.removed: Collection[bytes] = ()
        """Secrets of the tokens that a client has asked to remove."""
        self.clock_ms = 0
        """The highest time (since 1970) that any controller has had: their clocks jump."""
        self._records: list[tuple[int, Message]] = []
        self._ends = [0]
        """End offsets (exclusive) of the records. The first is that of no record."""
        self._states = [SecurityState()]
        self._acl_ids: set[Uuid] = set()
        self._token_ids: set[str] = set()
        """All that there ever were."""

    def take(self, where: str, records: Iterable[tuple[int, Message]]) -> None:
        """A controller has applied these, (offset, record) each. Raises ViolationError."""
        for offset, record in records:
            if offset >= self._ends[-1]:
                state = self._after(self._states[-1], f"{where}: {offset}", record)
                self._records.append((offset, record))
                self._ends.append(offset + 1)
                self._states.append(state)

    def at(self, end: int) -> SecurityState:
        """The state that the records before this offset make."""
        return self._states[bisect_right(self._ends, end) - 1]

    def write(self, end: int, count: int) -> tuple[SecurityState, list[Message]] | None:
        """The state before a write of `count` records that ends at `end` (exclusive), and its records.

        None: the log has other records there.
        """
        last = bisect_right(self._ends, end) - 1
        first = last - count
        own = self._records[max(0, first) : last]
        if [offset for offset, _ in own] != list(range(end - count, end)):
            return None
        return self._states[first], [record for _, record in own]

    # -- what a record may do -------------------------------------------------------------------
    def _after(self, state: SecurityState, where: str, record: Message) -> SecurityState:
        if isinstance(record, FeatureLevelRecord):
            is_known = record.name == "metadata.version"
            return replace(state, version=record.feature_level) if is_known else state
        if isinstance(record, RegisterBrokerRecord):
            return replace(state, epochs={**state.epochs, record.broker_id: record.broker_epoch})
        if isinstance(record, ProducerIdsRecord):
            return _allocated(state, where, record)
        if isinstance(record, AccessControlEntryRecord):
            return self._acl_added(state, where, record)
        if isinstance(record, RemoveAccessControlEntryRecord):
            require(record.id in state.acls, ACLS, f"{where} removes an entry that is not there")
            return replace(state, acls=_without(state.acls, record.id))
        if isinstance(record, UserScramCredentialRecord):
            return _credential_set(state, where, record)
        if isinstance(record, RemoveUserScramCredentialRecord):
            key = record.mechanism, record.name
            found = key in state.credentials
            require(found, CREDENTIALS, f"{where} removes {key}, which is not there")
            return replace(state, credentials=_without(state.credentials, key))
        if isinstance(record, DelegationTokenRecord):
            return self._token_set(state, where, record)
        assert isinstance(record, RemoveDelegationTokenRecord)
        return self._token_removed(state, where, record.token_id)

    def _acl_added(
        self, state: SecurityState, where: str, record: AccessControlEntryRecord
    ) -> SecurityState:
        """An id is of one entry for ever, and no entry is there twice.

        Source: `AclControlManager.createAcls`, KIP-801.
        """
        acl = (
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        require(record.id not in self._acl_ids, ACLS, f"{where} uses the id {record.id!r} again")
        known = acl in state.acls.values()
        require(not known, ACLS, f"{where} adds {acl}, which is there already")
        self._acl_ids.add(record.id)
        return replace(state, acls={**state.acls, record.id: acl})

    def _token_set(
        self, state: SecurityState, where: str, record: DelegationTokenRecord
    ) -> SecurityState:
        """A token keeps everything but its expiry, which is never after its maximum time (KIP-48)."""
        token = TokenState(
            record.owner,
            record.requester,
            tuple(record.renewers),
            record.issue_timestamp,
            record.max_timestamp,
            record.expiration_timestamp,
        )
        known = state.tokens.get(record.token_id)
        said = f"{where} sets token {record.token_id} to {token}"
        require(state.version >= TOKEN_LEVEL, TOKENS, f"{said} at level {state.version}")
        require(token.expires_ms <= token.max_ms, TOKENS, f"{said}: it lives for too long")
        if known is None:
            require(
                record.token_id not in self._token_ids, TOKENS, f"{said}: the id was used before"
            )
        else:
            kept = known._replace(expires_ms=token.expires_ms)
            require(token == kept, TOKENS, f"{said} after {known}")
        self._token_ids.add(record.token_id)
        return replace(state, tokens={**state.tokens, record.token_id: token})

    def _token_removed(self, state: SecurityState, where: str, token_id: str) -> SecurityState:
        """A token is there until it has expired, or a client asks to remove it.

        Source: KIP-48; `DelegationTokenControlManager.sweepExpiredDelegationTokens`.
        """
        token = state.tokens.get(token_id)
        require(token is not None, TOKENS, f"{where} removes token {token_id}, which is not there")
        assert token is not None
        is_over = token.deadline_ms < self.clock_ms or secret_of(token_id) in self.removed
        message = f"{where} removes {token}, and no clock is past {self.clock_ms}"
        require(is_over, TOKENS, message)
        return replace(state, tokens=_without(state.tokens, token_id))


def _without(found: Mapping[K, V], key: K) -> dict[K, V]:
    return {each: value for each, value in found.items() if each != key}


def _allocated(state: SecurityState, where: str, record: ProducerIdsRecord) -> SecurityState:
    """Each block begins where the one before it ends, and goes to a broker's present process.

    Source: KIP-730; `ProducerIdControlManager.generateNextProducerId`.
    """
    first = max(0, state.next_producer_id)
    said = f"{where} allocates the ids up to {record.next_producer_id} after {first}"
    require(record.next_producer_id == first + BLOCK, PRODUCER_IDS, said)
    epoch = state.epochs.get(record.broker_id)
    said = f"{where} allocates ids to epoch {record.broker_epoch} of a broker at {epoch}"
    require(epoch == record.broker_epoch, PRODUCER_IDS, said)
    return replace(state, next_producer_id=record.next_producer_id)


def _credential_set(
    state: SecurityState, where: str, record: UserScramCredentialRecord
) -> SecurityState:
    """Mechanism, iterations and level are those that KIP-554 allows."""
    key = record.mechanism, record.name
    said = f"{where} sets {key} with {record.iterations} iterations at level {state.version}"
    is_good = record.mechanism in _HASHES and record.iterations in _ITERATIONS
    require(is_good and state.version >= SCRAM_LEVEL, CREDENTIALS, said)
    keys = bytes(record.stored_key), bytes(record.server_key)
    credential = (bytes(record.salt), *keys, record.iterations)
    return replace(state, credentials={**state.credentials, key: credential})
