"""Where an image finds access control entries."""

from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from quorate.base.ids import Uuid
from quorate.metadata.acl_index import CROWDED, entries_of, with_entry, without_entry
from quorate.metadata.image import Acl, AclPattern, Image


def entry(number):
    """Of one of two patterns, and one of three principals."""
    return Acl(2, "orders", 3 + number % 2, f"User:{number % 3}", f"h{number}", 3, 3)


def id_of(number):
    return Uuid(number.to_bytes(16, "big"))


@given(st.lists(st.sets(st.integers(0, 5 * CROWDED), min_size=CROWDED), min_size=1, max_size=4))
def test_the_index_follows_from_the_entries_alone(versions):
    """Whatever was there before: a crowded pattern is indexed by principal, and no other one."""
    image, there = Image(), set[int]()
    for wanted in versions:
        for number in there - wanted:
            image = without_entry(image, id_of(number), entry(number))
        for number in wanted - there:
            image = with_entry(image, id_of(number), entry(number))
        there = wanted
    by_pattern = dict[AclPattern, dict[Uuid, Acl]]()
    by_principal = dict[AclPattern, dict[str, dict[Uuid, Acl]]]()
    for number in there:
        acl = entry(number)
        by_pattern.setdefault(acl.pattern, {})[id_of(number)] = acl
    for pattern, found in by_pattern.items():
        assert image.acls_by_pattern[pattern] == Map(found)
        for acl_id, acl in found.items():
            if len(found) >= CROWDED:
                crowd = by_principal.setdefault(pattern, {})
                crowd.setdefault(acl.principal, {})[acl_id] = acl
            assert acl_id in entries_of(image, pattern, acl.principal)
        if len(found) >= CROWDED:
            assert not entries_of(image, pattern, "User:other")
    assert image.acls_by_principal == Map(
        {
            pattern: Map({who: Map(found) for who, found in crowd.items()})
            for pattern, crowd in by_principal.items()
        }
    )
    assert set(image.acls_by_pattern) == set(by_pattern)
