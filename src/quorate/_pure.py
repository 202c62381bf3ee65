"""Import the sources although compiled parts lie beside them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType


class SourceFinder(MetaPathFinder):
    """Finds modules of this package in `.py` files alone, but for one that is kept."""

    def __init__(self, kept: str | None = None) -> None:
        self._kept = kept

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("quorate.") or name == self._kept:
            return None
        for folder in path:
            finder = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            if (spec := finder.find_spec(name)) is not None:
                return spec
        raise ModuleNotFoundError(f"{name} has no source", name=name)


def prefer_sources(kept: str | None = None) -> None:
    """Prefer sources from now on. What is imported already stays as it is, and so does the module `kept`."""
    sys.meta_path.insert(0, SourceFinder(kept))
