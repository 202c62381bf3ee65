"""Calls about SCRAM credentials (KIP-554) and delegation tokens (KIP-48)."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.client.admin.parts import SMALL_BYTES, in_parts, merged, parts_of, text_bytes
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.results import RequestFailedError, check, failure_of

if TYPE_CHECKING:
    from quorate.wire.messages.security import AlterUserScramCredentialsRequest

_SALT_BYTES: Final = 32
_CREDENTIAL_BYTES: Final = 128
"""Of a salt and a salted password, at most."""


class ScramMechanism(IntEnum):
    """`ScramMechanism`; `text` is the name in configs."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def text(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """The hash for hashlib."""
        return self.name.replace("SCRAM_", "").replace("_", "").lower()


class ScramInfo(NamedTuple):
    """A credential without its secrets; `mechanism` is its number."""

    mechanism: int
    iterations: int


class ScramDeletion(NamedTuple):
    """Remove a credential."""

    user: str
    mechanism: ScramMechanism


class ScramUpsertion(NamedTuple):
    """Set a credential; the password is salted and hashed before it is sent."""

    user: str
    mechanism: ScramMechanism
    iterations: int
    password: bytes
    salt: bytes | None = None
    """None: a random one."""

    def __repr__(self) -> str:
        return _without_secret(self, "password")


class Principal(NamedTuple):
    """`User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


class DelegationTokenInfo(NamedTuple):
    """A token; times in ms since 1970. `hmac` is its secret."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: bytes

    def __repr__(self) -> str:
        return _without_secret(self, "hmac")


def _without_secret(value: ScramUpsertion | DelegationTokenInfo, secret: str) -> str:
    """The text of a tuple with stars for its secret, as of Kafka's `DelegationToken`."""
    fields = value._asdict() | {secret: None}
    shown = (f"{k}={'[*******]' if k == secret else repr(v)}" for k, v in fields.items())
    return f"{type(value).__name__}({', '.join(shown)})"


class SecurityCalls(Calls):
    """SCRAM credentials and delegation tokens."""

    async def describe_user_scram_credentials(
        self, users: Iterable[str] = ()
    ) -> Mapping[str, tuple[ScramInfo, ...] | RequestFailedError]:
        """The credentials of each user (none given: of all), or why they cannot be reported."""
        from quorate.wire.messages.security import (
            DescribeUserScramCredentialsRequest,
            DescribeUserScramCredentialsResponse,
        )

        name = DescribeUserScramCredentialsRequest.UserName

        async def ask(part: Sequence[str]) -> dict[str, tuple[ScramInfo, ...] | RequestFailedError]:
            request = DescribeUserScramCredentialsRequest(users=[name(name=each) for each in part])
            answer = await self.router.ask_active(request, DescribeUserScramCredentialsResponse)
            check(answer.error_code, answer.error_message)
            return {
                each.user: item_failure(each.error_code, each.error_message)
                or tuple(ScramInfo(one.mechanism, one.iterations) for one in each.credential_infos)
                for each in answer.results
            }

        parts = parts_of(users, text_bytes, most_bytes=SMALL_BYTES)
        return merged(await in_parts(self.router, parts, ask))

    async def alter_user_scram_credentials(
        self, changes: Iterable[ScramDeletion | ScramUpsertion]
    ) -> Mapping[str, RequestFailedError | None]:
        """Set and remove credentials; the error of each user. Returns when they are committed.

        Nothing is sent for a user with an empty name or password: UNACCEPTABLE_CREDENTIAL, as of
        `KafkaAdminClient.alterUserScramCredentials`.
        """
        from quorate.wire.messages.security import (
            AlterUserScramCredentialsRequest,
            AlterUserScramCredentialsResponse,
        )

        cls = AlterUserScramCredentialsRequest
        of_user: dict[str, list[ScramDeletion | ScramUpsertion]] = {}
        for change in changes:
            of_user.setdefault(change.user, []).append(change)
        refused: dict[str, RequestFailedError | None] = {
            user: RequestFailedError(ErrorCode.UNACCEPTABLE_CREDENTIAL, reason)
            for user, wanted in of_user.items()
            if (reason := _why_unacceptable(user, wanted)) is not None
        }
        acceptable = [user for user in of_user if user not in refused]
        if refused and not acceptable:
            return refused

        async def send(part: Sequence[str]) -> dict[str, RequestFailedError | None]:
            request = cls()
            for change in (each for user in part for each in of_user[user]):
                if isinstance(change, ScramDeletion):
                    request.deletions.append(
                        cls.ScramCredentialDeletion(name=change.user, mechanism=change.mechanism)
                    )
                else:
                    request.upsertions.append(_upsertion(cls.ScramCredentialUpsertion, change))
            answer = await self.router.ask_active(request, AlterUserScramCredentialsResponse)
            return {
                each.user: item_failure(each.error_code, each.error_message)
                for each in answer.results
            }

        parts = parts_of(
            acceptable,
            lambda user: len(of_user[user]) * (text_bytes(user) + _CREDENTIAL_BYTES),
            lambda user: len(of_user[user]),
        )
        return {**refused, **merged(await in_parts(self.router, parts, send))}

    async def create_delegation_token(
        self,
        renewers: Iterable[Principal] = (),
        owner: Principal | None = None,
        max_lifetime_ms: int = -1,
    ) -> DelegationTokenInfo:
        """Create a token of `owner` (default: the requester); -1 is the longest lifetime allowed."""
        from quorate.wire.messages.security import (
            CreateDelegationTokenRequest,
            CreateDelegationTokenResponse,
        )

        cls = CreateDelegationTokenRequest
        may_renew = tuple(renewers)
        request = cls(
            owner_principal_type=None if owner is None else owner.type,
            owner_principal_name=None if owner is None else owner.name,
            renewers=[
                cls.CreatableRenewers(principal_type=each.type, principal_name=each.name)
                for each in may_renew
            ],
            max_lifetime_ms=max_lifetime_ms,
        )

        async def send() -> DelegationTokenInfo:
            lowest = 0 if owner is None else 3
            answer = await self.router.ask_active(request, CreateDelegationTokenResponse, lowest)
            check(answer.error_code, None)
            return DelegationTokenInfo(
                answer.token_id,
                Principal(answer.principal_type, answer.principal_name),
                Principal(
                    answer.token_requester_principal_type, answer.token_requester_principal_name
                ),
                may_renew,
                answer.issue_timestamp_ms,
                answer.expiry_timestamp_ms,
                answer.max_timestamp_ms,
                answer.hmac,
            )

        return await self.router.retry(send)

    async def renew_delegation_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token live longer; returns its new end, in ms since 1970."""
        from quorate.wire.messages.security import (
            RenewDelegationTokenRequest,
            RenewDelegationTokenResponse,
        )

        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

        async def send() -> int:
            answer = await self.router.ask_active(request, RenewDelegationTokenResponse)
            check(answer.error_code, None)
            return answer.expiry_timestamp_ms

        return await self.router.retry(send)

    async def expire_delegation_token(self, hmac: bytes, period_ms: int = -1) -> int:
        """Let a token end sooner (-1: now); returns its new end, in ms since 1970."""
        from quorate.wire.messages.security import (
            ExpireDelegationTokenRequest,
            ExpireDelegationTokenResponse,
        )

        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)

        async def send() -> int:
            answer = await self.router.ask_active(request, ExpireDelegationTokenResponse)
            check(answer.error_code, None)
            return answer.expiry_timestamp_ms

        return await self.router.retry(send)

    async def describe_delegation_tokens(
        self, owners: Iterable[Principal] | None = None
    ) -> tuple[DelegationTokenInfo, ...]:
        """The tokens of these owners; None: all that the requester may see."""
        from quorate.wire.messages.security import (
            DescribeDelegationTokenRequest,
            DescribeDelegationTokenResponse,
        )

        cls = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        wanted = None
        if owners is not None:
            wanted = list(owners)

        async def ask(part: Sequence[Principal] | None) -> tuple[DelegationTokenInfo, ...]:
            named = None
            if part is not None:
                named = [cls(principal_type=each.type, principal_name=each.name) for each in part]
            request = DescribeDelegationTokenRequest(owners=named)
            answer = await self.router.ask_active(request, DescribeDelegationTokenResponse)
            error = failure_of(answer.error_code, None)
            if error is not None:
                raise error
            return tuple(
                DelegationTokenInfo(
                    each.token_id,
                    Principal(each.principal_type, each.principal_name),
                    Principal(
                        each.token_requester_principal_type, each.token_requester_principal_name
                    ),
                    tuple(Principal(r.principal_type, r.principal_name) for r in each.renewers),
                    each.issue_timestamp,
                    each.expiry_timestamp,
                    each.max_timestamp,
                    each.hmac,
                )
                for each in answer.tokens
            )

        if wanted is None:
            return await self.router.retry(lambda: ask(None))
        parts = parts_of(
            wanted, lambda each: text_bytes(each.type, each.name), most_bytes=SMALL_BYTES
        )
        found = await in_parts(self.router, parts, ask)
        # A token whose renewers are asked for in two requests comes twice.
        return tuple({each.token_id: each for part in found for each in part}.values())


def _why_unacceptable(user: str, wanted: Iterable[ScramDeletion | ScramUpsertion]) -> str | None:
    if not user:
        return "Username must not be empty"
    if any(isinstance(each, ScramUpsertion) and not each.password for each in wanted):
        return "Password must not be empty"
    return None


def _upsertion(
    cls: type[AlterUserScramCredentialsRequest.ScramCredentialUpsertion], change: ScramUpsertion
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    salt = secrets.token_bytes(_SALT_BYTES) if change.salt is None else change.salt
    return cls(
        name=change.user,
        mechanism=change.mechanism,
        iterations=change.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(
            change.mechanism.hash_name, change.password, salt, change.iterations
        ),
    )
