"""Who may do what: StandardAuthorizer's rules, one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from quorate.base.ids import Uuid
from quorate.formats.records import (
    AccessControlEntryRecord,
    FeatureLevelRecord,
    RemoveAccessControlEntryRecord,
)
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import Image
from quorate.security.acl import AclOperation as Op
from quorate.security.acl import AclResource as Kind
from quorate.security.authorizer import (
    ALL_OPERATIONS,
    ALLOW,
    CLUSTER_NAME,
    DENY,
    LITERAL,
    PREFIXED,
    AuthorizerConfig,
    KnownEntries,
    Requester,
    decide,
    decide_when_loaded,
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


@kafka_scenario("StandardAuthorizerTest", "findResultPrincipalMatching", "simpleAuthorizations")
def test_what_is_allowed_is_allowed_and_nothing_else():
    assert may(Op.READ, entry())
    assert not may(Op.WRITE, entry())
    assert not may(Op.READ, entry(), name="other")
    assert not may(Op.READ, entry(), kind=Kind.GROUP)
    assert not may(Op.READ, entry(), who=Requester("User:bob", "10.0.0.7"))


@kafka_scenario("StandardAuthorizerTest", "findResultPrincipalMatching")
def test_one_that_denies_wins():
    both = entry(1, principal="User:*"), entry(2, permission=DENY)
    assert not may(Op.READ, *both)
    assert may(Op.READ, *both, who=Requester("User:bob", "h"))


def test_a_super_user_may_do_everything():
    config = AuthorizerConfig(super_users=frozenset({"User:alice"}))
    assert may(Op.READ, entry(permission=DENY), config=config)


@kafka_scenario(
    "StandardAuthorizerTest",
    "getDefaultResult",
    "allowEveryoneIfNoAclFoundConfigEnabled",
    "allowEveryoneIfNoAclFoundConfigDisabled",
)
def test_a_resource_without_entries_follows_the_default():
    config = AuthorizerConfig(allow_without_acls=True)
    assert may(Op.READ, config=config)
    assert not may(Op.READ)
    assert not may(Op.READ, entry(principal="User:bob"), config=config)
    assert may(Op.READ, entry(principal="User:bob"), name="other", config=config)


@kafka_scenario("StandardAuthorizerTest", "prefixAcls")
@pytest.mark.parametrize("name", ["o", "ord", "orders", "orders.eu"])
def test_a_prefix_covers_what_begins_with_it(name):
    assert may(Op.READ, entry(name="o", pattern=PREFIXED), name=name)
    assert not may(Op.READ, entry(name="p", pattern=PREFIXED), name=name)


def test_a_literal_star_covers_every_name_and_a_literal_prefix_does_not():
    assert may(Op.READ, entry(name="*"), name="anything")
    assert not may(Op.READ, entry(name="ord"))


@kafka_scenario("StandardAuthorizerTest", "findResultImplication")
@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.DESCRIBE])
def test_these_operations_imply_describe_where_they_are_allowed(operation):
    assert may(Op.DESCRIBE, entry(operation=operation))
    denied = entry(2, operation=operation, permission=DENY)
    allowed = entry(1, operation=ALL_OPERATIONS)
    assert may(Op.DESCRIBE, allowed, denied) == (operation != Op.DESCRIBE)


@kafka_scenario("StandardAuthorizerTest", "findResultImplication")
def test_alter_configs_implies_describe_configs():
    assert may(Op.DESCRIBE_CONFIGS, entry(operation=Op.ALTER_CONFIGS))
    assert not may(Op.DESCRIBE, entry(operation=Op.ALTER_CONFIGS))


@kafka_scenario("StandardAuthorizerTest", "hostAddressAclValidation")
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


LONG = "fe80:0:0:0:0:0:ab:1"


@pytest.mark.parametrize("permission", [ALLOW, DENY])
@pytest.mark.parametrize(
    ("text", "host", "is_java"),
    [
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1", True),
        ("::1", "0:0:0:0:0:0:0:1", False),
        ("0000::0001", "0:0:0:0:0:0:0:1", False),
        (f"{LONG}%2", f"{LONG}%2", True),
        ("FE80::AB:1%2", f"{LONG}%2", False),
        ("fe80::ab:1%eth0", f"{LONG}%2", False),
        ("fe80::ab:1", f"{LONG}%2", False),
        ("::ffff:10.0.0.7", "10.0.0.7", False),
    ],
)
def test_an_entry_that_denies_takes_any_spelling_and_one_that_allows_javas(
    text, host, is_java, permission
):
    """Else an entry of a Java cluster loses its effect here, or allows what Java does not."""
    made = entry(host=text, permission=permission), entry(2)
    records = made if permission == DENY else made[:1]
    assert may(Op.READ, *records, who=Requester("User:alice", host)) == (
        is_java if permission == ALLOW else False
    )


@pytest.mark.parametrize("text", ["::2", "fe80::ab:1%3", "localhost", "::1%", ":x"])
def test_an_entry_that_denies_another_address_denies_no_more(text):
    who = Requester("User:alice", f"{LONG}%2")
    assert may(Op.READ, entry(host=text, permission=DENY), entry(2), who=who)


@kafka_scenario("AclControlManagerTest", "addAndDelete")
@kafka_scenario("StandardAuthorizerTest", "listAcls")
def test_a_removed_entry_counts_no_more():
    made = entry()
    assert not may(Op.READ, made, RemoveAccessControlEntryRecord(id=made.id))
    moved = entry(name="other")
    assert not may(Op.READ, made, moved) and may(Op.READ, made, moved, name="other")
    assert image(made, RemoveAccessControlEntryRecord(id=made.id)) == Image()


def test_an_empty_prefix_covers_every_name():
    """No request makes one, but a log may have it."""
    assert may(Op.READ, entry(name="", pattern=PREFIXED), name="anything")


class Asked(str):
    """A name that counts its slices."""

    slices = 0

    def __getitem__(self, index):
        self.slices += 1
        return super().__getitem__(index)


def test_only_prefixes_as_long_as_those_of_entries_are_tried():
    """A request with 30 names of 32,000 characters held the event loop for seconds."""
    made = [entry(number, name="n" * number, pattern=PREFIXED) for number in (1, 5, 40_000)]
    name = Asked("n" * 32_000)
    assert may(Op.READ, *made, name=name)
    assert name.slices == 2
    assert image(*made, *(RemoveAccessControlEntryRecord(id=one.id) for one in made)) == Image()


MANY = (
    ("green2", LITERAL, "User:*", Op.READ, ALLOW),
    ("green", PREFIXED, "User:bob", Op.READ, ALLOW),
    ("betamax4", LITERAL, "User:bob", Op.READ, ALLOW),
    ("beta", PREFIXED, "User:*", Op.READ, ALLOW),
    ("alpha", PREFIXED, "User:*", Op.READ, ALLOW),
    ("alp", PREFIXED, "User:bob", Op.READ, DENY),
)
OF_GROUPS = (
    ("*", LITERAL, "User:bob", Op.WRITE, ALLOW),
    ("wheel", LITERAL, "User:*", Op.WRITE, DENY),
)
EVERYTHING = (
    ("foo", LITERAL, "User:*", ALL_OPERATIONS, ALLOW),
    ("bar", PREFIXED, "User:alice", ALL_OPERATIONS, ALLOW),
    ("baz", LITERAL, "User:bob", ALL_OPERATIONS, ALLOW),
)
NOTHING = (
    ("foo", LITERAL, "User:alice", ALL_OPERATIONS, DENY),
    ("foo", PREFIXED, "User:alice", Op.READ, ALLOW),
    ("foo", LITERAL, "User:*", ALL_OPERATIONS, DENY),
    ("foo", PREFIXED, "User:*", Op.DESCRIBE, ALLOW),
)


def entries(rows, kind=Kind.TOPIC, first=1):
    for number, (name, pattern, principal, operation, permission) in enumerate(rows, first):
        yield entry(
            number,
            pattern=pattern,
            permission=permission,
            name=name,
            resource_type=kind,
            principal=principal,
            operation=operation,
        )


@kafka_scenario(
    "StandardAuthorizerTest",
    "denyPrecedenceWithOperationAll",
    "topicAclWithOperationAll",
    "authorizationWithManyAcls",
)
@pytest.mark.parametrize(
    ("rows", "user", "allowed", "denied"),
    [
        (MANY, "bob", [(Op.READ, "green1")], [(Op.READ, "alpha"), (Op.READ, "ala")]),
        (MANY, "alice", [(Op.READ, "alpha"), (Op.READ, "betamax")], [(Op.READ, "green1")]),
        (
            EVERYTHING,
            "alice",
            [(Op.WRITE, "foo"), (Op.DESCRIBE_CONFIGS, "bar")],
            [(Op.DESCRIBE, "baz")],
        ),
        (EVERYTHING, "bob", [(Op.WRITE, "foo"), (Op.DESCRIBE, "baz")], [(Op.READ, "bar")]),
        (EVERYTHING, "mallory", [(Op.DESCRIBE, "foo")], [(Op.WRITE, "bar"), (Op.READ, "baz")]),
        (
            NOTHING,
            "alice",
            [(Op.READ, "foobar")],
            [(Op.WRITE, "foo"), (Op.READ, "foo"), (Op.DESCRIBE, "foo")],
        ),
        (
            NOTHING,
            "bob",
            [(Op.DESCRIBE, "foobaz")],
            [(Op.DESCRIBE, "foo"), (Op.READ, "foo"), (Op.WRITE, "foo"), (Op.READ, "foobaz")],
        ),
    ],
)
def test_several_entries_decide_together(rows, user, allowed, denied):
    found = image(*entries(rows), *entries(OF_GROUPS, Kind.GROUP, 90))
    who = Requester(f"User:{user}", "h")

    def ask(operation, name, kind=Kind.TOPIC):
        return decide(found, NO_DEFAULT, who, operation, kind, name).is_allowed

    assert [each for each in allowed if not ask(*each)] == []
    assert [each for each in denied if ask(*each)] == []
    assert ask(Op.WRITE, "arbitrary", Kind.GROUP) == (user == "bob")
    assert not ask(Op.WRITE, "wheel", Kind.GROUP)


names = st.text("ab._-", min_size=1, max_size=8)


@kafka_scenario(
    "StandardAuthorizerPropertyTest",
    "matchingPrefixDenyOverridesAllAllowRules",
    "matchingLiteralDenyOverridesAllAllowRules",
    "matchingPrefixAllowWithNoMatchingDenyRules",
    "matchingLiteralAllowWithNoMatchingDenyRules",
)
@given(
    name=names,
    length=st.integers(0, 8) | st.none(),
    permission=st.sampled_from((ALLOW, DENY)),
    others=st.lists(names),
)
def test_one_that_denies_wins_over_any_that_allow_and_counts_only_where_it_fits(
    name, length, permission, others
):
    """An entry for the name or for a prefix of it, among prefixes of the other permission."""
    rest = DENY if permission == ALLOW else ALLOW
    fitting = name if length is None else name[:length]
    rows = [(fitting, LITERAL if length is None else PREFIXED, "User:*", Op.WRITE, permission)]
    rows += [
        (other, PREFIXED, "User:*", Op.WRITE, rest)
        for other in others
        if rest == ALLOW or not name.startswith(other)
    ]
    assert may(Op.WRITE, *entries(rows), name=name) == (permission == ALLOW)


@kafka_scenario("MetadataLoaderTest", "noPublishEmptyImage")
@kafka_scenario("StandardAuthorizerTest", "authorizationPriorToCompleteInitialLoad")
@pytest.mark.parametrize("has_level", [False, True])
def test_before_the_entries_are_known_only_super_users_may_ask(has_level):
    """CLUSTER_ACTION waits for the first record alone: without the controllers there is no leader."""
    config = AuthorizerConfig(super_users=frozenset({"User:admin"}))
    level = [FeatureLevelRecord(name="metadata.version", feature_level=30)] if has_level else []
    everything = entry(operation=ALL_OPERATIONS)
    peer = entry(2, resource_type=Kind.CLUSTER, name=CLUSTER_NAME, operation=ALL_OPERATIONS)
    found = image(*level, everything, peer)

    def ask(operation, has_caught_up, who=ALICE, kind=Kind.TOPIC, name="orders"):
        known = KnownEntries(found, has_caught_up)
        return decide_when_loaded(known, config, who, operation, kind, name)

    admin = Requester("User:admin", "h")
    assert ask(Op.READ, False, admin) == ask(Op.READ, True, admin) == (True, "SuperUser", None)
    assert ask(Op.READ, False) == (False, "NotReady", None)
    assert ask(Op.READ, True).is_allowed == has_level
    raft = Op.CLUSTER_ACTION, False, ALICE, Kind.CLUSTER, CLUSTER_NAME
    assert ask(*raft).is_allowed == has_level


@pytest.mark.parametrize(
    ("rows", "allow_without", "expected"),
    [
        ([], False, (False, "DefaultDeny")),
        ([], True, (True, "DefaultAllow")),
        ([ALLOW], False, (True, "MatchingAcl")),
        ([ALLOW, DENY], False, (False, "MatchingAcl")),
        ([DENY], True, (False, "MatchingAcl")),
        (None, True, (False, "NotReady")),
    ],
)
def test_before_anything_is_committed_the_entries_on_the_disk_elect(rows, allow_without, expected):
    """Controllers without super.users never elected again after a stop of all."""
    of_cluster = {"resource_type": Kind.CLUSTER, "name": CLUSTER_NAME, "operation": ALL_OPERATIONS}
    local = (
        None
        if rows is None
        else image(*(entry(n, permission=row, **of_cluster) for n, row in enumerate(rows, 1)))
    )

    def ask(operation, *committed):
        known = KnownEntries(image(*committed), False, local)
        config = AuthorizerConfig(allow_without_acls=allow_without)
        return decide_when_loaded(known, config, ALICE, operation, Kind.CLUSTER, CLUSTER_NAME)

    assert ask(Op.CLUSTER_ACTION)[:2] == expected
    assert ask(Op.ALTER)[:2] == (False, "NotReady"), "nothing but an election"
    level = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert ask(Op.CLUSTER_ACTION, level)[:2] == (
        expected if rows is not None else (allow_without, "DefaultAllow")
    ), "a snapshot says less than the whole disk"
