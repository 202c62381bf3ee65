"""When the garbage collector of Python stays away from objects that all stay alive."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections(*, freeze: bool = False) -> Iterator[None]:
    """No garbage collection inside: millions of new objects that all stay would be visited many times.

    freeze: nor is anything visited later that is alive at the end (`gc.freeze`). Cycles that are
        garbage by then are never freed, so only a program asks for this, never a library.

    Changes nothing where the collector is off, as inside another one of these.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
        if freeze:
            gc.freeze()
    finally:
        gc.enable()
