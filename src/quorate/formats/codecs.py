"""The codecs that Kafka compresses record batches with, as its producers frame them."""

from __future__ import annotations

import zlib
from typing import Final

from quorate.base.errors import QuorateError

_GZIP: Final = 31
"""Window size and container, in the terms of zlib."""
_XERIAL: Final = b"\x82SNAPPY\0"
"""How the stream of snappy-java begins; its version and the oldest that can read it follow."""
_XERIAL_HEADER: Final = 16
_SIZE: Final = 4


class CodecError(QuorateError):
    """Bytes that are not what the codec writes."""


def decompress(codec: str, data: bytes) -> bytes:
    """Return the records of a batch whose header names `codec`. Raises CodecError."""
    if codec == "gzip":
        try:
            return zlib.decompress(data, _GZIP)
        except zlib.error as error:
            raise CodecError(str(error)) from None
    # Imported here: batches of a metadata log are not compressed.
    import cramjam

    try:
        match codec:
            case "lz4":
                return bytes(cramjam.lz4.decompress(data))
            case "zstd":
                return bytes(cramjam.zstd.decompress(data))
            case _:
                parts = map(cramjam.snappy.decompress_raw, _snappy_blocks(data))
                return b"".join(map(bytes, parts))
    except cramjam.DecompressionError as error:
        raise CodecError(str(error)) from None


def _snappy_blocks(data: bytes) -> list[bytes]:
    """Return the blocks in the stream of snappy-java; other data is one block (`SnappyInputStream`)."""
    if not data.startswith(_XERIAL):
        return [data]
    blocks, position = [], _XERIAL_HEADER
    while position < len(data):
        start = position + _SIZE
        position = start + int.from_bytes(data[position:start], "big")
        if position > len(data):
            raise CodecError(f"a block passes the end by {position - len(data)} bytes")
        blocks.append(data[start:position])
    return blocks
