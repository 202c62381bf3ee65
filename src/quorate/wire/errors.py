"""What the wire layer raises: WireError for bytes of a peer, EncodeError for values of ours."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class WireError(QuorateError):
    """Bytes from a peer that are not what the protocol says. The only error they may cause."""

    answer = b""
    """What the peer gets before its connection is closed."""


class TlsBytesError(WireError):
    """The peer speaks TLS, where frames are expected: a handshake, or an alert that answers plaintext."""

    answer = b"\x15\x03\x03\x00\x02\x02\x0a"
    """The alert `unexpected_message`: a client that speaks TLS learns that it need not try again."""


class EncodeError(QuorateError):
    """A message that cannot be put into bytes: which field of which version, and why."""


class UnsupportedFieldError(EncodeError):
    """A field that is set has no place in the version asked for, and may not be dropped."""
