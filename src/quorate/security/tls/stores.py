"""Read key stores and trust stores: PEM, PKCS12 and JKS, recognized by their content.

Source: `DefaultSslEngineFactory` (KIP-651 for PEM), and the JKS format of the Java platform.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

from quorate.base.errors import QuorateError
from quorate.base.file_errors import shown, why
from quorate.security.tls.der import DerError, elements
from quorate.security.tls.names import rfc2253
from quorate.security.tls.store_file import read_store_file

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_TYPES: Final = ("PEM", "PKCS12", "JKS", "JCEKS")
_TYPES_TEXT: Final = "PEM, PKCS12 or JKS"
_SALT: Final = 20
"""Bytes of the salt before, and of the digest after, a key in a JKS store."""
_NOT_PKCS8: Final = (
    "the private key is in a form of OpenSSL's or OpenSSH's own: convert it to PKCS#8, as with "
    "openssl pkcs8 -topk8"
)
_NOT_THE_FIRST: Final = "the private key does not belong to the first certificate"
_TRUSTED: Final = (
    "a certificate in a form of OpenSSL's own, with notes about its use (BEGIN TRUSTED CERTIFICATE): "
    "convert it to X.509 with openssl x509 -in OLD.pem -out NEW.pem"
)
_OTHER_KEY: Final = ", or its key has not the password of the store, which PKCS12 needs here"
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE")
_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class StoreError(QuorateError):
    """A store that cannot be read. The message names the key and never a password."""

    may_pass = False
    """Whether the same file may be usable later."""

    def __init__(self, key: str, reason: str) -> None:
        """`key` may have the file after it, in brackets."""
        super().__init__(f"{key}: {reason}")
        self.key = key.partition(" ")[0]


class UnreadableFileError(StoreError):
    """The file of a store cannot be read now."""

    may_pass = True


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A private key and its certificates, the key's own first."""

    key: PrivateKeyTypes
    chain: Sequence[x509.Certificate]
    entries: Sequence[x509.Certificate]
    """The first certificate of each entry of the store; a PEM store has one entry."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What the stores of one side hold."""

    entry: KeyEntry | None
    trusted: Sequence[x509.Certificate] | None
    """None: no trust store is named, or it is not needed."""


@dataclass(frozen=True, slots=True)
class _StoreContent:
    entry: KeyEntry | None
    certificates: Sequence[x509.Certificate]
    """What the store trusts: the certificates of its own, and the first of each key."""


def key_place(values: Mapping[str, str]) -> str:
    """Return the key of the configuration that names the private key."""
    return "ssl.keystore.key" if values.get("ssl.keystore.key") else "ssl.keystore.location"


def trust_place(values: Mapping[str, str]) -> str:
    """Return the key of the configuration that names what is trusted, and the file."""
    if values.get("ssl.truststore.certificates"):
        return "ssl.truststore.certificates"
    return f"ssl.truststore.location ({values.get('ssl.truststore.location')})"


@contextmanager
def named(place: str) -> Iterator[None]:
    """Raise what the libraries of cryptography refuse as StoreError of the configuration key."""
    try:
        yield
    except ssl.SSLError as error:
        reason = (error.reason or "it cannot be read").lower().replace("_", " ")
        raise StoreError(place, f"OpenSSL refuses the certificate or its key: {reason}") from None
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion) as error:
        raise StoreError(place, f"a certificate or key that cannot be used: {error}") from None


def read_key(values: Mapping[str, str]) -> KeyEntry | None:
    """The key that `ssl.keystore.*` names; None without one. Raises StoreError."""
    _check_place(values, "ssl.keystore", "key")
    _check_place(values, "ssl.truststore", "certificates")
    with named(key_place(values)):
        return _read_key(values)


def _read_key(values: Mapping[str, str]) -> KeyEntry | None:
    inline, place = values.get("ssl.keystore.key"), key_place(values)
    key_password = values.get("ssl.key.password") or None
    if inline:
        chain = values.get("ssl.keystore.certificate.chain")
        if not chain:
            raise StoreError(
                "ssl.keystore.certificate.chain", "missing, but ssl.keystore.key is set"
            )
        found = _pem(place, f"{inline}\n{chain}", key_password)
    else:
        if values.get("ssl.keystore.certificate.chain"):
            raise StoreError(
                "ssl.keystore.certificate.chain", "is set without a key: set ssl.keystore.key, too"
            )
        if not values.get(place):
            return None
        found = _read(
            place, values[place], values.get("ssl.keystore.password") or None, key_password
        )
    if found.entry is None:
        raise StoreError(place, "the store holds no private key with a certificate")
    own = found.entry.key.public_key()
    if own != found.entry.chain[0].public_key():
        places = [at for at, one in enumerate(found.entry.chain, 1) if one.public_key() == own]
        raise StoreError(place, _misplaced(places[0]) if places else _NOT_THE_FIRST)
    return found.entry


def _misplaced(number: int) -> str:
    return (
        f"{_NOT_THE_FIRST}, but to number {number}: the certificates are in the wrong order. Put that "
        "of the key first, then its issuers. Or make a PKCS12 store, where the order does not count: "
        "openssl pkcs12 -export -in STORE.pem -out STORE.p12"
    )


def read_trust(values: Mapping[str, str]) -> Sequence[x509.Certificate] | None:
    """The certificates that `ssl.truststore.*` trusts; None without one. Raises StoreError."""
    inline, place = values.get("ssl.truststore.certificates"), "ssl.truststore.location"
    _check_place(values, "ssl.truststore", "certificates")
    if inline:
        place = "ssl.truststore.certificates"
    elif not values.get(place):
        return None
    with named(trust_place(values)):
        if inline:
            found = _pem(place, inline, None)
        else:
            password = values.get("ssl.truststore.password") or None
            found = _read(place, values[place], password, None, with_key=False)
    if not found.certificates:
        raise StoreError(place, "the store holds no certificate")
    return found.certificates


def _check_place(values: Mapping[str, str], store: str, inline: str) -> None:
    """Refuse a store in two places, and a password without a store, as Kafka does."""
    location, own = f"{store}.location", f"{store}.{inline}"
    if values.get(own) and values.get(location):
        raise StoreError(own, f"set {location} or this key, not both")
    kind = values.get(f"{store}.type")
    if kind and kind.upper() not in _TYPES:
        raise StoreError(f"{store}.type", f"{kind!r} is not a type of stores: use {_TYPES_TEXT}")
    if values.get(f"{store}.password") and not (values.get(own) or values.get(location)):
        raise StoreError(f"{store}.password", f"is set without a store: set {location}, too")


def check_readable(values: Mapping[str, str], *, trust: bool) -> None:
    """Raise StoreError for stores that need not be opened for it: files that cannot be read now.

    trust: whether the trust store is needed, too.
    """
    _check_place(values, "ssl.keystore", "key")
    _check_place(values, "ssl.truststore", "certificates")
    for place in ("ssl.keystore.location", *(("ssl.truststore.location",) if trust else ())):
        if values.get(place):
            _bytes_of(place, values[place])


def _bytes_of(place: str, path: str) -> bytes:
    try:
        return read_store_file(path)
    except (OSError, ValueError) as error:
        raise UnreadableFileError(place, f"cannot read {shown(path)}: {why(error)}") from None


def _read(
    place: str,
    path: str,
    password: str | None,
    key_password: str | None,
    *,
    with_key: bool = True,
) -> _StoreContent:
    data = _bytes_of(place, path)
    where = f"{place} ({path})"
    if data.startswith(_JKS):
        return _jks(
            where, data, password, (key_password or password) if with_key else None, with_key
        )
    if data.startswith(_JCEKS):
        raise StoreError(
            where,
            "JCEKS stores are not supported: convert it with keytool -importkeystore to PKCS12",
        )
    if b"-----BEGIN " in data:
        if password is not None:
            key = place.replace(".location", ".password")
            raise StoreError(
                key, "PEM has no password of the store: remove it, as Kafka refuses it"
            )
        return _pem(where, data.decode("latin-1"), key_password)
    return _pkcs12(where, data, password, (key_password or password) if with_key else password)


def _pem(place: str, text: str, password: str | None) -> _StoreContent:
    """Kafka takes PEM also on one line: whitespace does not count."""
    key: PrivateKeyTypes | None = None
    certificates = []
    try:
        for label, body in _PEM.findall(text):
            lines = "\n".join(re.findall(".{1,64}", re.sub(r"\s", "", body)))
            block = f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n".encode()
            if label == "TRUSTED CERTIFICATE":
                raise StoreError(place, _TRUSTED)
            if label in _CERTIFICATES:
                certificates.append(x509.load_pem_x509_certificate(block))
            elif label.endswith("PRIVATE KEY"):
                if "Proc-Type:" in body or label.startswith("OPENSSH"):
                    raise StoreError(place, _NOT_PKCS8)
                secret = password.encode() if password and label.startswith("ENCRYPTED") else None
                key = serialization.load_pem_private_key(block, secret)
    except TypeError:
        raise StoreError(place, "the private key is encrypted: set ssl.key.password") from None
    except ValueError:
        raise StoreError(
            place, "invalid PEM, or ssl.key.password is not the key's password"
        ) from None
    entry = (
        None if key is None or not certificates else KeyEntry(key, certificates, certificates[:1])
    )
    return _StoreContent(entry, certificates)


def _pkcs12(
    place: str, data: bytes, password: str | None, key_password: str | None
) -> _StoreContent:
    """OpenSSL opens a store and its key with one password. Java refuses another password of the key."""
    try:
        store = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise StoreError(
            place,
            "neither JKS, PEM nor PKCS12, or the password is wrong or missing"
            + ("" if key_password == password else _OTHER_KEY),
        ) from None
    if store.key is not None and key_password != password:
        raise StoreError(
            place, "ssl.key.password is not the password of the key in the PKCS12 store"
        )
    others = [one.certificate for one in store.additional_certs]
    if store.key is None or store.cert is None:
        return _StoreContent(None, others)
    own = store.cert.certificate
    named = [one.certificate for one in store.additional_certs if _is_entry(one)]
    entries = [own, *named]
    return _StoreContent(KeyEntry(store.key, _ordered(own, others), entries), entries)


def _is_entry(one: pkcs12.PKCS12Certificate) -> bool:
    """Whether a certificate beside a key is an entry of its own, not of the chain of the key.

    Java names an entry by its alias, and the certificates of a chain by their subjects. OpenSSL names
    those of a chain not at all. Java's `TrustManagerFactory` trusts no issuer in a chain.
    """
    if not one.friendly_name:
        return False
    name = one.friendly_name.decode("utf-8", "replace")
    return name.lower() != rfc2253(one.certificate.subject.public_bytes()).lower()


def _ordered(
    own: x509.Certificate, others: Sequence[x509.Certificate]
) -> Sequence[x509.Certificate]:
    chain, left = [own], list(others)
    while chain[-1].issuer != chain[-1].subject:
        issuer = next((one for one in left if one.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        left.remove(issuer)
        chain.append(issuer)
    return chain


# -- JKS ----------------------------------------------------------------------------------------
def _jks(
    place: str, data: bytes, password: str | None, key_password: str | None, with_key: bool
) -> _StoreContent:
    if password is not None:
        salted = password.encode("utf-16-be") + b"Mighty Aphrodite" + data[:-_SALT]
        if hashlib.sha1(salted, usedforsecurity=False).digest() != data[-_SALT:]:
            raise StoreError(place, "the password is wrong, or the JKS store was changed")
    try:
        return _jks_content(place, data, key_password, with_key)
    except (ValueError, TypeError, DerError, IndexError):
        raise StoreError(place, "a damaged JKS store") from None


def _jks_content(
    place: str, data: bytes, key_password: str | None, with_key: bool
) -> _StoreContent:
    stream = BytesIO(data[4:-_SALT])
    version, count = _number(stream, 4), _number(stream, 4)
    entry: KeyEntry | None = None
    trusted: list[x509.Certificate] = []
    for _ in range(count):
        tag = _number(stream, 4)
        _block(stream, 2)  # the alias
        stream.read(8)  # the time
        if tag == 1:
            sealed = _block(stream, 4)
            chain = list(_certificates(stream, _number(stream, 4), version))
            trusted += chain[:1]
            if with_key and entry is None and chain:
                if key_password is None:
                    raise StoreError(
                        place, "the JKS store holds a key: set the password of the key or the store"
                    )
                key = serialization.load_der_private_key(_open(place, sealed, key_password), None)
                entry = KeyEntry(key, chain, trusted)
        elif tag == 2:
            trusted += _certificates(stream, 1, version)
        else:
            raise ValueError(tag)
    return _StoreContent(entry, trusted)


def _number(stream: BytesIO, size: int) -> int:
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("truncated")
    return int.from_bytes(data, "big")


def _block(stream: BytesIO, prefix: int) -> bytes:
    size = _number(stream, prefix)
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("truncated")
    return data


def _certificates(stream: BytesIO, count: int, version: int) -> Iterator[x509.Certificate]:
    for _ in range(count):
        if version > 1:
            _block(stream, 2)  # the type, X.509
        yield x509.load_der_x509_certificate(_block(stream, 4))


def _open(place: str, sealed: bytes, password: str) -> bytes:
    """Decrypt a key: XOR with a chain of SHA-1 digests, the check digest at the end."""
    ((_, info, _),) = elements(sealed)
    data = list(elements(info))[1][1]
    secret = password.encode("utf-16-be")
    digest, body, check = data[:_SALT], data[_SALT:-_SALT], data[-_SALT:]
    stream = bytearray()
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(body, stream, strict=False))
    if hashlib.sha1(secret + plain, usedforsecurity=False).digest() != check:
        raise StoreError(place, "ssl.key.password is not the password of the key in the JKS store")
    return plain
