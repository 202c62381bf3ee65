"""Public faces of packages that load a module when one of its names is first used (PEP 562).

A command of `quorate` starts in about 100 ms. A package that imported all of its modules for its
public names would cost every command the modules of all others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def load_lazily(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package; `names` maps a module to its public names, with spaces.

    The package names them again under TYPE_CHECKING and in `__all__`, for type checkers and
    editors; tests/base/test_lazy.py holds the three together. A public name must not be the name
    of a module of the package: the import of that module would replace it.
    """
    home = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        module = home.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    return load
