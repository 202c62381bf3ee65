"""The public keys that sign tokens of OAUTHBEARER, from a file or a web server (RFC 7517)."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

from quorate.security.sasl.mechanism import SaslError
from quorate.server.logs import LOG

_TIMEOUT_S: Final = 10.0
_MAX_BYTES: Final = 1_048_576
_MIN_INTERVAL_S: Final = 10.0
"""An unknown key id fetches the keys again, but not more often."""


class JwksKeys:
    """Gives joserfc's KeySet. It may read the URL, so it must not be called on the loop.

    A failed refresh keeps the old keys, and is logged.
    """

    def __init__(self, url: str, refresh_s: float) -> None:
        self._url = url
        self._refresh_s = refresh_s
        self._lock = threading.Lock()
        self._keys: Any = None
        self._ids: frozenset[str] = frozenset()
        self._tried_at = -1e9
        self._read_at = -1e9

    def __call__(self, kid: str | None) -> Any:
        """The keys, read again when they are old or have no key of this id. Raises SaslError."""
        with self._lock:
            now = time.monotonic()
            is_old = now - self._read_at >= self._refresh_s
            is_unknown = kid is not None and kid not in self._ids
            if (is_old or is_unknown) and now - self._tried_at >= _MIN_INTERVAL_S:
                self._tried_at = now
                self._read(now)
            if self._keys is None:
                raise SaslError(f"no keys to check tokens with: {self._url} could not be read")
            return self._keys

    def _read(self, now: float) -> None:
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            with urlopen(self._url, timeout=_TIMEOUT_S) as page:  # noqa: S310 - the file's own URL
                data = page.read(_MAX_BYTES + 1)
            if len(data) > _MAX_BYTES:
                raise ValueError(f"it has more than {_MAX_BYTES} bytes")
            found = json.loads(data)
            self._keys = KeySet.import_key_set(found)
            self._ids = frozenset(str(key.get("kid")) for key in found["keys"])
            self._read_at = now
        except (OSError, URLError, ValueError, KeyError, TypeError, JoseError) as error:
            LOG.warning("Cannot read the keys for OAUTHBEARER from %s: %s", self._url, error)
