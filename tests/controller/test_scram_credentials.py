"""SCRAM credentials are set, removed and described."""

import pytest

from controller.cluster import Cluster
from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.result import ApiError
from quorate.controller.scram_credentials import ALTER_USER_SCRAM_CREDENTIALS, describe_scram
from quorate.metadata.image import ScramKey
from quorate.security.scram import parse_scram
from quorate.wire.messages import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
)

SHA_256, SHA_512 = 1, 2
TWICE = "A user credential cannot be altered twice in the same request"


def upsert(name="alice", mechanism=SHA_256, iterations=4096, salted_password=b"salted"):
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=b"salt",
        salted_password=salted_password,
    )


def delete(name="alice", mechanism=SHA_256):
    return AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(cluster, *items):
    """User -> (error, message)."""
    deletion = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    request = AlterUserScramCredentialsRequest(
        deletions=[item for item in items if isinstance(item, deletion)],
        upsertions=[item for item in items if not isinstance(item, deletion)],
    )
    results = cluster.decide(ALTER_USER_SCRAM_CREDENTIALS, request).results
    return {r.user: (ErrorCode(r.error_code), r.error_message) for r in results}


def test_the_keys_are_those_of_the_format_command():
    cluster = Cluster()
    assert alter(cluster, upsert()) == {"alice": (ErrorCode.NONE, None)}
    expected = parse_scram("SCRAM-SHA-256=[name=alice,salt=c2FsdA==,saltedpassword=c2FsdGVk]")
    found = cluster.image.scram[ScramKey(SHA_256, "alice")]
    assert (found.stored_key, found.server_key) == (expected.stored_key, expected.server_key)
    assert (found.salt, found.iterations) == (b"salt", 4096)


@pytest.mark.parametrize(("many", "error"), [(10_000, 0), (10_001, ErrorCode.POLICY_VIOLATION)])
def test_as_many_credentials_are_set_as_a_batch_holds(many, error):
    """One more would end the leadership of a Java controller."""
    cluster, users = Cluster(), [upsert(f"user{number}") for number in range(many)]
    if not error:
        assert set(alter(cluster, *users).values()) == {(ErrorCode.NONE, None)}
        return
    with pytest.raises(ApiError) as refused:
        alter(cluster, *users)
    assert refused.value.error == error and not cluster.image.scram


def test_a_credential_is_removed():
    cluster = Cluster()
    alter(cluster, upsert(), upsert("bob", SHA_512))
    assert alter(cluster, delete()) == {"alice": (ErrorCode.NONE, None)}
    assert set(cluster.image.scram) == {ScramKey(SHA_512, "bob")}


@pytest.mark.parametrize(
    ("item", "error", "text"),
    [
        (upsert(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsert(mechanism=3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsert(iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsert(iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            upsert(salted_password=b""),
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "Salted password must not be empty",
        ),
        (
            delete(),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_a_change_that_is_refused(item, error, text):
    cluster = Cluster()
    assert alter(cluster, item, upsert("other")) == {
        item.name: (error, text),
        "other": (ErrorCode.NONE, None),
    }
    assert set(cluster.image.scram) == {ScramKey(SHA_256, "other")}


def test_a_user_that_is_named_twice_is_refused_also_for_two_mechanisms():
    cluster = Cluster()
    found = alter(cluster, upsert(), upsert(mechanism=SHA_512), upsert("bob"), upsert("bob"))
    assert found == dict.fromkeys(("alice", "bob"), (ErrorCode.DUPLICATE_RESOURCE, TWICE))


def test_a_mistake_comes_before_the_second_mention_of_a_user():
    text = "Attempt to delete a user credential that does not exist"
    found = alter(Cluster(), delete("bob"), upsert("bob"))
    assert found == {"bob": (ErrorCode.RESOURCE_NOT_FOUND, text)}


def test_the_level_must_know_scram():
    text = "The current metadata.version does not support SCRAM"
    assert alter(Cluster(level=10), upsert()) == {"alice": (ErrorCode.UNSUPPORTED_VERSION, text)}


def describe(cluster, *names):
    users = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in names]
    request = DescribeUserScramCredentialsRequest(users=users or None)
    return {
        r.user: (r.error_code, [(i.mechanism, i.iterations) for i in r.credential_infos])
        for r in at_once(describe_scram(cluster.image, request)).results
    }


def test_users_are_described_without_secrets():
    cluster = Cluster()
    alter(cluster, upsert(), upsert("bob", SHA_512, 8192))
    alter(cluster, upsert(mechanism=SHA_512, iterations=5000))
    alice, bob = (0, [(SHA_256, 4096), (SHA_512, 5000)]), (0, [(SHA_512, 8192)])
    assert describe(cluster) == {"alice": alice, "bob": bob}
    assert describe(cluster, "bob", "carol", "alice", "alice") == {
        "bob": bob,
        "carol": (ErrorCode.RESOURCE_NOT_FOUND, []),
        "alice": (ErrorCode.DUPLICATE_RESOURCE, []),
    }
