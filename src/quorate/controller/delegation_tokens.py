"""Delegation tokens (KIP-48, KIP-900): created, renewed, expired, described, and swept when expired.

A token's secret, its HMAC, is computed from its id with the key of the cluster. So no record and no
image holds it, and every node with the same key gives the same one. `TokenSecrets` keeps them.

Source: `DelegationTokenControlManager`; `ControllerApis` and `KafkaApis` for what comes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import uuid_to_text
from quorate.controller.assignments import new_uuid
from quorate.controller.brokers import metadata_version
from quorate.controller.building import LOOKED_AT, Building, in_order, parts
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    PAUSE_EVERY,
    ApiError,
    Result,
    Steps,
    WriteOperation,
    controller_task,
)
from quorate.controller.token_config import TokenConfig
from quorate.controller.token_secrets import TokenSecrets
from quorate.formats.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from quorate.metadata.image import DelegationToken, Image
from quorate.security.acl import AclOperation, AclResource
from quorate.security.principal import ANONYMOUS
from quorate.wire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from quorate.wire.schema import Message

MAX_EXPIRATIONS: Final = 1_000
"""Most tokens that one sweep removes (`MAX_RECORDS_PER_EXPIRATION`)."""
_USER: Final = "User"
_ERROR_TIMESTAMP: Final = -1
_LONG_MAX: Final = 2**63 - 1
_LONGEST: Final = 32_767
"""Bytes of text in a record."""


def _later(now_ms: int, duration_ms: int) -> int:
    """The sum, at most the largest long."""
    return min(now_ms + duration_ms, _LONG_MAX)


def _asking(context: Context) -> str:
    return ANONYMOUS if context.requester is None else context.requester.principal


def _unusable(image: Image, context: Context) -> ErrorCode | None:
    """Why there are no tokens here."""
    if context.config.tokens.secret_key is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    if not metadata_version(image).delegation_tokens:
        return ErrorCode.UNSUPPORTED_VERSION
    return None


def _is_expired(token: DelegationToken, now_ms: int) -> bool:
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def _is_owner_or_renewer(token: DelegationToken, principal: str) -> bool:
    return principal == token.owner or principal in token.renewers


def _readers(token: DelegationToken) -> tuple[str, ...]:
    """The requester of the token sees it, too, but neither renews nor expires it
    (`TokenInformation.ownerOrRenewer`, `DelegationTokenControlManager.allowedToRenew`)."""
    return token.owner, token.requester, *token.renewers


def _find(
    head: HeadView, secret_key: str | None, secret: bytes
) -> Building[tuple[str, DelegationToken] | None]:
    """The token with this secret. A client may guess: it costs one lookup."""
    if secret_key is None:
        return None
    tokens = head.image.delegation_tokens
    token_id = yield from head.token_secrets.find(tokens, secret_key, secret)
    token = None if token_id is None else tokens.get(token_id)
    return None if token_id is None or token is None else (token_id, token)


def _record(token_id: str, token: DelegationToken, expires_ms: int) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issue_timestamp,
        max_timestamp=token.max_timestamp,
        expiration_timestamp=expires_ms,
        token_id=token_id,
    )


# -- create ------------------------------------------------------------------------------------
def _create(
    head: HeadView, request: CreateDelegationTokenRequest, context: Context
) -> Result[CreateDelegationTokenResponse]:
    requester = _asking(context)
    names = _names_of(requester)
    if request.owner_principal_name:
        if request.owner_principal_type is None:
            # As Kafka's: `KafkaPrincipal` throws a NullPointerException, before any other check.
            raise ApiError.of(ErrorCode.UNKNOWN_SERVER_ERROR)
        names = request.owner_principal_type, request.owner_principal_name
    owner = ":".join(names)
    if not context.may_use_tokens:
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        return Result((), _not_created(names, requester, error, _ERROR_TIMESTAMP))
    if owner != requester and not context.may(AclOperation.CREATE_TOKENS, AclResource.USER, owner):
        error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        return Result((), _not_created(names, requester, error, _ERROR_TIMESTAMP))
    unusable = _unusable(head.image, context)
    if unusable is not None:
        return Result((), _not_created(names, requester, unusable, 0))
    if any(renewer.principal_type != _USER for renewer in request.renewers):
        return Result((), _not_created(names, requester, ErrorCode.INVALID_PRINCIPAL_TYPE, 0))
    renewers = tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers)
    for principal in (owner, requester, *renewers):
        _check_length(principal)
    return _created(names, requester, renewers, request, context, head.token_secrets)


def _names_of(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _check_length(principal: str) -> None:
    """Refuse a principal that fits no record, though its type and its name fit a request."""
    size = len(principal.encode())
    if size > _LONGEST:
        text = f"A principal has {size} bytes of UTF-8, at most {_LONGEST} are possible"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)


def _created(
    owner: tuple[str, str],
    requester: str,
    renewers: tuple[str, ...],
    request: CreateDelegationTokenRequest,
    context: Context,
    secrets: TokenSecrets,
) -> Result[CreateDelegationTokenResponse]:
    tokens, now_ms = context.config.tokens, context.time_ms
    assert tokens.secret_key is not None
    lifetime_ms = tokens.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = _later(now_ms, lifetime_ms)
    expires_ms = min(max_ms, _later(now_ms, tokens.expiry_time_ms))
    token_id = uuid_to_text(new_uuid(context.rng))
    token = DelegationToken(":".join(owner), requester, renewers, now_ms, max_ms, expires_ms)
    response = _not_created(owner, requester, ErrorCode.NONE, 0)
    response.issue_timestamp_ms = now_ms
    response.expiry_timestamp_ms = expires_ms
    response.max_timestamp_ms = max_ms
    response.token_id = token_id
    response.hmac = secrets.of(tokens.secret_key, token_id)
    return Result((_record(token_id, token, expires_ms),), response)


def _not_created(
    owner: tuple[str, str], requester: str, error: ErrorCode, timestamp: int
) -> CreateDelegationTokenResponse:
    """owner: its type and its name."""
    requester_type, requester_name = _names_of(requester)
    return CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp_ms=timestamp,
        expiry_timestamp_ms=timestamp,
        max_timestamp_ms=timestamp,
    )


def _create_failed(
    request: CreateDelegationTokenRequest, error: ErrorCode, message: str | None
) -> CreateDelegationTokenResponse:
    return _not_created(_names_of(ANONYMOUS), ANONYMOUS, error, _ERROR_TIMESTAMP)


CREATE_DELEGATION_TOKEN: Final = WriteOperation("CreateDelegationToken", _create, _create_failed)


# -- renew -------------------------------------------------------------------------------------
def _renew(
    head: HeadView, request: RenewDelegationTokenRequest, context: Context
) -> Steps[RenewDelegationTokenResponse]:
    if not context.may_use_tokens:
        return Result((), _not_renewed(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1))
    unusable = _unusable(head.image, context)
    if unusable is not None:
        return Result((), _not_renewed(unusable))
    tokens, now_ms = context.config.tokens, context.time_ms
    found = yield from _find(head, tokens.secret_key, request.hmac)
    if found is None:
        return Result((), _not_renewed(ErrorCode.DELEGATION_TOKEN_NOT_FOUND))
    token_id, token = found
    if _is_expired(token, now_ms):
        return Result((), _not_renewed(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    if not _is_owner_or_renewer(token, _asking(context)):
        return Result((), _not_renewed(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    period_ms = tokens.expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    expires_ms = min(token.max_timestamp, _later(now_ms, period_ms))
    response = RenewDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
    return Result((_record(token_id, token, expires_ms),), response)


def _not_renewed(error: ErrorCode, timestamp: int = 0) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=timestamp)


def _renew_failed(
    request: RenewDelegationTokenRequest, error: ErrorCode, message: str | None
) -> RenewDelegationTokenResponse:
    return _not_renewed(error)


RENEW_DELEGATION_TOKEN: Final = WriteOperation("RenewDelegationToken", _renew, _renew_failed)


# -- expire ------------------------------------------------------------------------------------
def _expire(
    head: HeadView, request: ExpireDelegationTokenRequest, context: Context
) -> Steps[ExpireDelegationTokenResponse]:
    """A negative period removes the token, also one that is expired."""
    if not context.may_use_tokens:
        return Result((), _not_expired(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1))
    unusable = _unusable(head.image, context)
    if unusable is not None:
        return Result((), _not_expired(unusable))
    now_ms = context.time_ms
    found = yield from _find(head, context.config.tokens.secret_key, request.hmac)
    if found is None:
        return Result((), _not_expired(ErrorCode.DELEGATION_TOKEN_NOT_FOUND))
    token_id, token = found
    if not _is_owner_or_renewer(token, _asking(context)):
        return Result((), _not_expired(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    if request.expiry_time_period_ms < 0:
        removal = RemoveDelegationTokenRecord(token_id=token_id)
        return Result((removal,), ExpireDelegationTokenResponse(expiry_timestamp_ms=now_ms))
    if _is_expired(token, now_ms):
        return Result((), _not_expired(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    expires_ms = min(token.max_timestamp, _later(now_ms, request.expiry_time_period_ms))
    response = ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_ms)
    return Result((_record(token_id, token, expires_ms),), response)


def _not_expired(error: ErrorCode, timestamp: int = 0) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=timestamp)


def _expire_failed(
    request: ExpireDelegationTokenRequest, error: ErrorCode, message: str | None
) -> ExpireDelegationTokenResponse:
    return _not_expired(error)


EXPIRE_DELEGATION_TOKEN: Final = WriteOperation("ExpireDelegationToken", _expire, _expire_failed)


# -- periodic ----------------------------------------------------------------------------------
def _sweep(head: HeadView, request: None, context: Context) -> Steps[bool]:
    """Remove expired tokens. The response: run again at once."""
    records: list[Message] = []
    notes: list[str] = []
    for number, (token_id, token) in enumerate(head.image.delegation_tokens.items(), 1):
        if len(records) == MAX_EXPIRATIONS:
            break
        if number % LOOKED_AT == 0:
            yield None
        if _is_expired(token, context.time_ms):
            records.append(RemoveDelegationTokenRecord(token_id=token_id))
            notes.append(f"Delegation token {token_id} of {token.owner} has expired")
    records.sort(key=attrgetter("token_id"))  # the order of the map differs from process to process
    return Result(records, len(records) == MAX_EXPIRATIONS, atomic=False, notes=tuple(notes))


EXPIRE_DELEGATION_TOKENS: Final = controller_task("expireDelegationTokens", _sweep)


# -- describe ----------------------------------------------------------------------------------
def describe_tokens(
    image: Image,
    request: DescribeDelegationTokenRequest,
    tokens: TokenConfig,
    secrets: TokenSecrets,
    requester: str,
    may: Callable[[AclOperation, AclResource, str], bool],
) -> Building[DescribeDelegationTokenResponse]:
    """The tokens that the requester owns, asked for or may renew, and those that it has the permission for.

    may: whether the requester has a permission on the resource of a name.
    """
    if tokens.secret_key is None:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners: set[str] | None = None
    if request.owners is not None:
        owners = set()
        for part in parts(request.owners, LOOKED_AT):
            owners.update(f"{each.principal_type}:{each.principal_name}" for each in part)
            yield None
    found = []
    secrets.trim(image.delegation_tokens)
    ordered = yield from in_order(image.delegation_tokens.items(), itemgetter(0))
    for number, (token_id, token) in enumerate(ordered, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        if owners is not None and owners.isdisjoint(_readers(token)):
            continue
        if (
            requester in _readers(token)
            or may(AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token_id)
            or may(AclOperation.DESCRIBE_TOKENS, AclResource.USER, token.owner)
        ):
            found.append(_described(token_id, token, secrets.of(tokens.secret_key, token_id)))
    return DescribeDelegationTokenResponse(tokens=found)


def _described(
    token_id: str, token: DelegationToken, secret: bytes
) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    cls = DescribeDelegationTokenResponse.DescribedDelegationToken
    owner_type, _, owner_name = token.owner.partition(":")
    requester_type, _, requester_name = token.requester.partition(":")
    renewers = [each.partition(":") for each in token.renewers]
    return cls(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token_id,
        hmac=secret,
        renewers=[
            cls.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, _, name in renewers
        ],
    )
