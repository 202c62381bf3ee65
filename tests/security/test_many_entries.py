"""What decisions cost where a resource has thousands of entries."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counted import Counted
from quorate.metadata.acl_index import CROWDED
from quorate.metadata.security import acl_of
from quorate.security.acl import AclOperation as Op
from quorate.security.acl import AclResource as Kind
from quorate.security.authorizer import (
    ALL_OPERATIONS,
    ALLOW,
    COMPARED_IN_ONE_STEP,
    DENY,
    LITERAL,
    MAX_VERDICTS,
    PREFIXED,
    Requester,
    Verdicts,
    decide,
)
from security.test_authorizer import ALICE, NO_DEFAULT, entry, image


@pytest.mark.parametrize("field", ["principal", "host"])
@pytest.mark.parametrize("pattern", [LITERAL, PREFIXED])
def test_the_names_of_a_request_take_one_look_at_the_entries_that_all_have(field, pattern):
    """1,000 names and 10,000 entries of `*` took seconds, and each requester could ask for that."""
    count = 20 * CROWDED
    fields = [{"principal": "User:*"} | {field: Counted(f"User:{n}")} for n in range(count)]
    name = "*" if pattern == LITERAL else "t"
    found = image(*(entry(n, name=name, pattern=pattern, **f) for n, f in enumerate(fields)))
    Counted.compared = 0
    verdicts = Verdicts()
    for number in range(count):
        for operation in (Op.DESCRIBE, Op.DELETE):
            asked = ALICE, operation, Kind.TOPIC, f"t{number}", verdicts
            assert decide(found, NO_DEFAULT, *asked) == (False, "DefaultDeny", None)
    assert Counted.compared < 5 * count


def test_the_entries_of_other_principals_of_a_resource_are_not_looked_at():
    many = [entry(number, principal=f"User:{number}") for number in range(1, 20 * CROWDED)]
    found = image(*many, entry(20 * CROWDED))
    verdicts = Verdicts()
    assert decide(found, NO_DEFAULT, ALICE, Op.READ, Kind.TOPIC, "orders", verdicts).is_allowed
    assert verdicts.compared < CROWDED


def test_a_pause_is_due_when_many_entries_are_compared():
    """However many names these are for."""
    hosts = [f"h{number}" for number in range(COMPARED_IN_ONE_STEP // 10)]
    names = [f"t{number}" for number in range(20)]
    verdicts = Verdicts()
    pauses = 0
    for number, name in enumerate(names):
        first = number * len(hosts)
        found = image(*(entry(first + n, name=name, host=h) for n, h in enumerate(hosts)))
        decide(found, NO_DEFAULT, ALICE, Op.READ, Kind.TOPIC, name, verdicts)
        pauses += verdicts.pause_is_due()
    assert pauses == 2


def test_what_is_known_of_entries_is_bounded():
    found = image(*(entry(number, principal="User:*") for number in range(CROWDED)))
    verdicts = Verdicts()
    for number in range(3 * MAX_VERDICTS):
        who = Requester("User:alice", f"h{number}")
        assert decide(found, NO_DEFAULT, who, Op.READ, Kind.TOPIC, "orders", verdicts).is_allowed
        assert verdicts.known <= MAX_VERDICTS


PRINCIPALS = ("User:*", "User:alice", "User:bob")
HOSTS = ("*", "10.0.0.7", "10.0.0.0/24", "10.0.1.0/24")
OPERATIONS = (ALL_OPERATIONS, Op.READ, Op.DESCRIBE, Op.ALTER)
PATTERNS = (("*", LITERAL), ("orders", LITERAL), ("ord", PREFIXED))
ALL_ENTRIES = [
    entry(number, name=name, pattern=pattern, principal=who, host=host, operation=op, permission=p)
    for number, ((name, pattern), who, host, op, p) in enumerate(
        product(PATTERNS, PRINCIPALS, HOSTS, OPERATIONS, (ALLOW, DENY)), 1
    )
]


NAMES = ("orders", "ordinary", "x")
ASKING = [Requester(*who) for who in product(("User:alice", "User:eve"), ("10.0.0.7", "10.0.1.7"))]
CROWD = [
    entry(number, name=name, pattern=pattern, principal=who, host=f"h{number}")
    for number, ((name, pattern), who, _) in enumerate(
        product(PATTERNS, ("User:*", "User:alice"), range(CROWDED)), 1_000
    )
]
"""Of hosts that nobody asks from."""


def fitting(records, who, operation, name):
    """The entries that decide: a model of `StandardAuthorizerData.findAclRule`."""
    for record in records:
        fits = record.resource_name in ("*", name) or (
            record.pattern_type == PREFIXED and name.startswith(record.resource_name)
        )
        operations = {ALL_OPERATIONS, operation}
        if operation == Op.DESCRIBE and record.permission_type == ALLOW:
            operations |= {Op.READ, Op.ALTER}
        if (
            fits
            and record.principal in ("User:*", who.principal)
            and record.host in ("*", who.host, who.host.replace(".7", ".0/24"))
            and record.operation in operations
        ):
            yield acl_of(record)


versions = st.lists(
    st.integers(0, 2**32).flatmap(
        lambda seed: st.sampled_from((3, 40, 150)).map(
            lambda count: Random(seed).sample(ALL_ENTRIES, count) + CROWD * (seed % 2)
        )
    ),
    min_size=1,
    max_size=3,
)


@given(versions, st.sets(st.sampled_from(PRINCIPALS), max_size=2))
@settings(max_examples=30)
def test_what_is_known_from_earlier_decisions_changes_none(found, without):
    """With few and many entries, while they change; without: principals that no entry denies anything."""
    verdicts = Verdicts()
    for records in found:
        records = [r for r in records if r.permission_type == ALLOW or r.principal not in without]
        made = image(*records)
        for who, operation, name in 2 * list(product(ASKING, (Op.READ, Op.DESCRIBE), NAMES)):
            decision = decide(made, NO_DEFAULT, who, operation, Kind.TOPIC, name, verdicts)
            deciding = list(fitting(records, who, operation, name))
            denying = [acl for acl in deciding if acl.permission_type == DENY]
            assert decision.is_allowed == (bool(deciding) and not denying)
            assert decision.acl in (denying or deciding or [None])
            assert decision.rule == ("MatchingAcl" if deciding else "DefaultDeny")
