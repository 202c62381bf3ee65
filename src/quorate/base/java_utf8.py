"""UTF-8 as Java's `String(byte[], UTF_8)` reads it: what is malformed becomes U+FFFD."""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""One malformed character for Java, several for Python."""


def java_text(data: bytes) -> str:
    """The text of the bytes; never fails."""
    return _SURROGATE.sub("\ufffd".encode(), data).decode("utf-8", "replace")
