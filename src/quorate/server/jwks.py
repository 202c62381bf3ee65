"""The public keys that sign tokens of OAUTHBEARER, from a file or a web server (RFC 7517).

Source: `RefreshingHttpsJwks`. A thread of its own fetches the keys, so no login waits for a web server:
logins use the keys that are there.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import Final

from quorate.security.sasl.mechanism import SaslError
from quorate.security.sasl.token_keys import Key, read_keys
from quorate.server.fetch_url import fetch_url
from quorate.server.logs import LOG

_TOTAL_S: Final = 10.0
_MAX_BYTES: Final = 1_048_576
_MIN_INTERVAL_S: Final = 10.0
"""An unknown key id fetches the keys again, but not more often."""
_LEAST_BACKOFF_S: Final = 0.1
_SHOWN_KEYS: Final = 5


@dataclass(frozen=True, slots=True)
class JwksTimes:
    """When keys are fetched, in seconds."""

    refresh_s: float = 3600.0
    """`jwks.endpoint.refresh.ms`."""
    backoff_s: float = 0.1
    """`jwks.endpoint.retry.backoff.ms`: the pause after a failure. Each further one is twice as long."""
    backoff_max_s: float = 10.0
    """`jwks.endpoint.retry.backoff.max.ms`: the longest pause."""
    unknown_s: float = _MIN_INTERVAL_S
    """The least time between fetches for an unknown key id."""
    total_s: float = _TOTAL_S
    """Limit of one attempt, however slowly the server sends."""


class JwksKeys:
    """Gives the keys at once, from any thread. `close` ends the thread.

    A failed refresh keeps the old keys. The first failure in a row is logged, and the end of failures.
    """

    def __init__(self, url: str, times: JwksTimes | None = None) -> None:
        self._url = url
        self._times = times or JwksTimes()
        self._changed = threading.Condition()
        self._keys: tuple[Key, ...] | None = None
        self._skipped: list[str] = []
        self._ids: frozenset[str] = frozenset()
        self._tried_at = -1e9
        self._next_at = 0.0
        """When the next attempt is due, in monotonic seconds."""
        self._failures = 0
        self._is_closed = False
        if url.startswith("file:"):
            self._attempt()
        threading.Thread(target=self._run, name="jwks", daemon=True).start()

    def __call__(self, kid: str | None) -> tuple[Key, ...]:
        """The keys. An id that they do not have makes the thread fetch them. Raises SaslError."""
        with self._changed:
            if self._keys is None:
                raise SaslError(f"no keys to check tokens with: {self._url} was not read yet")
            if kid is not None and kid not in self._ids:
                self._next_at = min(self._next_at, self._tried_at + self._times.unknown_s)
                self._changed.notify_all()
            return self._keys

    def close(self) -> None:
        """End the thread; an attempt under way ends within its limit."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and (left := self._next_at - time.monotonic()) > 0:
                    self._changed.wait(left)
                if self._is_closed:
                    return
            self._attempt()

    def _attempt(self) -> None:
        self._tried_at = time.monotonic()
        failure: Exception | None = None
        keys: tuple[Key, ...] = ()
        skipped: list[str] = []
        try:
            keys, skipped = read_keys(
                json.loads(fetch_url(self._url, self._times.total_s, _MAX_BYTES))
            )
        except (OSError, ValueError) as error:
            failure = error
        except RecursionError:
            failure = ValueError("it is nested too deeply")
        with self._changed:
            if failure is None:
                self._keys, self._ids = keys, frozenset(key.kid for key in keys)
                self._skip(skipped)
            self._plan(failure)
            self._changed.notify_all()

    def _skip(self, skipped: list[str]) -> None:
        """Say which keys are not used, when it changes."""
        if skipped and skipped != self._skipped:
            some = "; ".join(skipped[:_SHOWN_KEYS])
            LOG.warning("Unusable keys of %s: %s", self._url, some)
        self._skipped = skipped

    def _plan(self, failure: Exception | None) -> None:
        now, times = time.monotonic(), self._times
        if failure is None:
            if self._failures:
                LOG.info("Read the keys for OAUTHBEARER from %s again", self._url)
            self._failures, self._next_at = 0, now + times.refresh_s
            return
        if not self._failures:
            LOG.warning("Cannot read the keys for OAUTHBEARER from %s: %s", self._url, failure)
        doubled = max(times.backoff_s, _LEAST_BACKOFF_S) * 2.0 ** min(self._failures, 30)
        self._failures += 1
        self._next_at = now + min(doubled, max(times.backoff_max_s, _LEAST_BACKOFF_S))
