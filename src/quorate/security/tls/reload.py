"""The TLS context of a listener or of outgoing connections, made again when files or values change."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.file_stamp import FileStamp, file_stamp
from quorate.security.tls.compatible import (
    check_key_change,
    check_switches,
    check_trust_change,
    check_validity,
)
from quorate.security.tls.stores import KeyEntry, StoreError, key_place, named
from quorate.security.tls.streams import TlsContext

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
_DAY_S: Final = 86_400


class ReloadingContext:
    """Makes the context, and again when `poll` finds a changed file or gets other values.

    What is new and cannot be used, or must not take the place of what is in use (`compatible`), leaves
    the old context in place; `fault` says why. Raises StoreError at first.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        make: Callable[[Mapping[str, str]], TlsContext],
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """wall_s: reads the clock, in s since 1970."""
        self.fault: str | None = None
        """Why the changed files are not in use; None: they are."""
        self.refused_changes = 0
        """How many times changed files could not be used."""
        self._values = values
        self._make = make
        self._wall_s = wall_s
        self._may_pass = False
        """Whether the fault may be over without a change of the files: they are read again."""
        self._seen = self._stamps()
        check_switches(values)
        self.context = make(values)
        self._used, self._used_values = self.context.entry, values
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
        is_same = stamps == self._seen and self._values == old
        if is_same and not self._may_pass:
            return None
        self._seen = stamps
        self._may_pass = False
        try:
            self._take(self._make(self._values))
        except (QuorateError, OSError) as error:
            self._may_pass = _may_pass(error)
            if is_same and self.fault == str(error):
                return None
            self.fault = str(error)
            self.refused_changes += 1
            return False
        return True

    def _take(self, context: TlsContext) -> None:
        entry = context.entry
        with named(key_place(self._values)):
            check_key_change(self._used, entry, self._values)
            check_validity(self._used, entry, self._values, self._wall_s())
            expires_at_s = _expiry(entry)
        check_trust_change(self._used_values, self._values)
        self.context, self.fault = context, None
        self._used, self._used_values = entry, self._values
        self.expires_at_s = expires_at_s

    def _stamps(self) -> Sequence[FileStamp | None]:
        paths = (self._values.get(key) for key in _FILES)
        return [file_stamp(path) if path else None for path in paths]


def _may_pass(error: QuorateError | OSError) -> bool:
    """Whether the same files may be usable later: they cannot be read now, or descriptors are short."""
    if isinstance(error, StoreError):
        return error.may_pass
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)


def _expiry(entry: KeyEntry | None) -> float | None:
    if entry is None:
        return None
    return min(one.not_valid_after_utc.timestamp() for one in entry.chain)
