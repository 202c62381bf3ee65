"""Calls about access control lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from quorate.client.admin.parts import in_parts, parts_of, text_bytes
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.results import RequestFailedError, check, failure_of

ANY: Final = 1
"""`ANY` of resource types, pattern types, operations and permissions."""


class AclBinding(NamedTuple):
    """An entry: who may do what on which resources (`AclBinding`)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class AclFilter(NamedTuple):
    """Which entries; None and ANY match everything (`AclBindingFilter`)."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY


class AclCalls(Calls):
    """describeAcls, createAcls, deleteAcls."""

    async def describe_acls(self, wanted: AclFilter) -> tuple[AclBinding, ...]:
        """The entries that match. Raises RequestFailedError, e.g. without an authorizer."""
        from quorate.wire.messages.acls import DescribeAclsRequest, DescribeAclsResponse

        request = DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )

        async def ask() -> tuple[AclBinding, ...]:
            answer = await self.router.ask_active(request, DescribeAclsResponse)
            check(answer.error_code, answer.error_message)
            return tuple(
                AclBinding(
                    resource.resource_type,
                    resource.resource_name,
                    resource.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for resource in answer.resources
                for acl in resource.acls
            )

        return await self.router.retry(ask)

    async def create_acls(
        self, bindings: Iterable[AclBinding]
    ) -> tuple[RequestFailedError | None, ...]:
        """Add entries; the error of each, in order. Returns when the change is committed."""
        from quorate.wire.messages.acls import CreateAclsRequest, CreateAclsResponse

        async def send(part: Sequence[AclBinding]) -> tuple[RequestFailedError | None, ...]:
            request = CreateAclsRequest(
                creations=[
                    CreateAclsRequest.AclCreation(
                        resource_type=each.resource_type,
                        resource_name=each.resource_name,
                        resource_pattern_type=each.pattern_type,
                        principal=each.principal,
                        host=each.host,
                        operation=each.operation,
                        permission_type=each.permission,
                    )
                    for each in part
                ]
            )
            answer = await self.router.ask_active(request, CreateAclsResponse)
            return tuple(
                item_failure(each.error_code, each.error_message) for each in answer.results
            )

        found = await in_parts(self.router, parts_of(bindings, _bytes), send)
        return tuple(each for part in found for each in part)

    async def delete_acls(
        self, filters: Sequence[AclFilter]
    ) -> tuple[tuple[AclBinding, ...] | RequestFailedError, ...]:
        """Remove the entries that match; what each filter removed, or its error, in order."""
        from quorate.wire.messages.acls import DeleteAclsRequest, DeleteAclsResponse

        async def send(
            part: Sequence[AclFilter],
        ) -> tuple[tuple[AclBinding, ...] | RequestFailedError, ...]:
            request = DeleteAclsRequest(
                filters=[
                    DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=each.resource_type,
                        resource_name_filter=each.resource_name,
                        pattern_type_filter=each.pattern_type,
                        principal_filter=each.principal,
                        host_filter=each.host,
                        operation=each.operation,
                        permission_type=each.permission,
                    )
                    for each in part
                ]
            )
            answer = await self.router.ask_active(request, DeleteAclsResponse)
            found: list[tuple[AclBinding, ...] | RequestFailedError] = []
            for result in answer.filter_results:
                error = item_failure(result.error_code, result.error_message)
                for acl in result.matching_acls:
                    error = error or failure_of(acl.error_code, acl.error_message)
                found.append(
                    error
                    or tuple(
                        AclBinding(
                            acl.resource_type,
                            acl.resource_name,
                            acl.pattern_type,
                            acl.principal,
                            acl.host,
                            acl.operation,
                            acl.permission_type,
                        )
                        for acl in result.matching_acls
                    )
                )
            return tuple(found)

        results = await in_parts(self.router, parts_of(filters, _bytes), send)
        return tuple(each for part in results for each in part)


def _bytes(each: AclBinding | AclFilter) -> int:
    return text_bytes(each.resource_name, each.principal, each.host)
