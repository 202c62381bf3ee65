"""Text files replaced atomically: a reader sees the old text or the whole new one."""

from __future__ import annotations

from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Write a text file (UTF-8), also over an existing one; raises OSError with its name.

    A process that ends on the way leaves the old file. A path that is no regular file (a pipe,
    `/dev/stdout`) cannot be replaced by a rename, so it is written directly.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    target = path.resolve()
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(target)) from None
