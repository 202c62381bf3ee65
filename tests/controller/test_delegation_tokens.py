"""Delegation tokens are created, renewed, expired, described and swept."""

import hashlib
import hmac

import pytest

from controller.cluster import Cluster
from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.delegation_tokens import (
    CREATE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKENS,
    MAX_EXPIRATIONS,
    RENEW_DELEGATION_TOKEN,
    describe_tokens,
)
from quorate.controller.result import ApiError
from quorate.controller.token_config import TokenConfig, may_ask_for_tokens
from quorate.controller.token_secrets import TokenSecrets
from quorate.formats.records import DelegationTokenRecord
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import AuthorizerConfig, Requester
from quorate.wire.messages import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

SECRET = "a secret of the cluster"
TOKENS = TokenConfig(SECRET, max_lifetime_ms=10_000, expiry_time_ms=1_000)
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"
LONG_MAX = 2**63 - 1


def cluster(requester=ALICE, **options):
    made = Cluster(**{"tokens": TOKENS, **options})
    made.requester = Requester(requester, "10.0.0.1")
    return made


def create(made, *renewers, owner=None, lifetime_ms=-1):
    cls = CreateDelegationTokenRequest
    owner_type, _, owner_name = (owner or "").partition(":")
    request = cls(
        owner_principal_type=owner_type or None,
        owner_principal_name=owner_name or None,
        renewers=[
            cls.CreatableRenewers(principal_type=kind, principal_name=name)
            for kind, _, name in (each.partition(":") for each in renewers)
        ],
        max_lifetime_ms=lifetime_ms,
    )
    return made.decide(CREATE_DELEGATION_TOKEN, request)


def renew(made, secret, period_ms=-1, who=ALICE):
    made.requester = Requester(who, "10.0.0.1")
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period_ms)
    response = made.decide(RENEW_DELEGATION_TOKEN, request)
    return ErrorCode(response.error_code), response.expiry_timestamp_ms


def expire(made, secret, period_ms=-1, who=ALICE):
    made.requester = Requester(who, "10.0.0.1")
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period_ms)
    response = made.decide(EXPIRE_DELEGATION_TOKEN, request)
    return ErrorCode(response.error_code), response.expiry_timestamp_ms


def test_a_token_is_created_with_kafkas_hmac():
    made = cluster()
    response = create(made, BOB)
    assert response.error_code == 0
    expected = hmac.new(SECRET.encode(), response.token_id.encode(), hashlib.sha512).digest()
    assert response.hmac == expected
    assert response.issue_timestamp_ms == made.now_ms
    assert response.expiry_timestamp_ms == made.now_ms + 1_000
    assert response.max_timestamp_ms == made.now_ms + 10_000
    [(token_id, token)] = made.image.delegation_tokens.items()
    assert token_id == response.token_id
    assert (token.owner, token.requester, token.renewers) == (ALICE, ALICE, (BOB,))
    assert "hmac" not in repr(token) and SECRET not in repr(made.config)


def test_a_requested_lifetime_shortens_the_token():
    made = cluster()
    assert create(made, lifetime_ms=500).max_timestamp_ms == made.now_ms + 500
    assert create(made, lifetime_ms=500).expiry_timestamp_ms == made.now_ms + 500
    assert create(made, lifetime_ms=50_000).max_timestamp_ms == made.now_ms + 10_000


def test_times_do_not_overflow():
    made = cluster(tokens=TokenConfig(SECRET, LONG_MAX, LONG_MAX))
    response = create(made)
    assert response.max_timestamp_ms == response.expiry_timestamp_ms == LONG_MAX
    assert renew(made, response.hmac) == (ErrorCode.NONE, LONG_MAX)
    assert expire(made, response.hmac, LONG_MAX) == (ErrorCode.NONE, LONG_MAX)


def test_a_token_for_another_owner_needs_the_permission():
    made = cluster(authorizer=AuthorizerConfig(frozenset({BOB})))
    refused = create(made, owner=CAROL)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.principal_name, refused.token_requester_principal_name) == ("carol", "alice")
    assert refused.issue_timestamp_ms == -1
    assert create(made).error_code == 0, "for oneself it needs none"
    made.requester = Requester(BOB, "10.0.0.1")
    response = create(made, owner=CAROL)
    assert response.error_code == 0
    token = made.image.delegation_tokens[response.token_id]
    assert (token.owner, token.requester) == (CAROL, BOB)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tokens": TokenConfig()}, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        ({"level": 13}, ErrorCode.UNSUPPORTED_VERSION),
        ({}, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
    ],
)
def test_tokens_that_are_refused(options, error):
    made = cluster(**options)
    if error is not ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
        assert create(made).error_code == error
    assert renew(made, b"x") == (error, 0)
    assert expire(made, b"x") == (error, 0)
    assert not made.image.delegation_tokens


@pytest.mark.parametrize("letter", ["x", "\u20ac"])
@pytest.mark.parametrize("of", ["owner", "renewer", "requester"])
def test_principals_that_fit_no_record_are_refused(of, letter):
    name = letter * ((32_767 - len("User:")) // len(letter.encode()))

    def ask(principal):
        made = cluster(principal if of == "requester" else ALICE)
        renewers = [BOB, principal] if of == "renewer" else []
        return made, create(made, *renewers, owner=principal if of == "owner" else None)

    made, response = ask(f"User:{name}")
    assert response.error_code == 0 and len(made.image.delegation_tokens) == 1
    with pytest.raises(ApiError, match="bytes of UTF-8, at most 32767 are possible") as refused:
        ask(f"User:{name}{letter}")
    assert refused.value.error is ErrorCode.INVALID_REQUEST


def test_an_owner_needs_a_type():
    request = CreateDelegationTokenRequest(owner_principal_type=None, owner_principal_name="bob")
    with pytest.raises(ApiError) as refused:
        cluster().decide(CREATE_DELEGATION_TOKEN, request)
    assert refused.value.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_owner_keeps_its_type_and_its_name_in_a_refusal():
    cls = CreateDelegationTokenRequest
    half = "x" * 20_000
    request = cls(owner_principal_type=f"a:{half}", owner_principal_name=half)
    response = cluster(authorizer=AuthorizerConfig()).decide(CREATE_DELEGATION_TOKEN, request)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (response.principal_type, response.principal_name) == (f"a:{half}", half)


def test_renewers_are_users():
    made = cluster()
    assert create(made, "Group:admins").error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_a_connection_without_authentication_gets_no_token():
    made = cluster()
    secret = create(made).hmac
    made.may_use_tokens = False
    error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert create(made).error_code == error
    assert renew(made, secret) == (error, -1)
    assert expire(made, secret) == (error, -1)


@pytest.mark.parametrize(
    ("principal", "by_token", "forwarded", "protocol", "allowed"),
    [
        (ALICE, False, False, "SASL_SSL", True),
        (ALICE, False, False, "SASL_PLAINTEXT", True),
        (ALICE, False, False, "SSL", True),
        (ALICE, False, False, "PLAINTEXT", False),
        ("User:ANONYMOUS", False, False, "SSL", False),
        (ALICE, False, True, "PLAINTEXT", True),
        ("User:ANONYMOUS", False, True, "PLAINTEXT", True),
        (ALICE, True, True, "PLAINTEXT", False),
        (ALICE, True, False, "SASL_SSL", False),
    ],
)
def test_who_may_ask_for_tokens(principal, by_token, forwarded, protocol, allowed):
    found = may_ask_for_tokens(
        principal, token_authenticated=by_token, is_forwarded=forwarded, protocol=protocol
    )
    assert found is allowed


def test_owners_and_renewers_renew():
    made = cluster()
    secret = create(made, BOB).hmac
    made.now_ms += 900
    assert renew(made, secret, who=BOB) == (ErrorCode.NONE, made.now_ms + 1_000)
    assert renew(made, secret, 300) == (ErrorCode.NONE, made.now_ms + 300)
    assert renew(made, secret, who=CAROL) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    made.now_ms += 301
    assert renew(made, secret) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert renew(made, secret, who=CAROL) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)


def test_a_renewal_ends_with_the_lifetime():
    made = cluster()
    secret = create(made, lifetime_ms=1_200).hmac
    made.now_ms += 600
    assert renew(made, secret) == (ErrorCode.NONE, made.now_ms + 600)


def test_a_token_is_expired_later_or_now():
    made = cluster()
    secret = create(made, BOB).hmac
    assert expire(made, secret, 200, CAROL) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(made, secret, 200, BOB) == (ErrorCode.NONE, made.now_ms + 200)
    made.now_ms += 201
    assert expire(made, secret, 200) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, 0)
    assert expire(made, secret, -1) == (ErrorCode.NONE, made.now_ms)
    assert not made.image.delegation_tokens


def test_expired_tokens_are_swept_in_bounded_writes():
    made = cluster()
    kept = create(made).token_id
    made.write(
        [
            DelegationTokenRecord(
                owner=BOB, requester=BOB, expiration_timestamp=5, max_timestamp=5, token_id=f"t{n}"
            )
            for n in range(MAX_EXPIRATIONS + 1)
        ]
    )
    assert made.decide(EXPIRE_DELEGATION_TOKENS, None) is True
    assert len(made.image.delegation_tokens) == 2
    assert made.decide(EXPIRE_DELEGATION_TOKENS, None) is False
    assert set(made.image.delegation_tokens) == {kept}


def described_by(made, request, who, may=lambda *asked: False):
    return describe_tokens(made.image, request, TOKENS, made.head.token_secrets, who, may)


def test_the_requester_of_a_token_of_another_owner_may_describe_it_and_no_more():
    made = cluster()
    made.write(
        [DelegationTokenRecord(owner=BOB, requester=ALICE, max_timestamp=LONG_MAX, token_id="t")]
    )

    def described(who, owners):
        request = DescribeDelegationTokenRequest(owners=owners)
        return at_once(described_by(made, request, who)).tokens

    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    alice = owner(principal_type="User", principal_name="alice")
    for who in (ALICE, BOB):
        for owners in (None, [alice]):
            [token] = described(who, owners)
            assert token.token_id == "t"
    assert described(CAROL, [alice]) == []
    mismatch = (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    made.write(
        [
            DelegationTokenRecord(
                owner=BOB,
                requester=ALICE,
                max_timestamp=LONG_MAX,
                expiration_timestamp=LONG_MAX,
                token_id="t",
            )
        ]
    )
    assert renew(made, token.hmac) == expire(made, token.hmac) == mismatch


def test_tokens_are_described_to_those_who_may():
    made = cluster()
    own, secret = (lambda found: (found.token_id, found.hmac))(create(made, BOB))
    made.requester = Requester(CAROL, "10.0.0.1")
    other = create(made).token_id

    def described(who, owners=None, allowed=()):
        cls = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [cls(principal_type="User", principal_name=o.partition(":")[2]) for o in owners]
        )
        return at_once(described_by(made, request, who, lambda *asked: asked in allowed)).tokens

    [token] = described(BOB)
    assert (token.token_id, token.hmac) == (own, secret)
    assert (token.principal_name, token.renewers[0].principal_name) == ("alice", "bob")
    assert described(BOB, [CAROL]) == []
    assert described(BOB, []) == []
    by_token = (AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, other)
    by_owner = (AclOperation.DESCRIBE_TOKENS, AclResource.USER, CAROL)
    for permission in (by_token, by_owner):
        assert {t.token_id for t in described(BOB, None, [permission])} == {own, other}
    request = DescribeDelegationTokenRequest()
    response = at_once(
        describe_tokens(
            made.image, request, TokenConfig(), TokenSecrets(), BOB, lambda *asked: True
        )
    )
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
