"""A certificate authority for trials: it makes the certificates of nodes and clients, as PEM.

Its keys are not encrypted, and nothing is revoked. Production needs an authority of its own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_ORGANIZATION: Final = "Quorate trial"
_CLOCK_SKEW: Final = timedelta(hours=1)
_PEM: Final = serialization.Encoding.PEM


class Authority:
    """Issues certificates. `private_key` and `certificate` are PEM; load them to go on later."""

    def __init__(self, private_key: bytes, certificate: bytes) -> None:
        key = serialization.load_pem_private_key(private_key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self.private_key = private_key
        self.certificate = certificate
        self._key = key
        self._own = x509.load_pem_x509_certificate(certificate)

    @classmethod
    def create(cls, now: datetime, days: int) -> Authority:
        """A new authority, valid for `days` from `now` (with a time zone)."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("authority")
        builder = _builder(name, name, key.public_key(), now, days)
        builder = builder.add_extension(x509.BasicConstraints(True, 0), critical=True)
        signed = builder.add_extension(_usage(signs_certificates=True), critical=True).sign(
            key, hashes.SHA256()
        )
        return cls(_pem(key), signed.public_bytes(_PEM))

    def issue(self, common_name: str, hosts: Sequence[str], now: datetime, days: int) -> bytes:
        """A private key and its certificate, `CN=<common_name>,O=Quorate trial`, as one PEM text.

        `hosts`: names and addresses that a client may connect to; empty for a client's certificate.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        roles = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(_name(common_name), self._own.subject, key.public_key(), now, days)
        if hosts:
            roles.insert(0, ExtendedKeyUsageOID.SERVER_AUTH)
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            builder.add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(roles), critical=False)
            .add_extension(issuer, critical=False)
        )
        return _pem(key) + builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
