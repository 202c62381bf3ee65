"""What compiled values need in order to pass for the dataclasses that their sources say they are.

Only what `tools/native_classes.py` writes imports it; nothing in the sources does.
"""

from __future__ import annotations

import copyreg
from copy import copy
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(**_: object) -> Any:
        """mypyc reads it and never calls it: no need of the package at run time. To a class that
        runs in the interpreter it does nothing."""
        return lambda cls: cls


_FIELD: Final[Any] = make_dataclass("One", ["field"]).__dataclass_fields__["field"]  # type: ignore[attr-defined]


def as_dataclass(cls: Any, names: tuple[str, ...]) -> None:
    """Let values of this native class be used as those of a dataclass with fields of these names.

    The names are in the order of `__init__`. `repr`, `match`, `dataclasses.replace`, pickle and
    copy then work.
    """

    def said(value: object) -> str:
        return f"{cls.__name__}({', '.join(f'{n}={getattr(value, n)!r}' for n in names)})"

    def parts(value: object) -> tuple[Any, tuple[object, ...]]:
        return cls, tuple(getattr(value, name) for name in names)

    cls.__dataclass_fields__ = {name: _field(name) for name in names}
    cls.__match_args__ = names  # type: ignore[misc]
    copyreg.pickle(cls, parts)
    if cls.__repr__ is object.__repr__:
        cls.__repr__ = said


def _field(name: str) -> object:
    field = copy(_FIELD)
    field.name = name
    return field
