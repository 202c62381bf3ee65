"""What a failed TLS handshake means: which side refused, what it saw, and the key to check.

With TLS 1.3 a server refuses the certificate of a client only after the client's own handshake: the
client gets the alert when it first reads. Alerts: RFC 8446, 6.2.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Final

from cryptography import x509

from quorate.security.tls.der import DerError
from quorate.security.tls.names import rfc2253
from quorate.security.tls.streams import TlsContext, TlsStream

_WRONG_HOST: Final = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
_NOT_YET: Final = 9
_EXPIRED: Final = 10
_ISSUER: Final = "the issuer of its certificate is not in ssl.truststore here"
_VERIFY: Final[Mapping[int, str]] = {
    18: "its certificate is self-signed and not in ssl.truststore here",
    19: "the root of its certificate is not in ssl.truststore here",
    20: _ISSUER,
    21: _ISSUER,
    26: "its certificate is not made for this role (extendedKeyUsage)",
}
_HERE: Final[Mapping[str, str]] = {
    "HTTP_REQUEST": "it speaks HTTP, not TLS",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "it sent no certificate, but ssl.client.auth=required here: set ssl.keystore.* there"
    ),
    "NO_SHARED_CIPHER": "no common cipher suite: compare ssl.cipher.suites and the keys' types",
    "UNSUPPORTED_PROTOCOL": "no common version of TLS: compare ssl.enabled.protocols",
    "WRONG_SSL_VERSION": "no common version of TLS: compare ssl.enabled.protocols",
    "NO_PROTOCOLS_AVAILABLE": "no version of TLS is enabled: check ssl.enabled.protocols",
}
"""What this side found, by OpenSSL's reason."""
_PLAINTEXT: Final = (
    "it does not speak TLS: is its listener PLAINTEXT? Compare security.protocol, or "
    "listener.security.protocol.map, of both sides"
)
_NO_CERTIFICATE: Final = (
    "it asks for a client certificate (ssl.client.auth=required there): set ssl.keystore.* here"
)
_THERE: Final[Mapping[str, str]] = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": _NO_CERTIFICATE,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": (
        "it says that the certificate of this side has expired: renew it here"
    ),
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it says that the certificate of this side is revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": (
        "it does not accept the certificate of this side: check the truststore and the host name there"
    ),
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": (
        "it does not accept the kind of this side's certificate: check extendedKeyUsage and the key"
    ),
    "TLSV1_ALERT_UNKNOWN_CA": (
        "it does not know the issuer of this side's certificate: check ssl.truststore there"
    ),
    "SSLV3_ALERT_BAD_CERTIFICATE": (
        "it does not accept the certificate of this side, or asks for one "
        "(ssl.client.auth=required there): check ssl.keystore.* here, the host name and dates"
    ),
    "SSLV3_ALERT_HANDSHAKE_FAILURE": (
        "no common cipher suite or kind of key: compare ssl.cipher.suites and ssl.enabled.protocols"
    ),
    "TLSV1_ALERT_PROTOCOL_VERSION": "no common version of TLS: compare ssl.enabled.protocols",
    "TLSV1_ALERT_ACCESS_DENIED": "it does not accept the certificate of this side",
    "SSLV3_ALERT_UNEXPECTED_MESSAGE": _PLAINTEXT,
    "TLSV1_ALERT_INTERNAL_ERROR": "it has a fault of its own: see its log",
}
"""What the other side's alert says, by OpenSSL's reason."""
_ABOUT_CERTIFICATE: Final = ("CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED")
_MAY_MEAN_NO_CERTIFICATE: Final = (
    "SSLV3_ALERT_BAD_CERTIFICATE",
    "SSLV3_ALERT_HANDSHAKE_FAILURE",
)
"""What servers send with TLS 1.2, and Java's also with TLS 1.3, to a client without a certificate."""
_UNREADABLE: Final = (
    *(ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
"""What `cryptography` raises for certificates that OpenSSL takes."""
_TIME: Final = "%Y-%m-%d %H:%M:%SZ"
_MAX_NAMES: Final = 10
_MAX_TEXT: Final = 300


def explain(error: Exception, stream: ssl.SSLObject | ssl.SSLSocket | None = None) -> str:
    """One line about a failed handshake; "it" is the other side.

    stream: the connection that failed. Then the line has the dates and names of the certificate.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        try:
            why = _untrusted(error, stream)
        except _UNREADABLE:  # the other side chooses its bytes
            why = f"{_untrusted(error, None)} [the certificate cannot be read]"
        return f"TLS, refused here: {why}"
    if isinstance(error, ssl.SSLEOFError | ConnectionError | ssl.SSLZeroReturnError):
        return (
            "TLS: it closed the connection during the handshake (is its listener PLAINTEXT? Compare "
            "security.protocol, or listener.security.protocol.map, of both sides)"
        )
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    if not reason:
        return f"TLS: {error}"
    if reason == "WRONG_VERSION_NUMBER":
        return f"TLS: {_PLAINTEXT} ({reason})"
    if "_ALERT_" in reason:
        return f"TLS, refused there: {_alert(reason, stream)}"
    return f"TLS, refused here: {_HERE.get(reason, reason)} ({reason})"


def is_refusal(error: Exception) -> bool:
    """Whether a side refused the other: another attempt with the same certificates fails too."""
    return isinstance(error, ssl.SSLError) and not isinstance(
        error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError
    )


def _untrusted(
    error: ssl.SSLCertVerificationError, stream: ssl.SSLObject | ssl.SSLSocket | None
) -> str:
    """Why this side does not accept the certificate of the other."""
    sent = stream.sent_chain() if isinstance(stream, TlsStream) else ()
    theirs = sent[0] if sent else None
    code = error.verify_code
    if code in _WRONG_HOST and stream is not None:
        host = stream.server_hostname
        names = "" if theirs is None else f", it names {', '.join(_hosts(theirs)) or 'no host'}"
        return (
            f"its certificate is not made for the host {_clean(host or '?')}{names}: connect with "
            f"one of its names, or add the host to it there{_described(theirs)}"
        )
    if code == _EXPIRED:
        date = _dates(sent, expired=True)
        return f"its certificate has expired{date}: renew it there{_described(theirs)}"
    if code == _NOT_YET:
        date = _dates(sent, expired=False)
        return f"its certificate is not valid yet{date}: compare the clocks{_described(theirs)}"
    known = _VERIFY.get(code)
    what = known or f"its certificate is not accepted: {error.verify_message}"
    return f"{what}{_described(theirs)}"


def _alert(reason: str, stream: ssl.SSLObject | ssl.SSLSocket | None) -> str:
    """What the other side's alert means, with the certificate that this side sent."""
    context = None if stream is None else stream.context
    own = context.own if isinstance(context, TlsContext) else None
    is_client = stream is not None and stream.server_hostname is not None
    if is_client and own is None and reason in _MAY_MEAN_NO_CERTIFICATE:
        return (
            "it may ask for a client certificate (ssl.client.auth=required there), and this side has "
            f"none: set ssl.keystore.* here. Or {_THERE[reason]} ({reason})"
        )
    about = any(word in reason for word in _ABOUT_CERTIFICATE)
    sent = _described(own, dates=True) if about else ""
    return f"{_THERE.get(reason, reason)}{sent} ({reason})"


def _dates(chain: Sequence[x509.Certificate], *, expired: bool) -> str:
    """The date that a chain failed for: that of the certificate that ends first or begins last."""
    if not chain:
        return ""
    if expired:
        return f" at {min(one.not_valid_after_utc for one in chain):{_TIME}}"
    return f" before {max(one.not_valid_before_utc for one in chain):{_TIME}}"


def _described(certificate: x509.Certificate | None, *, dates: bool = False) -> str:
    if certificate is None:
        return ""
    facts = [f"subject {_name(certificate.subject)}", f"issuer {_name(certificate.issuer)}"]
    if dates:
        first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        facts.append(f"valid from {first:{_TIME}} until {last:{_TIME}}")
    return f" [{', '.join(facts)}]"


def subject_text(certificate: x509.Certificate) -> str:
    """The subject of a certificate in one line."""
    return _name(certificate.subject)


def _name(name: x509.Name) -> str:
    try:
        return _clean(rfc2253(name.public_bytes())) or "(empty)"
    except (DerError, ValueError):
        return "(unreadable)"


def _hosts(certificate: x509.Certificate) -> Sequence[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = [
        *found.get_values_for_type(x509.DNSName),
        *map(str, found.get_values_for_type(x509.IPAddress)),
    ]
    more = [f"and {len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return [*map(_clean, names[:_MAX_NAMES]), *more]


def _clean(text: str) -> str:
    """Text of the other side for one line of a log."""
    if not text.isprintable():
        text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."
