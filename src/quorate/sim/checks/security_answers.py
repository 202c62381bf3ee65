"""What controllers answer to requests about ACLs, SCRAM credentials, tokens and producer ids.

Each answer is compared with the state before the write, with its records, and with the state after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.formats.records import (
    DelegationTokenRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
)
from quorate.sim.checks.security_model import (
    ACLS,
    CREDENTIALS,
    PRODUCER_IDS,
    SCRAM_LEVEL,
    TOKEN_LEVEL,
    TOKENS,
    Acl,
    SecurityModel,
    SecurityState,
    TokenState,
    derived,
    require,
    secret_of,
)
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.security_requests import TOKEN_EXPIRY_MS, TOKEN_LIFETIME_MS
from quorate.wire.messages import (
    AllocateProducerIdsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeDelegationTokenResponse,
    DescribeUserScramCredentialsResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

COMMITTED: Final = "answered when committed"
READS: Final = "reads are committed"
_ANY: Final = 1
_MATCH: Final = 2
_LITERAL: Final = 3
_PREFIXED: Final = 4
_CLUSTER: Final = 4
_CLUSTER_NAME: Final = "kafka-cluster"
_LEAST_ITERATIONS: Final = 4096

_Item = (
    AlterUserScramCredentialsRequest.ScramCredentialDeletion
    | AlterUserScramCredentialsRequest.ScramCredentialUpsertion
)


def check_write(where: str, response: ControllerResponse, model: SecurityModel) -> None:
    """Check the answer to a write, if it is one of these domains. Raises ViolationError."""
    found, end = response.response, response.committed
    codes = _codes(found)
    if end is None:
        # It is refused as a whole.
        has_succeeded = ErrorCode.NONE in codes
        require(not has_succeeded, COMMITTED, f"{where} acknowledges {found} at no offset")
    elif codes and end >= 0:
        # Else nothing was committed yet when an active controller answered a write without records.
        _check_written(f"{where}: {found} to {response.request} at {end}", response, end, model)


def _codes(found: object) -> list[int]:
    """The error codes of an answer to a write; none: it is of another domain."""
    if isinstance(found, CreateAclsResponse | AlterUserScramCredentialsResponse):
        return [result.error_code for result in found.results]
    if isinstance(found, DeleteAclsResponse):
        return [result.error_code for result in found.filter_results]
    if isinstance(
        found,
        CreateDelegationTokenResponse
        | RenewDelegationTokenResponse
        | ExpireDelegationTokenResponse
        | AllocateProducerIdsResponse,
    ):
        return [found.error_code]
    return []


def _check_written(said: str, response: ControllerResponse, end: int, model: SecurityModel) -> None:
    request, found = response.request, response.response
    if isinstance(found, CreateAclsResponse):
        assert isinstance(request, CreateAclsRequest)
        _acls_created(said, request, found, model.at(end))
    elif isinstance(found, DeleteAclsResponse):
        assert isinstance(request, DeleteAclsRequest)
        _acls_deleted(said, request, found, end, model)
    elif isinstance(found, AlterUserScramCredentialsResponse):
        assert isinstance(request, AlterUserScramCredentialsRequest)
        _credentials_altered(said, request, found, end, model)
    elif isinstance(found, CreateDelegationTokenResponse):
        assert isinstance(request, CreateDelegationTokenRequest)
        _token_created(said, response.principal, request, found, end, model)
    elif isinstance(found, RenewDelegationTokenResponse | ExpireDelegationTokenResponse):
        assert isinstance(request, RenewDelegationTokenRequest | ExpireDelegationTokenRequest)
        _token_changed(said, response.principal, request, found, end, model)
    else:
        assert isinstance(found, AllocateProducerIdsResponse)
        _ids_allocated(said, found, end, model)


# -- ACLs ---------------------------------------------------------------------------------------
def _acls_created(
    said: str, request: CreateAclsRequest, found: CreateAclsResponse, after: SecurityState
) -> None:
    """Each entry is decided alone (KIP-140). The cluster has one name."""
    require(len(found.results) == len(request.creations), ACLS, said)
    for creation, result in zip(request.creations, found.results, strict=True):
        acl = (
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        is_bad = creation.resource_type == _CLUSTER and creation.resource_name != _CLUSTER_NAME
        expected = ErrorCode.INVALID_REQUEST if is_bad else ErrorCode.NONE
        require(result.error_code == expected, ACLS, f"{said}, expected {expected.name}")
        is_there = acl in after.acls.values()
        require(is_there != is_bad, ACLS, f"{said}, but the log has {after.acls}")


def _acls_deleted(
    said: str,
    request: DeleteAclsRequest,
    found: DeleteAclsResponse,
    end: int,
    model: SecurityModel,
) -> None:
    """Every entry that matches a filter is removed, and reported for it (KIP-140, KIP-290)."""
    reported = [
        {
            (
                acl.resource_type,
                acl.resource_name,
                acl.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for acl in result.matching_acls
        }
        for result in found.filter_results
    ]
    gone: set[Acl] = set().union(*reported)
    before, own = _write(said, ACLS, end, len(gone), model)
    expected = [
        {acl for acl in before.acls.values() if _matches(wanted, acl)} for wanted in request.filters
    ]
    require(reported == expected, ACLS, f"{said}, and these match: {expected}")
    ids = {acl_id for acl_id, acl in before.acls.items() if acl in gone}
    removed = {each.id for each in own if isinstance(each, RemoveAccessControlEntryRecord)}
    require(removed == ids, ACLS, f"{said}, and its records remove {removed}")


def _matches(wanted: DeleteAclsRequest.DeleteAclsFilter | DescribeAclsRequest, acl: Acl) -> bool:
    """Source: KIP-290, "Filters": MATCH finds each pattern that concerns the resource of the name."""
    kind, name, pattern, principal, host, operation, permission = acl
    asked = wanted.resource_name_filter
    if asked is None:
        is_named = wanted.pattern_type_filter in (_ANY, _MATCH, pattern)
    elif wanted.pattern_type_filter == _MATCH:
        is_named = (pattern == _PREFIXED and asked.startswith(name)) or (
            pattern == _LITERAL and name in (asked, "*")
        )
    else:
        is_named = name == asked and wanted.pattern_type_filter in (_ANY, pattern)
    return (
        is_named
        and wanted.resource_type_filter in (_ANY, kind)
        and wanted.principal_filter in (None, principal)
        and wanted.host_filter in (None, host)
        and wanted.operation in (_ANY, operation)
        and wanted.permission_type in (_ANY, permission)
    )


def _write(
    said: str, check: str, end: int, count: int, model: SecurityModel
) -> tuple[SecurityState, list[object]]:
    """The state before a write and its records."""
    written = model.write(end, count)
    require(written is not None, check, f"{said}, and the log does not have its {count} records")
    assert written is not None
    before, own = written
    return before, list(own)


# -- credentials --------------------------------------------------------------------------------
def _credentials_altered(
    said: str,
    request: AlterUserScramCredentialsRequest,
    found: AlterUserScramCredentialsResponse,
    end: int,
    model: SecurityModel,
) -> None:
    """Each user is decided alone, and named once at most (KIP-554, "Proposed Changes")."""
    codes = {result.user: result.error_code for result in found.results}
    items: list[_Item] = [*request.deletions, *request.upsertions]
    counts = Counter(item.name for item in items)
    require(codes.keys() == counts.keys(), CREDENTIALS, said)
    changed = sum(code == ErrorCode.NONE for code in codes.values())
    before, _ = _write(said, CREDENTIALS, end, changed, model)
    credentials = dict(before.credentials)
    for item in items:
        code, key = codes[item.name], (item.mechanism, item.name)
        if counts[item.name] > 1:
            require(code != ErrorCode.NONE, CREDENTIALS, f"{said}: {item.name} is named twice")
            continue
        expected = _expected(item, before)
        require(code == expected, CREDENTIALS, f"{said}, expected {expected.name} for {key}")
        if code == ErrorCode.NONE:
            if isinstance(item, AlterUserScramCredentialsRequest.ScramCredentialDeletion):
                del credentials[key]
            else:
                password = bytes(item.salted_password)
                made = derived(item.mechanism, bytes(item.salt), password, item.iterations)
                credentials[key] = made
    has = model.at(end).credentials
    require(has == credentials, CREDENTIALS, f"{said}, and the log has {sorted(has)}")


def _expected(item: _Item, before: SecurityState) -> ErrorCode:
    """Source: KIP-554, "AlterUserScramCredentials"."""
    if before.version < SCRAM_LEVEL:
        return ErrorCode.UNSUPPORTED_VERSION
    if isinstance(item, AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        is_known = (item.mechanism, item.name) in before.credentials
        return ErrorCode.NONE if is_known else ErrorCode.RESOURCE_NOT_FOUND
    is_weak = item.iterations < _LEAST_ITERATIONS
    return ErrorCode.UNACCEPTABLE_CREDENTIAL if is_weak else ErrorCode.NONE


# -- tokens -------------------------------------------------------------------------------------
def _token_created(
    said: str,
    principal: str,
    request: CreateDelegationTokenRequest,
    found: CreateDelegationTokenResponse,
    end: int,
    model: SecurityModel,
) -> None:
    """Owner, times and secret are those of KIP-48 and, with another owner, KIP-373."""
    has_level = model.at(end).version >= TOKEN_LEVEL
    expected = ErrorCode.NONE if has_level else ErrorCode.UNSUPPORTED_VERSION
    require(found.error_code == expected, TOKENS, f"{said}, expected {expected.name}")
    if not has_level:
        return
    _, [record] = _write(said, TOKENS, end, 1, model)
    is_own = not request.owner_principal_name
    lifetime_ms = TOKEN_LIFETIME_MS
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    issued_ms, max_ms = found.issue_timestamp_ms, found.issue_timestamp_ms + lifetime_ms
    made = TokenState(
        principal if is_own else f"{request.owner_principal_type}:{request.owner_principal_name}",
        principal,
        tuple(f"{each.principal_type}:{each.principal_name}" for each in request.renewers),
        issued_ms,
        max_ms,
        min(max_ms, issued_ms + TOKEN_EXPIRY_MS),
    )
    is_its = isinstance(record, DelegationTokenRecord) and record.token_id == found.token_id
    require(is_its and model.at(end).tokens[found.token_id] == made, TOKENS, f"{said}: no {made}")
    reported = found.max_timestamp_ms, found.expiry_timestamp_ms, bytes(found.hmac)
    right = made.max_ms, made.expires_ms, secret_of(found.token_id)
    require(reported == right, TOKENS, f"{said}, and the log has {made}")


def _token_changed(
    said: str,
    principal: str,
    request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
    found: RenewDelegationTokenResponse | ExpireDelegationTokenResponse,
    end: int,
    model: SecurityModel,
) -> None:
    """The owner and the renewers renew and expire a token while it is valid (KIP-48)."""
    code = found.error_code
    before, own = _write(said, TOKENS, end, int(code == ErrorCode.NONE), model)
    token = before.token_of(bytes(request.hmac))
    if before.version < TOKEN_LEVEL:
        require(code == ErrorCode.UNSUPPORTED_VERSION, TOKENS, said)
    elif token is None:
        require(code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND, TOKENS, f"{said}: no such token")
    elif code == ErrorCode.DELEGATION_TOKEN_EXPIRED:
        is_over = token[1].deadline_ms < model.clock_ms
        is_removal = isinstance(request, ExpireDelegationTokenRequest) and (
            request.expiry_time_period_ms < 0
        )
        message = f"{said}: no clock is past {token[1].deadline_ms}, or it asks to remove the token"
        require(is_over and not is_removal, TOKENS, message)
    elif principal != token[1].owner and principal not in token[1].renewers:
        is_refused = code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        require(is_refused, TOKENS, f"{said} of {principal} about {token[1]}")
    else:
        require(code == ErrorCode.NONE, TOKENS, f"{said} about {token[1]}")
        if isinstance(request, RenewDelegationTokenRequest):
            period_ms = TOKEN_EXPIRY_MS
            if request.renew_period_ms > 0:
                period_ms = min(period_ms, request.renew_period_ms)
        else:
            period_ms = request.expiry_time_period_ms
        if period_ms >= 0:
            _expires(said, token, period_ms, found.expiry_timestamp_ms, own)
        else:
            [record] = own
            is_gone = isinstance(record, RemoveDelegationTokenRecord)
            require(is_gone and token[0] not in model.at(end).tokens, TOKENS, f"{said}: {token[0]}")


def _expires(
    said: str, token: tuple[str, TokenState], period_ms: int, expires_ms: int, own: list[object]
) -> None:
    """The new expiry is `period_ms` from now or the maximum time, and the token was valid until now."""
    token_id, before = token
    is_valid = expires_ms == before.max_ms or expires_ms - period_ms <= before.deadline_ms
    require(is_valid, TOKENS, f"{said}: the token was valid until {before.deadline_ms}")
    [record] = own
    is_set = isinstance(record, DelegationTokenRecord) and (
        (record.token_id, record.expiration_timestamp) == (token_id, expires_ms)
    )
    require(is_set, TOKENS, f"{said}: its record is {record}")


# -- producer ids -------------------------------------------------------------------------------
def _ids_allocated(
    said: str, found: AllocateProducerIdsResponse, end: int, model: SecurityModel
) -> None:
    """A broker gets the ids that its record says (KIP-730)."""
    before, [record] = _write(said, PRODUCER_IDS, end, 1, model)
    first = max(0, before.next_producer_id)
    is_its = (
        isinstance(record, ProducerIdsRecord)
        and found.producer_id_start == first
        and found.producer_id_start + found.producer_id_len == record.next_producer_id
    )
    require(is_its, PRODUCER_IDS, f"{said}: the log has {record} after {first}")


# -- reads --------------------------------------------------------------------------------------
def check_read(where: str, response: ControllerResponse, shown: Iterable[SecurityState]) -> None:
    """A node answers what its committed image said a short time ago. Raises ViolationError.

    shown: what the newest images of the node said. The simulated clients ask for everything.
    """
    found = response.response
    said = f"{where} answers {found} to {response.request}"
    if isinstance(found, DescribeAclsResponse):
        acls = sorted(
            (
                resource.resource_type,
                resource.resource_name,
                resource.pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in found.resources
            for acl in resource.acls
        )
        require(any(acls == sorted(state.acls.values()) for state in shown), READS, said)
    elif isinstance(found, DescribeUserScramCredentialsResponse):
        credentials = sorted(
            (info.mechanism, result.user, info.iterations)
            for result in found.results
            for info in result.credential_infos
        )
        known = (
            sorted((*key, made[-1]) for key, made in state.credentials.items()) for state in shown
        )
        require(credentials in known, READS, said)
    elif isinstance(found, DescribeDelegationTokenResponse):
        tokens = {token.token_id: (_described(token), bytes(token.hmac)) for token in found.tokens}
        reported = (
            {token_id: (token, secret_of(token_id)) for token_id, token in state.tokens.items()}
            for state in shown
        )
        require(tokens in reported, READS, said)


def _described(token: DescribeDelegationTokenResponse.DescribedDelegationToken) -> TokenState:
    return TokenState(
        f"{token.principal_type}:{token.principal_name}",
        f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
        tuple(f"{each.principal_type}:{each.principal_name}" for each in token.renewers),
        token.issue_timestamp,
        token.max_timestamp,
        token.expiry_timestamp,
    )
