"""The public keys of a JWKS (RFC 7517), and the signatures that they check (RFC 7515).

It takes what Kafka takes through jose4j: `VerificationJwkSelector`, `JsonWebKeySet`. joserfc refuses
more: header parameters that it does not know, and a whole set for one key in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from quorate.security.sasl.mechanism import SaslError

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Signatures with public keys. An HMAC key of a JWKS would be a shared secret in a public file."""
_KEY_TYPES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""By the beginning of the algorithm's name."""
_CURVES: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "Ed25519": "Ed25519"}
_MEMBERS: Final = ("kty", "kid", "use", "key_ops", "alg", "crv", "x", "y", "n", "e")
"""What is read of a key. Certificates, private parts and what else a key has are not."""
_MAX_HEADER_BYTES: Final = 32_768
"""Room for a chain of certificates; joserfc takes 512 bytes."""
_MAX_SIGNATURE_BYTES: Final = 4_096
_SHOWN: Final = 64

Key = Any
"""A key of joserfc; `None` is none. It has no types that are worth their import at the start."""


def read_keys(found: object) -> tuple[tuple[Key, ...], list[str]]:
    """The usable keys of a JWKS, and why each other one is not. Raises ValueError where there is none.

    A key of a kind that is not known, or that is broken, says nothing about the others (RFC 7517,
    section 5).
    """
    if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
        raise ValueError("it is not a set of keys: it has no list `keys`")
    keys: list[Key] = []
    skipped: list[str] = []
    for number, given in enumerate(found["keys"], 1):
        try:
            keys.append(_key(given))
        except Exception as error:  # whatever two libraries raise on what a server sent
            kid = given.get("kid") if isinstance(given, dict) else None
            name = f"key {number}" if kid is None else f"key {number} ({str(kid)[:_SHOWN]!r})"
            skipped.append(f"{name}: {type(error).__name__}: {str(error)[:_SHOWN]!r}")
    if not keys:
        raise ValueError(f"it has no usable key; {'; '.join(skipped[:3])}")
    return tuple(keys), skipped


def _key(given: Any) -> Key:
    from joserfc.jwk import JWKRegistry

    members = {name: given[name] for name in _MEMBERS if name in given}
    if members.get("kty") not in _KEY_TYPES.values():
        raise ValueError("no public key of a kind that is known")
    if members["kty"] == "OKP":
        # Its curve says it all. `EdDSA` and `Ed25519` are two names of one algorithm (RFC 9864).
        members.pop("alg", None)
    key = JWKRegistry.import_key(members)
    key.ensure_kid()
    return key


def choose(keys: Iterable[Key], header: Mapping[str, object]) -> Key:
    """The key that checks a token with this header, as `VerificationJwkSelector`. Raises SaslError."""
    kid, algorithm = header.get("kid"), str(header.get("alg"))
    kind = _KEY_TYPES.get(algorithm[:2])
    found = [
        key
        for key in keys
        if key.key_type == kind
        and (kid is None or key.kid == kid)
        and key.get("use") in (None, "sig")
        and "verify" in (key.get("key_ops") or ("verify",))
    ]
    if len(found) > 1:
        found = [key for key in found if key.alg in (None, algorithm)]
    if len(found) > 1 and algorithm in _CURVES:
        found = [key for key in found if key.get("crv") == _CURVES[algorithm]]
    if not found:
        raise SaslError("the token is not valid: no key fits its header")
    return found[0]


def signed_payload(encoded: str, keys: Callable[[str | None], Iterable[Key]]) -> bytes:
    """The content of a token with a right signature. Raises SaslError.

    keys: gives the keys; its argument is the wanted `kid`.
    """
    from joserfc import jws
    from joserfc.errors import JoseError

    registry = _registry()
    try:
        signed = jws.extract_compact(encoded.encode(), registry=registry)
        header = signed.headers()
        registry.check_header(header)
        found = keys(header.get("kid"))
        if not jws.validate_compact(signed, choose(found, header), registry=registry):
            raise SaslError("the token is not valid: its signature is wrong")
        return bytes(signed.payload)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise SaslError(f"the token is not valid: {type(error).__name__}") from None


@cache
def _registry() -> Any:
    from joserfc.jws import JWSRegistry

    class Registry(JWSRegistry):
        max_header_length = _MAX_HEADER_BYTES
        max_signature_length = _MAX_SIGNATURE_BYTES

        def get_alg(self, name: str) -> Any:
            # joserfc warns of this name on stderr: RFC 9864 prefers `Ed25519`.
            return self.algorithms[name] if name == "EdDSA" else super().get_alg(name)

    # Parameters that are not known are ignored (RFC 7515, section 4), but for those in `crit`.
    return Registry(algorithms=ALGORITHMS, strict_check_header=False)
