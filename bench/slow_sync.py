"""Run a Python program on a slow disk: `python -m bench.slow_sync MS PROGRAM [ARGUMENT]...`

Every sync of a file takes MS milliseconds longer, as on a disk far away. The program is unchanged.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Callable
from typing import Any


def slowed(sync: Callable[[Any], None], seconds: float) -> Callable[[Any], None]:
    """`sync`, taking `seconds` longer."""

    def slow(descriptor: Any) -> None:
        sync(descriptor)
        time.sleep(seconds)

    return slow


def main() -> None:
    milliseconds, *sys.argv = sys.argv[1:]
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, slowed(getattr(os, name), float(milliseconds) / 1000))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
