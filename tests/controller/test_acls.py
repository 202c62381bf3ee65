"""CreateAcls, DeleteAcls, DescribeAcls."""

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from controller.cluster import Cluster, yield_all
from counted import Counted
from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.controller.acls import CREATE_ACLS, DELETE_ACLS, describe_acls
from quorate.controller.building import at_once
from quorate.controller.result import MAX_RECORDS, PAUSE_EVERY, ApiError
from quorate.formats.records import decode_record
from quorate.metadata.acl_index import CROWDED
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import Image
from quorate.metadata.replay import record_values
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

UNKNOWN, ANY, MATCH, LITERAL, PREFIXED = 0, 1, 2, 3, 4
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


@kafka_scenario("AclControlManagerTest", "createDedupe")
def test_an_entry_is_created_once(cluster):
    assert create(cluster, acl(), acl(), acl(operation=4)) == [OK, OK, OK]
    assert len(cluster.image.acls) == 2
    assert create(cluster, acl()) == [OK] and cluster.records == []


@pytest.fixture
def compared():
    """How many comparisons there were since the test began."""
    Counted.compared = 0
    return lambda: Counted.compared


@pytest.mark.parametrize("field", ["principal", "host"])
def test_a_creation_does_not_look_at_each_entry_of_its_resource(cluster, compared, field):
    """15,000 ACLs on one resource took 3 s for each 5,000."""
    count = 20 * CROWDED
    first = [acl(**{field: f"User:{number}"}) for number in range(count)]
    more = [acl(**{field: Counted(f"User:{number}")}) for number in range(count // 2, 2 * count)]
    assert create(cluster, *first) == [OK] * len(first)
    assert create(cluster, *more) == [OK] * len(more)
    assert compared() < 5 * len(more)
    assert len(cluster.image.acls) == 2 * count


def test_the_entries_of_a_principal_are_looked_at_in_steps(cluster):
    hosts = [f"h{number}" for number in range(10 * PAUSE_EVERY + 1)]
    create(cluster, *(acl(host=host) for host in hosts))
    request = CreateAclsRequest(creations=[acl(host=hosts[-1]), acl(host="other")])
    steps = as_any(CREATE_ACLS.decide(cluster.head, request, cluster.context()))
    assert [next(steps) for _ in range(2)] == [None, None]
    assert [record.host for record in yield_all(steps, None).records] == ["other"]


@kafka_scenario("ClusterMetadataAuthorizerTest", "createAcls")
@kafka_scenario(
    "AclControlManagerTest",
    "validateNewAcl",
    "validateAclWithBadPrincipal",
    "validateAclWithEmptyPrincipal",
    "createAclDeleteAcl",
)
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"resource_type": CLUSTER, "resource_name": "x"},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": ANY}, "Invalid resourceType ANY"),
        ({"resource_type": UNKNOWN}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": MATCH}, "Invalid patternType MATCH"),
        ({"resource_pattern_type": UNKNOWN}, "Invalid patternType UNKNOWN"),
        ({"operation": ANY}, "Invalid operation ANY"),
        ({"operation": UNKNOWN}, "Invalid operation UNKNOWN"),
        ({"permission_type": ANY}, "Invalid permissionType ANY"),
        ({"permission_type": UNKNOWN}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": ""},
            "Could not parse principal from `` (no colon is present separating the principal "
            "type from the principal name)",
        ),
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
    found = at_once(describe_acls(cluster.image, DescribeAclsRequest(**filter_fields(**fields))))
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


@kafka_scenario("StandardAuthorizerTest", "listAcls")
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


def test_entries_are_described_in_the_order_of_their_ids(cluster):
    """The order of a map of ids differs from process to process."""
    create(cluster, *(acl(resource_name=f"t{number}") for number in range(20)))
    found = at_once(describe_acls(cluster.image, DescribeAclsRequest(**filter_fields())))
    in_order = [acl.resource_name for _, acl in sorted(cluster.image.acls.items())]
    assert [each.resource_name for each in found.resources] == in_order


@kafka_scenario("ClusterMetadataAuthorizerTest", "deleteAcls")
@kafka_scenario("AclControlManagerTest", "createAclDeleteAcl", "deleteDedupe")
def test_entries_are_removed_by_filters(filled):
    assert removed(filled, {"resource_name_filter": "orders"}, {"operation": 4}) == [2, 1]
    assert len(filled.records) == 2 and len(filled.image.acls) == 3
    assert removed(filled, {"operation": 99}, {}) == [ErrorCode.INVALID_REQUEST, 3]
    assert not filled.image.acls and not filled.image.acls_by_pattern
    assert not filled.image.acl_prefix_lengths


@kafka_scenario("AclControlManagerTest", "validateFilter")
@pytest.mark.parametrize("code", [UNKNOWN, 99])
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("resource_type_filter", "Unknown patternFilter."),
        ("pattern_type_filter", "Unknown patternFilter."),
        ("operation", "Unknown entryFilter."),
        ("permission_type", "Unknown entryFilter."),
    ],
)
def test_a_filter_that_is_refused(filled, field, code, text):
    fields = filter_fields(resource_name_filter="*", principal_filter="User:*", **{field: code})
    given = [DeleteAclsRequest.DeleteAclsFilter(**fields)]
    [result] = filled.decide(DELETE_ACLS, DeleteAclsRequest(filters=given)).filter_results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, text)
    assert not result.matching_acls and not filled.records
    answer = at_once(describe_acls(filled.image, DescribeAclsRequest(**fields)))
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, text)


@kafka_scenario("AclControlManagerTest", "deleteExceedsMaxRecords")
def test_more_entries_than_a_batch_holds_are_not_removed(cluster):
    """By one filter or by many; as many as fit are."""
    names = [f"t{number}" for number in range(MAX_RECORDS + 1)]
    for begin in range(0, len(names), MAX_RECORDS // 2):
        create(cluster, *(acl(resource_name=name) for name in names[begin:][: MAX_RECORDS // 2]))
    whole = cluster.image.acls
    one_each = [{"resource_name_filter": name} for name in names]
    text = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
    everything: list[dict[str, str]] = [{}]
    for filters in (everything, one_each):
        with pytest.raises(ApiError) as refused:
            removed(cluster, *filters)
        assert (refused.value.error, str(refused.value)) == (ErrorCode.INVALID_REQUEST, text)
        assert cluster.image.acls == whole
    assert removed(cluster, *one_each[1:]) == [1] * MAX_RECORDS
    assert len(cluster.image.acls) == 1


@kafka_scenario("AclControlManagerTest", "loadSnapshot")
def test_entries_of_a_snapshot_take_the_place_of_all_others(filled):
    records = [decode_record(value)[0] for value in record_values(filled.image)]
    delta = ImageDelta(Image())
    for record in records:
        delta.replay(record)
    loaded = delta.apply()
    assert loaded.acls == filled.image.acls
    assert loaded.acls_by_pattern == filled.image.acls_by_pattern
    assert loaded.acls_by_principal == filled.image.acls_by_principal
    assert loaded.acl_prefix_lengths == filled.image.acl_prefix_lengths == Map({2: Map({3: 1})})
    assert not Image().acls and not Image().acls_by_pattern


@kafka_scenario("ClusterMetadataAuthorizerTest", "createAclsError", "deleteAclsError")
def test_a_request_that_is_refused_as_a_whole_refuses_each_of_its_items():
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    created = as_any(CREATE_ACLS.failed(CreateAclsRequest(creations=[acl(), acl()]), error, "no"))
    assert [(r.error_code, r.error_message) for r in created.results] == [(error, "no")] * 2
    wanted = [DeleteAclsRequest.DeleteAclsFilter() for _ in range(2)]
    deleted = as_any(DELETE_ACLS.failed(DeleteAclsRequest(filters=wanted), error, "no"))
    removed = deleted.filter_results
    assert [(r.error_code, r.error_message, r.matching_acls) for r in removed] == [
        (error, "no", [])
    ] * 2


def test_without_an_authorizer_there_are_no_entries():
    with pytest.raises(ApiError, match=r"^No Authorizer is configured\.$") as refused:
        create(Cluster(), acl())
    assert refused.value.error == ErrorCode.SECURITY_DISABLED
