"""A TLS context whose connections know the certificates of both sides, also when they are refused."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Any

from cryptography import x509

from quorate.security.tls.stores import KeyEntry


class _SentChain:
    """What an SSL object adds to its class."""

    def sent_chain(self: Any) -> Sequence[x509.Certificate]:
        """The certificates that a server sent, its own first, refused or not.

        OpenSSL keeps those of a client only once they are accepted: before that there are none.
        Raises what `cryptography` raises for bytes that it does not take.
        """
        found = self._sslobj.get_unverified_chain() if self._sslobj is not None else None
        return [x509.load_pem_x509_certificate(one.public_bytes().encode()) for one in found or ()]


class TlsObject(_SentChain, ssl.SSLObject):
    """TLS between two buffers."""


class TlsSocket(_SentChain, ssl.SSLSocket):
    """TLS on a socket."""


TlsStream = TlsObject | TlsSocket


class TlsContext(ssl.SSLContext):
    """A context that knows the certificate that it shows."""

    entry: KeyEntry | None = None
    """The key of this side, and its certificates; None: it has none."""
    trusted: Sequence[x509.Certificate] | None = None
    """What the trust store holds; None: it was not read."""
    sslobject_class = TlsObject
    sslsocket_class = TlsSocket

    @property
    def own(self) -> x509.Certificate | None:
        """The certificate of this side; None: it has none."""
        return None if self.entry is None else self.entry.chain[0]
