"""The TLS context of a listener or of outgoing connections, made again when files or values change."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.file_stamp import FileStamp, file_stamp
from quorate.security.tls.compatible import (
    NotYetValidError,
    check_key_change,
    check_switches,
    check_trust_change,
    check_validity,
)
from quorate.security.tls.stores import KeyEntry, StoreError, Stores, key_place, named
from quorate.security.tls.streams import TlsContext

_FILES: Final = ("ssl.keystore.location", "ssl.truststore.location")
_DAY_S: Final = 86_400

Maker = Callable[[Mapping[str, str], Stores | None], TlsContext]
"""Makes a context of the keys `ssl.*`; reads the stores unless it is given what they hold."""
Reader = Callable[[Maker, Mapping[str, str]], TlsContext]
"""Makes a context, with what the stores hold now."""


class StoreChange(NamedTuple):
    """Something to read."""

    values: Mapping[str, str]
    is_same: bool
    """Neither files nor values are others; the fault may be over."""


class NewContext(NamedTuple):
    """A context that may take the place of the one in use."""

    context: TlsContext
    expires_at_s: float | None


class RefusedChange(NamedTuple):
    """Why the context in use stays."""

    error: QuorateError | OSError
    early: TlsContext | None = None
    """What was read and will be valid later."""


def read_here(make: Maker, values: Mapping[str, str]) -> TlsContext:
    """Make a context in this thread."""
    return make(values, None)


class ReloadingContext:
    """Makes the context, and again when files change or other values count.

    What is new and cannot be used, or must not take the place of what is in use (`compatible`), leaves
    the old context in place; `fault` says why. Raises StoreError at first.
    """

    def __init__(
        self,
        values: Mapping[str, str],
        make: Maker,
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
        self._early: TlsContext | None = None
        """What was read of these files and values, and is valid later."""
        self._seen = self._stamps()
        check_switches(values)
        self.context = read_here(make, values)
        self._used, self._used_values = self.context.entry, values
        self.expires_at_s = _expiry(self._used)
        """When the first certificate of the chain expires, in s since 1970; None: there is none."""

    def days_to_expiry(self, now_s: float) -> float | None:
        """Days until the node's own certificate expires; negative: it has."""
        return None if self.expires_at_s is None else (self.expires_at_s - now_s) / _DAY_S

    def change(self, values: Mapping[str, str] | None = None) -> StoreChange | None:
        """What to `read`, if files have changed or `values` replace those of today; None: nothing.

        Dynamic configs may name no key store that a changed file could not hold.
        """
        old, self._values = self._values, self._values if values is None else values
        stamps = self._stamps()
        is_same = stamps == self._seen and self._values == old
        if is_same and not self._may_pass:
            return None
        self._seen = stamps
        self._may_pass = False
        return StoreChange(self._values, is_same)

    def read(self, change: StoreChange, reader: Reader = read_here) -> NewContext | RefusedChange:
        """Read and check what changed. Any thread may: nothing is set."""
        values = change.values
        context = self._early if change.is_same else None
        try:
            context = context or reader(self._make, values)
            with named(key_place(values)):
                check_key_change(self._used, context.entry, values)
                check_validity(self._used, context.entry, values, self._wall_s())
                expires_at_s = _expiry(context.entry)
            check_trust_change(self._used_values, values)
        except NotYetValidError as error:
            return RefusedChange(error, context)
        except (QuorateError, OSError) as error:
            return RefusedChange(error)
        return NewContext(context, expires_at_s)

    def use(self, change: StoreChange, found: NewContext | RefusedChange) -> bool | None:
        """Take what was read: True when it is in use now, False when refused, None as refused before."""
        if isinstance(found, NewContext):
            self.context, self.fault, self._early = found.context, None, None
            self._used, self._used_values = found.context.entry, change.values
            self.expires_at_s = found.expires_at_s
            return True
        self._may_pass, self._early = may_pass(found.error), found.early
        text = str(found.error)
        if change.is_same and self.fault == text:
            return None
        self.fault = text
        self.refused_changes += 1
        return False

    def _stamps(self) -> Sequence[FileStamp | None]:
        paths = (self._values.get(key) for key in _FILES)
        return [file_stamp(path) if path else None for path in paths]


def may_pass(error: QuorateError | OSError) -> bool:
    """Whether the same files may be usable later: they cannot be read now, or descriptors are short."""
    if isinstance(error, StoreError):
        return error.may_pass
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError)


def _expiry(entry: KeyEntry | None) -> float | None:
    if entry is None:
        return None
    return min(one.not_valid_after_utc.timestamp() for one in entry.chain)
