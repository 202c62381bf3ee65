"""Zips whose directory, which stands at their end, is lost: what the headers before members tell.

So of a copy that was cut off. Layout: PKWARE's APPNOTE, 4.3.7 (local file header) and 4.3.9 (data
descriptor). A member of which no header tells the length has it in its descriptor; where it is
deflated its own end shows that, else nothing behind it can be found.
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
_ENCRYPTED, _TOLD_LATER, _UTF8 = 0x1, 0x8, 0x800
"""Flags of a member."""
_WIDE: Final = 0xFFFFFFFF
"""In the place of a length that is told by the extra field of ZIP64, which has this number: 1."""
_STEP: Final = 1 << 16


class CutZip(zipfile.ZipFile):
    """The members of a zip without its directory; the last may be cut."""

    def __init__(self, base: Any, problem: zipfile.BadZipFile) -> None:
        """Raises the problem where there is no member."""
        super().__init__(io.BytesIO(_NONE))
        self.fp = base
        found, self.reached = _members(base)
        if not found:
            raise problem
        self.filelist = found
        self.NameToInfo = {member.filename: member for member in found}
        self.problem = zipfile.BadZipFile(f"its directory is lost: {problem}")


def _members(base: Any) -> tuple[list[zipfile.ZipInfo], int]:
    """What is told from the first byte on without a gap, and the byte where that ends."""
    size, at = base.seek(0, io.SEEK_END), 0
    found: list[zipfile.ZipInfo] = []
    while at < size and (read := _member(base, at)) is not None:
        member, start = read
        whole = True
        if member.flag_bits & _TOLD_LATER and not member.flag_bits & _ENCRYPTED:
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
    """The member whose header stands here, and where its bytes begin; None where it is not whole.

    What the header leaves to the descriptor is 0.
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
    """The lengths of more than 4 GiB."""
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<2H", extra)
        if kind == 1:
            yield from (one for (one,) in struct.iter_unpack("<Q", extra[4 : 4 + size // 8 * 8]))
        extra = extra[4 + size :]


def _measured(base: Any, member: zipfile.ZipInfo, start: int) -> tuple[bool, int]:
    """Unpack a member that ends where its own bytes say so, and fill in what was found.

    Whether it was whole, descriptor and all, and where it ends.
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
        member.file_size += 1  # whoever reads on to there is told what is wrong
    if not (sound and unpack.eof):
        return False, start + packed
    base.seek(start + packed)
    told = base.read(_DESCRIPTOR_SIZE)
    layouts = ("<3I", "<I2Q") if max(plain, packed) < _WIDE else ("<I2Q",)
    for mark in (_DESCRIPTOR, b""):
        for layout in layouts:
            wanted = mark + struct.pack(layout, crc, packed, plain)
            if told.startswith(wanted):
                return True, start + packed + len(wanted)
    return False, start + packed


def _up_to_garbage(unpack: Any, packed: bytes) -> Iterator[bytes]:
    """What can be unpacked of these bytes."""
    try:
        for byte in packed:
            yield unpack.decompress(bytes((byte,)))
    except zlib.error:
        return
