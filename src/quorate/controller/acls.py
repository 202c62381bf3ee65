"""Access control entries: CreateAcls, DeleteAcls, DescribeAcls.

Source: `AclControlManager`, `AclApis`, `ResourcePatternFilter`, `AccessControlEntryFilter`.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.acl_filters import (
    ANY,
    COMPARED,
    MATCH,
    OPERATIONS,
    PATTERNS,
    RESOURCES,
    EntryFilter,
    matching,
)
from quorate.controller.assignments import new_uuid
from quorate.controller.brokers import metadata_version
from quorate.controller.building import ROWS, Building, each, each_group, in_order, parts
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    MAX_RECORDS,
    PAUSE_EVERY,
    ApiError,
    Result,
    Steps,
    WriteOperation,
)
from quorate.formats.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from quorate.formats.versions import MetadataVersion
from quorate.metadata.acl_index import CROWDED, entries_of
from quorate.metadata.image import Acl, AclPattern, Image
from quorate.security.acl import AclResource
from quorate.security.authorizer import ALLOW, CLUSTER_NAME, DENY
from quorate.security.cidr import parse_range
from quorate.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from quorate.wire.schema import Message

_NO_AUTHORIZER: Final = "No Authorizer is configured."

_Holder = tuple[AclPattern, str]
"""A resource pattern and a principal."""
_Created = CreateAclsResponse.AclCreationResult
_FilterResult = DeleteAclsResponse.DeleteAclsFilterResult
_Matching = _FilterResult.DeleteAclsMatchingAcl
_Resource = DescribeAclsResponse.DescribeAclsResource


# -- create ------------------------------------------------------------------------------------
def _create(
    head: HeadView, request: CreateAclsRequest, context: Context
) -> Steps[CreateAclsResponse]:
    """An entry that is there already is a success without a record."""
    _check_authorizer(context, _NO_AUTHORIZER)
    image = head.image
    records: list[Message] = []
    made: set[Acl] = set()
    known: dict[_Holder, set[Acl]] = {}
    results = []
    for number, creation in enumerate(request.creations, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        acl = Acl(
            creation.resource_type,
            creation.resource_name,
            creation.resource_pattern_type,
            creation.principal,
            creation.host,
            creation.operation,
            creation.permission_type,
        )
        refused = _problem(acl, metadata_version(image))
        results.append(_created(refused))
        if refused is not None or acl in made:
            continue
        if not (yield from _is_known(image, acl, known)):
            made.add(acl)
            records.append(_record(image, acl, context))
    if len(records) > MAX_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    return Result(records, CreateAclsResponse(results=results))


def _check_authorizer(context: Context, text: str) -> None:
    if context.config.authorizer is None:
        raise ApiError(ErrorCode.SECURITY_DISABLED, text)


def _problem(acl: Acl, version: MetadataVersion) -> ApiError | None:
    """Why the entry is refused, in Kafka's order of checks."""
    if acl.resource_type == AclResource.CLUSTER and acl.resource_name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not acl.resource_name:
        return _invalid("Invalid empty resource name")
    if acl.resource_type not in RESOURCES:
        return _invalid(f"Invalid resourceType {_any_or_unknown(acl.resource_type)}")
    if acl.pattern_type not in PATTERNS:
        name = "MATCH" if acl.pattern_type == MATCH else _any_or_unknown(acl.pattern_type)
        return _invalid(f"Invalid patternType {name}")
    if acl.operation not in OPERATIONS:
        return _invalid(f"Invalid operation {_any_or_unknown(acl.operation)}")
    if acl.permission_type not in (DENY, ALLOW):
        return _invalid(f"Invalid permissionType {_any_or_unknown(acl.permission_type)}")
    if ":" not in acl.principal:
        return _invalid(
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the "
            "principal type from the principal name)"
        )
    return _host_problem(acl.host, version)


def _host_problem(host: str, version: MetadataVersion) -> ApiError | None:
    """A range of addresses needs metadata.version 4.4-IV1 (KIP-1276)."""
    if not host:
        return _invalid("Host pattern cannot be null or empty")
    if "/" not in host:
        return None
    if version < MetadataVersion.IBP_4_4_IV1:
        return ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
        )
    try:
        parse_range(host)
    except ValueError as error:
        return _invalid(f"Invalid CIDR notation '{host}': {error}")
    return None


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _any_or_unknown(code: int) -> str:
    return "ANY" if code == ANY else "UNKNOWN"


def _is_known(image: Image, acl: Acl, known: dict[_Holder, set[Acl]]) -> Building[bool]:
    """Whether there is such an entry. known: the entries of crowded holders that were looked at, by value:
    each creation that compares with all of them would take long."""
    entries = entries_of(image, acl.pattern, acl.principal)
    if len(entries) < CROWDED:
        return acl in entries.values()
    holder = (acl.pattern, acl.principal)
    found = known.get(holder)
    if found is None:
        found = known[holder] = set()
        for part in parts(entries.values(), COMPARED):
            found.update(part)
            yield None
    return acl in found


def _record(image: Image, acl: Acl, context: Context) -> AccessControlEntryRecord:
    acl_id = new_uuid(context.rng)
    while acl_id in image.acls:
        acl_id = new_uuid(context.rng)
    return AccessControlEntryRecord(id=acl_id, **acl._asdict())


def _created(refused: ApiError | None) -> _Created:
    return _Created(
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message="" if refused is None else str(refused),
    )


def _create_failed(
    request: CreateAclsRequest, error: ErrorCode, message: str | None
) -> CreateAclsResponse:
    refused = ApiError(error, message or error.message or "")
    return CreateAclsResponse(results=[_created(refused)] * len(request.creations))


CREATE_ACLS: Final = WriteOperation("CreateAcls", _create, _create_failed)


# -- delete ------------------------------------------------------------------------------------
def _delete(
    head: HeadView, request: DeleteAclsRequest, context: Context
) -> Steps[DeleteAclsResponse]:
    """The entries that each filter matches, in the order of their ids; each is removed once."""
    _check_authorizer(context, _NO_AUTHORIZER)
    image = head.image
    filters: dict[EntryFilter, ApiError | None] = {}
    wanted: list[EntryFilter] = []
    for number, given in enumerate(request.filters, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        one = EntryFilter(
            given.resource_type_filter,
            given.resource_name_filter,
            given.pattern_type_filter,
            given.principal_filter,
            given.host_filter,
            given.operation,
            given.permission_type,
        )
        wanted.append(one)
        if one not in filters:
            filters[one] = one.problem()
    valid = [one for one, refused in filters.items() if refused is None]
    removed: set[Uuid] = set()
    found = yield from matching(image, valid, removed)
    results = []
    weight = 0
    for one in wanted:
        refused = filters[one]
        if refused is not None:
            results.append(_FilterResult(error_code=refused.error, error_message=str(refused)))
        else:
            # the order of the map differs from process to process
            rows = yield from in_order(found.get(one, ()), itemgetter(0))
            made = yield from each(rows, _matching)
            results.append(_FilterResult(error_message=None, matching_acls=made))
            weight += len(made)
        weight += 1
        if weight >= ROWS:
            yield None
            weight = 0
    ids = yield from in_order(removed)
    records = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in ids]
    return Result(records, DeleteAclsResponse(filter_results=results))


def _matching(found: tuple[Uuid, Acl]) -> _Matching:
    return _Matching(error_message=None, **found[1]._asdict())


def _delete_failed(
    request: DeleteAclsRequest, error: ErrorCode, message: str | None
) -> DeleteAclsResponse:
    refused = _FilterResult(error_code=error, error_message=message or error.message)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))


DELETE_ACLS: Final = WriteOperation("DeleteAcls", _delete, _delete_failed)


# -- describe ----------------------------------------------------------------------------------
def describe_acls(image: Image, request: DescribeAclsRequest) -> Building[DescribeAclsResponse]:
    """The entries that match, by resource pattern, in the order of their ids; a filter with a code of no
    meaning is refused."""
    wanted = EntryFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    if (refused := wanted.problem()) is not None:
        return DescribeAclsResponse(error_code=refused.error, error_message=str(refused))
    by_pattern: dict[AclPattern, dict[Acl, None]] = {}
    found = yield from matching(image, [wanted])
    # The order of the map differs from process to process.
    ordered = yield from in_order(found.get(wanted, ()), itemgetter(0))
    for number, (_, acl) in enumerate(ordered, 1):
        if number % ROWS == 0:
            yield None
        by_pattern.setdefault(acl.pattern, {})[acl] = None
    resources = yield from each_group(
        list(by_pattern),
        lambda pattern: list(by_pattern.pop(pattern)),  # to drop all at once takes long
        lambda acl: _Resource.AclDescription(
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        ),
        lambda pattern, rows: _Resource(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            acls=rows,
        ),
    )
    return DescribeAclsResponse(resources=resources)
