"""SCRAM credentials that are refused before they are sent, and secrets that no text shows."""

import pytest

from client.fake_node import FakeNode
from client.test_admin import cluster
from quorate.base.errors import ErrorCode
from quorate.client import Admin
from quorate.client.admin.security import (
    DelegationTokenInfo,
    Principal,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from quorate.wire.messages import AlterUserScramCredentialsResponse

SHA256 = ScramMechanism.SCRAM_SHA_256
EMPTY_NAME, EMPTY_PASSWORD = "Username must not be empty", "Password must not be empty"


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ([ScramUpsertion("u", SHA256, 4096, b"")], {"u": EMPTY_PASSWORD}),
        ([ScramUpsertion("", SHA256, 4096, b"p")], {"": EMPTY_NAME}),
        ([ScramDeletion("", SHA256)], {"": EMPTY_NAME}),
        # No other change of that user is sent either.
        (
            [ScramDeletion("u", SHA256), ScramUpsertion("u", SHA256, 4096, b"")],
            {"u": EMPTY_PASSWORD},
        ),
    ],
)
def test_empty_names_and_passwords_are_refused_before_they_are_sent(changes, reasons):
    result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    answer = AlterUserScramCredentialsResponse(results=[result(user="good")])
    good = ScramUpsertion("good", SHA256, 4096, b"p")
    with FakeNode({"AlterUserScramCredentialsRequest": [answer]}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        with Admin.open(bootstrap_controllers=str(node.address)) as admin:
            alone = admin.alter_user_scram_credentials(changes)
            assert node.asked("AlterUserScramCredentialsRequest") == []
            found = admin.alter_user_scram_credentials([*changes, good])
        [request] = node.asked("AlterUserScramCredentialsRequest")
    assert {user: error and error.reason for user, error in alone.items()} == reasons
    assert {error and error.code for error in alone.values()} == {ErrorCode.UNACCEPTABLE_CREDENTIAL}
    assert {user: error and error.reason for user, error in found.items()} == reasons | {
        "good": None
    }
    assert ([each.name for each in request.upsertions], request.deletions) == (["good"], [])


def test_no_text_of_a_result_shows_its_secret():
    user = Principal("User", "a")
    token = DelegationTokenInfo("id", user, user, (user,), 1, 2, 3, b"hidden")
    credential = ScramUpsertion("a", SHA256, 4096, b"hidden")
    for value, secret in ((token, "hmac"), (credential, "password")):
        for text in (repr(value), str(value), f"{[value]}"):
            assert "hidden" not in text and f"{secret}=[*******]" in text
    assert "token_id='id'" in repr(token) and "iterations=4096" in repr(credential)
