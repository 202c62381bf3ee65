"""The exchange of both sides, state by state."""

import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode

import pytest
import scramp
from hypothesis import given
from hypothesis import strategies as st

from narrow import not_none
from quorate.metadata.image import ScramCredential
from quorate.security.jaas import JaasError, JaasText
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.mechanism import SaslError
from quorate.security.sasl.oauthbearer import (
    OAuthBearerClient,
    OAuthBearerServer,
    signed_validator,
    unsecured_rules,
    unsecured_validator,
)
from quorate.security.sasl.plain import PlainClient, PlainServer
from quorate.security.sasl.scram import ScramClient, ScramServer, TokenCredential
from quorate.security.sasl.server import SaslAnswer, SaslServer, SaslServerConfig
from quorate.security.sasl.token_claims import TokenRules, check_claims
from quorate.security.scram_keys import MECHANISMS
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

VERSIONS = ApiVersionsRequest(client_software_name="quorate", client_software_version="1")
SALT = b"0123456789abcdef"


def credential(mechanism, password):
    import hashlib
    import hmac

    name = mechanism.hash
    salted = hashlib.pbkdf2_hmac(name, password.encode(), SALT, 4096)
    client_key = hmac.digest(salted, b"Client Key", name)
    return ScramCredential(
        SALT, hashlib.new(name, client_key).digest(), hmac.digest(salted, b"Server Key", name), 4096
    )


def lookup(mechanism, user):
    return credential(mechanism, "pw-of-alice") if user == "alice" else None


def token_lookup(mechanism, token_id):
    if token_id != "token1":
        return None
    return TokenCredential(credential(mechanism, "hmac"), "owner", 5_000_000)


class Harness:
    """A server, and a client that sends it requests."""

    def __init__(self, max_reauth_ms=0, **mechanisms):
        made = {
            "PLAIN": lambda: PlainServer({"user_alice": "pw-of-alice", "user_bob": "pw-of-bob"}),
            "SCRAM-SHA-512": lambda: ScramServer("SCRAM-SHA-512", lookup, token_lookup),
            **mechanisms,
        }
        self.server = SaslServer(
            SaslServerConfig(
                made, dict.fromkeys(made, max_reauth_ms), lambda request: ApiVersionsResponse()
            )
        )
        self.now = 1_000

    def send(self, message, version):
        frame = encode_request(message, version, 7, "client")[4:]
        return self.raw(frame)

    def raw(self, frame):
        step = self.server.take(frame, self.now)
        if isinstance(step, SaslAnswer):
            return step
        outcome: bytes | SaslError
        try:
            outcome = step.run()
        except SaslError as error:
            outcome = error
        return self.server.evaluated(outcome, self.now, self.now)

    def handshake(self, mechanism, version=1):
        return self.send(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, data, version=2):
        return self.send(SaslAuthenticateRequest(auth_bytes=data), version)

    def log_in(self, client):
        """Both machines against each other; the last answer."""
        message = client.start()
        while message is not None:
            version = 1 if isinstance(message, SaslHandshakeRequest) else 2
            key = type(message).schema.key
            answer = self.send(message, version)
            _, response = decode_response(answer.frame[4:], key, version)
            message = client.take(response)
        return answer


def response_of(answer, key=36, version=2):
    return decode_response(answer.frame[4:], key, version)[1]


def plain(user="alice", password="pw-of-alice"):
    return SaslClient(PlainClient(user, password))


@pytest.mark.parametrize("version", [0, 3])
def test_api_versions_then_a_login(version):
    harness = Harness()
    answer = harness.send(VERSIONS, version)
    assert answer.failure is None
    assert harness.log_in(plain()).is_authenticated
    assert harness.server.principal == "User:alice"


def test_scram():
    harness = Harness()
    client = SaslClient(ScramClient("SCRAM-SHA-512", "alice", "pw-of-alice"))
    assert harness.log_in(client).is_authenticated
    assert harness.server.principal == "User:alice"


def test_a_delegation_token_logs_its_owner_in():
    harness = Harness()
    client = SaslClient(ScramClient("SCRAM-SHA-512", "token1", "hmac", token=True))
    answer = harness.log_in(client)
    assert answer.is_authenticated
    assert harness.server.principal == "User:owner"
    assert harness.server.by_token
    assert harness.server.expires_at_ms == 5_000_000
    assert client.lifetime_ms == 5_000_000 - harness.now


@pytest.mark.parametrize(
    "client",
    [
        plain(password="wrong-secret"),
        plain(user="nobody"),
        SaslClient(ScramClient("SCRAM-SHA-512", "alice", "wrong-secret")),
        SaslClient(ScramClient("SCRAM-SHA-512", "nobody", "wrong-secret")),
        SaslClient(ScramClient("SCRAM-SHA-512", "token2", "wrong-secret", token=True)),
    ],
)
def test_a_wrong_credential_is_refused_with_the_text_of_kafka(client):
    harness = Harness()
    with pytest.raises(SaslError, match="SASL_AUTHENTICATION_FAILED") as error:
        harness.log_in(client)
    assert not harness.server.is_complete
    assert "wrong-secret" not in str(error.value)
    assert (
        "Authentication failed: Invalid username or password" in str(error.value)
        or "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512"
        in str(error.value)
    )


def test_an_unknown_user_and_a_wrong_password_get_the_same_answer():
    """SCRAM refuses an unknown user one message earlier, as Kafka does: docs/security.md says so."""
    for make in (
        lambda user: PlainClient(user, "x"),
        lambda user: ScramClient("SCRAM-SHA-512", user, "x"),
    ):
        texts = []
        for user in ("alice", "nobody"):
            with pytest.raises(SaslError) as error:
                Harness().log_in(SaslClient(make(user)))
            texts.append(str(error.value))
        assert texts[0] == texts[1]


def test_a_mechanism_that_is_not_enabled():
    harness = Harness()
    with pytest.raises(SaslError, match="it offers PLAIN, SCRAM-SHA-512"):
        harness.log_in(SaslClient(ScramClient("SCRAM-SHA-256", "alice", "x")))
    refused = Harness().handshake("GSSAPI")
    assert response_of(refused, 17, 1).error_code == 33
    assert refused.failure is not None


def test_raw_tokens_follow_version_0_of_the_handshake():
    harness = Harness()
    assert harness.handshake("PLAIN", 0).failure is None
    answer = harness.raw(b"\0alice\0pw-of-alice")
    assert answer == SaslAnswer(b"\0\0\0\0", is_authenticated=True)
    refused = Harness()
    refused.handshake("PLAIN", 0)
    answer = refused.raw(b"\0alice\0wrong")
    assert answer.frame == b""
    assert answer.failure is not None


def test_another_request_during_the_tokens_is_an_illegal_state():
    harness = Harness()
    harness.handshake("PLAIN")
    answer = harness.send(VERSIONS, 3)
    assert response_of(answer, 18, 3).error_code == 34
    assert (
        answer.failure == "Unexpected Kafka request of type ApiVersions during SASL authentication."
    )


def test_a_request_before_the_handshake_closes():
    answer = Harness().send(MetadataRequest(), 9)
    assert answer.frame == b""
    assert "Unexpected Kafka request of type Metadata during SASL handshake" in answer.failure


def test_api_versions_twice_closes():
    harness = Harness()
    harness.send(VERSIONS, 3)
    assert harness.send(VERSIONS, 3).failure is not None


def test_the_session_has_a_lifetime_and_is_renewed():
    harness = Harness(max_reauth_ms=60_000)
    client = plain()
    harness.log_in(client)
    assert client.lifetime_ms == 60_000
    assert harness.server.expires_at_ms == 61_000
    harness.now = 50_000
    frame = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7, None)[4:]
    assert harness.server.begins_again(frame, harness.now)
    assert harness.log_in(plain()).is_authenticated
    assert harness.server.expires_at_ms == 110_000


def test_a_session_is_renewed_once_a_second_at_most():
    harness = Harness(max_reauth_ms=60_000)
    harness.log_in(plain())
    frame = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7, None)[4:]
    assert harness.server.begins_again(frame, harness.now)  # the first one at any time
    harness.log_in(plain())
    for later, begins in ((0, False), (999, False), (1_000, True)):
        assert harness.server.begins_again(frame, 1_000 + later) is begins
    harness.now = 2_000
    harness.log_in(plain())
    assert not harness.server.begins_again(frame, 2_999)


def test_a_session_without_a_limit_does_not_begin_again():
    harness = Harness()
    harness.log_in(plain())
    frame = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 7, None)[4:]
    assert not harness.server.begins_again(frame, harness.now)


def test_a_renewal_keeps_the_principal():
    harness = Harness(max_reauth_ms=60_000)
    harness.log_in(plain())
    with pytest.raises(SaslError, match="Cannot change principals during re-authentication"):
        harness.log_in(plain("bob", "pw-of-bob"))
    assert not harness.server.is_complete


def test_a_renewal_keeps_the_mechanism():
    harness = Harness(max_reauth_ms=60_000)
    harness.log_in(plain())
    assert harness.handshake("SCRAM-SHA-512").failure is None
    answer = harness.token(b"n,,n=alice,r=abc")
    assert "is not supported for re-authentication of mechanism 'PLAIN'" in answer.failure


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"alice", "expected 3 tokens, got 1"),
        (b"\0\0x", "username not specified"),
        (b"\0alice\0", "password not specified"),
        (b"bob\0alice\0pw-of-alice", "authorization id that is different from username"),
        (b"\0x\xff\0y", "Invalid username or password"),
    ],
)
def test_plain_refuses(token, text):
    harness = Harness()
    harness.handshake("PLAIN")
    assert text in response_of(harness.token(token)).error_message


def test_the_example_of_rfc_7677(monkeypatch):
    """RFC 7677, section 3: SCRAM-SHA-256 of user `user`, password `pencil`."""
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "rOprNGfwEbeRWgbNEkqO")
    client = ScramClient("SCRAM-SHA-256", "user", "pencil")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = client.evaluate(
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client.evaluate(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_the_messages_agree_with_scramp():
    stored = scramp.ScramMechanism("SCRAM-SHA-512").make_auth_info("pw", salt=SALT)
    salt, stored_key, server_key, iterations = stored
    server = scramp.ScramMechanism("SCRAM-SHA-512").make_server(lambda user: stored)
    client = ScramClient("SCRAM-SHA-512", "user", "pw")
    server.set_client_first(client.first().decode())
    server.set_client_final(not_none(client.evaluate(server.get_server_first().encode())).decode())
    assert client.evaluate(server.get_server_final().encode()) is None
    kept = ScramCredential(salt, stored_key, server_key, iterations)
    ours = ScramServer("SCRAM-SHA-512", lambda mechanism, user: kept, token_lookup)
    theirs = scramp.ScramClient(["SCRAM-SHA-512"], "user", "pw")
    theirs.set_server_first(ours.evaluate(theirs.get_client_first().encode()).decode())
    theirs.set_server_final(ours.evaluate(theirs.get_client_final().encode()).decode())
    assert ours.principal == "user"


@pytest.mark.parametrize(
    "challenge",
    [
        b"r=other,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4096",
        b"r=nonce,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4096",
        b"r=nonceX,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=4095",
        b"r=nonceX,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=999999999",
        b"e=other-error",
        b"\xff",
    ],
)
def test_a_scram_client_refuses_a_false_server(challenge, monkeypatch):
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "nonce")
    client = ScramClient("SCRAM-SHA-256", "user", "pencil")
    client.first()
    with pytest.raises(SaslError):
        client.evaluate(challenge)


def test_a_scram_client_refuses_a_server_without_the_credential():
    server = ScramServer("SCRAM-SHA-256", lookup, token_lookup)
    client = ScramClient("SCRAM-SHA-256", "alice", "pw-of-alice")
    final = server.evaluate(not_none(client.evaluate(server.evaluate(client.first()))))
    signature = bytearray(b64decode(final[2:]))
    fresh = ScramServer("SCRAM-SHA-256", lookup, token_lookup)
    client = ScramClient("SCRAM-SHA-256", "alice", "pw-of-alice")
    client.evaluate(fresh.evaluate(client.first()))
    with pytest.raises(SaslError, match="Invalid server signature"):
        client.evaluate(b"v=" + b64encode(signature))


def test_the_names_of_both_mechanisms_are_known():
    assert set(MECHANISMS) == {"SCRAM-SHA-256", "SCRAM-SHA-512"}


# -- tokens of OAUTHBEARER ---------------------------------------------------------------------
def claims(**changed):
    now = int(time.time())
    found = {"sub": "alice", "exp": now + 60, "iat": now, "iss": "us", "aud": ["kafka"]}
    return {key: value for key, value in {**found, **changed}.items() if value is not None}


RULES = TokenRules(("kafka",), "us")


def test_a_signed_token():
    from joserfc import jwt
    from joserfc.jwk import KeySet, RSAKey

    key, other = (RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2))
    public = KeySet.import_key_set({"keys": [key.as_dict(private=False)]})
    validate = signed_validator(lambda kid: public, RULES)
    good = jwt.encode({"alg": "RS256", "kid": "1"}, claims(), key)
    assert validate(good).principal == "alice"
    forged = jwt.encode({"alg": "RS256", "kid": "1"}, claims(), other)
    unsigned = unsigned_token(claims())
    for bad in (forged, unsigned, good[:-4], "x", "a.b.c", ""):
        with pytest.raises(SaslError):
            validate(bad)
    harness = Harness(OAUTHBEARER=lambda: OAuthBearerServer(validate))
    assert harness.log_in(SaslClient(OAuthBearerClient(lambda: good))).is_authenticated
    assert harness.server.expires_at_ms is not None
    with pytest.raises(SaslError, match="invalid_token"):
        refused = Harness(OAUTHBEARER=lambda: OAuthBearerServer(validate))
        refused.log_in(SaslClient(OAuthBearerClient(lambda: forged)))


def unsigned_token(payload):
    parts = ({"alg": "none"}, payload)
    encoded = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return f"{'.'.join(encoded)}."


def test_an_unsecured_token():
    validate = unsecured_validator(RULES)
    assert validate(unsigned_token(claims())).principal == "alice"
    for bad in ("x", "a.b.", unsigned_token(claims()) + "c2ln"):
        with pytest.raises(SaslError):
            validate(bad)


NO_TIMES = (1e300, 10**19, 10**400, float("inf"), float("-inf"), float("nan"), -1, True, "5")


@pytest.mark.parametrize(
    "wrong",
    [
        {"sub": None},
        {"sub": " "},
        {"exp": None},
        {"exp": 5},
        {"exp": True},
        {"nbf": 9e9},
        {"iat": 9e9},
        {"iat": None},
        {"iat": "soon"},
        {"iat": -1},
        {"iat": int(time.time()) + 29, "exp": int(time.time()) + 9},
        {"nbf": int(time.time()) + 29, "exp": int(time.time()) + 9},
        {"nbf": "soon"},
        *({name: value} for name in ("exp", "iat", "nbf") for value in NO_TIMES),
        {"sub": "a\ud800"},
        {"sub": 5},
        {"scope": ""},
        {"scope": ["a", "a "]},
        {"scope": [5]},
        {"iss": 5},
        {"jti": 5},
        {"aud": []},
        {"aud": ["kafka", 5]},
        {"iss": "them"},
        {"aud": "other"},
        {"aud": None},
    ],
)
def test_claims_that_are_refused(wrong):
    with pytest.raises(SaslError):
        check_claims(claims(**wrong), RULES)


@pytest.mark.parametrize("audience", ["kafka", ["kafka"], []])
def test_an_audience_that_nobody_expects_is_refused(audience):
    """jose4j's `AudValidator`, which `BrokerJwtValidator` leaves on."""
    with pytest.raises(SaslError, match=r"expected\.audience is not set"):
        check_claims(claims(aud=audience), TokenRules())
    assert check_claims(claims(aud=None), TokenRules()).principal == "alice"


@pytest.mark.parametrize(
    "payload",
    [
        *(
            f'{{"sub":"alice","exp":{value},"iat":1}}'
            for value in ("1e300", "Infinity", "1" * 5000)
        ),
        '{"sub":"a\\ud800","exp":9999999999,"iat":1}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "[]",
        "",
    ],
    ids=lambda text: text[:30],
)
def test_a_token_with_an_odd_payload_is_only_refused(payload):
    from joserfc import jws
    from joserfc.jwk import ECKey, KeySet

    key = ECKey.generate_key("P-256", {"kid": "1"})
    public = KeySet.import_key_set({"keys": [key.as_dict(private=False)]})
    signed = jws.serialize_compact({"alg": "ES256", "kid": "1"}, payload.encode(), key)
    with pytest.raises(SaslError):
        signed_validator(lambda kid: public, TokenRules())(signed)
    part = urlsafe_b64encode(payload.encode()).decode().rstrip("=")
    none = urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for token in (f"{none}.{part}.", f"{part}.{none}.", f"{part}.{none}.x"):
        for validate in (
            unsecured_validator(TokenRules()),
            signed_validator(lambda kid: public, TokenRules()),
        ):
            with pytest.raises(SaslError):
                validate(token)


def test_the_log_says_why_a_token_was_refused_and_the_client_reads_its_status_only():
    harness = Harness(OAUTHBEARER=lambda: OAuthBearerServer(unsecured_validator(TokenRules())))
    harness.handshake("OAUTHBEARER")
    expired = unsigned_token(claims(exp=5))
    answer = harness.token(f"n,,\x01auth=Bearer {expired}\x01\x01".encode())
    assert bytes(response_of(answer).auth_bytes) == b'{"status":"invalid_token"}'
    answer = harness.token(b"\x01")
    assert answer.failure == "the token of OAUTHBEARER was refused: the token has expired"
    assert response_of(answer).error_message == '{"status":"invalid_token"}'


# -- options of the unsecured validator ----------------------------------------------------------
PLACE = JaasText("a.key", "", "file, line 3")


def unsecured(**options):
    named = {f"unsecuredValidator{name}": value for name, value in options.items()}
    return unsecured_validator(unsecured_rules(PLACE, named, TokenRules(subject_claim="x")))


def test_the_options_of_the_unsecured_validator():
    """`OAuthBearerUnsecuredValidatorCallbackHandler`: its claims are those of the options."""
    now = time.time()
    token = unsigned_token({"sub": "alice", "who": "bob", "exp": now + 60, "aud": "x", "s": "a b"})
    assert unsecured()(token).principal == "alice"
    assert unsecured(PrincipalClaimName="who")(token).principal == "bob"
    assert unsecured(RequiredScope="b a", ScopeClaimName="s")(token).principal == "alice"
    for refused in (unsecured(RequiredScope="a"), unsecured(RequiredScope="c", ScopeClaimName="s")):
        with pytest.raises(SaslError, match="does not have the scope"):
            refused(token)
    listed = unsigned_token({"sub": "alice", "exp": now + 60, "scope": ["a", "b"]})
    assert unsecured(RequiredScope="b")(listed).principal == "alice"
    old = unsigned_token({"sub": "alice", "exp": now - 5})
    assert unsecured(AllowableClockSkewMs="30000")(old).principal == "alice"
    with pytest.raises(SaslError, match="expired"):
        unsecured()(old)


@pytest.mark.parametrize(
    "options", [{"AllowableClockSkewMs": "-1"}, {"AllowableClockSkewMs": "x"}, {"Other": "x"}]
)
def test_an_option_of_the_unsecured_validator_that_cannot_be_used_is_named(options):
    with pytest.raises(
        JaasError, match=f"the option unsecuredValidator{next(iter(options))} .*line 3"
    ):
        unsecured(**options)


# -- anything before the login -------------------------------------------------------------------
@given(
    st.lists(st.binary(max_size=64), max_size=6), st.sampled_from(["", "PLAIN", "SCRAM-SHA-512"])
)
def test_any_bytes_only_fail(frames, mechanism):
    harness = Harness()
    if mechanism:
        harness.handshake(mechanism)
    for frame in frames:
        answer = harness.raw(frame)
        assert not answer.is_authenticated
        if answer.failure is not None:
            break


@given(st.binary(max_size=200), st.sampled_from(["PLAIN", "SCRAM-SHA-512"]))
def test_any_token_is_only_refused(token, mechanism):
    harness = Harness()
    harness.handshake(mechanism)
    answer = harness.token(token)
    assert not answer.is_authenticated
