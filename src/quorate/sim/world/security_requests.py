"""Requests about ACLs, SCRAM credentials and delegation tokens that the clients of controllers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.metadata.image import Image
from quorate.sim.prng import Prng
from quorate.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.wire.schema import Message

PRINCIPALS: Final = ("User:admin1", "User:admin2")
"""Who the clients are, in turn. Super users of every controller."""
HMAC_KEY: Final = "simulated"
"""`delegation.token.secret.key` of every controller."""
TOKEN_LIFETIME_MS: Final = 15_000
"""`delegation.token.max.lifetime.ms`"""
TOKEN_EXPIRY_MS: Final = 4_000
"""`delegation.token.expiry.time.ms`"""
TOKEN_CHECK_MS: Final = 1_000
"""`delegation.token.expiry.check.interval.ms`"""
_TOKENS: Final = 40
"""Most tokens that the clients of a world ask for."""
_ANY: Final = 1
_MATCH: Final = 2
_TOPIC: Final = 2
_CLUSTER: Final = 4
_READ: Final = 3
_PATTERNS: Final = (3, 4)
"""Literal and prefixed."""
_PERMISSIONS: Final = (2, 3)
"""Deny and allow."""
_NAMES: Final = ("kept", "kept1", "*")
_READERS: Final = ("User:reader1", "User:reader2")
_USERS: Final = ("scram1", "scram2", "scram3")
_ITERATIONS: Final = (4096, 8192, 8192, 16384, 4095)
"""The last are too few."""
_LIFETIMES_MS: Final = (-1, -1, 500, 3_000, 60_000)
_RENEWED_BY_MS: Final = (-1, 300, 6_000, 60_000)
_EXPIRED_BY_MS: Final = (-1, -1, 0, 1_000, 60_000)

_Deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion


def overdue(image: Image, now_ms: int) -> str | None:
    """A token that has expired and is still there; None: there is none. For the liveness phase.

    now_ms: of the active controller, which removes it (KIP-48, `delegation.token.expiry.check.interval.ms`).
    """
    for token_id, token in image.delegation_tokens.items():
        if min(token.max_timestamp, token.expiration_timestamp) < now_ms:
            return f"token {token_id} has expired, and it is there at {now_ms}: {token}"
    return None


class SecurityRequests:
    """The requests of one world. Its clients know each other's tokens."""

    def __init__(self) -> None:
        self.removed: set[bytes] = set()
        """Secrets of the tokens whose removal a client has asked for."""
        self._secrets: list[bytes] = []
        self._tokens = 0
        self._draws: tuple[Callable[[Prng], Message], ...] = (
            *(_create_acls, _create_acls, _delete_acls),
            *(_alter_credentials, _alter_credentials),
            *(self._create_token, self._renew_token, self._expire_token),
            _describe,
        )

    def draw(self, rng: Prng) -> Message:
        """The next request of a client with this stream."""
        return rng.pick(self._draws)(rng)

    def answered(self, response: Message) -> None:
        """A client reads a response, also that of an attempt that it has given up."""
        if isinstance(response, CreateDelegationTokenResponse) and not response.error_code:
            self._secrets.append(response.hmac)

    # -- tokens ---------------------------------------------------------------------------------
    def _create_token(self, rng: Prng) -> Message:
        if self._tokens == _TOKENS:
            return _describe(rng)
        self._tokens += 1
        kind, _, name = rng.pick(PRINCIPALS).partition(":")
        renewer = CreateDelegationTokenRequest.CreatableRenewers
        is_own = rng.happens(0.7)
        return CreateDelegationTokenRequest(
            owner_principal_type=None if is_own else kind,
            owner_principal_name=None if is_own else name,
            renewers=[renewer(principal_type=kind, principal_name=name)] if is_own else [],
            max_lifetime_ms=rng.pick(_LIFETIMES_MS),
        )

    def _renew_token(self, rng: Prng) -> Message:
        return RenewDelegationTokenRequest(
            hmac=self._secret(rng), renew_period_ms=rng.pick(_RENEWED_BY_MS)
        )

    def _expire_token(self, rng: Prng) -> Message:
        secret, period_ms = self._secret(rng), rng.pick(_EXPIRED_BY_MS)
        if period_ms < 0:
            self.removed.add(secret)
        return ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)

    def _secret(self, rng: Prng) -> bytes:
        """Return the secret of one of the newest tokens, which may be gone. Some are guessed."""
        newest = self._secrets[-4:]
        return rng.bytes(64) if not newest or rng.happens(0.1) else rng.pick(newest)


# -- ACLs ---------------------------------------------------------------------------------------
def _create_acls(rng: Prng) -> Message:
    """Some entries are there already, or named twice. The cluster has another name."""
    creation = CreateAclsRequest.AclCreation
    return CreateAclsRequest(
        creations=[
            creation(
                resource_type=_CLUSTER if rng.happens(0.05) else _TOPIC,
                resource_name=rng.pick(_NAMES),
                resource_pattern_type=rng.pick(_PATTERNS),
                principal=rng.pick(_READERS),
                host="*",
                operation=_READ,
                permission_type=rng.pick(_PERMISSIONS),
            )
            for _ in range(rng.between(1, 3))
        ]
    )


def _delete_acls(rng: Prng) -> Message:
    wanted = DeleteAclsRequest.DeleteAclsFilter
    return DeleteAclsRequest(
        filters=[
            wanted(
                resource_type_filter=rng.pick((_ANY, _TOPIC)),
                resource_name_filter=rng.pick((None, *_NAMES)),
                pattern_type_filter=rng.pick((_ANY, _MATCH, *_PATTERNS)),
                principal_filter=rng.pick((None, *_READERS)),
                host_filter=None,
                operation=rng.pick((_ANY, _READ)),
                permission_type=rng.pick((_ANY, *_PERMISSIONS)),
            )
            for _ in range(rng.between(1, 2))
        ]
    )


# -- credentials --------------------------------------------------------------------------------
def _alter_credentials(rng: Prng) -> Message:
    """One or two users change. One that is named twice is refused."""
    deletions, upsertions = [], []
    for _ in range(rng.between(1, 2)):
        name, mechanism = rng.pick(_USERS), rng.between(1, 2)
        if rng.happens(0.3):
            deletions.append(_Deletion(name=name, mechanism=mechanism))
        else:
            change = _Upsertion(
                name=name,
                mechanism=mechanism,
                iterations=rng.pick(_ITERATIONS),
                salt=rng.bytes(8),
                salted_password=rng.bytes(32),
            )
            upsertions.append(change)
    return AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)


# -- reads --------------------------------------------------------------------------------------
def _describe(rng: Prng) -> Message:
    """Ask for everything, at any node."""
    return rng.pick(
        (
            DescribeAclsRequest(
                resource_type_filter=_ANY,
                resource_name_filter=None,
                pattern_type_filter=_ANY,
                principal_filter=None,
                host_filter=None,
                operation=_ANY,
                permission_type=_ANY,
            ),
            DescribeUserScramCredentialsRequest(users=None),
            DescribeDelegationTokenRequest(owners=None),
        )
    )
