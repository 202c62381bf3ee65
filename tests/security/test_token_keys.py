"""Which keys of a JWKS are used, and which tokens they check: as jose4j does for Kafka."""

import json
import warnings
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from narrow import as_any
from quorate.security.sasl.mechanism import SaslError
from quorate.security.sasl.token_keys import ALGORITHMS, read_keys, signed_payload

RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
EC384 = ECKey.generate_key("P-384", {"kid": "ec384"})
ED = OKPKey.generate_key("Ed25519", {"kid": "ed"})
ED448 = OKPKey.generate_key("Ed448", {"kid": "ed448"})


def public(key, **changed):
    found = {**key.as_dict(private=False), **changed}
    return {name: value for name, value in found.items() if value is not None}


def encoded(part):
    return urlsafe_b64encode(part).rstrip(b"=")


def token(key, alg, **header):
    """Signed with the algorithm itself: joserfc writes no header that it does not know."""
    text = encoded(json.dumps({"alg": alg, **header}).encode()) + b"." + encoded(b"{}")
    return (text + b"." + encoded(JWSRegistry.algorithms[alg].sign(text, as_any(key)))).decode()


def check(encoded_token, *keys):
    return signed_payload(encoded_token, lambda kid: read_keys({"keys": list(keys)})[0])


GOOD = token(RSA, "RS256", kid="rsa")


@pytest.mark.parametrize(
    "header",
    [
        {"pi.atm": "5"},
        {"nonce": "5", "typ": "at+jwt"},
        {"x5t": "abc", "x5c": ["x" * 5_000]},
        {"crit": ["b64"], "b64": True},
    ],
    ids=str,
)
def test_header_parameters_that_are_not_known_are_ignored(header):
    """RFC 7515, section 4. Tokens of PingFederate and of Entra were refused."""
    assert check(token(RSA, "RS256", kid="rsa", **header), public(RSA)) == b"{}"


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["nonce"], "nonce": "5"},
        {"crit": ["exp"]},
        {"crit": 5},
        {"kid": 5},
        {"x": "y" * 40_000},
    ],
    ids=lambda header: str(header)[:40],
)
def test_a_header_that_must_be_understood_is_refused(header):
    with pytest.raises(SaslError):
        check(token(RSA, "RS256", **{"kid": "rsa", **header}), public(RSA))


UNUSABLE = [
    {"kty": "EC", "crv": "BP-256", "kid": "bp", "x": "AAAA", "y": "AAAA"},
    {"kty": "EC", "crv": "P-256", "kid": "off the curve", "x": "AAAA", "y": "AAAA"},
    {"kty": "OKP", "crv": "X448", "kid": "z", "x": "AAAA", "use": "enc"},
    {"kty": "AKP", "alg": "ML-DSA-65", "kid": "pq", "pub": "AAAA"},
    {"kty": "RSA", "kid": "broken", "n": "", "e": "AQAB"},
    {"kty": "RSA", "kid": ["broken"], "n": 5, "e": "AQAB"},
    {"kty": "oct", "kid": "shared", "k": "AAAA"},
    {"kty": ["RSA"]},
    {},
    None,
    5,
    [],
]


@pytest.mark.parametrize("unusable", UNUSABLE, ids=lambda key: str(key)[:40])
def test_an_unusable_key_says_nothing_about_the_others(unusable):
    """RFC 7517, section 5: one such key discarded all."""
    keys, skipped = read_keys({"keys": [unusable, public(RSA)]})
    assert [key.kid for key in keys] == ["rsa"]
    [why] = skipped
    assert why.startswith("key 1")
    assert check(GOOD, unusable, public(RSA)) == b"{}"
    with pytest.raises(ValueError, match="no usable key; key 1"):
        read_keys({"keys": [unusable]})


@pytest.mark.parametrize("more", [{"x5c": 5}, {"x5u": "no URL"}, {"d": "AAAA"}, {"oth": []}])
def test_members_that_are_not_needed_are_not_read(more):
    assert check(GOOD, public(RSA, **more)) == b"{}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["kty", "kid", "n"]), inner),
)


@given(JSON | st.builds(lambda keys: {"keys": keys}, JSON | st.lists(JSON)))
def test_whatever_a_server_sends_is_refused_in_one_way(found):
    try:
        keys, _ = read_keys(found)
    except ValueError:
        return
    assert keys


@pytest.mark.parametrize("alg", ["EdDSA", "Ed25519"])
@pytest.mark.parametrize("of_key", [None, "EdDSA", "Ed25519"])
def test_both_names_of_the_algorithm_of_edwards_curves(alg, of_key):
    """RFC 8037 and RFC 9864; jose4j has the first."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check(token(ED, alg, kid="ed"), public(ED, alg=of_key)) == b"{}"
        assert check(token(ED448, "EdDSA", kid="ed448"), public(ED448)) == b"{}"


@pytest.mark.parametrize(
    "keys",
    [
        (public(RSA, use="enc", kid="other"), public(RSA)),
        (public(EC), public(RSA)),
        (public(RSA, alg="RS512", kid="other"), public(RSA, alg="RS256")),
        (public(RSA, key_ops=["encrypt"], kid="other"), public(RSA, key_ops=["verify"])),
        (public(RSA, kid=None),),
    ],
)
def test_a_token_without_a_key_id_gets_the_key_that_fits(keys):
    assert check(token(RSA, "RS256"), *keys) == b"{}"
    with pytest.raises(SaslError, match="no key fits"):
        check(token(RSA, "RS256", kid="unknown"), *keys)


def test_the_curve_chooses_among_keys_without_an_id():
    assert check(token(EC384, "ES384"), public(EC), public(EC384)) == b"{}"
    assert check(token(EC, "ES256"), public(EC384), public(EC)) == b"{}"


@pytest.mark.parametrize(
    ("signed", "keys"),
    [
        (token(RSA, "RS256", kid="rsa"), [public(RSA, use="enc")]),
        (token(RSA, "RS256", kid="rsa"), [public(RSA, key_ops=["encrypt"])]),
        (token(RSA, "RS256", kid="rsa"), [public(EC, kid="rsa")]),
        (token(RSA, "RS256", kid="rsa"), [public(RSA, alg="RS512")]),
        (token(EC, "ES256", kid="ec"), [public(EC384, kid="ec")]),
        (GOOD[:-4] + "AAAA", [public(RSA)]),
    ],
    ids=["use", "operations", "kind", "algorithm", "curve", "signature"],
)
def test_a_key_for_something_else_checks_nothing(signed, keys):
    with pytest.raises(SaslError):
        check(signed, *keys)


def test_no_algorithm_has_a_shared_secret():
    assert not any(alg.startswith("HS") or alg == "none" for alg in ALGORITHMS)
