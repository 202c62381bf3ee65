"""Files that are written for people and programs: there is the old one, or the whole new one."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write a text file (UTF-8), also over one that is there; raises OSError with its name.

    Who ends on the way leaves what was there. What is no plain file, as a pipe, is written
    as it is.
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
