"""Why a file cannot be read, also where its name is no name of a file."""

from __future__ import annotations


def why(error: OSError | ValueError) -> str:
    """Why opening or decoding a file failed, without its name.

    Python raises ValueError for a name with a NUL, or with half of a surrogate pair.
    """
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "no file has such a name"


def is_file_name(text: str) -> bool:
    """Whether a file can have this name: no NUL, and no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def shown(name: str) -> str:
    """The name for a message: what no file name may have is escaped, so that it can be printed."""
    return name if is_file_name(name) else name.encode("unicode_escape").decode()
