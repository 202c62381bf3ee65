"""Access control entries: CreateAcls, DeleteAcls, DescribeAcls.

Source: `AclControlManager`, `AclApis`, `ResourcePatternFilter`, `AccessControlEntryFilter`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.assignments import new_uuid
from quorate.controller.brokers import metadata_version
from quorate.controller.building import ROWS, Building, each_group, in_order, parts
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
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import ALLOW, CLUSTER_NAME, DENY, LITERAL, PREFIXED, WILDCARD
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

ANY: Final = 1
MATCH: Final = 2
_ALL: Final = 2
_RESOURCES: Final = {int(kind): kind.name for kind in AclResource}
_OPERATIONS: Final = {_ALL: "ALL", **{int(kind): kind.name for kind in AclOperation}}
_PATTERNS: Final = (LITERAL, PREFIXED)
_COMPARED: Final = 10 * PAUSE_EVERY
"""Comparisons of an entry with a filter in one step."""
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
    if acl.resource_type not in _RESOURCES:
        return _invalid(f"Invalid resourceType {_any_or_unknown(acl.resource_type)}")
    if acl.pattern_type not in _PATTERNS:
        name = "MATCH" if acl.pattern_type == MATCH else _any_or_unknown(acl.pattern_type)
        return _invalid(f"Invalid patternType {name}")
    if acl.operation not in _OPERATIONS:
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
        for part in parts(entries.values(), _COMPARED):
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


# -- filters -----------------------------------------------------------------------------------
class _Filter(NamedTuple):
    """What entries are asked for; None and ANY ask for everything."""

    resource_type: int
    name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def check(self) -> None:
        """Refuse a filter with a code of no meaning. Raises ApiError (INVALID_REQUEST)."""
        if self.resource_type not in (ANY, *_RESOURCES) or self.pattern_type not in (
            ANY,
            MATCH,
            *_PATTERNS,
        ):
            raise _invalid("Unknown patternFilter.")
        if self.operation not in (ANY, *_OPERATIONS) or self.permission_type not in (
            ANY,
            DENY,
            ALLOW,
        ):
            raise _invalid("Unknown entryFilter.")

    def matches(self, acl: Acl) -> bool:
        return (
            self._matches_pattern(acl.pattern)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (ANY, acl.operation)
            and self.permission_type in (ANY, acl.permission_type)
        )

    def _matches_pattern(self, pattern: AclPattern) -> bool:
        if self.resource_type not in (ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (ANY, MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type != MATCH:
            return self.name == pattern.name
        if pattern.pattern_type == LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return self.name.startswith(pattern.name)

    def candidates(self, image: Image) -> Iterable[tuple[Uuid, Acl]]:
        """The entries that may match: by their resource pattern where the filter names one."""
        if self.name is None or self.pattern_type == MATCH:
            return image.acls.items()
        types = _RESOURCES if self.resource_type == ANY else (self.resource_type,)
        patterns = _PATTERNS if self.pattern_type == ANY else (self.pattern_type,)
        named = (AclPattern(kind, pattern, self.name) for kind in types for pattern in patterns)
        found = (image.acls_by_pattern.get(pattern) for pattern in named)
        return chain.from_iterable(entries.items() for entries in found if entries is not None)


# -- delete ------------------------------------------------------------------------------------
def _delete(
    head: HeadView, request: DeleteAclsRequest, context: Context
) -> Steps[DeleteAclsResponse]:
    _check_authorizer(context, _NO_AUTHORIZER)
    image = head.image
    removed: dict[Uuid, None] = {}
    results = []
    compared = 0
    for number, given in enumerate(request.filters, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        wanted = _Filter(
            given.resource_type_filter,
            given.resource_name_filter,
            given.pattern_type_filter,
            given.principal_filter,
            given.host_filter,
            given.operation,
            given.permission_type,
        )
        try:
            wanted.check()
        except ApiError as refused:
            results.append(_FilterResult(error_code=refused.error, error_message=str(refused)))
            continue
        found = []
        for acl_id, acl in wanted.candidates(image):
            compared += 1
            if compared % _COMPARED == 0:
                yield None
            if wanted.matches(acl):
                found.append((acl_id, acl))
        removed.update(dict.fromkeys(acl_id for acl_id, _ in found))
        if len(removed) > MAX_RECORDS:
            # A part of the deletions would be easily missed: nothing is removed.
            raise _invalid(
                f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
            )
        found.sort(key=itemgetter(0))  # the order of the map differs from process to process
        matching = [_Matching(error_message=None, **acl._asdict()) for _, acl in found]
        results.append(_FilterResult(error_message=None, matching_acls=matching))
    records = [RemoveAccessControlEntryRecord(id=acl_id) for acl_id in sorted(removed)]
    return Result(records, DeleteAclsResponse(filter_results=results))


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
    wanted = _Filter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    try:
        wanted.check()
    except ApiError as refused:
        return DescribeAclsResponse(error_code=refused.error, error_message=str(refused))
    by_pattern: dict[AclPattern, dict[Acl, None]] = {}
    # The order of the map differs from process to process.
    ordered = yield from in_order(wanted.candidates(image), itemgetter(0))
    for number, (_, acl) in enumerate(ordered, 1):
        if number % ROWS == 0:
            yield None
        if wanted.matches(acl):
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
