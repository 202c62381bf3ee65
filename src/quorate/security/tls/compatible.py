"""What a running node may change of its stores.

Kafka checks each new store of a running node, whether a file or a dynamic config has changed. A node that
starts takes any store that its file names. Source: `SslFactory.createNewSslEngineFactory` and
`SslFactory.CertificateEntries`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from quorate.security.tls.contexts import TlsError
from quorate.security.tls.names import alternative_names, canonical_subject, subject_of
from quorate.security.tls.stores import KeyEntry, key_place

ALLOW_DN_CHANGES: Final = "ssl.allow.dn.changes"
ALLOW_SAN_CHANGES: Final = "ssl.allow.san.changes"
_TRUST_STORE: Final = ("ssl.truststore.location", "ssl.truststore.certificates")


class NotYetValidError(TlsError):
    """A certificate that is valid later."""

    may_pass = True


def check_switches(values: Mapping[str, str]) -> None:
    """Raise TlsError for a value of `ssl.allow.*.changes` that is not a boolean."""
    for key in (ALLOW_DN_CHANGES, ALLOW_SAN_CHANGES):
        _is_allowed(values, key)


def check_key_change(old: KeyEntry | None, new: KeyEntry | None, values: Mapping[str, str]) -> None:
    """Raise TlsError for a key store that must not take the place of the one in use.

    values: the keys of the new one, `ssl.allow.*.changes` with them. Raises DerError.
    """
    place = key_place(values)
    if old is None and new is None:
        return
    if old is None:
        raise TlsError(
            place,
            "Cannot add SSL keystore to an existing listener for which no keystore was configured: "
            "restart the node",
        )
    if new is None:
        raise TlsError(
            place,
            "Cannot remove the SSL keystore from an existing listener for which a keystore was "
            "configured: restart the node",
        )
    if not _is_allowed(values, ALLOW_DN_CHANGES):
        _check_subjects(old.entries, new.entries, place)
    if not _is_allowed(values, ALLOW_SAN_CHANGES):
        _check_alternative_names(old.entries, new.entries, place)


def check_validity(
    old: KeyEntry | None, new: KeyEntry | None, values: Mapping[str, str], now_s: float
) -> None:
    """Raise TlsError for a certificate that is not valid now, where the one in use is.

    No other side would take it. Kafka checks this for the listener between brokers (`SslEngineValidator`).
    now_s: s since 1970.
    """
    if old is None or new is None:
        return
    in_use, found = old.chain[0], new.chain[0]
    if _start(found) <= now_s <= _end(found) or not _start(in_use) <= now_s <= _end(in_use):
        return
    place = key_place(values)
    if now_s < _start(found):
        when = f"{found.not_valid_before_utc:%Y-%m-%d %H:%M:%SZ}"
        raise NotYetValidError(
            place,
            f"the new certificate is not valid before {when}: it is used from then on. Check the clock "
            "of this host",
        )
    when = f"{found.not_valid_after_utc:%Y-%m-%d %H:%M:%SZ}"
    raise TlsError(place, f"the new certificate has expired at {when}: put a valid one there")


def _start(certificate: x509.Certificate) -> float:
    return certificate.not_valid_before_utc.timestamp()


def _end(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()


def check_trust_change(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Raise TlsError for a trust store where there was none; one may be removed, as in Kafka."""
    if any(map(new.get, _TRUST_STORE)) and not any(map(old.get, _TRUST_STORE)):
        raise TlsError(
            _TRUST_STORE[0],
            "Cannot add SSL truststore to an existing listener for which no truststore was "
            "configured: restart the node",
        )


def _is_allowed(values: Mapping[str, str], key: str) -> bool:
    text = (values.get(key) or "false").strip().lower()
    if text not in ("true", "false"):
        raise TlsError(key, f"{values[key]!r} is not a boolean: use true or false")
    return text == "true"


def _check_subjects(
    old: Sequence[x509.Certificate], new: Sequence[x509.Certificate], place: str
) -> None:
    _check_count(old, new, place, ALLOW_DN_CHANGES)
    for before, after in zip(map(_der, old), map(_der, new), strict=True):
        dns = subject_of(before), subject_of(after)
        same_text = dns[0].lower() == dns[1].lower()
        if not same_text and canonical_subject(before) != canonical_subject(after):
            raise TlsError(
                place,
                f"Keystore DistinguishedName does not match: existing={{DN={dns[0]}}}, "
                f"new={{DN={dns[1]}}}: {_remedy(ALLOW_DN_CHANGES)}",
            )


def _check_alternative_names(
    old: Sequence[x509.Certificate], new: Sequence[x509.Certificate], place: str
) -> None:
    _check_count(old, new, place, ALLOW_SAN_CHANGES)
    for before, after in zip(map(_der, old), map(_der, new), strict=True):
        names = alternative_names(before), alternative_names(after)
        if not names[0].keys() <= names[1].keys():
            shown = [", ".join(one.values()) for one in names]
            raise TlsError(
                place,
                f"Keystore SubjectAltNames do not match: existing={{SAN=[{shown[0]}]}}, "
                f"new={{SAN=[{shown[1]}]}}: {_remedy(ALLOW_SAN_CHANGES)}",
            )


def _check_count(
    old: Sequence[x509.Certificate], new: Sequence[x509.Certificate], place: str, switch: str
) -> None:
    if len(old) != len(new):
        raise TlsError(
            place,
            f"Keystore entries do not match, existing store contains {len(old)} entries, new store "
            f"contains {len(new)} entries: {_remedy(switch)}",
        )


def _remedy(switch: str) -> str:
    return f"set {switch}=true in the node's file, or restart the node with the new store in it"


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)
