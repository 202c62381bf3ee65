"""What filters find together: one result of the model for each of them, and one pass for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.cluster import Cluster
from controller.test_acls import filter_fields
from narrow import as_any
from quorate.base.ids import Uuid
from quorate.controller.acl_filters import ANY, COMPARED, MATCH, EntryFilter, matching
from quorate.controller.acls import DELETE_ACLS
from quorate.controller.building import at_once
from quorate.formats.records import AccessControlEntryRecord
from quorate.metadata.image import Acl, Image
from quorate.metadata.security import set_acl
from quorate.security.authorizer import ALLOW, DENY, LITERAL, PREFIXED, AuthorizerConfig
from quorate.wire.messages import DeleteAclsRequest


def records(acls):
    for number, acl in enumerate(acls):
        yield AccessControlEntryRecord(id=Uuid(number.to_bytes(16, "big")), **acl._asdict())


def matches(wanted, acl):
    """A model of `AclBindingFilter.matches`."""
    names = {LITERAL: acl.resource_name in (wanted.name, "*")}
    names[PREFIXED] = (wanted.name or "").startswith(acl.resource_name)
    if wanted.name is None:
        fits_name = True
    elif wanted.pattern_type == MATCH:
        fits_name = names[acl.pattern_type]
    else:
        fits_name = wanted.name == acl.resource_name
    return (
        fits_name
        and wanted.resource_type in (ANY, acl.resource_type)
        and wanted.pattern_type in (ANY, MATCH, acl.pattern_type)
        and wanted.principal in (None, acl.principal)
        and wanted.host in (None, acl.host)
        and wanted.operation in (ANY, acl.operation)
        and wanted.permission_type in (ANY, acl.permission_type)
    )


kinds = st.sampled_from((2, 3))
names = st.sampled_from(("*", "a", "ab", "abc"))
principals, hosts = st.sampled_from(("User:*", "User:a")), st.sampled_from(("*", "h"))
operations, permissions = st.sampled_from((2, 3)), st.sampled_from((DENY, ALLOW))
types = st.sampled_from((LITERAL, PREFIXED))
acls = st.builds(Acl, kinds, names, types, principals, hosts, operations, permissions)
filters = st.builds(
    EntryFilter,
    kinds | st.just(ANY),
    names | st.none(),
    types | st.sampled_from((ANY, MATCH)),
    principals | st.none(),
    hosts | st.none(),
    operations | st.just(ANY),
    permissions | st.just(ANY),
)


@given(st.sets(acls, max_size=60), st.sets(filters, max_size=12))
def test_each_filter_finds_what_it_matches(entries, wanted):
    made = Image()
    for record in records(entries):
        made = set_acl(made, record)
    removed = set[Uuid]()
    found = at_once(matching(made, wanted, removed))
    expected = {
        one: {acl_id for acl_id, acl in made.acls.items() if matches(one, acl)} for one in wanted
    }
    for one, ids in expected.items():
        rows = found.get(one, [])
        assert {acl_id for acl_id, _ in rows} == ids and len(rows) == len(ids)
        assert all(made.acls[acl_id] == acl for acl_id, acl in rows)
    assert removed == set[Uuid]().union(*expected.values())


MANY = 2 * COMPARED


@pytest.fixture(scope="module")
def crowd():
    """Entries of one prefix, each of its own principal and host."""
    made = Cluster(authorizer=AuthorizerConfig())
    entries = (Acl(2, "t", PREFIXED, f"User:{n}", f"h{n}", 3, ALLOW) for n in range(MANY))
    made.write(list(records(entries)))
    return made


@pytest.mark.parametrize(
    "fields",
    [
        {"principal_filter": "User:no{}"},
        {"host_filter": "no{}"},
        {"principal_filter": "User:{}", "host_filter": "no"},
        {"resource_name_filter": "t", "principal_filter": "User:no{}"},
        {"resource_name_filter": "t{}", "host_filter": "no"},
        {"principal_filter": "User:{}"},
    ],
)
def test_many_filters_take_as_many_steps_as_one(crowd, fields):
    """1,000 filters held all other writes for half a minute: each looked at every entry."""

    def filled(number):
        given = {name: value.format(number) for name, value in fields.items()}
        given |= {"pattern_type_filter": MATCH}
        return DeleteAclsRequest.DeleteAclsFilter(**filter_fields(**given))

    def pauses(count):
        request = DeleteAclsRequest(filters=[filled(number) for number in range(count)])
        steps = as_any(DELETE_ACLS.decide(crowd.head, request, crowd.context()))
        return sum(1 for _ in steps)

    assert pauses(1) >= MANY // COMPARED
    assert pauses(COMPARED) <= pauses(1) + 30
