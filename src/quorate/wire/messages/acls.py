"""Access control lists."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, int8, int16, int32, string


class DescribeAclsRequest(Message, kind="request", key=29, versions=(1, 3), flexible=2):
    """Asks for the entries that match a filter."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable=0)
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable=0)
    host_filter: str | None = string(nullable=0)
    operation: int = int8()
    permission_type: int = int8()


class DescribeAclsResponse(Message, kind="response", key=29, versions=(1, 3), flexible=2):
    """The entries by resource."""

    class DescribeAclsResource(Struct):
        class AclDescription(Struct):
            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        resource_type: int = int8()
        resource_name: str = string()
        pattern_type: int = int8(default=3)
        acls: list[AclDescription] = array(AclDescription)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)


class CreateAclsRequest(Message, kind="request", key=30, versions=(1, 3), flexible=2):
    """Adds entries."""

    class AclCreation(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        resource_pattern_type: int = int8(default=3)
        principal: str = string()
        host: str = string()
        operation: int = int8()
        permission_type: int = int8()

    creations: list[AclCreation] = array(AclCreation)


class CreateAclsResponse(Message, kind="response", key=30, versions=(1, 3), flexible=2):
    """The outcome per entry."""

    class AclCreationResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable=0)

    throttle_time_ms: int = int32()
    results: list[AclCreationResult] = array(AclCreationResult)


class DeleteAclsRequest(Message, kind="request", key=31, versions=(1, 3), flexible=2):
    """Removes the entries that match filters."""

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = int8()
        resource_name_filter: str | None = string(nullable=0)
        pattern_type_filter: int = int8(default=3)
        principal_filter: str | None = string(nullable=0)
        host_filter: str | None = string(nullable=0)
        operation: int = int8()
        permission_type: int = int8()

    filters: list[DeleteAclsFilter] = array(DeleteAclsFilter)


class DeleteAclsResponse(Message, kind="response", key=31, versions=(1, 3), flexible=2):
    """The entries removed by each filter."""

    class DeleteAclsFilterResult(Struct):
        class DeleteAclsMatchingAcl(Struct):
            error_code: int = int16()
            error_message: str | None = string(nullable=0)
            resource_type: int = int8()
            resource_name: str = string()
            pattern_type: int = int8(default=3)
            principal: str = string()
            host: str = string()
            operation: int = int8()
            permission_type: int = int8()

        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        matching_acls: list[DeleteAclsMatchingAcl] = array(DeleteAclsMatchingAcl)

    throttle_time_ms: int = int32()
    filter_results: list[DeleteAclsFilterResult] = array(DeleteAclsFilterResult)
