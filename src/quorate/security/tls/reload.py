"""The TLS context of a listener or of outgoing connections, made again when files or values change."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.file_stamp import FileStamp, file_stamp
from quorate.security.tls.compatible import check_key_change, check_switches, check_trust_change
from quorate.security.tls.stores import KeyEntry, key_place, named, read_key

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
_DAY_S: Final = 86_400


class ReloadingContext:
    """Makes the context, and again when `poll` finds a changed file or gets other values.

    What is new and cannot be used, or must not take the place of what is in use (`compatible`), leaves
    the old context in place; `fault` says why. Raises StoreError at first.
    """

    def __init__(
        self, values: Mapping[str, str], make: Callable[[Mapping[str, str]], ssl.SSLContext]
    ) -> None:
        self.fault: str | None = None
        """Why the changed files are not in use; None: they are."""
        self.refused_changes = 0
        """How many times changed files could not be used."""
        self._values = values
        self._make = make
        self._seen = self._stamps()
        check_switches(values)
        self.context = make(values)
        self._used, self._used_values = read_key(values), values
        self.expires_at_s = _expiry(self._used)
        """When the first certificate of the chain expires, in s since 1970; None: there is none."""

    def days_to_expiry(self, now_s: float) -> float | None:
        """Days until the node's own certificate expires; negative: it has."""
        return None if self.expires_at_s is None else (self.expires_at_s - now_s) / _DAY_S

    def poll(self, values: Mapping[str, str] | None = None) -> bool | None:
        """Read changed files: True when they are in use now, False when refused, None unchanged.

        `values` replace those of today. Dynamic configs may name no key store that a changed file could
        not hold.
        """
        old, self._values = self._values, self._values if values is None else values
        stamps = self._stamps()
        if stamps == self._seen and self._values == old:
            return None
        self._seen = stamps
        try:
            context = self._make(self._values)
            entry = read_key(self._values)
            with named(key_place(self._values)):
                check_key_change(self._used, entry, self._values)
            check_trust_change(self._used_values, self._values)
        except (QuorateError, ssl.SSLError) as error:
            self.fault = str(error)
            self.refused_changes += 1
            return False
        self.context, self.fault = context, None
        self._used, self._used_values = entry, self._values
        self.expires_at_s = _expiry(entry)
        return True

    def _stamps(self) -> Sequence[FileStamp | None]:
        paths = (self._values.get(key) for key in _FILES)
        return [file_stamp(path) if path else None for path in paths]


def _expiry(entry: KeyEntry | None) -> float | None:
    if entry is None:
        return None
    return min(one.not_valid_after_utc.timestamp() for one in entry.chain)
