"""Distinguished names as Java's `X500Principal.getName()` writes them (RFC 2253)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cryptography import x509

from quorate.security.tls.der import elements, oid_text

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
_ENCODINGS: Final[Mapping[int, str]] = {
    0x0C: "utf-8",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1B: "ascii",
    0x1E: "utf-16-be",
}
"""Tags of the strings that Java writes as text, and their encodings."""
_ESCAPED: Final = ',=+<>#;"\\'
_BLANKS: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER."""
    return rfc2253(x509.load_der_x509_certificate(certificate).subject.public_bytes())


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
    if keyword is None or tag not in _ENCODINGS:
        return f"{keyword or dotted}=#{whole.hex()}"
    text = content.decode(_ENCODINGS[tag], "replace")
    return f"{keyword}={_escape(text)}"


def _escape(text: str) -> str:
    chars = [f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text]
    lead, trail = 0, len(chars)
    while lead < trail and chars[lead] in _BLANKS:
        lead += 1
    while trail > lead and chars[trail - 1] in _BLANKS:
        trail -= 1
    outside = [f"\\{char}" for char in chars[:lead]], [f"\\{char}" for char in chars[trail:]]
    return "".join((*outside[0], *chars[lead:trail], *outside[1]))
