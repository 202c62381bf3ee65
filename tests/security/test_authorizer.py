"""Who may do what: StandardAuthorizer's rules, one by one."""

import pytest

from quorate.base.ids import Uuid
from quorate.formats.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import Image
from quorate.security.acl import AclOperation as Op
from quorate.security.acl import AclResource as Kind
from quorate.security.authorizer import (
    ALL_OPERATIONS,
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    AuthorizerConfig,
    Requester,
    decide,
)

NO_DEFAULT = AuthorizerConfig()
ALICE = Requester("User:alice", "10.0.0.7")


def entry(number=1, *, pattern=LITERAL, permission=ALLOW, name="orders", **fields):
    return AccessControlEntryRecord(
        **{
            "id": Uuid(number.to_bytes(16, "big")),
            "resource_type": Kind.TOPIC,
            "resource_name": name,
            "pattern_type": pattern,
            "principal": "User:alice",
            "host": "*",
            "operation": Op.READ,
            "permission_type": permission,
        }
        | fields
    )


def image(*records):
    delta = ImageDelta(Image())
    for record in records:
        delta.replay(record)
    return delta.apply()


def may(operation, *records, name="orders", kind=Kind.TOPIC, who=ALICE, config=NO_DEFAULT):
    return decide(image(*records), config, who, operation, kind, name).is_allowed


def test_what_is_allowed_is_allowed_and_nothing_else():
    assert may(Op.READ, entry())
    assert not may(Op.WRITE, entry())
    assert not may(Op.READ, entry(), name="other")
    assert not may(Op.READ, entry(), kind=Kind.GROUP)
    assert not may(Op.READ, entry(), who=Requester("User:bob", "10.0.0.7"))


def test_one_that_denies_wins():
    both = entry(1, principal="User:*"), entry(2, permission=DENY)
    assert not may(Op.READ, *both)
    assert may(Op.READ, *both, who=Requester("User:bob", "h"))


def test_a_super_user_may_do_everything():
    config = AuthorizerConfig(super_users=frozenset({"User:alice"}))
    assert may(Op.READ, entry(permission=DENY), config=config)


def test_a_resource_without_entries_follows_the_default():
    config = AuthorizerConfig(allow_without_acls=True)
    assert may(Op.READ, config=config)
    assert not may(Op.READ)
    assert not may(Op.READ, entry(principal="User:bob"), config=config)
    assert may(Op.READ, entry(principal="User:bob"), name="other", config=config)


@pytest.mark.parametrize("name", ["o", "ord", "orders", "orders.eu"])
def test_a_prefix_covers_what_begins_with_it(name):
    assert may(Op.READ, entry(name="o", pattern=PREFIXED), name=name)
    assert not may(Op.READ, entry(name="p", pattern=PREFIXED), name=name)


def test_a_literal_star_covers_every_name_and_a_literal_prefix_does_not():
    assert may(Op.READ, entry(name="*"), name="anything")
    assert not may(Op.READ, entry(name="ord"))


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.DESCRIBE])
def test_these_operations_imply_describe_where_they_are_allowed(operation):
    assert may(Op.DESCRIBE, entry(operation=operation))
    denied = entry(2, operation=operation, permission=DENY)
    allowed = entry(1, operation=ALL_OPERATIONS)
    assert may(Op.DESCRIBE, allowed, denied) == (operation != Op.DESCRIBE)


def test_alter_configs_implies_describe_configs():
    assert may(Op.DESCRIBE_CONFIGS, entry(operation=Op.ALTER_CONFIGS))
    assert not may(Op.DESCRIBE, entry(operation=Op.ALTER_CONFIGS))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("*", True),
        ("10.0.0.7", True),
        ("10.0.0.8", False),
        ("10.0.0.0/24", True),
        ("10.0.1.0/24", False),
        ("fe80::/10", False),
        ("10.0.0.7/x", False),
    ],
)
def test_the_host_is_an_address_or_a_range(host, expected):
    assert may(Op.READ, entry(host=host)) == expected


def test_a_removed_entry_counts_no_more():
    made = entry()
    assert not may(Op.READ, made, RemoveAccessControlEntryRecord(id=made.id))
    moved = entry(name="other")
    assert not may(Op.READ, made, moved) and may(Op.READ, made, moved, name="other")
    assert image(made, RemoveAccessControlEntryRecord(id=made.id)) == Image()
