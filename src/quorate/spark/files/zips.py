"""Zip archives without their central directory, for example truncated copies.

The central directory stands at the end of a zip. Without it, the members are found by their local
headers. Layout: PKWARE's APPNOTE, 4.3.7 (local file header) and 4.3.9 (data descriptor). A header
may leave the length to the data descriptor behind the member. A deflated member marks its own end;
behind a stored member without a length nothing can be found.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, Final

_HEADER: Final = struct.Struct("<4s5H3I2H")
_MEMBER: Final = b"PK\x03\x04"
_DESCRIPTOR: Final = b"PK\x07\x08"
_DESCRIPTOR_SIZE: Final = 24
"""At most."""
_NONE: Final = b"PK\x05\x06" + bytes(18)
"""A zip that is empty."""
_ENCRYPTED, _HAS_DESCRIPTOR, _UTF8 = 0x1, 0x8, 0x800
"""Flags of a member."""
_WIDE: Final = 0xFFFFFFFF
"""Stands for a length that is in the ZIP64 extra field (header id 1)."""
_STEP: Final = 1 << 16


class TruncatedZip(zipfile.ZipFile):
    """The members of a zip without its central directory; the last may be truncated."""

    def __init__(self, base: Any, problem: zipfile.BadZipFile) -> None:
        """Find the members. Raises `problem` when there is none."""
        super().__init__(io.BytesIO(_NONE))
        self.fp = base
        found, self.reached = _members(base)
        if not found:
            raise problem
        self.filelist = found
        self.NameToInfo = {member.filename: member for member in found}
        self.problem = zipfile.BadZipFile(f"its central directory is lost: {problem}")


def _members(base: Any) -> tuple[list[zipfile.ZipInfo], int]:
    """The members from the first byte on without a gap, and the byte where they end."""
    size, at = base.seek(0, io.SEEK_END), 0
    found: list[zipfile.ZipInfo] = []
    while at < size and (read := _member(base, at)) is not None:
        member, start = read
        whole = True
        if member.flag_bits & _HAS_DESCRIPTOR and not member.flag_bits & _ENCRYPTED:
            if member.compress_type != zipfile.ZIP_DEFLATED:
                break
            whole, at = _measured(base, member, start)
        else:
            at = start + member.compress_size
        found.append(member)
        if not whole:
            break
    return found, min(at, size)


def _member(base: Any, at: int) -> tuple[zipfile.ZipInfo, int] | None:
    """The member whose header is at a byte, and where its data begins; None: no whole header.

    Lengths that the header leaves to the data descriptor are 0.
    """
    base.seek(at)
    head = base.read(_HEADER.size)
    if len(head) < _HEADER.size or not head.startswith(_MEMBER):
        return None
    _, needed, flags, method, _, _, crc, packed, plain, name_size, extra_size = _HEADER.unpack(head)
    name, extra = base.read(name_size), base.read(extra_size)
    if not name or len(name) + len(extra) < name_size + extra_size:
        return None
    try:
        member = zipfile.ZipInfo(name.decode("utf-8" if flags & _UTF8 else "cp437"))
    except UnicodeDecodeError:
        return None
    member.header_offset, member.extract_version = at, needed
    member.flag_bits, member.compress_type, member.CRC = flags, method, crc
    wide = _wide(extra)
    member.file_size = next(wide, plain) if plain == _WIDE else plain
    member.compress_size = next(wide, packed) if packed == _WIDE else packed
    return member, at + len(head) + len(name) + len(extra)


def _wide(extra: bytes) -> Iterator[int]:
    """The lengths in the ZIP64 extra field, for members of 4 GiB and more."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        if kind == 1:
            yield from (one for (one,) in struct.iter_unpack("<Q", extra[4 : 4 + size // 8 * 8]))
        extra = extra[4 + size :]


def _measured(base: Any, member: zipfile.ZipInfo, start: int) -> tuple[bool, int]:
    """Unpack a deflated member to find its end, and set its lengths and checksum.

    Returns whether the member and its data descriptor are whole, and the byte where they end.
    """
    unpack, crc, plain, packed = zlib.decompressobj(-zlib.MAX_WBITS), 0, 0, 0
    base.seek(start)
    sound = True
    while sound and not unpack.eof and (some := base.read(_STEP)):
        before = unpack.copy()
        try:
            parts = [unpack.decompress(some)]
        except zlib.error:
            parts, sound = list(_up_to_garbage(before, some)), False
        for part in parts:
            crc, plain = zlib.crc32(part, crc), plain + len(part)
        packed += len(some) - len(unpack.unused_data)
    member.CRC, member.file_size, member.compress_size = crc, plain, packed
    if not sound:
        member.file_size += 1  # a reader that gets to this byte gets the error
    if not (sound and unpack.eof):
        return False, start + packed
    base.seek(start + packed)
    descriptor = base.read(_DESCRIPTOR_SIZE)
    layouts = ("<3I", "<I2Q") if max(plain, packed) < _WIDE else ("<I2Q",)
    for mark in (_DESCRIPTOR, b""):
        for layout in layouts:
            wanted = mark + struct.pack(layout, crc, packed, plain)
            if descriptor.startswith(wanted):
                return True, start + packed + len(wanted)
    return False, start + packed


def _up_to_garbage(unpack: Any, packed: bytes) -> Iterator[bytes]:
    """The bytes that can be unpacked before the error: byte by byte, since zlib gives none of a
    call that fails."""
    try:
        for byte in packed:
            yield unpack.decompress(bytes((byte,)))
    except zlib.error:
        return
