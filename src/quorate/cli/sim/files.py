"""Whether the commands of `quorate sim` may write at their end, which may be hours away."""

from __future__ import annotations

from pathlib import Path

import click


def check_place(place: str | Path | None, option: str, *read: str | None) -> None:
    """Check that a command can write to `place` in the end, and has not `read` it.

    Raises BadParameter.
    """
    if place is None:
        return
    path = Path(place)
    if not str(place) or path.is_dir():
        raise click.BadParameter(f"'{place}' is no file", param_hint=option)
    is_open = str(path).startswith("/dev/")  # a pipe of the shell's has its reader
    if path.is_fifo() and not is_open:  # else who is interrupted would wait for one
        raise click.BadParameter(f"'{place}' is a pipe: name a file", param_hint=option)
    if not path.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory for '{place}'", param_hint=option)
    for source in read:
        if source and Path(source).is_file() and path.exists() and path.samefile(source):
            said = f"'{place}' is what is read here: name another file"
            raise click.BadParameter(said, param_hint=option)
