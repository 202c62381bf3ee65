"""The state of a node's certificates, as its log, its metrics and `/readyz` show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CertificateState(NamedTuple):
    """The certificates of a listener, or of the connections to other controllers."""

    days_to_expiry: float | None
    """Until the node's own certificate expires; negative: it has; None: there is none."""
    fault: str | None
    """Why the changed files are not in use; None: they are."""
    refused_changes: int
    """How many times a changed file could not be used."""


Certificates = Mapping[str, CertificateState]
"""What they secure -> their state."""


def security_detail(
    failed_authentications: Mapping[str, int], certificates: Certificates
) -> Mapping[str, object]:
    """What `/readyz` says of a node's security; nothing where no listener is secured."""
    detail: dict[str, object] = {}
    if failed_authentications:
        detail["failedAuthentications"] = dict(failed_authentications)
    if certificates:
        detail["certificates"] = {use: _facts(state) for use, state in certificates.items()}
    return detail


def _facts(state: CertificateState) -> Mapping[str, object]:
    facts: dict[str, object] = {}
    if state.days_to_expiry is not None:
        facts["daysToExpiry"] = round(state.days_to_expiry, 1)
    if state.fault is not None:
        facts["fault"] = state.fault
    return facts
