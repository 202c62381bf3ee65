"""The names in a certificate.

Distinguished names are written as Java's `X500Principal.getName()` does (RFC 2253); subject alternative
names are those of RFC 5280, 4.2.1.6.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from collections.abc import Mapping, Sequence
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
_CANONICAL_STRINGS: Final = frozenset((0x0C, 0x13))
_VERSION: Final = 0xA0
_SUBJECT: Final = 4
"""After serial number, algorithm, issuer and validity (RFC 5280, TBSCertificate)."""
_EXTENSIONS: Final = 0xA3
_SUBJECT_ALTERNATIVE_NAME: Final = bytes((0x55, 0x1D, 0x11))
"""The content of the object identifier 2.5.29.17."""
_TEXT_NAMES: Final = (1, 2, 6)
"""rfc822Name, dNSName and uniformResourceIdentifier."""
_DIRECTORY_NAME: Final = 4
_IP_ADDRESS: Final = 7
_NUMBER: Final = 0x1F
"""The bits of a tag that number a kind of general names."""
_ESCAPED: Final = ',=+<>#;"\\'
_BLANKS: Final = " \r"


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises DerError.

    OpenSSL has checked the certificate. `cryptography` refuses names that Java takes, and sorts the
    pairs of a relative name.
    """
    return rfc2253(_facts(certificate)[_SUBJECT][2])


def canonical_subject(certificate: bytes) -> str:
    """A text that is the same for names that Java's `X500Principal` holds to be equal. Raises DerError.

    In UTF8String and PrintableString, letter case, the form of Unicode, and spaces at the ends or beside
    each other make no difference.
    """
    ((_, sequence, _),) = elements(_facts(certificate)[_SUBJECT][2])
    parts = []
    for _, rdn, _ in elements(sequence):
        parts.append("+".join(sorted(_canonical_pair(pair) for _, pair, _ in elements(rdn))))
    return unicodedata.normalize("NFKD", ",".join(reversed(parts)).upper().lower())


def _canonical_pair(pair: bytes) -> str:
    """Write one attribute as `AVA.toRFC2253CanonicalString`, except for escapes."""
    (_, oid, _), (tag, content, whole) = elements(pair)
    if tag not in _CANONICAL_STRINGS:
        return f"{oid_text(oid)}=#{whole.hex()}"
    return f"{oid_text(oid)}={_escape(' '.join(java_text(content).split()))}"


def alternative_names(certificate: bytes) -> Mapping[bytes, str]:
    """The subject alternative names: encoding -> text, such as `[2, localhost]` in Java.

    Raises DerError.
    """
    for tag, content, _ in _facts(certificate):
        if tag != _EXTENSIONS:
            continue
        ((_, extensions, _),) = elements(content)
        for _, extension, _ in elements(extensions):
            fields = list(elements(extension))
            if fields and fields[0][1] == _SUBJECT_ALTERNATIVE_NAME:
                ((_, names, _),) = elements(fields[-1][1])
                return {whole: _general_name(tag, name) for tag, name, whole in elements(names)}
    return {}


def _facts(certificate: bytes) -> Sequence[tuple[int, bytes, bytes]]:
    """The fields of a certificate without its version. Raises DerError."""
    whole = next(elements(certificate), None)
    facts = None if whole is None else next(elements(whole[1]), None)
    fields = [] if facts is None else [one for one in elements(facts[1]) if one[0] != _VERSION]
    if len(fields) <= _SUBJECT:
        raise DerError("not a certificate")
    return fields


def _general_name(tag: int, content: bytes) -> str:
    kind, text = tag & _NUMBER, content.hex()
    if kind in _TEXT_NAMES:
        text = content.decode("latin-1")
    elif kind == _DIRECTORY_NAME:
        text = rfc2253(content)
    elif kind == _IP_ADDRESS and len(content) in (4, 16):
        text = str(ipaddress.ip_address(content))
    return f"[{kind}, {text}]"


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
