"""Distinguished names as Java's `X500Principal.getName()` writes them (RFC 2253)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.base.java_utf8 import java_text
from quorate.security.tls.der import DerError, elements, oid_text

_KEYWORDS: Final[Mapping[str, str]] = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_STRINGS: Final = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E))
"""Tags of the values that Java writes as text: UTF8, Printable, T61, IA5, General and BMP."""
_VERSION: Final = 0xA0
_SUBJECT: Final = 4
"""After serial number, algorithm, issuer and validity (RFC 5280, TBSCertificate)."""
_ESCAPED: Final = ',=+<>#;"\\'
_BLANKS: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises DerError.

    OpenSSL has checked the certificate. `cryptography` refuses names that Java takes, and sorts the
    pairs of a relative name.
    """
    whole = next(elements(certificate), None)
    facts = None if whole is None else next(elements(whole[1]), None)
    parts = [] if facts is None else [p for tag, _, p in elements(facts[1]) if tag != _VERSION]
    if len(parts) <= _SUBJECT:
        raise DerError("not a certificate")
    return rfc2253(parts[_SUBJECT])


def rfc2253(name: bytes) -> str:
    """The text of a name in DER. Raises DerError."""
    ((_, sequence, _),) = elements(name)
    parts = []
    for _, rdn, _ in elements(sequence):
        parts.append("+".join(_pair(pair) for _, pair, _ in elements(rdn)))
    return ",".join(reversed(parts))


def _pair(pair: bytes) -> str:
    (_, oid, _), (tag, content, whole) = elements(pair)
    dotted = oid_text(oid)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or dotted}=#{whole.hex()}"
    # Java (`AVA.toRFC2253String`) takes the bytes of every string for UTF-8, those of UTF-16 too.
    return f"{keyword}={_escape(java_text(content))}"


def _escape(text: str) -> str:
    chars = [f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text]
    lead, trail = 0, len(chars)
    while lead < trail and chars[lead] in _BLANKS:
        lead += 1
    while trail > lead and chars[trail - 1] in _BLANKS:
        trail -= 1
    outside = [f"\\{char}" for char in chars[:lead]], [f"\\{char}" for char in chars[trail:]]
    return "".join((*outside[0], *chars[lead:trail], *outside[1]))
