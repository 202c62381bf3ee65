"""`ssl.SSLContext` objects made of Kafka's `ssl.*` keys. Source: `SslConfigs`, `DefaultSslEngineFactory`.

`values` maps a key to its text, with the prefix of its listener already applied.
"""

from __future__ import annotations

import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from quorate.security.tls.stores import (
    KeyEntry,
    StoreError,
    Stores,
    key_place,
    named,
    read_key,
    read_trust,
    trust_place,
)
from quorate.security.tls.streams import TlsContext

_SCSV: Final = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
"""Java's sign of secure renegotiation, which OpenSSL always gives."""
_VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_PROTOCOLS: Final = ("TLS", *_VERSIONS)
_CLIENT_AUTH: Final[Mapping[str, ssl.VerifyMode]] = {
    "required": ssl.CERT_REQUIRED,
    "requested": ssl.CERT_OPTIONAL,
    "none": ssl.CERT_NONE,
}
_SUITES_1_3: Final = frozenset(
    ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
)
_TRUSTED_AT_ONCE: Final = 100
_FIXED: Final[Mapping[str, tuple[str, ...]]] = {
    "ssl.provider": ("",),
    "ssl.engine.factory.class": ("",),
    "ssl.secure.random.implementation": ("",),
    "ssl.keymanager.algorithm": ("", "SunX509", "PKIX"),
    "ssl.trustmanager.algorithm": ("", "PKIX", "SunX509"),
    "security.providers": ("",),
}
"""Keys that name parts of Java, and the values that ask for nothing else than what is done here."""


class TlsError(StoreError):
    """A value that cannot be served. The message names the key and what to do."""


def server_context(values: Mapping[str, str], stores: Stores | None = None) -> TlsContext:
    """The context of a listener. Raises StoreError. stores: what `values` name, where that is read."""
    entry = read_key(values) if stores is None else stores.entry
    if entry is None:
        raise _no_certificate()
    context = TlsContext(ssl.PROTOCOL_TLS_SERVER)
    _set_client_auth(context, values)
    _set_up(context, values, entry, stores)
    return context


def client_context(values: Mapping[str, str], stores: Stores | None = None) -> TlsContext:
    """The context of outgoing connections, as `server_context`. Raises StoreError."""
    context = TlsContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_host_check(context, values)
    entry = read_key(values) if stores is None else stores.entry
    _set_up(context, values, entry, stores)
    return context


def context_problems(values: Mapping[str, str], *, is_server: bool) -> Iterator[StoreError]:
    """What `server_context` or `client_context` would raise, one after the other."""
    context = TlsContext(ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT)

    def read_own() -> None:
        if read_key(values) is None and is_server:
            raise _no_certificate()

    def set_up_versions() -> None:
        _set_versions(context, values)
        _set_suites(context, values)

    def read_trusted() -> None:
        if context.verify_mode != ssl.CERT_NONE:
            read_trust(values)

    set_up_peer = _set_client_auth if is_server else _set_host_check
    steps: tuple[Callable[[], None], ...] = (
        read_own,
        partial(set_up_peer, context, values),
        *(partial(_check_fixed, values, key) for key in _FIXED),
        set_up_versions,
        read_trusted,
    )
    for step in steps:
        try:
            step()
        except StoreError as error:
            yield error


def _no_certificate() -> TlsError:
    return TlsError(
        "ssl.keystore.location",
        "a listener with TLS needs a certificate: set this key, or ssl.keystore.key and "
        "ssl.keystore.certificate.chain",
    )


def _set_client_auth(context: ssl.SSLContext, values: Mapping[str, str]) -> None:
    wanted = (values.get("ssl.client.auth") or "none").lower()
    if wanted not in _CLIENT_AUTH:
        raise TlsError("ssl.client.auth", f"{wanted!r} is not one of {', '.join(_CLIENT_AUTH)}")
    context.verify_mode = _CLIENT_AUTH[wanted]


def _set_host_check(context: ssl.SSLContext, values: Mapping[str, str]) -> None:
    algorithm = values.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in ("", "https"):
        raise TlsError(
            "ssl.endpoint.identification.algorithm",
            f"{algorithm!r} is not supported: use https, or nothing to check no host names",
        )
    context.check_hostname = bool(algorithm)


def _check_fixed(values: Mapping[str, str], key: str) -> None:
    if values.get(key, "") not in _FIXED[key]:
        raise TlsError(
            key,
            f"{values[key]!r} names a part of Java, which has no equal here: remove the key",
        )


def _set_up(
    context: TlsContext,
    values: Mapping[str, str],
    entry: KeyEntry | None,
    stores: Stores | None,
) -> None:
    for key in _FIXED:
        _check_fixed(values, key)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # Java trusts what is in the store, also where that is not a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _set_versions(context, values)
    _set_suites(context, values)
    if entry is not None:
        with named(key_place(values)):
            _load(context, entry)
        context.entry = entry
    if context.verify_mode != ssl.CERT_NONE:
        trusted = read_trust(values) if stores is None else stores.trusted
        context.trusted = trusted
        if trusted is None:
            context.load_default_certs()
        else:
            with named(trust_place(values)):
                _trust(context, trusted)


def _trust(context: ssl.SSLContext, trusted: Sequence[x509.Certificate]) -> None:
    """Give the certificates to OpenSSL, in parts: it holds the interpreter lock meanwhile."""
    for start in range(0, len(trusted), _TRUSTED_AT_ONCE):
        part = trusted[start : start + _TRUSTED_AT_ONCE]
        pem = [one.public_bytes(serialization.Encoding.PEM).decode() for one in part]
        context.load_verify_locations(cadata="".join(pem))


def _items(values: Mapping[str, str], key: str) -> Sequence[str]:
    return [item for item in map(str.strip, values.get(key, "").split(",")) if item]


def _set_versions(context: ssl.SSLContext, values: Mapping[str, str]) -> None:
    protocol = values.get("ssl.protocol") or "TLSv1.3"
    if protocol not in _PROTOCOLS:
        raise TlsError("ssl.protocol", f"{protocol!r} is not one of {', '.join(_PROTOCOLS)}")
    enabled = _items(values, "ssl.enabled.protocols") or tuple(_VERSIONS)
    for name in enabled:
        if name not in _VERSIONS:
            raise TlsError(
                "ssl.enabled.protocols",
                f"{name!r} is not supported: use {' and '.join(_VERSIONS)}, older ones are broken",
            )
    versions = [_VERSIONS[name] for name in enabled]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_suites(context: ssl.SSLContext, values: Mapping[str, str]) -> None:
    names = [one for one in _items(values, "ssl.cipher.suites") if one != _SCSV]
    if not names:
        return
    key = "ssl.cipher.suites"
    newest = _SUITES_1_3.intersection(names)
    older = {_openssl_name(name): name for name in names if name not in _SUITES_1_3}
    if context.maximum_version == ssl.TLSVersion.TLSv1_3 and newest:
        if newest != _SUITES_1_3:
            missing = ", ".join(sorted(_SUITES_1_3 - newest))
            raise TlsError(
                key,
                "the suites of TLS 1.3 cannot be chosen here: name all three of them "
                f"(missing: {missing}), or set ssl.enabled.protocols=TLSv1.2",
            )
        if not older:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
    elif older and context.minimum_version == ssl.TLSVersion.TLSv1_2:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    else:
        raise TlsError(key, "no suite belongs to a version in ssl.enabled.protocols")
    if older:
        _choose(context, older)


def _choose(context: ssl.SSLContext, suites: Mapping[str, str]) -> None:
    """Enable suites of TLS 1.2: OpenSSL's name -> Java's.

    OpenSSL passes over a name that it does not know, and takes an alias for many suites.
    """
    chosen: set[str] = set()
    with suppress(ssl.SSLError):
        context.set_ciphers(":".join(suites))
        chosen = {one["name"] for one in context.get_ciphers() if one["strength_bits"]}
    unknown = [name for openssl, name in suites.items() if openssl not in chosen]
    if unknown:
        raise TlsError("ssl.cipher.suites", f"OpenSSL has no {', '.join(unknown)}")


def _openssl_name(name: str) -> str:
    """OpenSSL's name of a Java suite of TLS 1.2."""
    match = re.fullmatch(r"TLS_(\w+)_WITH_(\w+)", name, re.ASCII)
    if match is None:
        raise TlsError("ssl.cipher.suites", f"{name!r} is not the name of a suite of TLS")
    exchange = "" if match[1] == "RSA" else match[1].replace("_", "-") + "-"
    cipher = re.sub(r"AES_(\d+)_", r"AES\1-", match[2]).replace("CBC_", "").replace("CBC-", "")
    cipher = cipher.replace("-CBC_", "-").replace("_", "-")
    if cipher.startswith("CHACHA20"):
        cipher = "CHACHA20-POLY1305"
    return exchange + cipher


def _load(context: ssl.SSLContext, entry: KeyEntry) -> None:
    """Give the key to OpenSSL, which reads files only: encrypted, and in memory where that exists."""
    password = secrets.token_bytes(32).hex().encode()
    key = entry.key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password),
    )
    chain = b"".join(one.public_bytes(serialization.Encoding.PEM) for one in entry.chain)
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("quorate-tls"), "wb") as file:
            file.write(key + chain)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password=password)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(key + chain)
        file.flush()
        context.load_cert_chain(file.name, password=password)
