"""What the wire layer raises: WireError for bytes of a peer, EncodeError for values of ours."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class WireError(QuorateError):
    """Bytes from a peer that are not what the protocol says. The only error they may cause."""


class EncodeError(QuorateError):
    """A message that cannot be put into bytes: which field of which version, and why."""


class UnsupportedFieldError(EncodeError):
    """A field that is set has no place in the version asked for, and may not be dropped."""
