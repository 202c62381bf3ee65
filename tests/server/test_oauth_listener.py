"""OAUTHBEARER from the properties file to the answer of a listener."""

import asyncio
import json

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from narrow import as_any, not_none
from quorate.config.node_file import config_of
from quorate.config.settings import Settings
from quorate.config.unsupported import check_servable
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.oauthbearer import OAuthBearerClient
from quorate.server.authentication import ListenerSecurity
from quorate.server.jwks import JwksKeys
from quorate.server.sasl import SaslListeners
from quorate.wire.header import decode_response, encode_request

NOW_S = 2_000_000_000
P = "listener.name.controller."
KEY = ECKey.generate_key("P-256", {"kid": "1"})
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


@pytest.fixture
def answer_of(tmp_path, monkeypatch):
    """Logs in at the listener with a token of the claims: True, or the reason of the refusal."""
    monkeypatch.setattr("time.time", lambda: NOW_S)
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))

    async def log_in(keys, claims):
        values = {
            "node.id": "1",
            "process.roles": "controller",
            "listeners": "CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@localhost:9093",
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            f"{P}oauthbearer.sasl.jaas.config": MODULE,
            f"{P}sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
            **keys,
        }
        config = config_of(Settings(values, {}))
        check_servable(config)
        token = jwt.encode({"alg": "ES256", "kid": "1"}, claims, KEY)
        listeners = SaslListeners(config, as_any(None), as_any(None), lambda: (0, NOW_S * 1000))
        try:
            return await exchange(listeners, SaslClient(OAuthBearerClient(lambda: token)))
        finally:
            listeners.close()

    return lambda keys, claims: asyncio.run(log_in(keys, claims))


async def exchange(listeners, client):
    security = listeners.secured("CONTROLLER", ListenerSecurity())
    server = not_none(security.authenticator)(as_any(None))
    message = client.start()
    while message is not None:
        version = 1 if type(message).__name__ == "SaslHandshakeRequest" else 2
        ended = asyncio.get_running_loop().create_future()
        server.on_frame(
            encode_request(message, version, 7, "client")[4:],
            ended.set_result,
            lambda principal: None,
            lambda why, frame, delay_s, ended=ended: ended.set_result(why),
        )
        answer = await ended
        if isinstance(answer, str):
            return answer
        key = type(message).schema.key
        message = client.take(decode_response(answer[4:], key, version)[1])
    return True


GOOD = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S}
AUDIENCE, ISSUER = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"


@pytest.mark.parametrize("form", ["", P, f"{P}oauthbearer."])
@pytest.mark.parametrize(
    ("key", "value", "right", "wrong"),
    [
        (AUDIENCE, "quorum", {"aud": "quorum"}, {"aud": "other"}),
        (ISSUER, "https://idp", {"iss": "https://idp"}, {"iss": "https://other"}),
        ("sasl.oauthbearer.sub.claim.name", "who", {"who": "bob"}, {}),
        (
            "sasl.oauthbearer.clock.skew.seconds",
            "90",
            {"nbf": NOW_S + 80, "exp": NOW_S + 99},
            {"nbf": NOW_S + 99, "exp": NOW_S + 99},
        ),
        ("sasl.oauthbearer.scope.claim.name", "s", {"scope": "", "s": "a"}, {"s": ""}),
    ],
)
def test_a_rule_of_tokens_holds_in_every_form_of_its_key(answer_of, form, key, value, right, wrong):
    assert answer_of({form + key: value}, {**GOOD, **right}) is True
    assert "the token of OAUTHBEARER was refused: " in answer_of(
        {form + key: value}, {**GOOD, **wrong}
    )


def test_without_rules_a_token_needs_its_times_and_no_audience(answer_of):
    assert answer_of({}, GOOD) is True
    without = {key: value for key, value in GOOD.items() if key != "iat"}
    assert "has no claim iat" in answer_of({}, without)
    assert "expected.audience is not set" in answer_of({}, {**GOOD, "aud": "x"})


def test_listeners_with_the_same_keys_share_one_fetch(tmp_path, monkeypatch):
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
    other = tmp_path / "other.json"
    other.write_bytes(jwks.read_bytes())
    url = "sasl.oauthbearer.jwks.endpoint.url"
    made: list[str] = []

    def fetch(url, times):
        made.append(url)
        return JwksKeys(url, times)

    monkeypatch.setattr("quorate.server.sasl.JwksKeys", fetch)
    names = ("A", "B", "C")
    config = config_of(
        Settings(
            {
                "node.id": "1",
                "process.roles": "controller",
                "listeners": ",".join(f"{n}://localhost:909{i}" for i, n in enumerate(names)),
                "controller.listener.names": ",".join(names),
                "controller.quorum.voters": "1@localhost:9090",
                "listener.security.protocol.map": ",".join(f"{n}:SASL_PLAINTEXT" for n in names),
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.mechanism.controller.protocol": "OAUTHBEARER",
                **{
                    f"listener.name.{n.lower()}.oauthbearer.sasl.jaas.config": MODULE for n in names
                },
                url: jwks.as_uri(),
                f"listener.name.c.{url}": other.as_uri(),
            },
            {},
        )
    )
    SaslListeners(config, as_any(None), as_any(None), lambda: (0, 0)).close()
    assert made == [jwks.as_uri(), other.as_uri()]
