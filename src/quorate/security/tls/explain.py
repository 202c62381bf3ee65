"""What a failed TLS handshake means, in words that name the cause and the key to check."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

_VERIFY: Final[Mapping[int, str]] = {
    9: "its certificate is not valid yet: compare the clocks",
    10: "its certificate has expired: renew it there",
    18: "its certificate is self-signed and not in ssl.truststore here",
    19: "the root of its certificate is not in ssl.truststore here",
    20: "the issuer of its certificate is not in ssl.truststore here",
    21: "the issuer of its certificate is not in ssl.truststore here",
    26: "its certificate is not made for this role (extendedKeyUsage)",
}
_REASONS: Final[Mapping[str, str]] = {
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "WRONG_VERSION_NUMBER": (
        "it does not speak TLS: is its listener PLAINTEXT? Compare listener.security.protocol.map"
    ),
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "it sent no certificate, but ssl.client.auth=required here: set ssl.keystore.* there"
    ),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": (
        "it asks for a client certificate (ssl.client.auth=required there): set ssl.keystore.* here"
    ),
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it says that the certificate of this side has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (
        "it does not accept the certificate of this side: check the truststore and the host name there"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": (
        "it does not know the issuer of this side's certificate: check ssl.truststore there"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": (
        "it does not accept the certificate of this side, or asks for one "
        "(ssl.client.auth=required there): check ssl.keystore.* here, the host name and dates"
    ),
    "NO_SHARED_CIPHER": "no common cipher suite: compare ssl.cipher.suites and the keys' types",
    "UNSUPPORTED_PROTOCOL": "no common version of TLS: compare ssl.enabled.protocols",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common version of TLS: compare ssl.enabled.protocols",
}


def explain(error: Exception) -> str:
    """One line about a failed handshake; "it" is the other side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _VERIFY:
            return f"TLS: {_VERIFY[error.verify_code]}"
        return f"TLS: its certificate is refused here: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        known = _REASONS.get(error.reason)
        return f"TLS: {known} ({error.reason})" if known else f"TLS: {error.reason}"
    return f"TLS: {error}"
