"""CreateAcls, DeleteAcls, DescribeAcls."""

import pytest

from controller.cluster import Cluster
from quorate.base.errors import ErrorCode
from quorate.controller.acls import CREATE_ACLS, DELETE_ACLS, describe_acls
from quorate.controller.result import ApiError
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, CLUSTER = 2, 4
READ, DENY, ALLOW = 3, 2, 3


def acl(**fields):
    made = CreateAclsRequest.AclCreation(
        resource_type=TOPIC,
        resource_name="orders",
        resource_pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def cluster():
    return Cluster(authorizer=AuthorizerConfig())


def create(cluster, *creations):
    results = cluster.decide(CREATE_ACLS, CreateAclsRequest(creations=list(creations))).results
    return [(ErrorCode(r.error_code), r.error_message) for r in results]


OK = (ErrorCode.NONE, "")


def test_an_entry_is_created_once(cluster):
    assert create(cluster, acl(), acl(), acl(operation=4)) == [OK, OK, OK]
    assert len(cluster.image.acls) == 2
    assert create(cluster, acl()) == [OK] and cluster.records == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"resource_type": CLUSTER, "resource_name": "x"},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ANY}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": MATCH}, "Invalid patternType MATCH"),
        ({"operation": ANY}, "Invalid operation ANY"),
        ({"permission_type": ANY}, "Invalid permissionType ANY"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal "
            "type from the principal name)",
        ),
        ({"host": ""}, "Host pattern cannot be null or empty"),
    ],
)
def test_an_entry_that_is_refused(cluster, fields, text):
    assert create(cluster, acl(**fields), acl()) == [(ErrorCode.INVALID_REQUEST, text), OK]
    assert len(cluster.image.acls) == 1


def test_a_range_of_addresses_needs_its_level():
    ranges = [acl(host="10.0.0.0/8"), acl(host="10.0.0.0/99")]
    old, new = (Cluster(authorizer=AuthorizerConfig(), level=level) for level in (30, 32))
    text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
    assert create(old, *ranges) == [(ErrorCode.UNSUPPORTED_VERSION, text)] * 2
    first, (error, message) = create(new, *ranges)
    assert first == OK and error == ErrorCode.INVALID_REQUEST
    assert message == "Invalid CIDR notation '10.0.0.0/99': Value [99] not in range [0,32]"
    assert described(new, host_filter="10.0.0.0/8") == [("orders", LITERAL, 1)]
    assert described(new, host_filter="10.0.0.1") == [], "a filter compares texts"
    assert removed(new, {"host_filter": "10.0.0.0/8"}) == [1]


def filter_fields(**fields):
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
    } | fields


def described(cluster, **fields):
    found = describe_acls(cluster.image, DescribeAclsRequest(**filter_fields(**fields)))
    return sorted((r.resource_name, r.pattern_type, len(r.acls)) for r in found.resources)


def removed(cluster, *filters):
    """How many each filter removes, or the error."""
    given = [DeleteAclsRequest.DeleteAclsFilter(**filter_fields(**fields)) for fields in filters]
    results = cluster.decide(DELETE_ACLS, DeleteAclsRequest(filters=given)).filter_results
    return [ErrorCode(r.error_code) or len(r.matching_acls) for r in results]


@pytest.fixture
def filled(cluster):
    create(
        cluster,
        acl(),
        acl(operation=4),
        acl(resource_name="*"),
        acl(resource_name="ord", resource_pattern_type=PREFIXED),
        acl(resource_name="other", principal="User:bob"),
    )
    return cluster


def test_entries_are_described_by_resource(filled):
    everything = [("*", 3, 1), ("ord", 4, 1), ("orders", 3, 2), ("other", 3, 1)]
    assert described(filled) == everything
    assert described(filled, resource_name_filter="orders") == [("orders", 3, 2)]
    matching = everything[:3]
    assert described(filled, resource_name_filter="orders", pattern_type_filter=MATCH) == matching
    assert described(filled, pattern_type_filter=PREFIXED) == [("ord", 4, 1)]
    assert described(filled, principal_filter="User:bob") == [("other", 3, 1)]
    assert described(filled, operation=4) == [("orders", 3, 1)]
    assert described(filled, permission_type=DENY) == []


def test_entries_are_removed_by_filters(filled):
    assert removed(filled, {"resource_name_filter": "orders"}, {"operation": 4}) == [2, 1]
    assert len(filled.records) == 2 and len(filled.image.acls) == 3
    assert removed(filled, {"operation": 99}, {}) == [ErrorCode.INVALID_REQUEST, 3]
    assert not filled.image.acls and not filled.image.acls_by_pattern


def test_without_an_authorizer_there_are_no_entries():
    with pytest.raises(ApiError, match=r"^No Authorizer is configured\.$") as refused:
        create(Cluster(), acl())
    assert refused.value.error == ErrorCode.SECURITY_DISABLED
